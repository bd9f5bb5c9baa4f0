//! Runs one placement, from the queue to its writes. Source: spec/placement §2.1, §2.7, §2.9, §2.13.

use std::sync::Arc;

use strew_model::{Instant, Symbol};

use super::effect::{Effect, EffectId, Event, EventKind, PlacementName};
use super::placement_machine::{PlacementIdx, PlacementMachine, Row, Todo};
use super::turns::{SLICE, SLICES_MAX};
use crate::conditions;
use crate::decisions::groups::{self, Group};
use crate::decisions::replicas;
use crate::decisions::slices::{self, Slice};
use crate::decisions::writes;
use crate::facts::decision::{DecisionFact, GroupLabels};
use crate::facts::placement::{OnMisconfigured, PlacementFact, SortBy};
use crate::facts::status::{
    Condition, ConditionReason, ConditionType, GroupStatus, PlacementStatus,
};
use crate::filter::predicate::{
    COST_MAX_PER_PLACEMENT, ClusterPredicate, Earlier, Spent, passes_within, passing,
};
use crate::hub::{ClusterIdx, Hub};
use crate::schedule::{Code, Known, Schedule, scheduled, score_text};
use crate::select::levels::Level;

/// Which answers of a placement's expressions are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evaluated {
    /// All, of the clusters as they are.
    Now,
    /// All, some of them of clusters as they were before: these change faster than the placement's turns come.
    Earlier,
    /// Not all yet.
    InPart,
}

impl PlacementMachine {
    /// Decides a placement and begins its writes.
    pub(super) fn run(&mut self, idx: PlacementIdx, cel: &dyn ClusterPredicate) {
        self.set_wake(idx, None);
        let Some(mut row) = self.rows[idx.index()].take() else {
            return;
        };
        // Writes of the previous decision are outdated.
        (row.again, row.after) = (false, None);
        row.todo.clear();
        let owner = (row.fact.namespace, Some(row.fact.name));
        self.hub.ledger.intend(owner, None);
        let wake = match row.fact.ignored {
            true => {
                row.touched = None;
                None
            }
            false => self.decide(&mut row, cel),
        };
        self.rows[idx.index()] = Some(row);
        let wake = match wake {
            Some(Wake::Retry) => Some(self.retry_at(idx)),
            Some(Wake::RetryOr(at)) => Some(self.retry_at(idx).min(at)),
            Some(Wake::At(at)) => Some(at),
            None => None,
        };
        self.set_wake(idx, wake);
        self.advance(idx);
    }

