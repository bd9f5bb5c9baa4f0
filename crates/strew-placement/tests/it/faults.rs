//! Writes that fail, writes that succeed without an answer, and crashes between two writes.

use std::collections::BTreeSet;

use strew_model::{Prng, Span, Symbol};
use strew_placement::NoCel;
use strew_placement::facts::decision::{Decision, DecisionFact, GroupLabels};
use strew_placement::facts::placement::{GroupSize, PlacementSpec};
use strew_placement::machine::{Effect, Input, Outcome};

use crate::hub::Live;

/// All clusters that some decision names.
fn held(live: &Live) -> BTreeSet<Symbol> {
    let decisions = live
        .decisions
        .values()
        .flat_map(|fact| fact.decisions.iter());
    decisions.map(|decision| decision.cluster).collect()
}

/// Groups of a few clusters, so that one that comes or goes shifts all others from object to object.
fn spec(dice: &mut Prng) -> PlacementSpec {
    let mut spec = PlacementSpec::default();
    spec.groups.size = GroupSize::Count(dice.between(1, 4) as i32);
    spec
}

/// Carries out effects with faults, for some steps.
fn badly(live: &mut Live, dice: &mut Prng) {
    for _ in 0..dice.between(1, 6) {
        let Some(effect) = live.machine.poll_effect(&NoCel) else {
            return;
        };
        let id = match &effect {
            Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. } => *id,
            Effect::Event(_) => continue,
        };
        match dice.between(0, 9) {
            // The write fails.
            0 => {
                let outcome = Outcome::Failed("unreachable".into());
                live.machine.handle(
                    live.now,
                    Input::Outcome {
                        effect: id,
                        outcome,
                    },
                );
            }
            // The write succeeds, but only the fact shows it.
            1 => {
                let fact = live.store(effect).1;
                live.machine.handle(live.now, fact);
                let outcome = Outcome::Failed("timeout".into());
                live.machine.handle(
                    live.now,
                    Input::Outcome {
                        effect: id,
                        outcome,
                    },
                );
            }
            // The result is unknown, and the process dies.
            2 => {
                if dice.chance(1, 2) {
                    live.store(effect);
                }
                live.machine = live.restarted();
            }
            _ => live.carry_out(effect),
        }
    }
}

#[test]
fn a_write_that_is_refused_for_ever_is_tried_less_and_less() {
    for outcome in [
        Outcome::Failed("must be no more than 63 characters".into()),
        Outcome::Conflict("already exists".into()),
        Outcome::Gone,
    ] {
        let mut live = Live::new();
        let fact = live.cluster("c1", &[]);
        live.tell(Input::ClusterSet(fact));
        live.place("p", PlacementSpec::default());
        let (end, mut n_writes) = (live.now + Span::from_secs(600), 0);
        while live.now < end {
            while let Some(effect) = live.machine.poll_effect(&NoCel) {
                let (Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. }) = effect
                else {
                    continue;
                };
                n_writes += 1;
                let (effect, outcome) = (id, outcome.clone());
                let input = Input::Outcome { effect, outcome };
                live.machine.handle(live.now, input);
            }
            live.now = live.machine.next_wake().expect("it is tried again");
            live.machine.handle(live.now, Input::Tick);
        }
        assert!((10..=20).contains(&n_writes), "{outcome:?}: {n_writes}");
    }
}

#[test]
fn after_writes_that_succeed_the_next_failure_is_the_first() {
    let mut live = Live::new();
    let fact = live.cluster("c1", &[]);
    live.tell(Input::ClusterSet(fact));
    live.place("p", PlacementSpec::default());
    let fail = |live: &mut Live| {
        let effect = live.machine.poll_effect(&NoCel).expect("a write");
        let (Effect::WriteDecision { id: effect, .. } | Effect::WriteStatus { id: effect, .. }) =
            effect
        else {
            panic!("{effect:?}");
        };
        let outcome = Outcome::Failed("unreachable".into());
        let input = Input::Outcome { effect, outcome };
        live.machine.handle(live.now, input);
        let next = live.machine.next_wake().expect("it is tried again");
        let wait = next.since(live.now);
        live.now = next;
        live.machine.handle(live.now, Input::Tick);
        wait
    };
    let waits: Vec<Span> = (0..4).map(|_| fail(&mut live)).collect();
    assert_eq!(waits, [5, 10, 20, 40].map(Span::from_millis));
    live.rest();
    assert_eq!(live.held("p"), ["c1"]);
    let fact = live.cluster("c2", &[]);
    live.tell(Input::ClusterSet(fact));
    assert_eq!(fail(&mut live), Span::from_millis(5));
}

/// As in OCM: a user removed the label, or created the object.
#[test]
fn a_decision_of_the_right_name_without_the_label_is_adopted() {
    let mut live = Live::new();
    for name in ["c1", "c2"] {
        let fact = live.cluster(name, &[]);
        live.tell(Input::ClusterSet(fact));
    }
    let (namespace, name) = (live.name("ns"), live.name("p-decision-1"));
    let cluster = live.name("c1");
    let fact = DecisionFact {
        namespace,
        name,
        placement: None,
        group: GroupLabels {
            index: Some(0),
            name: None,
        },
        decisions: [Decision {
            cluster,
            score: None,
        }]
        .into(),
        replicas: Default::default(),
        has_reason: false,
        revision: 9,
    };
    live.decisions.insert((namespace, name), fact.clone());
    live.tell(Input::DecisionSet(fact));
    live.place("p", PlacementSpec::default());
    assert_eq!(live.rest(), 2, "the decision, and the status");
    assert_eq!(live.held("p"), ["c1", "c2"]);
    // The label is removed: the object is taken back.
    let fact = live
        .decisions
        .get_mut(&(namespace, name))
        .expect("it is there");
    (fact.placement, fact.revision) = (None, 99);
    let fact = fact.clone();
    live.tell(Input::DecisionSet(fact));
    assert_eq!(live.rest(), 1);
    assert_eq!(live.held("p"), ["c1", "c2"]);
    assert_eq!(live.decisions.len(), 1);
}

#[test]
fn nobody_who_stays_is_missing_at_any_instant_whatever_fails() {
    let mut moves = 0;
    for seed in 0..150 {
        let mut dice = Prng::new(seed);
        let mut live = Live::new();
        let mut there: BTreeSet<u64> = BTreeSet::new();
        let spec = spec(&mut dice);
        live.place("p", spec);
        let mut stay: BTreeSet<Symbol> = BTreeSet::new();
        for _ in 0..25 {
            let n = dice.between(0, 11);
            let name = live.name(&format!("c{n:02}"));
            if there.remove(&n) {
                live.tell(Input::ClusterGone(name));
                stay.remove(&name);
            } else {
                there.insert(n);
                let fact = live.cluster(&format!("c{n:02}"), &[]);
                live.tell(Input::ClusterSet(fact));
            }
            live.watched = stay.clone();
            badly(&mut live, &mut dice);
            // Clusters that were held and still match must be there from now on.
            let to_be_had: BTreeSet<Symbol> = there
                .iter()
                .map(|n| format!("c{n:02}"))
                .map(|name| live.name(&name))
                .collect();
            stay = held(&live).intersection(&to_be_had).copied().collect();
        }
        live.watched = stay;
        live.wait(3_000);
        assert_eq!(
            live.held("p").len(),
            there.len(),
            "seed {seed}: calm brings everything right"
        );
        moves += live.writes;
    }
    assert!(moves > 2_000, "something was written: {moves}");
}
