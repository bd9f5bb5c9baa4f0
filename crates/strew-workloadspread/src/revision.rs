//! The revision of a pod, and the latest revision of a workload.
//!
//! Source: spec/workloadspread §3.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_model::{Interner, Labels};

use crate::facts::kinds::{Kind, Kinds};
use crate::facts::spec::LimitScope;
use crate::facts::workload::{Controller, WorkloadFact};
use crate::workloads::Workloads;

/// The key for pods that are not counted by revision.
pub const VERSION_IGNORED: &str = "versionIgnored";

/// The key of the rows in the ledger that count a pod.
pub fn of_pod(
    scope: LimitScope,
    labels: &Labels,
    controller: Option<&Controller>,
    kinds: &Kinds,
    names: &Interner,
) -> Arc<str> {
    match scope {
        LimitScope::Kind | LimitScope::Revision => {
            of_template(scope, labels, controller, kinds, names)
        }
        LimitScope::Workload => VERSION_IGNORED.into(),
    }
}

/// The revision of a pod's template, which decides its deletion cost.
pub fn of_template(
    scope: LimitScope,
    labels: &Labels,
    controller: Option<&Controller>,
    kinds: &Kinds,
    names: &Interner,
) -> Arc<str> {
    let has_revisions = |c: &Controller| match kinds.of(c.target.kind) {
        Kind::CloneSet => scope == LimitScope::Revision,
        _ => kinds.is_versioned(c.target.kind),
    };
    if !controller.is_some_and(has_revisions) {
        return VERSION_IGNORED.into();
    }
    if let Some(hash) = labels.get(kinds.template_hash) {
        return names.text(hash).into();
    }
    match labels.get(kinds.controller_revision) {
        Some(hash) => short(names.text(hash)),
        None => VERSION_IGNORED.into(),
    }
}

/// The hash at the end of a revision's name.
fn short(name: &str) -> Arc<str> {
    name.rsplit('-').next().unwrap_or(name).into()
}

/// The revisions that count as the latest: their pods get costs in the order of subsets, all others in reverse order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Latest {
    /// This revision.
    Is(Arc<str>),
    /// All revisions: the target has none. Also for a ReplicaSet without a Deployment, whose label differs from its
    /// pods' key (spec/workloadspread F4).
    Every,
    /// No revision: the target was deleted, or has no ReplicaSet yet.
    Nobody,
    /// These: each of several targets has its own.
    Among(BTreeSet<Arc<str>>),
}

impl Latest {
    /// True if a revision is the latest.
    pub fn is(&self, revision: &str) -> bool {
        match self {
            Self::Is(latest) => &**latest == revision,
            Self::Every => true,
            Self::Nobody => false,
            Self::Among(latest) => latest.contains(revision),
        }
    }

    /// The latest revisions of two targets together. Pods of a target without revisions have one key.
    pub fn or(self, other: Self) -> Self {
        let mut all = BTreeSet::new();
        for latest in [self, other] {
            match latest {
                Self::Is(revision) => {
                    all.insert(revision);
                }
                Self::Every => {
                    all.insert(VERSION_IGNORED.into());
                }
                Self::Nobody => {}
                Self::Among(more) => all.extend(more),
            }
        }
        match all.is_empty() {
            true => Self::Nobody,
            false => Self::Among(all),
        }
    }
}

/// The latest revision of a target.
///
/// For a Deployment: the hash of the existing ReplicaSet with its template. If none has it (a paused Deployment with an
/// edited template, F6), the newest by its annotation. For a CloneSet that is counted by revision: the revision that
/// its pods are updated to.
pub fn latest(
    scope: LimitScope,
    target: Option<&WorkloadFact>,
    workloads: &Workloads,
    kinds: &Kinds,
    names: &Interner,
) -> Latest {
    let Some(target) = target.filter(|t| !t.deleting) else {
        return Latest::Nobody;
    };
    match kinds.of(target.key.target.kind) {
        Kind::Deployment => {}
        Kind::CloneSet => {
            let to = target.revisions.filter(|_| scope == LimitScope::Revision);
            return to.map_or(Latest::Every, |[_, to]| Latest::Is(short(names.text(to))));
        }
        _ => return Latest::Every,
    }
    let live = || {
        workloads
            .controlled_by(&target.uid)
            .filter(|rs| !rs.deleting)
    };
    let same = live().find(|rs| target.template.is_some() && rs.template == target.template);
    let newest = || live().max_by_key(|rs| rs.revision);
    let hash = same.or_else(newest).and_then(|rs| rs.template_hash);
    hash.map_or(Latest::Nobody, |hash| Latest::Is(names.text(hash).into()))
}
