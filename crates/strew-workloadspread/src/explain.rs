//! Explains a pod's subset and cost, and compares the ledger with the pods.
//!
//! How the subset of a new pod was chosen is part of its [`Answer`](crate::admission::Answer). Everything here runs the
//! code of a sync on the controller's facts, and writes nothing.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Instant, Span};

use crate::controller::SpreadController;
use crate::controller::assign::Adoption;
use crate::controller::cost::CostGround;
use crate::controller::plan::{self, Found};
use crate::controller::rows::{CREATING_FOR, DELETING_FOR};
use crate::facts::pod::Pod;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::status::Row;
use crate::inject::PodPatcher;
use crate::quota::{self, CannotCount};

/// Why a pod is in its subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodStanding {
    /// The revision under which it is counted.
    pub revision: Arc<str>,
    /// True if that is the latest.
    pub is_latest: bool,
    /// Its subset.
    pub subset: Membership,
    /// The deletion cost that it should have, with the reason; `None` for pods that do not count and kinds without
    /// costs.
    pub cost: Option<(i32, CostGround)>,
    /// Its present cost.
    pub cost_stands: Option<Arc<str>>,
}

/// How a pod got its subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// Its marker names it.
    Marked(usize),
    /// It has no marker of this WorkloadSpread, and its node fits this subset best. The score of each subset; `None` if
    /// it does not fit.
    Adopted(usize, Vec<Option<i64>>),
    /// Its marker names a subset that is not in the spec, or it is on no known node, or its node fits no subset.
    Orphan,
}

/// A row of the ledger, compared with the pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCheck {
    /// The revision; `None` for the overall row.
    pub revision: Option<Arc<str>>,
    /// The subset.
    pub subset: Arc<str>,
    /// The limit; -1 if there is none.
    pub max: i32,
    /// The stored row.
    pub stands: Option<Row>,
    /// The row that a sync would write now.
    pub truth: Option<Row>,
    /// Entries without a matching pod, with the time at which each expires.
    pub open: Vec<(Entry, Arc<str>, Instant)>,
}

/// An entry of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Of `creatingPods`.
    Creating,
    /// Of `deletingPods`.
    Deleting,
}

impl RowCheck {
    /// True if a sync would not change the row.
    pub fn agrees(&self) -> bool {
        self.stands == self.truth
    }
}

impl SpreadController {
    /// The input of a sync of a WorkloadSpread.
    fn found(
        &self,
        ws: &WorkloadSpread,
        patcher: &mut dyn PodPatcher,
    ) -> Result<Found<'_>, CannotCount> {
        let facts = (self.facts(), self.spreads());
        plan::find(ws, facts, self.kinds(), self.names(), patcher)
    }

    /// Why the pods of a WorkloadSpread are in their subsets: by revision and subset, pods in none last; empty if the
    /// WorkloadSpread is unknown. Finished and terminating pods are included.
    ///
    /// # Errors
    /// What prevents counting pods.
    pub fn explain_pods(
        &self,
        key: &WsKey,
        patcher: &mut dyn PodPatcher,
    ) -> Result<Vec<(&Pod, PodStanding)>, CannotCount> {
        let Some(ws) = self.spreads().get(key) else {
            return Ok(Vec::new());
        };
        let found = self.found(ws, patcher)?;
        Ok(standings(&found))
    }

    /// The ledger of a WorkloadSpread compared with the pods, row by row, the overall rows last; empty if the
    /// WorkloadSpread is unknown.
    ///
    /// # Errors
    /// What prevents counting pods.
    pub fn check_ledger(
        &self,
        now: Instant,
        key: &WsKey,
        patcher: &mut dyn PodPatcher,
    ) -> Result<Vec<RowCheck>, CannotCount> {
        let Some(ws) = self.spreads().get(key) else {
            return Ok(Vec::new());
        };
        let found = self.found(ws, patcher)?;
        let truth = plan::plan(ws, &found, now).status;
        let stands = &ws.status;
        let mut revisions: Vec<&Arc<str>> = stands.versioned.keys().collect();
        revisions.extend(
            truth
                .versioned
                .keys()
                .filter(|r| !stands.versioned.contains_key(*r)),
        );
        revisions.sort();
        let mut checks = Vec::new();
        let mut add = |revision: Option<&Arc<str>>, before: &[Row], after: &[Row]| {
            for subset in &ws.spec.subsets {
                let of = |rows: &[Row]| rows.iter().find(|r| r.name == subset.name).cloned();
                let stands = of(before);
                checks.push(RowCheck {
                    revision: revision.cloned(),
                    subset: subset.name.clone(),
                    max: quota::scaled_or_zero(subset.max_replicas, found.total),
                    open: stands.as_ref().map(open_entries).unwrap_or_default(),
                    stands,
                    truth: of(after),
                });
            }
        };
        for revision in revisions {
            add(Some(revision), stands.rows(revision), truth.rows(revision));
        }
        add(None, &stands.overall, &truth.overall);
        Ok(checks)
    }
}

fn open_entries(row: &Row) -> Vec<(Entry, Arc<str>, Instant)> {
    let of = |kind: Entry, entries: &crate::facts::status::Entries, lasts: Span| {
        let of_one = move |(id, since): (&Arc<str>, &Instant)| (kind, id.clone(), *since + lasts);
        entries.iter().map(of_one).collect::<Vec<_>>()
    };
    let mut open = of(Entry::Creating, &row.creating, CREATING_FOR);
    open.extend(of(Entry::Deleting, &row.deleting, DELETING_FOR));
    open
}

fn standings<'a>(found: &Found<'a>) -> Vec<(&'a Pod, PodStanding)> {
    let adoptions = found.assignment.adoptions.iter();
    let adoptions: FxHashMap<&str, &Adoption<'_>> = adoptions.map(|a| (&*a.pod.uid, a)).collect();
    let costs = found.costs.iter();
    let costs: FxHashMap<&str, (i32, CostGround)> =
        costs.map(|c| (&*c.pod.uid, (c.cost, c.ground))).collect();
    let mut all = Vec::new();
    for (revision, group) in &found.assignment.groups {
        let subsets = group.subsets.iter().enumerate();
        let subsets = subsets.flat_map(|(i, pods)| pods.iter().map(move |p| (Some(i), *p)));
        let orphans = group.orphans.iter().map(|p| (None, *p));
        for (place, pod) in subsets.chain(orphans) {
            let subset = match (place, adoptions.get(&*pod.uid)) {
                (Some(place), Some(adoption)) => {
                    Membership::Adopted(place, adoption.scores.clone())
                }
                (Some(place), None) => Membership::Marked(place),
                (None, _) => Membership::Orphan,
            };
            let standing = PodStanding {
                revision: Arc::clone(&group.ledger),
                is_latest: found.latest.is(revision),
                subset,
                cost: costs.get(&*pod.uid).copied(),
                cost_stands: pod.cost.clone(),
            };
            all.push((pod, standing));
        }
    }
    all
}
