//! Decides one request against the ledger.
//!
//! Source: spec/workloadspread §4.3, §4.4, §4.7, §4.8.

use std::sync::Arc;

use strew_cluster::PodFact;
use strew_model::Instant;

use super::effect::{Denial, Injection, Untouched, Verdict};
use super::machine::Admission;
use super::request::{Operation, RequestId};
use super::spread_queue::PendingRequest;
use crate::choose::{self, Choice, Finding, Fit, Ground, SubsetFinding};
use crate::controller::cost::{self, CostGround};
use crate::facts::kinds::{Kind, Kinds};
use crate::facts::spec::{Subset, WhenNoRoom, WorkloadSpread};
use crate::facts::status::{Row, Status, UNLIMITED, whole_second};
use crate::facts::workload::{WorkloadFact, WorkloadKey};
use crate::inject::{PodPatcher, inject};
use crate::marker::Marker;
use crate::quota::{self, CannotCount, Total};
use crate::revision::{self, Latest};
use crate::room::{Admitted, Room};
use crate::turns;
use crate::workloads::Workloads;

/// The place of a new pod.
struct Slot {
    /// The subset's name.
    subset: Arc<str>,
    /// The id of the pod in the ledger, if that is not its name.
    uid: Option<Arc<str>>,
    /// The number of pods of the subset with this one; `None` if they are not counted.
    nth: Option<usize>,
}

/// The result of a decision.
pub(super) enum Decided {
    /// The ledger changes.
    Changed,
    /// The ledger stays as it is.
    AsItIs,
    /// No decision before this time, unless a newer fact comes: the facts about the target are outdated.
    After(Instant),
}

impl From<bool> for Decided {
    fn from(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::AsItIs }
    }
}

impl Admission {
    /// Decides a request.
    pub(super) fn decide(
        &mut self,
        base: &WorkloadSpread,
        status: &mut Arc<Status>,
        pending: &mut PendingRequest,
        patcher: &mut dyn PodPatcher,
    ) -> Decided {
        match pending.is_create() {
            true => self.decide_create(base, status, pending, patcher),
            false => self.decide_delete(base, status, pending).into(),
        }
    }

    /// Puts a new pod into a subset.
    fn settle_on(
        &mut self,
        base: &WorkloadSpread,
        pending: &mut PendingRequest,
        choice: Choice,
        Slot { subset, uid, nth }: Slot,
    ) {
        pending.verdict = match base.spec.place(&subset) {
            None => Verdict::Untouched(Untouched::SubsetGone),
            Some(place) => {
                let marker = Marker {
                    workload_spread: base.key.name.clone(),
                    subset,
                    uid,
                };
                let is_patched = is_patched(
                    pending,
                    &base.spec.subsets[place],
                    &self.workloads,
                    &self.kinds,
                );
                let pod = &pending.request.pod;
                let names = self.room.names();
                let controller = pod.controller.as_ref();
                let scope = base.spec.limit_scope;
                let revision =
                    revision::of_template(scope, &pod.labels, controller, &self.kinds, names);
                let cost = self.first_cost(base, place, &revision, choice.ground(), nth);
                Verdict::Inject(Box::new(Injection {
                    spec: Arc::clone(&base.spec),
                    place,
                    marker,
                    cost,
                    is_patched,
                }))
            }
        };
        pending.choice = Some(choice);
    }

    fn is_stateful_set(&self, base: &WorkloadSpread) -> bool {
        let target = base.spec.target;
        target.is_some_and(|t| self.kinds.of(t.kind) == Kind::StatefulSet)
    }

    /// The total that percentages refer to. A path without a number gives 0, as a missing target does.
    pub(super) fn total(&self, base: &WorkloadSpread) -> Total {
        self.total_or_why(base).unwrap_or(0)
    }

    pub(super) fn total_or_why(&self, base: &WorkloadSpread) -> Result<Total, CannotCount> {
        self.workloads
            .targets_of(base)
            .total(&base.spec, &self.kinds)
    }

    /// The target of the WorkloadSpread.
    pub(super) fn target(&self, base: &WorkloadSpread) -> Option<&WorkloadFact> {
        let namespace = base.key.namespace;
        let target = base.spec.target?;
        self.workloads.get(WorkloadKey { namespace, target })
    }

    /// The rows of a revision: created if there are none, with percentages updated to the total.
    fn rows(&self, base: &WorkloadSpread, status: &mut Arc<Status>, revision: &Arc<str>) {
        let spec = &base.spec;
        let total = match spec.has_percentages() {
            true => self.total(base),
            false => 0,
        };
        let rows = status.rows(revision);
        if rows.is_empty() {
            let rows = choose::first_rows(spec, total);
            Arc::make_mut(status)
                .versioned
                .insert(revision.clone(), rows);
        } else if spec.has_percentages() && choose::lags(rows, spec, total) {
            choose::refresh(rows_mut(status, revision), spec, total);
        }
    }

