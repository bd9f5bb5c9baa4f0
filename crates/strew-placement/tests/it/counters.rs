//! The counters for metrics. Source: spec/placement §2.12.

use strew_model::Span;
use strew_placement::NoCel;
use strew_placement::facts::placement::{
    GroupSize, PlacementSpec, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::machine::{Counters, Durations, Effect, Input, Outcome};

use crate::hub::Live;

fn counters(live: &Live) -> Counters {
    *live.machine.counters()
}

/// Three clusters, and a placement `p` of two of them in groups of one.
fn live() -> Live {
    let mut live = Live::new();
    for name in ["a", "b", "c"] {
        let fact = live.cluster(name, &[("zone", name)]);
        live.tell(Input::ClusterSet(fact));
    }
    live.place("p", spec(2));
    live
}

fn spec(n: i32) -> PlacementSpec {
    let mut spec = PlacementSpec {
        number_of_clusters: Some(n),
        ..PlacementSpec::default()
    };
    spec.groups.size = GroupSize::Count(1);
    spec
}

#[test]
fn decisions_and_their_writes_are_counted() {
    let mut live = live();
    live.rest();
    let first = counters(&live);
    assert_eq!((first.decided, first.runs, first.created), (1, 1, 2));
    assert_eq!((first.updated, first.deleted, first.statuses), (0, 0, 1));
    // A run with spread constraints is repeated until its result is stable. Fewer clusters need fewer objects.
    let zone = live.name("zone");
    let term = SpreadTerm {
        key: zone,
        key_type: TopologyKeyType::Label,
        max_skew: 1,
        when: WhenUnsatisfiable::DoNotSchedule,
        weights: None,
        groups: Default::default(),
    };
    let fewer = PlacementSpec {
        spread: [term].into(),
        ..spec(1)
    };
    live.place("p", fewer);
    live.rest();
    let then = counters(&live);
    assert_eq!((then.decided, then.runs), (2, 3));
    assert_eq!((then.deleted, then.statuses), (1, 2));
    live.place("p", spec(-1));
    live.rest();
    let wrong = counters(&live);
    assert_eq!((wrong.decided, wrong.misconfigured), (3, 1));
    assert_eq!((wrong.runs, wrong.updated), (3, 1), "nothing was selected");
    assert_eq!((wrong.conflicts, wrong.failed, wrong.warned), (0, 0, 0));
}

#[test]
fn writes_that_come_to_nothing_are_told_apart() {
    for (outcome, expected) in [
        (Outcome::Conflict("changed".into()), (1, 0)),
        (Outcome::Gone, (1, 0)),
        (Outcome::Failed("unreachable".into()), (0, 1)),
    ] {
        let mut live = live();
        let Some(Effect::WriteDecision { id: effect, .. }) = live.machine.poll_effect(&NoCel)
        else {
            panic!("something is to be written");
        };
        let input = Input::Outcome { effect, outcome };
        live.machine.handle(live.now, input);
        let counters = counters(&live);
        assert_eq!((counters.conflicts, counters.failed), expected);
        assert_eq!((counters.created, counters.binding.count), (0, 1));
    }
}

/// A change waits one second for its decision; each of three writes takes 20 milliseconds.
#[test]
fn waiting_and_writing_are_measured_by_the_instants_that_are_told() {
    let mut live = live();
    live.now = live.now + Span::from_secs(1);
    live.machine.handle(live.now, Input::Tick);
    while let Some(effect) = live.machine.poll_effect(&NoCel) {
        if !matches!(effect, Effect::Event(_)) {
            live.now = live.now + Span::from_millis(20);
        }
        live.carry_out(effect);
    }
    let Counters {
        scheduling,
        binding,
        ..
    } = counters(&live);
    let took = |durations: Durations| (durations.count, durations.sum);
    assert_eq!(took(scheduling), (1, Span::from_secs(1)));
    assert_eq!(took(binding), (1, Span::from_millis(60)));
    // Bounds of 1 µs, 10 µs, ... 1,000 s: each bucket includes the smaller ones.
    assert_eq!(scheduling.within, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(binding.within, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    assert_eq!(Durations::BOUNDS[9], Span::from_secs(1_000));
}
