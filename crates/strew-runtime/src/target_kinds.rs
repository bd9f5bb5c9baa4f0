//! Which kinds of workloads a WorkloadSpread may target, and which of them are watched.
//!
//! Beside the kinds that a machine always watches, these are Kruise's, those of the ConfigMap's white list, and those
//! that a WorkloadSpread names itself (`strew.dev/any-kind`). Discovery reports repeatedly which of them exist, so a
//! definition that is installed later is watched from then on, and a missing one ends nothing.
//!
//! Source: spec/workloadspread §5.3, §6.3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use strew_api::workloadspread::GROUP as KRUISE;
use strew_api::workloadspread::annotations::{self, ANY_KIND};
use strew_api::workloadspread::facts::white_list::{CONFIG_MAP, WhiteList};
use strew_api::workloadspread::v1beta1::WorkloadSpread;
use strew_api::workloadspread::workloads::{
    AdvancedStatefulSet, AdvancedStatefulSetV1alpha1, CloneSet,
};
use strew_model::Interner;
use strew_workloadspread::GroupKind;

use crate::warning::Warning;
use crate::watch::{Kind, Reading, Scope, Served, ServedKind, Watches};

/// Group and kind.
type Key = (Box<str>, Box<str>);

/// Which of the kinds that may be targets are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    Named,
    Every,
}

/// What a WorkloadSpread says of the kind of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    key: Key,
    version: Box<str>,
    /// Whether the kind needs no entry in the list.
    any_kind: bool,
}

impl Named {
    /// `None`: it names no target.
    fn of(wire: &WorkloadSpread) -> Option<Self> {
        let target = wire.spec.as_ref()?.target_reference.as_ref()?;
        let version = &target.api_version;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Some(Self {
            key: (group.into(), target.kind.as_str().into()),
            version: version.into(),
            any_kind: annotations::is_true(&wire.metadata, ANY_KIND),
        })
    }
}

/// The kinds that may be targets of one machine.
#[derive(Debug)]
pub struct TargetKinds {
    follows: Follows,
    /// `None` until it is known.
    served: Option<Arc<Served>>,
    list: WhiteList,
    /// What WorkloadSpreads name, by their namespace and name; the last one is what they name now.
    named: BTreeMap<[Box<str>; 2], Vec<Named>>,
    /// Kinds that are watched only as targets, and whether all their objects were listed once.
    watched: BTreeMap<Key, Watched>,
    /// Kinds that a WorkloadSpread names and that the API server has not: said once.
    missed: BTreeSet<Key>,
    is_open: bool,
}

#[derive(Debug)]
struct Watched {
    kind: Kind,
    is_listed: bool,
}

/// A kind of workloads that is known by its group and kind, in the version that is read.
pub fn known(group: &str, kind: &str) -> Option<Kind> {
    let all = [
        Kind::of::<Deployment>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<StatefulSet>(),
        Kind::of::<Job>(),
        Kind::of::<CloneSet>(),
        Kind::of::<AdvancedStatefulSet>(),
    ];
    all.into_iter()
        .find(|known| &*known.group == group && &*known.kind == kind)
}

/// Watches the ConfigMap of custom kinds in this namespace.
pub fn watch_list(namespace: &str, watches: &mut Watches) {
    let scope = Scope {
        namespace: Some(namespace.to_owned()),
        fields: Some(format!("metadata.name={CONFIG_MAP}")),
    };
    let reading = Reading::Custom { has_scale: false };
    watches.start(Kind::of::<ConfigMap>(), reading, &scope);
}

impl TargetKinds {
    /// Those that a WorkloadSpread names, of these that the API server has.
    pub fn of_named(served: Arc<Served>) -> Self {
        Self {
            served: Some(served),
            is_open: true,
            ..Self::empty(Follows::Named)
        }
    }

    /// All, and what they control: a pod may come before any WorkloadSpread does. Nothing is watched before
    /// [`serve`](Self::serve), and custom ones not before [`open`](Self::open).
    pub fn of_every() -> Self {
        Self::empty(Follows::Every)
    }

    fn empty(follows: Follows) -> Self {
        Self {
            follows,
            served: None,
            list: WhiteList::default(),
            named: BTreeMap::new(),
            watched: BTreeMap::new(),
            missed: BTreeSet::new(),
            is_open: false,
        }
    }

    // === inputs ===

    /// The API server has these kinds now.
    pub fn serve(&mut self, served: Arc<Served>, watches: &mut Watches) {
        self.served = Some(served);
        self.follow(watches);
    }

    /// Watches custom kinds from now on: one that cannot be read must not keep others waiting before.
    pub fn open(&mut self, watches: &mut Watches) {
        self.is_open = true;
        self.follow(watches);
    }