    // === create ===

    fn decide_create(
        &mut self,
        base: &WorkloadSpread,
        status: &mut Arc<Status>,
        pending: &mut PendingRequest,
        patcher: &mut dyn PodPatcher,
    ) -> Decided {
        let Operation::Create { fact, fresh_uid } = &pending.request.operation else {
            return Decided::AsItIs;
        };
        let spec = &base.spec;
        let name = pending.request.pod.name.clone();
        let id = name.clone().unwrap_or_else(|| fresh_uid.clone());
        let mut fits: Vec<(Arc<str>, Fit)> = Vec::new();
        let (mut changed, mut is_entered) = (false, false);
        let mut nth = None;
        let (choice, subset) = if spec.keeps_no_ledger() {
            (only_one(base), spec.subsets.first().map(|s| s.name.clone()))
        } else if self.is_stateful_set(base) {
            let pod = name.as_deref().unwrap_or("");
            let ordinal = choose::ordinal(pod, self.target(base));
            let choice = choose::choose_by_ordinal(spec, status, self.total(base), ordinal);
            if let Some(until) = self.waits_for_news(base, status, pending, &choice) {
                return Decided::After(until);
            }
            let subset = choice.place.map(|place| spec.subsets[place].name.clone());
            (choice, subset)
        } else {
            self.rows(base, status, &pending.revision);
            let asks = spec.strategy.simulates();
            let (room, request) = (&mut self.room, pending.request.id);
            let (workloads, kinds) = (&self.workloads, &self.kinds);
            room.begin_request();
            let mut ask = |subset: &Arc<str>| {
                let Some(place) = spec.place(subset) else {
                    return Fit::Unknown;
                };
                let subset_asked = &spec.subsets[place];
                let is_patched = is_patched(pending, subset_asked, workloads, kinds);
                let injected = (subset_asked, is_patched);
                let candidate = candidate(room, patcher, request, fact.as_deref(), injected);
                let fit = candidate.map_or(Fit::Unknown, |pod| room.ask(pod));
                fits.push((subset.clone(), fit.clone()));
                fit
            };
            let rows = status.rows(&pending.revision);
            let fit: Option<choose::AskFit<'_>> = match asks {
                true => Some(&mut ask),
                false => None,
            };
            let choice = choose::choose(spec, status, rows, Some(&id), fit);
            let subset = choice.place.map(|place| rows[place].name.clone());
            if let Some(until) = self.waits_for_news(base, status, pending, &choice) {
                return Decided::After(until);
            }
            is_entered = matches!(choice.ground(), Some(Ground::Known));
            if let Some(place) = choice.place
                && takes_slot(&choice, &rows[place])
            {
                let row = &mut rows_mut(status, &pending.revision)[place];
                let before = row.creating.insert(id.clone(), whole_second(self.now));
                if row.missing > 0 && before.is_none() {
                    row.missing -= 1;
                    nth = usize::try_from(row.expected()).ok();
                }
                (changed, is_entered) = (true, true);
            }
            (choice, subset)
        };
        let uid = (is_entered && name.is_none()).then_some(id);
        match subset {
            Some(subset) => self.settle_on(base, pending, choice, Slot { subset, uid, nth }),
            None => {
                pending.verdict = match spec.when_no_room {
                    WhenNoRoom::Unconstrained => Verdict::Untouched(Untouched::NoRoom),
                    WhenNoRoom::Pending => Verdict::Gate,
                    WhenNoRoom::Reject => Verdict::Deny(Denial::NoRoom),
                };
                pending.choice = Some(choice);
            }
        }
        self.hold(base, pending, &fits, patcher);
        changed.into()
    }

    /// The cost of a new pod, the nth of its subset. It finds room, so it is never surplus. `None` if its kind has no
    /// costs, or the latest revision or its number is unknown here; then the controller writes it.
    fn first_cost(
        &mut self,
        base: &WorkloadSpread,
        place: usize,
        revision: &str,
        ground: Option<&Ground>,
        nth: Option<usize>,
    ) -> Option<i32> {
        if !self.kinds.has_costs(&base.spec) {
            return None;
        }
        let targets = self.workloads.targets_of(base);
        let scope = base.spec.limit_scope;
        let names = self.room.names();
        let latest = targets.latest(scope, &self.workloads, &self.kinds, names);
        if latest == Latest::Nobody {
            return None;
        }
        let n = base.spec.subsets.len();
        let position = cost::position(place, n, latest.is(revision));
        let by_turns = latest.is(revision) && turns::shares(&base.spec);
        let ground = match ground {
            Some(Ground::BelowMinimum { .. }) => CostGround::Minimum { position, by_turns },
            _ if by_turns => CostGround::Turn {
                turn: self.turns.turn(&base.spec, place, nth?)?,
            },
            _ => CostGround::Within { position },
        };
        Some(ground.cost(n))
    }

    /// The capacity that an admitted pod holds until it is seen. Nothing is held if no WorkloadSpread simulates
    /// scheduling.
    fn hold(
        &mut self,
        base: &WorkloadSpread,
        pending: &mut PendingRequest,
        fits: &[(Arc<str>, Fit)],
        patcher: &mut dyn PodPatcher,
    ) {
        let (Verdict::Inject(injection), true) = (&pending.verdict, self.spreads.any_simulates())
        else {
            return;
        };
        let Operation::Create { fact, .. } = &pending.request.operation else {
            return;
        };
        let (subset, id) = (injection.subset(), pending.request.id);
        let injected = (subset, injection.is_patched);
        let Some(pod) = candidate(&mut self.room, patcher, id, fact.as_deref(), injected) else {
            return;
        };
        let asked = fits.iter().find(|(name, _)| *name == subset.name);
        let fit = asked.map_or(&Fit::Unknown, |(_, fit)| fit);
        let admitted = Admitted {
            key: base.key.clone(),
            marker: injection.marker.clone(),
            name: pending.request.pod.name.clone(),
        };
        pending.hold = Some(self.room.hold(self.now, pod, admitted, fit));
    }

    // === delete ===

    fn decide_delete(
        &mut self,
        base: &WorkloadSpread,
        status: &mut Arc<Status>,
        pending: &mut PendingRequest,
    ) -> bool {
        pending.verdict = Verdict::Untouched(Untouched::NothingToCount);
        let pod = &pending.request.pod;
        let (Some(marker), Some(name)) = (pod.marker.marker(), &pod.name) else {
            return false;
        };
        if base.spec.keeps_no_ledger() || self.is_stateful_set(base) {
            return false;
        }
        self.rows(base, status, &pending.revision);
        let total = self.total(base);
        let rows = status.rows(&pending.revision);
        if rows.iter().any(|row| row.knows(name)) {
            return false;
        }
        let Some(place) = rows.iter().position(|row| row.name == marker.subset) else {
            return false;
        };
        let min = base.spec.place(&marker.subset);
        let has_min = min.is_some_and(|at| base.spec.subsets[at].min_replicas > 0);
        if rows[place].missing == UNLIMITED && !has_min {
            return false;
        }
        // In a subset with too many pods (adopted ones, or a lowered limit), a deletion leaves no room.
        let max = min.map(|at| quota::scaled_or_zero(base.spec.subsets[at].max_replicas, total));
        let is_over = max.is_some_and(|max| rows[place].expected() > i64::from(max));
        let row = &mut rows_mut(status, &pending.revision)[place];
        row.deleting.insert(name.clone(), whole_second(self.now));
        if row.missing != UNLIMITED && !is_over {
            row.missing = row.missing.saturating_add(1);
        }
        pending.verdict = Verdict::Counted;
        true
    }
}