    fn decide(&mut self, row: &mut Row, cel: &dyn ClusterPredicate) -> Option<Wake> {
        if let Ok(selection) = &row.plan.selection
            && !selection.levels.is_empty()
        {
            let keys = selection.levels.iter().map(Level::source);
            self.hub.follow(&keys.collect::<Vec<_>>());
        }
        let known = self.known(&row.fact, &row.sets, &mut row.passed, cel);
        let schedule = scheduled(&self.hub, self.now, &row.fact, &row.plan, cel, known, None);
        if schedule.candidates.broken.is_some() {
            self.counters.unreadable += 1;
            row.is_decided = false;
            return Some(Wake::Retry);
        }
        self.count(row, &schedule);
        let mut later = schedule.later;
        let spec = &row.fact.spec;
        let misconfigured = matches!(schedule.code, Code::Misconfigured(_));
        let keep = misconfigured && spec.on_misconfigured == OnMisconfigured::Keep;
        let groups = groups::of(&self.hub, spec, &schedule.picks);
        let mut slices = slices::of(&groups, row.fact.name, &mut self.hub.names);
        if let Some(parts) = &schedule.parts {
            replicas::attach(parts, &mut slices, &self.hub.names);
        }
        let mut stored = stored(&self.hub, &row.fact);
        let strangers = match keep {
            true => Vec::new(),
            false => strangers(&self.hub, &row.fact, &slices),
        };
        stored.extend(&strangers);
        let is_strange = |name| strangers.iter().any(|fact| fact.name == name);
        let mut writes = match keep {
            true => Vec::new(),
            false => writes::in_doubt(&stored, &slices, &|name| {
                is_strange(name) || self.doubtful.contains(&(row.fact.namespace, name))
            }),
        };
        let scored = spec.sort_by == SortBy::Score;
        if scored && !writes.is_empty() && writes::differ_in_scores_only(&stored, &slices) {
            let last = row.fact.status.last_score_update;
            let next = last.map(|at| at + spec.score_rate_limit);
            if let Some(next) = next.filter(|&next| self.now < next) {
                writes.clear();
                later = later.into_iter().chain([next]).min();
            }
        }
        let held = stored.iter().map(|fact| fact.decisions.len()).sum();
        let held = keep.then_some(held);
        let mut status = self.status(&row.fact, &schedule, &groups, &slices, held);
        if scored && !writes.is_empty() {
            status.last_score_update = Some(self.now);
        }
        row.warning = match &schedule.code {
            Code::Warning(problem) => Some(problem.clone()),
            _ => None,
        };
        if !writes.is_empty() {
            row.score_text = score_text(&schedule.scored, &self.hub.names);
            let clusters = schedule.picks.iter().map(|pick| pick.cluster).collect();
            let owner = (row.fact.namespace, Some(row.fact.name));
            self.hub.ledger.intend(owner, Some(clusters));
        }
        row.todo = writes.into_iter().map(Todo::Write).collect();
        let event = limited(&row.fact, &status);
        if status != row.fact.status {
            row.todo.push_back(Todo::Status(status));
        }
        row.todo.extend(event.map(Todo::Event));
        row.is_decided = matches!(schedule.code, Code::Success);
        match (schedule.code, later) {
            (Code::Success, later) => later.map(Wake::At),
            (_, None) => Some(Wake::Retry),
            (_, Some(at)) => Some(Wake::RetryOr(at)),
        }
    }

    /// Counts a decision whose writes begin.
    fn count(&mut self, row: &mut Row, schedule: &Schedule) {
        let counters = &mut self.counters;
        counters.bound(row.bound.take(), self.now);
        counters.decided += 1;
        row.decision = counters.decided;
        counters.runs += schedule.runs as u64;
        match schedule.code {
            Code::Success => {}
            Code::Warning(_) => counters.warned += 1,
            Code::Misconfigured(_) => counters.misconfigured += 1,
        }
        let touched = row.touched.take().unwrap_or(self.now);
        counters.scheduling.add(self.now.since(touched));
        row.bound = Some(self.now);
    }

