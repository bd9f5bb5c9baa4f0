//! Applies facts, and finds the placements that each fact can change. Source: spec/placement §2.10.

use std::collections::BTreeSet;

use strew_model::Symbol;

use super::input::Input;
use super::placement_machine::{Members, PlacementIdx, PlacementMachine, Row, Todo};
use super::view::{KnownCluster, touched};
use crate::facts::cluster::ClusterFact;
use crate::facts::decision::DecisionFact;
use crate::facts::placement::{DivideBy, PlacementFact, ScoreCoordinate};
use crate::facts::status::PlacementStatus;
use crate::filter::predicate::{NoCel, passes};
use crate::hub::{ClusterIdx, Hub, SetNames};
use crate::plan::Plan;

impl PlacementMachine {
    pub(super) fn take_in(&mut self, input: Input) {
        match input {
            Input::ClusterSet(fact) => {
                let sets = self.sets_now(fact.name);
                let (idx, before) = self.hub.set_cluster(fact);
                self.cluster_changed(idx, before, &sets);
            }
            Input::ClusterGone(name) => {
                let sets = self.sets_now(name);
                if let Some((idx, before)) = self.hub.remove_cluster(name) {
                    self.cluster_changed(idx, Some(before), &sets);
                }
            }
            Input::ClusterSetSet(fact) => {
                let name = fact.name;
                if self.hub.set_cluster_set(fact) {
                    self.set_changed(name);
                }
            }
            Input::ClusterSetGone(name) => {
                if self.hub.remove_cluster_set(name) {
                    self.set_changed(name);
                }
            }
            Input::BindingSet { namespace, name } => {
                if self.hub.set_binding(namespace, name) {
                    self.bound_changed(namespace, name);
                }
            }
            Input::BindingGone { namespace, name } => {
                if self.hub.remove_binding(namespace, name) {
                    self.bound_changed(namespace, name);
                }
            }
            Input::ScoresSet(fact) => {
                let (cluster, name) = (fact.cluster, fact.name);
                if self.hub.set_scores(fact) {
                    self.scores_changed(cluster, name);
                }
            }
            Input::ScoresGone { cluster, name } => {
                if self.hub.remove_scores(cluster, name) {
                    self.scores_changed(cluster, name);
                }
            }
            Input::PlacementSet(fact) => self.set_placement(*fact),
            Input::PlacementGone { namespace, name } => self.placement_gone(namespace, name),
            Input::DecisionSet(fact) => self.set_decision(fact),
            Input::DecisionGone { namespace, name } => self.decision_gone(namespace, name),
            Input::Outcome { effect, outcome } => self.outcome(effect, outcome),
            Input::Tick => {}
        }
    }

    fn sets_now(&self, cluster: Symbol) -> SetNames {
        let row = self.hub.find(cluster).map(|idx| self.hub.row(idx));
        row.map_or_else(SetNames::new, |row| row.sets.clone())
    }

    fn cluster_changed(&mut self, idx: ClusterIdx, before: Option<ClusterFact>, sets: &SetNames) {
        let row = self.hub.row(idx);
        if row.fact == before {
            return;
        }
        let was = before.as_ref().map(|fact| (fact, sets));
        let is = row.fact.as_ref().map(|fact| (fact, &row.sets));
        let reached = self.reached(sets.iter().chain(&row.sets));
        let there = |seen: KnownCluster| seen.map(|(fact, sets)| (fact.deleting, sets.clone()));
        let joins_or_leaves = there(was) != there(is);
        let filled = match joins_or_leaves {
            true => filled(&self.hub, &mut self.members),
            false => BTreeSet::new(),
        };
        let touched = |idx: &PlacementIdx| {
            let row = self.rows[idx.index()].as_ref();
            row.is_some_and(|row| {
                filled.contains(&row.sets.1) || touched(&self.hub, row, was, is, self.now)
            })
        };
        let touched: Vec<PlacementIdx> = reached.iter().copied().filter(touched).collect();
        for placement in reached {
            self.remember(placement, idx, before.as_ref(), joins_or_leaves);
        }
        touched.into_iter().for_each(|idx| self.enqueue(idx));
    }

    /// A set changed: computes the members again, for the lists of sets that placements choose from.
    pub(super) fn members_changed(&mut self) {
        for row in self.rows.iter_mut().flatten() {
            row.passed = None;
        }
        let rows = self.rows.iter().flatten();
        let used: BTreeSet<&Vec<Symbol>> = rows.map(|row| &row.sets.1).collect();
        self.members.retain(|sets, _| used.contains(sets));
        filled(&self.hub, &mut self.members);
    }