/// True if a subset's patch keeps the labels by which the owners of a new pod find it. Validation refuses other patches
/// if the target exists when the WorkloadSpread is written.
fn is_patched(
    pending: &PendingRequest,
    subset: &Subset,
    workloads: &Workloads,
    kinds: &Kinds,
) -> bool {
    let pod = &pending.request.pod;
    let (Some(patch), Some(controller)) = (&subset.labels, &pod.controller) else {
        return true;
    };
    let patched = patch.applied(&pod.labels);
    workloads.find_still((pod.namespace, controller), kinds, [&pod.labels, &patched])
}

/// True if a choice is entered into the ledger. Rows without limit are counted only for a minimum.
fn takes_slot(choice: &Choice, row: &Row) -> bool {
    match choice.ground() {
        Some(Ground::BelowMinimum { .. }) => true,
        Some(Ground::Known) | None => false,
        Some(_) => row.missing != UNLIMITED,
    }
}

fn rows_mut<'a>(status: &'a mut Arc<Status>, revision: &Arc<str>) -> &'a mut [Row] {
    let rows = Arc::make_mut(status).versioned.entry(revision.clone());
    rows.or_default()
}

fn only_one(base: &WorkloadSpread) -> Choice {
    let steps = base.spec.subsets.iter().take(1).map(|only| SubsetFinding {
        subset: only.name.clone(),
        finding: Finding::Taken(Ground::OnlyOne),
    });
    Choice {
        steps: steps.collect(),
        place: Some(0),
    }
}

/// The pod with its subset injected. `None` if the pod is unknown, or the patch cannot be merged; then injection
/// reports the error.
fn candidate(
    room: &mut Room,
    patcher: &mut dyn PodPatcher,
    request: RequestId,
    fact: Option<&PodFact>,
    (subset, is_patched): (&Subset, bool),
) -> Option<PodFact> {
    let fact = fact?;
    if subset.patch.is_some() && is_patched {
        return patcher.candidate(room.names_mut(), request, fact, subset);
    }
    let mut pod = fact.clone();
    inject(&mut pod.spec, subset);
    Some(pod)
}