    /// What is known before a run and need not be computed again.
    fn known<'r>(
        &mut self,
        placement: &PlacementFact,
        sets: &(bool, Vec<Symbol>),
        passed: &'r mut Option<Vec<ClusterIdx>>,
        cel: &dyn ClusterPredicate,
    ) -> Known<'r> {
        let (bound, eligible) = sets.clone();
        let members = self.members_of(&eligible);
        let predicates = placement.spec.predicates.as_deref();
        let remembers = predicates.is_ok_and(|all| all.iter().all(|p| p.cel.is_none()));
        if remembers && passed.is_none() {
            // Without expressions it costs nothing.
            *passed = passing(&self.hub, placement, cel, &members).ok();
        }
        Known {
            candidates: self.hub.candidates_among(bound, eligible, members),
            passed: passed.as_deref(),
        }
    }

    fn members_of(&mut self, eligible: &[Symbol]) -> Arc<[ClusterIdx]> {
        if let Some(members) = self.members.get(eligible) {
            return Arc::clone(members);
        }
        let members = self.hub.members(eligible);
        self.members.insert(eligible.to_vec(), Arc::clone(&members));
        members
    }

    /// Has the expressions of a placement evaluated, for as many clusters as one turn allows: first for those without
    /// any answer, then for those that have changed. Returns whether all answers that its decision needs are known, and
    /// what the new ones cost.
    pub(super) fn evaluate(
        &mut self,
        idx: PlacementIdx,
        cel: &dyn ClusterPredicate,
    ) -> (Evaluated, u64) {
        let mut now = 0;
        let Some(mut row) = self.rows[idx.index()].take() else {
            return (Evaluated::Now, 0);
        };
        let predicates = row.fact.spec.predicates.as_deref().unwrap_or_default();
        let mut is_complete = true;
        let mut is_known = true;
        if !row.fact.ignored && predicates.iter().any(|p| p.cel.is_some()) {
            let members = self.members_of(&row.sets.1);
            let mut complete = |cel: &dyn ClusterPredicate| {
                let mut spent = Spent { total: 0, now };
                let mut clusters = members.iter().filter_map(|idx| self.hub.cluster(*idx));
                let is_complete = clusters.all(|cluster| {
                    // A decision stops here as well.
                    if spent.total > COST_MAX_PER_PLACEMENT {
                        return true;
                    }
                    let may_evaluate = spent.now < SLICE;
                    if may_evaluate {
                        passes_within(predicates, cluster, cel, &mut spent);
                    }
                    may_evaluate
                });
                now = spent.now;
                is_complete
            };
            is_known = complete(&Earlier(cel));
            is_complete = is_known && complete(cel);
        }
        row.slices += 1;
        let evaluated = match is_complete {
            true => Evaluated::Now,
            false if is_known && row.slices >= SLICES_MAX => Evaluated::Earlier,
            false => Evaluated::InPart,
        };
        if evaluated != Evaluated::InPart {
            row.slices = 0;
        }
        self.rows[idx.index()] = Some(row);
        (evaluated, now)
    }

    /// The status for a schedule. If `held` is `Some`, this number of clusters stays although the placement cannot be
    /// decided.
    fn status(
        &self,
        placement: &PlacementFact,
        schedule: &Schedule,
        groups: &[Group],
        slices: &[Slice],
        held: Option<usize>,
    ) -> PlacementStatus {
        let names = &self.hub.names;
        let selected = held.unwrap_or(schedule.picks.len());
        let asked = placement
            .spec
            .number_of_clusters
            .map(|n| usize::try_from(n).unwrap_or(0));
        let unscheduled = match held {
            Some(held) => asked.map_or(0, |n| n.saturating_sub(held)),
            None => schedule.unscheduled,
        };
        let sets = &placement.spec.cluster_sets;
        let misconfigured = conditions::misconfigured(conditions::problem(&schedule.code));
        let candidates = &schedule.candidates;
        let satisfied = conditions::satisfied(candidates, sets, None, selected, unscheduled, names);
        let spread = schedule.spread.as_ref();
        let spread = spread.map(|report| conditions::spread(report, names));
        let verdicts = [
            (ConditionType::Misconfigured, misconfigured),
            (ConditionType::Satisfied, satisfied),
        ];
        let verdicts = verdicts.into_iter();
        let verdicts = verdicts.chain(spread.map(|v| (ConditionType::SpreadSatisfied, v)));
        let group = |(index, group): (usize, &Group)| GroupStatus {
            index: index as u32,
            name: group.name,
            decisions: slices
                .iter()
                .filter(|slice| slice.group as usize == index)
                .map(|slice| slice.name)
                .collect(),
            clusters: group.decisions.len() as u32,
        };
        PlacementStatus {
            selected: i32::try_from(selected).unwrap_or(i32::MAX),
            groups: match held {
                Some(_) => placement.status.groups.clone(),
                None => groups.iter().enumerate().map(group).collect(),
            },
            conditions: conditions::timed(verdicts, &placement.status, self.now),
            last_score_update: placement.status.last_score_update,
            others: placement.status.others.clone(),
        }
    }

    /// Queues the next effect of a placement, unless one of its writes is under way.
    pub(super) fn advance(&mut self, idx: PlacementIdx) {
        while let Some(row) = &mut self.rows[idx.index()] {
            if row.waiting.is_some() {
                return;
            }
            let placement = name(&row.fact);
            let id = self.next_effect;
            let effect = match row.todo.front() {
                None => return self.rest(idx),
                Some(Todo::Event(event)) => {
                    self.effects.push_back(Effect::Event(event.clone()));
                    row.todo.pop_front();
                    continue;
                }
                Some(Todo::Write(write)) => {
                    let known = self.hub.ledger.get(placement.namespace, write.name);
                    Effect::WriteDecision {
                        id,
                        decision: row.decision,
                        placement,
                        write: write.clone(),
                        revision: known.map(|fact| fact.revision),
                    }
                }
                Some(Todo::Status(status)) => Effect::WriteStatus {
                    id,
                    placement,
                    status: status.clone(),
                    revision: row.fact.revision,
                },
            };
            row.waiting = Some(id);
            self.next_effect = EffectId(id.0 + 1);
            self.pending.insert(id, idx);
            self.effects.push_back(effect);
            let lost = self.now + self.limits.lost_after;
            // A wake-up that falls into the writes is handled when they are done.
            let row_wake = self.rows[idx.index()].as_ref().and_then(|row| row.wake);
            if let Some(row) = &mut self.rows[idx.index()] {
                row.after = row.after.or(row_wake);
            }
            self.set_wake(idx, Some(lost));
        }
    }

    /// A write is done. The next one is made when the machine is polled: inputs until then may make it obsolete.
    pub(super) fn done(&mut self, idx: PlacementIdx) {
        let Some(row) = &mut self.rows[idx.index()] else {
            return;
        };
        if row.again {
            row.todo.clear();
        }
        if row.todo.is_empty() {
            return self.rest(idx);
        }
        if !row.queued {
            row.queued = true;
            self.turns.push_writing(idx);
        }
    }

    /// All writes are done, or the remaining ones are outdated.
    fn rest(&mut self, idx: PlacementIdx) {
        let Some(row) = &mut self.rows[idx.index()] else {
            return;
        };
        let owner = (row.fact.namespace, Some(row.fact.name));
        let (after, again) = (row.after.take(), row.again);
        if row.is_decided && !again {
            row.failures = 0;
        }
        self.counters.bound(row.bound.take(), self.now);
        self.hub.ledger.intend(owner, None);
        if after.is_some() {
            self.set_wake(idx, after);
        }
        if again {
            self.enqueue(idx);
        }
    }
}

