//! The plan of one sync: what to write to pods and status, and which pods to delete.
//!
//! Source: spec/workloadspread §5.2.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Holds, Instant, Interner, Marks};

use super::assign::{self, Assigning, Assignment, Nodes};
use super::cost::{self, Cost};
use super::effect::{EventKind, PodName, Removal};
use super::owners;
use super::pods::Pods;
use super::progress;
use super::removals;
use super::rows::{self, Noted};
use crate::facts::kinds::{Kind, Kinds};
use crate::facts::pod::Pod;
use crate::facts::spec::{LabelPatch, PatchId, WorkloadSpread};
use crate::facts::status::{Outranked, Row, Status, whole_second};
use crate::facts::workload::Rolling;
use crate::inject::PodPatcher;
use crate::marker::Marker;
use crate::quota::{CannotCount, Total};
use crate::revision::Latest;
use crate::rollout::{self, Misfit};
use crate::spreads::Spreads;
use crate::workloads::Workloads;

/// All facts that a sync reads.
#[derive(Default)]
pub struct Facts {
    /// The pods.
    pub pods: Pods,
    /// The nodes.
    pub nodes: Nodes,
    /// The workloads.
    pub workloads: Workloads,
}

/// The writes of a sync.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Markers to write, each with the patch whose metadata is written, too.
    pub adoptions: Vec<(PodName, Marker, Option<PatchId>)>,
    /// Costs to write.
    pub costs: Vec<(PodName, i32)>,
    /// The new status.
    pub status: Status,
    /// Pods to remove.
    pub deletions: Vec<(PodName, Removal)>,
    /// Events, and the time at which the next sync is needed without a trigger.
    pub noted: Noted,
}

/// The findings of a sync, before it writes anything.
pub struct Found<'a> {
    /// The total.
    pub total: Total,
    /// The pods by revision and subset.
    pub assignment: Assignment<'a>,
    /// The latest revision.
    pub latest: Latest,
    /// The costs of active pods; empty for kinds whose controllers do not read them.
    pub costs: Vec<Cost<'a>>,
    /// By index: true if the subset's patch would keep an owner from finding one of its pods.
    pub unpatched: Vec<bool>,
    /// An older WorkloadSpread that matches pods of the target, too.
    pub outranked_by: Option<Arc<str>>,
    /// True if the target is a Job.
    pub is_job: bool,
    /// True if that Job does not count an evicted pod as failed.
    pub ignores_disruption: bool,
    /// How the target rolls out.
    pub rolling: Option<Rolling>,
    /// By index: what the settings mean for every rollout.
    pub misfits: Vec<(usize, Misfit)>,
}

/// Counts and assigns the pods.
///
/// # Errors
/// What prevents counting pods: the sync fails.
pub fn find<'a>(
    ws: &WorkloadSpread,
    (facts, spreads): (&'a Facts, &Spreads),
    kinds: &Kinds,
    names: &Interner,
    patcher: &mut dyn PodPatcher,
) -> Result<Found<'a>, CannotCount> {
    let targets = facts.workloads.targets_of(ws);
    let target = targets.named;
    let total = targets.total(&ws.spec, kinds)?;
    let mut pods = facts.pods.of_targets(ws, &targets, &facts.workloads, kinds);
    let outranked_by = owners::keep_own(ws, &mut pods, (facts, spreads), kinds);
    let cx = Assigning {
        ws,
        total,
        nodes: &facts.nodes,
        kinds,
        names,
    };
    let mut assignment = assign::assign(&cx, &pods, patcher);
    let latest = targets.latest(ws.spec.limit_scope, &facts.workloads, kinds, names);
    let mut costs = Vec::new();
    if kinds.has_costs(&ws.spec) {
        for (revision, group) in &assignment.groups {
            costs.extend(cost::costs(&ws.spec, group, latest.is(revision), total));
        }
    }
    let lost = |(place, pod): (usize, &Pod)| {
        let labels = ws.spec.subsets[place].labels.as_ref();
        labels.is_some_and(|patch| !is_found_with(pod, patch, &facts.workloads, kinds))
    };
    // An adopted pod gets its marker, but not the rest of a patch with which its owners would lose it.
    assignment
        .adoptions
        .iter_mut()
        .for_each(|a| a.is_patched = !lost((a.place, a.pod)));
    let unpatched = (0..ws.spec.subsets.len()).map(|place| {
        let mut groups = assignment.groups.values();
        groups.any(|group| {
            let mut pods = group.subsets[place].iter().filter(|pod| pod.is_active());
            pods.any(|pod| lost((place, pod)))
        })
    });
    let unpatched = unpatched.collect();
    Ok(Found {
        total,
        assignment,
        latest,
        costs,
        unpatched,
        outranked_by,
        is_job: ws
            .spec
            .target
            .is_some_and(|t| kinds.of(t.kind) == Kind::Job),
        ignores_disruption: target.is_some_and(|t| t.ignores_disruption),
        // Of several workloads, it is unknown how many roll out at a time.
        rolling: target
            .filter(|_| ws.spec.also.is_none())
            .and_then(|t| t.rolling),
        misfits: rollout::misfits(&ws.spec, target, total, kinds),
    })
}

