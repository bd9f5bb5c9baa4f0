//! The machine of placement, run over a fleet until it rests: the same that a hub would run.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Instant, Interner, Symbol};
use strew_placement::Explanation;
use strew_placement::explain::{Detail, with_detail};
use strew_placement::facts::decision::{DecisionFact, Replicas};
use strew_placement::facts::placement::PlacementFact;
use strew_placement::facts::status::{Condition, ConditionReason, ConditionType};
use strew_placement::machine::{Effect, Input, Limits, Outcome as Done, Placer};
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::debug::DebugResult;

use super::fleet::Fleet;

/// What a Placement got.
pub(super) struct Decided {
    /// It, with the status that was written.
    pub(super) fact: PlacementFact,
    /// Why, as things were when it was decided; of Placements that are shown.
    pub(super) why: Option<Explanation>,
    /// A set that cannot be read, and why: it was not decided.
    broken: Option<(Symbol, Arc<str>)>,
    /// Its PlacementDecisions, by group and number.
    pub(super) decisions: Vec<DecisionFact>,
}

/// What all Placements got.
pub(super) struct Outcome {
    /// The strings of all of it.
    pub(super) names: Interner,
    /// By namespace and name.
    pub(super) decided: Vec<Decided>,
}

/// What Placements hold, by namespace and name.
pub(super) type Held = BTreeMap<(Symbol, Symbol), Vec<DecisionFact>>;

/// What is decided upon.
pub(super) struct Ground<'a> {
    /// The strings of all facts.
    pub(super) names: &'a Interner,
    pub(super) cel: &'a CelSelectors,
    /// Everything but Placements.
    pub(super) facts: &'a [Input],
    /// By namespace and name.
    pub(super) placements: &'a [PlacementFact],
    pub(super) now: Instant,
}

/// How much is wanted of a Placement's reasons; `None`: nothing.
pub(super) type Wanted<'a> = &'a dyn Fn(&PlacementFact) -> Option<Detail>;

/// Rounds until decisions that no file holds must stand.
const ROUNDS_MAX: usize = 4;

/// Decides all Placements, in their order. What they `held` counts instead of the PlacementDecisions among the facts.
pub(super) fn decide(ground: &Ground<'_>, held: &Held, wanted: Wanted<'_>) -> Outcome {
    let limits = Limits {
        resync: None,
        ..Limits::production()
    };
    let now = ground.now;
    let mut world = World {
        placer: Placer::new(ground.names.clone(), limits, now),
        cel: ground.cel,
        now,
        revision: 0,
    };
    for input in ground.facts {
        let is_old = matches!(input, Input::DecisionSet(d)
            if d.placement.is_some_and(|name| held.contains_key(&(d.namespace, name))));
        if !is_old {
            world.placer.handle(now, input.clone());
        }
    }
    for decision in held.values().flatten() {
        let input = Input::DecisionSet(decision.clone());
        world.placer.handle(now, input);
    }
    let placements = ground.placements.iter().cloned();
    let decided = placements.map(|fact| world.place(fact, wanted)).collect();
    Outcome {
        names: world.placer.names_mut().clone(),
        decided,
    }
}

/// What Placements hold before a change: what is `stored`, and of those that hold nothing yet what they get once
/// decisions do not move any more. Then what all of them would get without a change.
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
    placer: Placer,
    cel: &'a CelSelectors,
    now: Instant,
    revision: u64,
}

impl World<'_> {
    fn place(&mut self, fact: PlacementFact, wanted: Wanted<'_>) -> Decided {
        let cel = self.cel;
        let why = wanted(&fact)
            .map(|detail| with_detail(self.placer.hub(), self.now, &fact, cel, detail));
        let broken = self.placer.hub().candidates(&fact).broken;
        let (namespace, name) = (fact.namespace, fact.name);
        self.placer
            .handle(self.now, Input::PlacementSet(Box::new(fact.clone())));
        while let Some(effect) = self.placer.poll_effect(cel) {
            let (Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. }) = effect else {
                continue;
            };
            self.revision += 1;
            let outcome = Done::Ok {
                revision: self.revision,
            };
            self.placer.handle(
                self.now,
                Input::Outcome {
                    effect: id,
                    outcome,
                },
            );
        }
        let hub = self.placer.hub();
        let mut decisions: Vec<DecisionFact> = hub.ledger.of(namespace, name).cloned().collect();
        let text = |symbol: Symbol| hub.names.text(symbol);
        // `web-decision-2` before `web-decision-10`.
        decisions.sort_by_key(|d| (d.group.index, text(d.name).len(), text(d.name).to_owned()));
        Decided {
            broken: broken.filter(|_| !fact.ignored),
            fact: self
                .placer
                .placement(namespace, name)
                .cloned()
                .unwrap_or(fact),
            why,
            decisions,
        }
    }
}

impl Decided {
    /// The clusters that it holds, with the place of their group.
    pub(super) fn clusters(&self) -> impl Iterator<Item = (Symbol, u32)> + '_ {
        let each = |d: &DecisionFact| {
            let group = d.group.index.unwrap_or(0);
            let clusters: Vec<_> = d.decisions.iter().map(|c| (c.cluster, group)).collect();
            clusters
        };
        self.decisions.iter().flat_map(each)
    }

    /// The replicas of the clusters that it holds; `None` where none are divided.
    pub(super) fn replicas(&self) -> Option<BTreeMap<Symbol, u32>> {
        replicas(&self.decisions)
    }

    /// A condition of its status.
    pub(super) fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        self.fact.status.condition(kind)
    }

    /// Whether it got fewer clusters than it asked for, or none, or clusters in fewer topologies than `minGroups`.
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

    /// Whether its specification makes no sense.
    pub(super) fn is_misconfigured(&self) -> bool {
        let misconfigured = self.condition(ConditionType::Misconfigured);
        !self.fact.ignored && misconfigured.is_some_and(|condition| condition.status)
    }

    /// Whether it is spread otherwise than it asks for.
    pub(super) fn is_uneven(&self) -> bool {
        let spread = self.condition(ConditionType::SpreadSatisfied);
        !self.fact.ignored && spread.is_some_and(|condition| !condition.status)
    }
}

/// The replicas in decisions; `None` where there are none.
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
    /// Why a Placement got what it got, for programs and for people.
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

    /// A Placement that was not decided because a set cannot be read: it, the set, and why.
    pub(super) fn broken(&self) -> Option<(String, String, String)> {
        self.decided.iter().find_map(|decided| {
            let (set, why) = decided.broken.as_ref()?;
            let set = self.names.text(*set).to_owned();
            Some((self.label(decided), set, why.to_string()))
        })
    }
}
