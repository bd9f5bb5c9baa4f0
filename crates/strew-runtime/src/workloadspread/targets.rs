//! Kinds that are watched because a WorkloadSpread names one as its target: those of Kruise, and custom ones.
//!
//! Source: spec/workloadspread §5.3, §6.3; `strew.dev/any-kind`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::Resource;
use strew_api::workloadspread::GROUP as KRUISE;
use strew_api::workloadspread::annotations::ANY_KIND;
use strew_api::workloadspread::facts::white_list::WhiteList;
use strew_api::workloadspread::v1beta1::WorkloadSpread;
use strew_api::workloadspread::workloads::{
    AdvancedStatefulSet, AdvancedStatefulSetV1alpha1, CloneSet,
};

use crate::watch::{Kind, Reading, Scope, Served, ServedKind, Watches};

/// Group and kind.
type GroupKind = (Box<str>, Box<str>);

/// What a WorkloadSpread says of the kind of its target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) group: &'a str,
    /// Empty: any.
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    /// Whether the kind needs no entry in the white list.
    pub(super) any_kind: bool,
}

impl<'a> Wanted<'a> {
    /// Of a WorkloadSpread; `None`: it names no target.
    pub(super) fn of(wire: &'a WorkloadSpread) -> Option<Self> {
        let target = wire.spec.as_ref()?.target_reference.as_ref()?;
        let (group, version) = target
            .api_version
            .split_once('/')
            .unwrap_or(("", &target.api_version));
        let annotations = wire.metadata.annotations.as_ref();
        let any_kind = annotations.and_then(|all| all.get(ANY_KIND));
        Some(Self {
            group,
            version,
            kind: &target.kind,
            any_kind: any_kind.is_some_and(|value| value == "true"),
        })
    }

    fn key(&self) -> GroupKind {
        (self.group.into(), self.kind.into())
    }
}

/// The kinds of targets.
#[derive(Debug)]
pub(super) struct Targets {
    served: Arc<Served>,
    watched: BTreeMap<GroupKind, Kind>,
    /// Kinds that the API server has not: said once.
    missed: BTreeSet<GroupKind>,
}

impl Targets {
    /// The API server has these kinds.
    pub(super) fn new(served: Arc<Served>) -> Self {
        Self {
            served,
            watched: BTreeMap::new(),
            missed: BTreeSet::new(),
        }
    }

    /// It has these now.
    pub(super) fn serve(&mut self, served: Arc<Served>) {
        self.served = served;
    }

    /// Watches the kind of a target, unless it is watched, or is no kind that may be one.
    pub(super) fn want(&mut self, wanted: Wanted<'_>, list: &WhiteList, watches: &mut Watches) {
        let key = wanted.key();
        if self.watched.contains_key(&key) {
            return;
        }
        let Some(reading) = reading(&wanted, list) else {
            return;
        };
        let Some(served) = self.served_as(&wanted, list).cloned() else {
            let (group, kind) = &key;
            if self.missed.insert(key.clone()) {
                tracing::warn!(
                    "a WorkloadSpread names a {kind} of {group:?}, a kind that the API server has not"
                );
            }
            return;
        };
        let reading = match reading {
            Reading::Known => Reading::Known,
            Reading::Custom { .. } => Reading::Custom {
                has_scale: served.has_scale,
            },
        };
        self.missed.remove(&key);
        tracing::info!("targets of kind {} are watched", served.kind);
        watches.start(served.kind.clone(), reading, &Scope::default());
        self.watched.insert(key, served.kind);
    }

    /// The version of a kind that is watched: that of the white list, else the target's own, else the preferred one.
    fn served_as(&self, wanted: &Wanted<'_>, list: &WhiteList) -> Option<&ServedKind> {
        let versions = self.served.versions(wanted.group, wanted.kind);
        let of_version = |version: &str| versions.iter().find(|s| *s.kind.version == *version);
        if wanted.group == KRUISE {
            // What strew can read, the newest first.
            let known = [
                (CloneSet::KIND, CloneSet::VERSION),
                (AdvancedStatefulSet::KIND, AdvancedStatefulSet::VERSION),
                (
                    AdvancedStatefulSet::KIND,
                    AdvancedStatefulSetV1alpha1::VERSION,
                ),
            ];
            let mut known = known
                .iter()
                .filter(|(kind, _)| *kind == wanted.kind)
                .peekable();
            if known.peek().is_some() {
                return known.find_map(|(_, version)| of_version(version));
            }
        }
        let mut listed = list.workloads.iter();
        let listed = listed.find(|l| l.group == wanted.group && l.kind == wanted.kind);
        listed
            .and_then(|listed| of_version(&listed.version))
            .or_else(|| of_version(wanted.version))
            .or_else(|| versions.first())
    }

    /// Whether a kind is watched for the sake of targets alone.
    pub(super) fn watch(&self, kind: &Kind) -> bool {
        self.watched.values().any(|watched| watched == kind)
    }

    /// Whether all objects of the kind of a target have been told, as far as they can be.
    pub(super) fn is_known(&self, wanted: Option<Wanted<'_>>, watches: &Watches) -> bool {
        let kind = wanted.and_then(|wanted| self.watched.get(&wanted.key()));
        kind.is_none_or(|kind| {
            watches
                .kinds()
                .any(|(known, is_listed)| known == kind && is_listed)
        })
    }

    /// The white list has changed: where replicas are counted elsewhere now, all objects are told again.
    pub(super) fn listed(&mut self, before: &WhiteList, now: &WhiteList, watches: &mut Watches) {
        for kind in self.watched.values() {
            let path = |list: &WhiteList| {
                let path = list.replicas_path(&kind.group, &kind.version, &kind.kind);
                path.map(str::to_owned)
            };
            if path(before) != path(now) {
                watches.restart(kind);
            }
        }
    }

    /// All objects of a kind are told again, because more of them is looked at now.
    pub(super) fn tell_again(group: &str, kind: &str, watches: &mut Watches) {
        let mut kinds = watches.kinds();
        let found = kinds.find(|(known, _)| *known.group == *group && *known.kind == *kind);
        if let Some(kind) = found.map(|(kind, _)| kind.clone()) {
            drop(kinds);
            watches.restart(&kind);
        }
    }
}

/// How objects of a kind are read; `None`: they are watched anyway, or may be no target.
fn reading(wanted: &Wanted<'_>, list: &WhiteList) -> Option<Reading> {
    let is_always_watched = match wanted.group {
        "apps" => matches!(wanted.kind, "Deployment" | "ReplicaSet" | "StatefulSet"),
        "batch" => wanted.kind == "Job",
        _ => false,
    };
    if is_always_watched {
        return None;
    }
    if wanted.group == KRUISE && matches!(wanted.kind, "CloneSet" | "StatefulSet") {
        return Some(Reading::Known);
    }
    let is_allowed = wanted.any_kind || list.allows(wanted.group, wanted.kind);
    is_allowed.then_some(Reading::Custom { has_scale: false })
}
