//! The machine of placement, run over a fleet until it rests: the same that a hub would run.

use std::collections::BTreeSet;

use strew_api::placement::debug::DebugResult;
use strew_model::{Instant, Interner, Symbol};
use strew_placement::explain::explain;
use strew_placement::facts::decision::DecisionFact;
use strew_placement::facts::placement::PlacementFact;
use strew_placement::facts::status::{Condition, ConditionType};
use strew_placement::machine::{Effect, Input, Limits, Outcome as Done, Placer};
use strew_placement::{Code, Explanation};

use super::fleet::Fleet;

/// What a Placement got.
pub(super) struct Decided {
    /// It, with the status that was written.
    pub(super) fact: PlacementFact,
    /// Why, as things were when it was decided.
    pub(super) explanation: Explanation,
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

/// Decides all Placements, in their order. `before` holds what they got earlier, instead of what the files say;
/// clusters that are `lost` are not there.
pub(super) fn decide(
    fleet: &Fleet,
    now: Instant,
    before: Option<&Outcome>,
    lost: Option<&BTreeSet<Symbol>>,
) -> Outcome {
    let names = before.map_or(&fleet.names, |before| &before.names);
    let limits = Limits {
        resync: None,
        ..Limits::production()
    };
    let mut world = World {
        placer: Placer::new(names.clone(), limits, now),
        fleet,
        now,
        revision: 0,
    };
    for input in &fleet.facts {
        let is_lost =
            matches!((input, lost), (Input::ClusterSet(c), Some(lost)) if lost.contains(&c.name));
        let is_decided = |d: &DecisionFact| {
            let of = |decided: &Decided| {
                decided.fact.namespace == d.namespace && Some(decided.fact.name) == d.placement
            };
            before.is_some_and(|before| before.decided.iter().any(of))
        };
        let is_old = matches!(input, Input::DecisionSet(d) if is_decided(d));
        if !is_lost && !is_old {
            world.placer.handle(now, input.clone());
        }
    }
    for decided in before.iter().flat_map(|before| &before.decided) {
        for decision in &decided.decisions {
            let input = Input::DecisionSet(decision.clone());
            world.placer.handle(now, input);
        }
    }
    let placements = before.map_or_else(
        || fleet.placements.clone(),
        |before| before.decided.iter().map(|d| d.fact.clone()).collect(),
    );
    let decided = placements
        .into_iter()
        .map(|fact| world.place(fact))
        .collect();
    Outcome {
        names: world.placer.names_mut().clone(),
        decided,
    }
}

struct World<'a> {
    placer: Placer,
    fleet: &'a Fleet,
    now: Instant,
    revision: u64,
}

impl World<'_> {
    fn place(&mut self, fact: PlacementFact) -> Decided {
        let cel = &self.fleet.cel;
        let explanation = explain(self.placer.hub(), self.now, &fact, cel);
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
            fact: self
                .placer
                .placement(namespace, name)
                .cloned()
                .unwrap_or(fact),
            explanation,
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

    /// A condition of its status.
    pub(super) fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        self.fact.status.condition(kind)
    }

    /// Whether it got fewer clusters than it asked for, or none.
    pub(super) fn is_short(&self) -> bool {
        if self.fact.ignored || self.fact.spec.number_of_clusters == Some(0) {
            return false;
        }
        let satisfied = self.condition(ConditionType::Satisfied);
        satisfied.is_none_or(|condition| !condition.status)
    }

    /// Whether its specification makes no sense.
    pub(super) fn is_misconfigured(&self) -> bool {
        matches!(self.explanation.schedule.code, Code::Misconfigured(_))
    }
}

impl Outcome {
    /// Why a Placement got what it got, for programs and for people.
    pub(super) fn why(&self, decided: &Decided, fleet: &Fleet) -> DebugResult {
        let key = (decided.fact.namespace, decided.fact.name);
        let written = fleet.written.get(&key).cloned().unwrap_or_default();
        DebugResult::of(&written, &decided.explanation, &self.names)
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
            let (set, why) = decided.explanation.schedule.candidates.broken.as_ref()?;
            let set = self.names.text(*set).to_owned();
            (!decided.fact.ignored).then(|| (self.label(decided), set, why.to_string()))
        })
    }
}
