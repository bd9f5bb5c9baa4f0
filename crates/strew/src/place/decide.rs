//! Runs the placement machine over a fleet until it rests, as on a hub.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Instant, Interner, Symbol};
use strew_placement::Explanation;
use strew_placement::explain::{Detail, with_detail};
use strew_placement::facts::decision::{DecisionFact, Replicas};
use strew_placement::facts::placement::PlacementFact;
use strew_placement::facts::status::{Condition, ConditionReason, ConditionType};
use strew_placement::machine::{Effect, Input, Limits, Outcome as Done, PlacementMachine};
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::debug::DebugResult;

use super::fleet::Fleet;

/// The result of a Placement.
pub(super) struct Decided {
    /// The Placement, with the status that was written.
    pub(super) fact: PlacementFact,
    /// The explanation at the time of the decision; only for Placements that are shown.
    pub(super) why: Option<Explanation>,
    /// A set that cannot be read, with the reason: the Placement was not decided.
    broken: Option<(Symbol, Arc<str>)>,
    /// Its PlacementDecisions, by group and number.
    pub(super) decisions: Vec<DecisionFact>,
}

/// The results of all Placements.
pub(super) struct Outcome {
    /// The strings of all facts.
    pub(super) names: Interner,
    /// By namespace and name.
    pub(super) decided: Vec<Decided>,
}

/// The clusters of Placements, by namespace and name.
pub(super) type Held = BTreeMap<(Symbol, Symbol), Vec<DecisionFact>>;

/// The input of the decisions.
pub(super) struct Ground<'a> {
    /// The strings of all facts.
    pub(super) names: &'a Interner,
    pub(super) cel: &'a CelSelectors,
    /// All facts except Placements.
    pub(super) facts: &'a [Input],
    /// By namespace and name.
    pub(super) placements: &'a [PlacementFact],
    pub(super) now: Instant,
}

/// The detail of a Placement's explanation; `None`: no explanation.
pub(super) type Wanted<'a> = &'a dyn Fn(&PlacementFact) -> Option<Detail>;

/// The number of rounds after which decisions that are in no file must be stable.
const ROUNDS_MAX: usize = 4;

/// Decides all Placements in order. `held` replaces the PlacementDecisions among the facts.
pub(super) fn decide(ground: &Ground<'_>, held: &Held, wanted: Wanted<'_>) -> Outcome {
    let limits = Limits {
        resync: None,
        ..Limits::production()
    };
    let now = ground.now;
    let mut world = World {
        machine: PlacementMachine::new(ground.names.clone(), limits, now),
        cel: ground.cel,
        now,
        revision: 0,
    };
    for input in ground.facts {
        let is_old = matches!(input, Input::DecisionSet(d)
            if d.placement.is_some_and(|name| held.contains_key(&(d.namespace, name))));
        if !is_old {
            world.machine.handle(now, input.clone());
        }
    }
    for decision in held.values().flatten() {
        let input = Input::DecisionSet(decision.clone());
        world.machine.handle(now, input);
    }
    let placements = ground.placements.iter().cloned();
    let decided = placements.map(|fact| world.place(fact, wanted)).collect();
    Outcome {
        names: world.machine.names_mut().clone(),
        decided,
    }
}

/// The clusters of Placements before a change: the `stored` ones, and for Placements without any the result after their
/// decisions are stable. Then the result of all Placements without a change.
pub(super) fn before(ground: &Ground<'_>, stored: &Held) -> (Held, Outcome) {
    let mut held = stored.clone();
    let mut outcome = decide(ground, &held, &|_| None);
    for _ in 1..ROUNDS_MAX {
        let mut moved = false;
        for decided in &outcome.decided {
            let key = (decided.fact.namespace, decided.fact.name);
            if !stored.contains_key(&key) && held.get(&key) != Some(&decided.decisions) {
                held.insert(key, decided.decisions.clone());
                moved = true;
            }
        }
        if !moved {
            break;
        }
        let ground = Ground {
            names: &outcome.names,
            ..*ground
        };
        outcome = decide(&ground, &held, &|_| None);
    }
    (held, outcome)
}

struct World<'a> {
    machine: PlacementMachine,
    cel: &'a CelSelectors,
    now: Instant,
    revision: u64,
}