    /// The ConfigMap is like this now; null: it is gone. Whether the list of kinds has changed.
    ///
    /// Objects of a kind with a new replicas path are reported again.
    pub fn configure(&mut self, config_map: &Value, watches: &mut Watches) -> bool {
        let list = match WhiteList::of_config_map(config_map) {
            Ok(list) => list,
            Err(error) => {
                let namespace = config_map["metadata"]["namespace"].as_str();
                let read = Warning {
                    kind: "ConfigMap",
                    namespace: namespace.unwrap_or_default(),
                    name: CONFIG_MAP,
                    node: None,
                    action: "read",
                    error: &error,
                    next: "when it changes; until then the list before holds",
                };
                read.log();
                return false;
            }
        };
        if list == self.list {
            return false;
        }
        let before = std::mem::replace(&mut self.list, list);
        tracing::info!(kinds = self.list.workloads.len(), "custom kinds are listed");
        let path = |list: &WhiteList, kind: &Kind| {
            let path = list.replicas_path(&kind.group, &kind.version, &kind.kind);
            path.map(str::to_owned)
        };
        let watched = self.watched.values().map(|watched| &watched.kind);
        let moved = watched.filter(|kind| path(&before, kind) != path(&self.list, kind));
        let moved: Vec<Kind> = moved.cloned().collect();
        self.follow(watches);
        for kind in moved.iter().filter(|kind| self.follows(kind)) {
            watches.restart(kind);
        }
        true
    }

    /// A WorkloadSpread names this target now. What it named before counts until [`settle`](Self::settle).
    pub fn name(&mut self, wire: &WorkloadSpread, watches: &mut Watches) {
        let Some(named) = Named::of(wire) else {
            return;
        };
        let all = self.named.entry(key_of(wire)).or_default();
        if all.last() == Some(&named) {
            return;
        }
        all.push(named.clone());
        if self.may_be(&named) && !self.watched.contains_key(&named.key) {
            self.follow(watches);
        }
    }

    /// What a WorkloadSpread named before counts no longer.
    pub fn settle(&mut self, wire: &WorkloadSpread, watches: &mut Watches) {
        let key = key_of(wire);
        let n_now = usize::from(Named::of(wire).is_some());
        let Some(all) = self.named.get_mut(&key) else {
            return;
        };
        if all.len() > n_now {
            all.drain(..all.len() - n_now);
            self.follow(watches);
        }
    }

    /// A WorkloadSpread is gone.
    pub fn forget(&mut self, namespace: &str, name: &str, watches: &mut Watches) {
        if self
            .named
            .remove(&[namespace.into(), name.into()])
            .is_some()
        {
            self.follow(watches);
        }
    }

    /// All objects of a kind have been listed. Returns whether it is a custom kind.
    pub fn listed(&mut self, kind: &Kind) -> bool {
        let mut all = self.watched.iter_mut();
        let found = all.find(|(_, watched)| watched.kind == *kind);
        found.is_some_and(|(key, watched)| {
            watched.is_listed = true;
            versions_read(key).is_empty()
        })
    }

    // === queries ===

    /// Whether discovery has reported the kinds.
    pub fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// Whether custom kinds are watched.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether a kind is watched for the sake of targets alone.
    pub fn follows(&self, kind: &Kind) -> bool {
        self.watched.values().any(|watched| watched.kind == *kind)
    }

    /// Whether all objects of the kind of a WorkloadSpread's target are known, as far as they can be.
    pub fn is_known(&self, wire: &WorkloadSpread, watches: &Watches) -> bool {
        let named = Named::of(wire);
        let watched = named.and_then(|named| self.watched.get(&named.key));
        watched.is_none_or(|watched| {
            let mut kinds = watches.kinds();
            kinds.any(|(kind, is_listed)| is_listed && *kind == watched.kind)
        })
    }

    /// Where the replicas of this kind are counted; `None`: in its scale.
    pub fn replicas_path(&self, kind: &Kind) -> Option<&str> {
        (self.list).replicas_path(&kind.group, &kind.version, &kind.kind)
    }

    /// The kinds of the list.
    pub fn kinds(&self, names: &mut Interner) -> Box<[GroupKind]> {
        self.list.kinds(names)
    }

    /// The kinds of the list whose objects are known. Of another one (it may be forbidden, say) each pod would be refused
    /// for an owner that was not found.
    pub fn known_kinds(&self, names: &mut Interner) -> Box<[GroupKind]> {
        let mut kinds = self.list.kinds(names).into_vec();
        kinds.retain(|of| {
            let key = (names.text(of.group).into(), names.text(of.kind).into());
            let watched = self.watched.get(&key);
            watched.is_some_and(|watched| watched.is_listed)
        });
        kinds.into_boxed_slice()
    }

    // === what is watched ===

    /// Begins and ends watches, so that those run which are wanted.
    fn follow(&mut self, watches: &mut Watches) {
        let Some(served) = self.served.clone() else {
            return;
        };
        let wanted = self.wanted(&served, watches);
        let ended = self.watched.extract_if(.., |key, watched| {
            wanted.get(key).is_none_or(|w| w.kind != watched.kind)
        });
        for (_, watched) in ended {
            watches.stop(&watched.kind);
        }
        for (key, ServedKind { kind, has_scale }) in wanted {
            if self.watched.contains_key(&key) {
                continue;
            }
            tracing::info!("{kind} are watched in {}", kind.version);
            let reading = match versions_read(&key) {
                [] => Reading::Custom { has_scale },
                _ => Reading::Known,
            };
            watches.start(kind.clone(), reading, &Scope::default());
            let is_listed = false;
            self.watched.insert(key, Watched { kind, is_listed });
        }
    }