/// When a placement is decided again.
enum Wake {
    /// After a pause that grows with each failure.
    Retry,
    /// After such a pause, or at this time, whichever is earlier.
    RetryOr(Instant),
    /// At this time.
    At(Instant),
}

/// The name of a placement.
pub(super) fn name(placement: &PlacementFact) -> PlacementName {
    PlacementName {
        namespace: placement.namespace,
        name: placement.name,
        uid: placement.uid.clone(),
    }
}

/// The PlacementDecisions of a placement, by name.
fn stored<'h>(hub: &'h Hub, placement: &PlacementFact) -> Vec<&'h DecisionFact> {
    let mut stored: Vec<_> = hub.ledger.of(placement.namespace, placement.name).collect();
    let text = |name: Symbol| hub.names.text(name);
    stored.sort_by(|a, b| text(a.name).cmp(text(b.name)));
    stored
}

/// PlacementDecisions that have the name of a slice but not the placement's label: they are filled and labelled, as
/// upstream does. Consumers did not look for clusters in them, so they do not count as holding any.
fn strangers(hub: &Hub, placement: &PlacementFact, slices: &[Slice]) -> Vec<DecisionFact> {
    let named = slices
        .iter()
        .filter_map(|slice| hub.ledger.get(placement.namespace, slice.name));
    let strange = named.filter(|fact| fact.placement != Some(placement.name));
    let unlabelled = GroupLabels {
        index: None,
        name: None,
    };
    strange
        .map(|fact| DecisionFact {
            group: unlabelled,
            ..fact.clone()
        })
        .collect()
}

/// The event for a change to `SpreadLimited` or `SpreadTooFewGroups`.
fn limited(placement: &PlacementFact, status: &PlacementStatus) -> Option<Event> {
    let reasons = [
        ConditionReason::SpreadLimited,
        ConditionReason::SpreadTooFewGroups,
    ];
    let is = |c: &&Condition| reasons.contains(&c.reason);
    let now = status
        .condition(ConditionType::SpreadSatisfied)
        .filter(is)?;
    let before = placement.status.condition(ConditionType::SpreadSatisfied);
    let is_same = |before: &Condition| before.reason == now.reason;
    (!before.is_some_and(is_same)).then(|| Event {
        kind: EventKind::SpreadLimited,
        warning: true,
        placement: name(placement),
        decision: None,
        note: now.message.clone(),
    })
}