    /// A cluster changed: computes again whether it passes a placement's predicates.
    fn remember(
        &mut self,
        placement: PlacementIdx,
        cluster: ClusterIdx,
        before: Option<&ClusterFact>,
        joins_or_leaves: bool,
    ) {
        let Some(row) = &mut self.rows[placement.index()] else {
            return;
        };
        let (Some(passed), Ok(predicates)) = (&mut row.passed, &row.fact.spec.predicates) else {
            return;
        };
        let passes = |fact: &ClusterFact| passes(predicates, fact, &NoCel);
        let is = self.hub.cluster(cluster).is_some_and(passes);
        if is == before.is_some_and(passes) && !joins_or_leaves {
            return;
        }
        let passes = is && self.hub.is_candidate(cluster, &row.sets.1);
        match (passes, self.hub.place_among(passed, cluster)) {
            (true, Err(place)) => passed.insert(place, cluster),
            (false, Ok(place)) => drop(passed.remove(place)),
            _ => {}
        }
    }

    /// The placements of the namespaces to which one of these sets is bound.
    fn reached<'s>(&self, sets: impl Iterator<Item = &'s Symbol>) -> Vec<PlacementIdx> {
        let mut namespaces: Vec<Symbol> = Vec::new();
        for &set in sets {
            for namespace in self.hub.namespaces_bound_to(set) {
                if !namespaces.contains(&namespace) {
                    namespaces.push(namespace);
                }
            }
        }
        let of = |namespace: &Symbol| self.by_namespace.get(namespace);
        namespaces
            .iter()
            .filter_map(of)
            .flatten()
            .copied()
            .collect()
    }

    fn set_changed(&mut self, set: Symbol) {
        self.members_changed();
        let namespaces: Vec<Symbol> = self.hub.namespaces_bound_to(set).collect();
        namespaces
            .into_iter()
            .for_each(|namespace| self.bound_changed(namespace, set));
    }

    /// A set, or its binding in a namespace, changed.
    fn bound_changed(&mut self, namespace: Symbol, set: Symbol) {
        for idx in self
            .by_namespace
            .get(&namespace)
            .cloned()
            .unwrap_or_default()
        {
            let Some(row) = &mut self.rows[idx.index()] else {
                continue;
            };
            let asked = &row.fact.spec.cluster_sets;
            let named = asked.is_empty() || asked.contains(&set);
            let sets = self.hub.eligible(&row.fact);
            // Beyond upstream: a condition with the reason that nothing is bound must not stay when a set is bound.
            if named || sets.0 != row.sets.0 {
                row.sets = sets;
                row.passed = None;
                self.enqueue(idx);
            }
        }
    }

    fn scores_changed(&mut self, cluster: Symbol, name: Symbol) {
        let reached = self.reached(self.sets_now(cluster).iter());
        let reads = |row: &Row| {
            let spec = &row.fact.spec;
            let predicates = spec.predicates.as_deref().unwrap_or_default().iter();
            let mut cel = predicates.filter_map(|p| p.cel.as_ref());
            let names = |coordinate: &ScoreCoordinate| match coordinate {
                ScoreCoordinate::AddOn(Some(add_on)) => add_on.resource == name,
                _ => false,
            };
            let divides = |by: &DivideBy| match by {
                DivideBy::AddOn(add_on) => add_on.resource == name,
                _ => false,
            };
            let division = spec.replicas.as_ref().ok().and_then(Option::as_ref);
            let mut configured = spec.prioritizers.configurations.iter();
            configured.any(|c| c.coordinate.as_ref().is_some_and(names))
                || division.is_some_and(|division| divides(&division.by))
                || cel.any(|c| c.scores.as_ref().is_none_or(|s| s.contains(&name)))
        };
        for idx in reached {
            if self.rows[idx.index()].as_ref().is_some_and(reads) {
                self.enqueue(idx);
            }
        }
    }

    fn set_placement(&mut self, fact: PlacementFact) {
        let idx = self.row_of(fact.namespace, fact.name);
        if let Some(row) = &mut self.rows[idx.index()]
            && row.fact.uid == fact.uid
        {
            if fact.revision < row.fact.revision {
                return;
            }
            row.fact.revision = fact.revision;
            if row.fact == fact {
                return;
            }
            if row.fact.spec != fact.spec {
                row.plan = Plan::of(&fact.spec, &self.hub.names);
                row.sets = self.hub.eligible(&fact);
                row.passed = None;
            }
            row.fact = fact;
        } else {
            self.forget(idx);
            self.rows[idx.index()] = Some(Row {
                plan: Plan::of(&fact.spec, &self.hub.names),
                sets: self.hub.eligible(&fact),
                passed: None,
                fact,
                slices: 0,
                queued: false,
                again: false,
                touched: None,
                decision: 0,
                bound: None,
                todo: Default::default(),
                waiting: None,
                wake: None,
                after: None,
                failures: 0,
                is_decided: false,
                warning: None,
                score_text: "".into(),
            });
        }
        self.enqueue(idx);
    }

    fn placement_gone(&mut self, namespace: Symbol, name: Symbol) {
        let Some(idx) = self.by_name.remove(&(namespace, name)) else {
            return;
        };
        self.forget(idx);
        if let Some(there) = self.by_namespace.get_mut(&namespace) {
            there.retain(|&other| other != idx);
            if there.is_empty() {
                self.by_namespace.shift_remove(&namespace);
            }
        }
        self.free.push(idx);
    }

    /// Forgets the decision and the writes of a placement.
    fn forget(&mut self, idx: PlacementIdx) {
        self.set_wake(idx, None);
        if let Some(row) = self.rows[idx.index()].take() {
            self.turns.remove(row.fact.namespace, idx);
            row.waiting.and_then(|effect| self.pending.remove(&effect));
            let owner = (row.fact.namespace, Some(row.fact.name));
            self.hub.ledger.intend(owner, None);
        }
    }

    fn set_decision(&mut self, fact: DecisionFact) {
        let key = (fact.namespace, fact.name);
        let known = self.hub.ledger.get(fact.namespace, fact.name);
        let late = known.is_some_and(|known| fact.revision < known.revision)
            || self
                .deleted
                .get(&key)
                .is_some_and(|&at| fact.revision <= at);
        if late {
            return;
        }
        if known.is_none_or(|known| fact.revision > known.revision) {
            self.doubtful.remove(&key);
        }
        let placement = fact.placement;
        let mut before = self.hub.ledger.set(fact.clone());
        if let Some(before) = &mut before {
            before.revision = fact.revision;
            if *before == fact || self.is_of_own_write(before, &fact) {
                return;
            }
        }
        let labelled = before.and_then(|before| before.placement);
        for placement in [placement, labelled.filter(|&l| Some(l) != placement)] {
            self.decisions_changed(key.0, placement);
        }
    }

    /// True if a change of a PlacementDecision is a part of a write under way. A write is two requests, for status and
    /// metadata, and the watch may report the first before the second is answered; the write's outcome brings the rest.
    /// Otherwise placements that look at each other's decisions (`Balance`) would decide again after each half of a
    /// write, without end.
    fn is_of_own_write(&self, before: &DecisionFact, now: &DecisionFact) -> bool {
        let owner = now.placement.map(|name| (now.namespace, name));
        let row = owner.and_then(|owner| self.by_name.get(&owner));
        let row = row.and_then(|idx| self.rows[idx.index()].as_ref());
        let Some(row) = row.filter(|row| row.waiting.is_some()) else {
            return false;
        };
        let Some(Todo::Write(write)) = row.todo.front() else {
            return false;
        };
        write.name == now.name
            && before.placement == now.placement
            && (before.group == now.group || write.group == Some(now.group))
            && (before.decisions == now.decisions
                || write.decisions.as_ref() == Some(&now.decisions))
            && (before.replicas == now.replicas || write.replicas.as_ref() == Some(&now.replicas))
    }

    fn decision_gone(&mut self, namespace: Symbol, name: Symbol) {
        self.deleted.remove(&(namespace, name));
        self.doubtful.remove(&(namespace, name));
        if let Some(before) = self.hub.ledger.remove(namespace, name) {
            self.decisions_changed(namespace, before.placement);
        }
    }

    fn decisions_changed(&mut self, namespace: Symbol, placement: Option<Symbol>) {
        let idx = placement.and_then(|name| self.by_name.get(&(namespace, name)));
        if let Some(&idx) = idx {
            self.enqueue(idx);
        }
    }

    fn row_of(&mut self, namespace: Symbol, name: Symbol) -> PlacementIdx {
        if let Some(&idx) = self.by_name.get(&(namespace, name)) {
            return idx;
        }
        let idx = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            PlacementIdx::from(self.rows.len() - 1)
        });
        self.by_name.insert((namespace, name), idx);
        self.by_namespace.entry(namespace).or_default().push(idx);
        idx
    }

    /// Takes the status that was written as the placement's status.
    pub(super) fn status_written(
        &mut self,
        idx: PlacementIdx,
        status: PlacementStatus,
        revision: u64,
    ) {
        if let Some(row) = &mut self.rows[idx.index()] {
            row.fact.status = status;
            row.fact.revision = row.fact.revision.max(revision);
        }
    }
}

/// A cluster joined or left a set: computes the members of each list of sets again. Returns the lists that became empty
/// or stopped being empty: conditions of placements over these change.
fn filled(hub: &Hub, members: &mut Members) -> BTreeSet<Vec<Symbol>> {
    let mut filled = BTreeSet::new();
    for (sets, clusters) in members {
        let before = std::mem::replace(clusters, hub.members(sets));
        if before.is_empty() != clusters.is_empty() {
            filled.insert(sets.clone());
        }
    }
    filled
}