impl World<'_> {
    fn place(&mut self, fact: PlacementFact, wanted: Wanted<'_>) -> Decided {
        let cel = self.cel;
        let why = wanted(&fact)
            .map(|detail| with_detail(self.machine.hub(), self.now, &fact, cel, detail));
        let broken = self.machine.hub().candidates(&fact).broken;
        let (namespace, name) = (fact.namespace, fact.name);
        self.machine
            .handle(self.now, Input::PlacementSet(Box::new(fact.clone())));
        while let Some(effect) = self.machine.next_effect(cel) {
            let (Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. }) = effect else {
                continue;
            };
            self.revision += 1;
            let outcome = Done::Ok {
                revision: self.revision,
            };
            self.machine.handle(
                self.now,
                Input::Outcome {
                    effect: id,
                    outcome,
                },
            );
        }
        let hub = self.machine.hub();
        let mut decisions: Vec<DecisionFact> = hub.ledger.of(namespace, name).cloned().collect();
        let text = |symbol: Symbol| hub.names.text(symbol);
        // `web-decision-2` before `web-decision-10`.
        decisions.sort_by_key(|d| (d.group.index, text(d.name).len(), text(d.name).to_owned()));
        Decided {
            broken: broken.filter(|_| !fact.ignored),
            fact: self
                .machine
                .placement(namespace, name)
                .cloned()
                .unwrap_or(fact),
            why,
            decisions,
        }
    }
}

impl Decided {
    /// Its clusters, with the index of their group.
    pub(super) fn clusters(&self) -> impl Iterator<Item = (Symbol, u32)> + '_ {
        let each = |d: &DecisionFact| {
            let group = d.group.index.unwrap_or(0);
            let clusters: Vec<_> = d.decisions.iter().map(|c| (c.cluster, group)).collect();
            clusters
        };
        self.decisions.iter().flat_map(each)
    }

    /// The replicas of its clusters; `None` if none are divided.
    pub(super) fn replicas(&self) -> Option<BTreeMap<Symbol, u32>> {
        replicas(&self.decisions)
    }

    /// A condition of its status.
    pub(super) fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        self.fact.status.condition(kind)
    }

    /// True if it got fewer clusters than asked for, or none, or clusters in fewer topologies than `minGroups`.
    pub(super) fn is_short(&self) -> bool {
        if self.fact.ignored || self.fact.spec.number_of_clusters == Some(0) {
            return false;
        }
        let spread = self.condition(ConditionType::SpreadSatisfied);
        if spread.is_some_and(|spread| spread.reason == ConditionReason::SpreadTooFewGroups) {
            return true;
        }
        let satisfied = self.condition(ConditionType::Satisfied);
        satisfied.is_none_or(|condition| !condition.status)
    }

    /// True if its specification is invalid.
    pub(super) fn is_misconfigured(&self) -> bool {
        let misconfigured = self.condition(ConditionType::Misconfigured);
        !self.fact.ignored && misconfigured.is_some_and(|condition| condition.status)
    }

    /// True if it is not spread as asked for.
    pub(super) fn is_uneven(&self) -> bool {
        let spread = self.condition(ConditionType::SpreadSatisfied);
        !self.fact.ignored && spread.is_some_and(|condition| !condition.status)
    }
}

/// The replicas of the decisions; `None` if there are none.
pub(super) fn replicas(decisions: &[DecisionFact]) -> Option<BTreeMap<Symbol, u32>> {
    let mut parts: Option<BTreeMap<Symbol, u32>> = None;
    for decision in decisions {
        if let Replicas::Parts(own) = &decision.replicas {
            parts.get_or_insert_default().extend(own.iter().copied());
        }
    }
    parts
}

impl Outcome {
    /// The explanation of a Placement, for programs and for people.
    pub(super) fn why(&self, decided: &Decided, fleet: &Fleet) -> Option<DebugResult> {
        let key = (decided.fact.namespace, decided.fact.name);
        let written = fleet.written.get(&key).cloned().unwrap_or_default();
        let why = decided.why.as_ref()?;
        Some(DebugResult::of(&written, why, &self.names))
    }

    /// `shop/web`.
    pub(super) fn label(&self, decided: &Decided) -> String {
        let text = |symbol: Symbol| self.names.text(symbol);
        format!(
            "{}/{}",
            text(decided.fact.namespace),
            text(decided.fact.name)
        )
    }

    /// A Placement that was not decided because a set cannot be read, with the set and the reason.
    pub(super) fn broken(&self) -> Option<(String, String, String)> {
        self.decided.iter().find_map(|decided| {
            let (set, why) = decided.broken.as_ref()?;
            let set = self.names.text(*set).to_owned();
            Some((self.label(decided), set, why.to_string()))
        })
    }
}