/// True if the owners of a pod still find it after its labels are patched.
fn is_found_with(pod: &Pod, patch: &LabelPatch, workloads: &Workloads, kinds: &Kinds) -> bool {
    let Some(controller) = &pod.controller else {
        return true;
    };
    let patched = patch.applied(&pod.labels);
    workloads.find_still((pod.namespace, controller), kinds, [&pod.labels, &patched])
}

/// Plans a sync.
pub fn plan(ws: &WorkloadSpread, found: &Found<'_>, now: Instant) -> Plan {
    let mut noted = Noted::default();
    let (status, failed) = status(ws, found, now, &mut noted);
    Plan {
        adoptions: adoptions(ws, &found.assignment),
        costs: found
            .costs
            .iter()
            .filter(|c| differs(c))
            .map(|c| (name_of(c.pod), c.cost))
            .collect(),
        deletions: removals::removals(ws, found, &status, failed, now, &mut noted),
        status,
        noted,
    }
}

fn differs(cost: &Cost<'_>) -> bool {
    let stands = cost.pod.cost.as_deref();
    stands.is_none_or(|text| text != cost.cost.to_string())
}

pub(super) fn name_of(pod: &Pod) -> PodName {
    PodName {
        uid: pod.uid.clone(),
        namespace: pod.namespace,
        name: pod.name.clone(),
    }
}

fn adoptions(
    ws: &WorkloadSpread,
    assignment: &Assignment<'_>,
) -> Vec<(PodName, Marker, Option<PatchId>)> {
    let of = |a: &assign::Adoption<'_>| {
        let subset = &ws.spec.subsets[a.place];
        let marker = Marker {
            workload_spread: ws.key.name.clone(),
            subset: subset.name.clone(),
            uid: None,
        };
        let goes_along = a.is_patched && !ws.ignore_patch_of_existing;
        let metadata_of = subset.patch.filter(|_| goes_along);
        (name_of(a.pod), marker, metadata_of)
    };
    assignment.adoptions.iter().map(of).collect()
}

/// The status for the pods, and the pods that cannot be scheduled.
fn status<'a>(
    ws: &WorkloadSpread,
    found: &Found<'a>,
    now: Instant,
    noted: &mut Noted,
) -> (Status, Vec<&'a Pod>) {
    let (spec, old) = (&ws.spec, &ws.status);
    let groups = &found.assignment.groups;
    let mut all = vec![Vec::new(); spec.subsets.len()];
    for group in groups.values() {
        for (all, pods) in all.iter_mut().zip(&group.subsets) {
            all.extend(pods);
        }
    }
    let (overall, failed) = rows::rows(spec, &old.overall, &all, found.total, now, noted);
    // Revisions that are counted together share their rows.
    let mut counted: BTreeMap<&Arc<str>, Vec<Vec<&Pod>>> = BTreeMap::new();
    for group in groups.values() {
        let subsets = counted.entry(&group.ledger).or_default();
        subsets.resize(spec.subsets.len(), Vec::new());
        for (all, pods) in subsets.iter_mut().zip(&group.subsets) {
            all.extend(pods);
        }
    }
    let mut versioned: BTreeMap<Arc<str>, Vec<Row>> = BTreeMap::new();
    for (revision, subsets) in &counted {
        let before = old.rows(revision);
        let (rows, _) = rows::rows(spec, before, subsets, found.total, now, noted);
        versioned.insert(Arc::clone(revision), rows);
    }
    // A revision without pods is kept while an admitted pod of it is not seen yet.
    for (revision, before) in &old.versioned {
        if counted.contains_key(revision) {
            continue;
        }
        let mut own = Noted::default();
        let (rows, _) = rows::rows(spec, before, &[], found.total, now, &mut own);
        let kept = rows.iter().any(|r| !r.creating.is_empty());
        noted.events.append(&mut own.events);
        if kept {
            own.wake.into_iter().for_each(|wake| noted.wake_at(wake));
            versioned.insert(revision.clone(), rows);
        }
    }
    let mut unpatched = BTreeMap::new();
    let subsets = spec.subsets.iter().zip(&found.unpatched);
    for (subset, _) in subsets.filter(|(_, is_unpatched)| **is_unpatched) {
        let name = &subset.name;
        let since = old.unpatched.get(name).copied().unwrap_or_else(|| {
            noted.event(EventKind::PatchNotApplied, name);
            whole_second(now)
        });
        unpatched.insert(Arc::clone(name), since);
    }
    let outranked = found.outranked_by.as_ref().map(|by| {
        let known = old.outranked.as_ref();
        if known.is_none_or(|known| known.by != *by) {
            noted.event(EventKind::PodsOfAnother, by);
        }
        Outranked {
            by: Arc::clone(by),
            since: known.map_or(whole_second(now), |known| known.since),
        }
    });
    let misfits = match overall.is_empty() {
        true => BTreeMap::new(),
        false => progress::misfits(ws, found, now, noted),
    };
    let status = Status {
        outranked,
        misfits,
        observed_generation: ws.generation,
        overall,
        versioned,
        webhook: old.webhook,
        unpatched,
    };
    (status, failed)
}

impl Holds for Plan {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            adoptions,
            costs,
            status: _,
            deletions,
            noted: _,
        } = self;
        let adopted = adoptions.iter().map(|(pod, ..)| pod);
        let costly = costs.iter().map(|(pod, _)| pod);
        let deleted = deletions.iter().map(|(pod, _)| pod);
        for pod in adopted.chain(costly).chain(deleted) {
            pod.mark(marks);
        }
    }
}