    /// The kinds that are to be watched, each in its version.
    fn wanted(&mut self, served: &Served, watches: &Watches) -> BTreeMap<Key, ServedKind> {
        let mut wanted = BTreeMap::new();
        for (key, is_named) in self.candidates() {
            let watched = self.watched.get(&key);
            if watched.is_none() && watches.kind_of(&key.0, &key.1).is_some() {
                // The machine watches it anyway.
                continue;
            }
            match (self.version(&key, served), watched) {
                (Some(found), _) => {
                    self.missed.remove(&key);
                    wanted.insert(key, found);
                }
                // Its watch finds out what is gone.
                (None, Some(watched)) if is_named && self.follows == Follows::Named => {
                    let (kind, has_scale) = (watched.kind.clone(), false);
                    wanted.insert(key, ServedKind { kind, has_scale });
                }
                (None, _) => {
                    if is_named && self.missed.insert(key.clone()) {
                        let (group, kind) = &key;
                        let watch = Warning {
                            kind,
                            namespace: "",
                            name: "",
                            node: None,
                            action: "watch",
                            error: &format!("the API server has no {kind} of group {group:?}"),
                            next: "when it has; until then WorkloadSpreads that name it as target wait",
                        };
                        watch.log();
                    }
                }
            }
        }
        wanted
    }

    /// Kinds that may be targets and are looked for, and whether a WorkloadSpread names them. One that is watched stays
    /// while it is named, whatever the list says by now.
    fn candidates(&self) -> BTreeMap<Key, bool> {
        let mut all = BTreeMap::new();
        if self.follows == Follows::Every {
            let kruise = [CloneSet::KIND, AdvancedStatefulSet::KIND];
            all.extend(kruise.map(|kind| ((KRUISE.into(), kind.into()), false)));
            for listed in &self.list.workloads {
                let below = listed.sub_resources.iter();
                let below = below.map(|[group, _, kind]| (group, kind));
                let own = std::iter::once((&listed.group, &listed.kind));
                let keys = own.chain(below);
                all.extend(keys.map(|(g, k)| ((g.as_str().into(), k.as_str().into()), false)));
            }
        }
        let named = self.named.values().flatten();
        let named =
            named.filter(|named| self.may_be(named) || self.watched.contains_key(&named.key));
        all.extend(named.map(|named| (named.key.clone(), true)));
        all.retain(|key, _| self.is_open || !versions_read(key).is_empty());
        all
    }

    /// Whether a kind that is named may be a target, besides those that the machine watches anyway.
    fn may_be(&self, named: &Named) -> bool {
        let (group, kind) = &named.key;
        named.any_kind || !versions_read(&named.key).is_empty() || self.list.allows(group, kind)
    }

    /// The version of a kind that is watched: of Kruise's the newest that can be read; of others that of the list, else a
    /// target's own, else the preferred one.
    ///
    /// One that is watched already stays: until another is listed, its WorkloadSpreads would have no pods. Where every kind
    /// is watched the list comes first, since its `replicasPath` is for its version alone.
    fn version(&self, key: &Key, served: &Served) -> Option<ServedKind> {
        let versions = served.versions(&key.0, &key.1);
        let of_version = |version: &str| versions.iter().find(|s| *s.kind.version == *version);
        let watched = self.watched.get(key);
        let watched = watched.and_then(|watched| of_version(&watched.kind.version));
        let read = versions_read(key);
        if !read.is_empty() {
            let newest = || read.iter().find_map(|version| of_version(version));
            return watched.or_else(newest).cloned();
        }
        let listed = self.list.version(&key.0, &key.1).and_then(of_version);
        let first = match self.follows {
            Follows::Named => watched.or(listed),
            Follows::Every => listed.or(watched),
        };
        let mut named = self.named.values().flatten().filter(|n| n.key == *key);
        let own = || named.find_map(|named| of_version(&named.version));
        first.or_else(own).or(versions.first()).cloned()
    }
}

/// The versions of a kind of Kruise's that can be read, the newest first; empty: it is read as JSON.
fn versions_read((group, kind): &Key) -> &'static [&'static str] {
    const CLONE_SET: &[&str] = &[CloneSet::VERSION];
    const STATEFUL_SET: &[&str] = &[
        AdvancedStatefulSet::VERSION,
        AdvancedStatefulSetV1alpha1::VERSION,
    ];
    match &**kind {
        _ if **group != *KRUISE => &[],
        CloneSet::KIND => CLONE_SET,
        AdvancedStatefulSet::KIND => STATEFUL_SET,
        _ => &[],
    }
}

fn key_of(wire: &WorkloadSpread) -> [Box<str>; 2] {
    let metadata = &wire.metadata;
    [&metadata.namespace, &metadata.name].map(|text| text.as_deref().unwrap_or_default().into())
}

#[cfg(test)]
mod tests;
