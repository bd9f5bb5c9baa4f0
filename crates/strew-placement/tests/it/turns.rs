//! Expressions of one namespace hold up no decision of another: spec/placement §2.3.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use strew_model::Symbol;
use strew_placement::facts::placement::{
    CelId, CelSelector, ClusterPredicates, PlacementFact, PlacementSpec,
};
use strew_placement::facts::status::{ConditionType, PlacementStatus};
use strew_placement::machine::{Effect, Input};
use strew_placement::{Answer, ClusterPredicate};

use crate::hub::Live;

/// Expressions that are false, with a cost for each cluster. Counts what was evaluated, and keeps the answers.
struct Costly {
    each: u32,
    known: RefCell<BTreeSet<(CelId, Symbol)>>,
}

impl Costly {
    fn new(each: u32) -> Self {
        Self {
            each,
            known: RefCell::default(),
        }
    }

    fn spent(&self) -> u64 {
        self.known.borrow().len() as u64 * u64::from(self.each)
    }
}

impl ClusterPredicate for Costly {
    fn answer(&self, selector: CelId, cluster: Symbol) -> Answer {
        Answer {
            holds: false,
            cost: self.each,
            is_new: self.known.borrow_mut().insert((selector, cluster)),
        }
    }
}

/// Clusters that change with each poll. An answer of the time before a change is an earlier one.
#[derive(Default)]
struct Changing {
    /// For each cluster whether the answer is one of the cluster as it is.
    known: RefCell<BTreeMap<Symbol, bool>>,
    /// What was evaluated since the last poll.
    n_new: RefCell<u64>,
}

impl Changing {
    fn change_all(&self) {
        let mut known = self.known.borrow_mut();
        known.values_mut().for_each(|is_now| *is_now = false);
        *self.n_new.borrow_mut() = 0;
    }

    fn answered(&self, cluster: Symbol, or_earlier: bool) -> Answer {
        let mut known = self.known.borrow_mut();
        let is_new = known
            .get(&cluster)
            .is_none_or(|is_now| !is_now && !or_earlier);
        if is_new {
            known.insert(cluster, true);
            *self.n_new.borrow_mut() += 1;
        }
        Answer {
            holds: true,
            cost: 1_000_000,
            is_new,
        }
    }
}

impl ClusterPredicate for Changing {
    fn answer(&self, _: CelId, cluster: Symbol) -> Answer {
        self.answered(cluster, false)
    }

    fn earlier(&self, _: CelId, cluster: Symbol) -> Answer {
        self.answered(cluster, true)
    }
}

/// Before, such a placement was never decided: each turn began with the clusters that had changed since the last one.
#[test]
fn a_placement_is_decided_although_its_clusters_change_faster_than_its_turns_come() {
    let mut live = live(30);
    live.place("p", costly(0));
    let cel = Changing::default();
    let mut decided = 0;
    for _ in 0..200 {
        cel.change_all();
        if let Some(effect) = live.machine.poll_effect(&cel) {
            decided += usize::from(matches!(effect, Effect::WriteDecision { .. }));
            live.carry_out(effect);
        }
        // Nothing is evaluated beyond a turn, nor with the decision.
        assert!(*cel.n_new.borrow() <= 5, "{}", cel.n_new.borrow());
    }
    assert!(decided >= 1);
    // Once they rest, it is decided with the clusters as they are.
    cel.change_all();
    while let Some(effect) = live.machine.next_effect(&cel) {
        live.carry_out(effect);
    }
    assert!(cel.known.borrow().values().all(|is_now| *is_now));
}

fn live(n_clusters: usize) -> Live {
    let mut live = Live::new();
    for i in 0..n_clusters {
        let fact = live.cluster(&format!("c{i:03}"), &[]);
        live.tell(Input::ClusterSet(fact));
    }
    live
}

fn costly(id: u32) -> PlacementSpec {
    let cel = CelSelector {
        id: CelId(id),
        scores: Some([].into()),
    };
    PlacementSpec {
        predicates: Ok([ClusterPredicates {
            cel: Some(cel),
            ..ClusterPredicates::default()
        }]
        .into()),
        ..PlacementSpec::default()
    }
}

/// A Placement of a namespace of its own, which may choose from all clusters.
fn plain(live: &mut Live, namespace: &str) -> Symbol {
    let (namespace, all) = (live.name(namespace), live.name("all"));
    let binding = Input::BindingSet {
        namespace,
        name: all,
    };
    live.tell(binding);
    let fact = PlacementFact {
        namespace,
        name: namespace,
        uid: "uid".into(),
        spec: PlacementSpec::default(),
        status: PlacementStatus::default(),
        ignored: false,
        revision: 1,
    };
    let (now, fact) = (live.now, Box::new(fact));
    live.machine.handle(now, Input::PlacementSet(fact));
    namespace
}

fn namespace_of(effect: &Effect) -> Symbol {
    match effect {
        Effect::WriteDecision { placement, .. } | Effect::WriteStatus { placement, .. } => {
            placement.namespace
        }
        Effect::Event(event) => event.placement.namespace,
    }
}

/// Polls until an effect is of this namespace; `None` if all is decided before.
fn until(live: &mut Live, cel: &Costly, namespace: Symbol) -> Option<Effect> {
    loop {
        let effect = live.machine.next_effect(cel)?;
        if namespace_of(&effect) == namespace {
            return Some(effect);
        }
    }
}

/// Before, the plain placement came when all expressions were evaluated: 1,000,000,000 units.
#[test]
fn expressions_of_one_namespace_hold_up_no_placement_of_another() {
    let mut live = live(50);
    for i in 0..20 {
        live.place(&format!("p{i}"), costly(i));
    }
    let other = plain(&mut live, "other");
    let cel = Costly::new(1_000_000);
    assert!(until(&mut live, &cel, other).is_some());
    assert!(cel.spent() <= 5_000_000, "{} units", cel.spent());

    // One that comes while they are evaluated: the machine returns after each slice.
    assert!(live.machine.poll_effect(&cel).is_none());
    assert_eq!(live.machine.next_wake(), Some(live.now), "there is more");
    let late = plain(&mut live, "late");
    let before = cel.spent();
    assert!(until(&mut live, &cel, late).is_some());
    assert!(cel.spent() - before <= 5_000_000, "{} units", cel.spent());

    // All are decided in the end.
    let own = live.name("ns");
    for _ in 0..20 {
        assert!(until(&mut live, &cel, own).is_some());
    }
    assert_eq!(cel.spent(), 1_000_000_000);
}

#[test]
fn expressions_that_cost_too_much_over_all_clusters_are_a_misconfiguration() {
    for (n_clusters, expected) in [
        (
            20,
            "False Succeedconfigured Placement configurations check pass",
        ),
        (
            21,
            "True Misconfigured Predicate:the celExpressions cost 210000000 units for the first 21 of 21 clusters, more than the \
             200000000 that a Placement has",
        ),
    ] {
        let mut live = live(n_clusters);
        live.place("p", costly(0));
        let (cel, own) = (Costly::new(10_000_000), live.name("ns"));
        while let Some(effect) = until(&mut live, &cel, own) {
            live.carry_out(effect);
        }
        let said = live.condition("p", ConditionType::Misconfigured);
        let said = said.expect("it is always there");
        assert_eq!(said, expected, "{n_clusters} clusters");
    }
}
