//! The kinds of workloads that WorkloadSpreads may target, and which of them are watched.
//!
//! Beside the kinds that a machine always watches, these are Kruise's, those of the ConfigMap's white list, and those
//! that a WorkloadSpread names itself (`strew.dev/any-kind`). Discovery reports repeatedly which of them are served, so
//! a definition that is installed later is watched from then on, and a missing one is no error.
//!
//! Source: spec/workloadspread §5.3, §6.3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use strew_manifest::kinds;
use strew_manifest::kruise::GROUP as KRUISE;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::kruise::workloads::{AdvancedStatefulSet, CloneSet};
use strew_model::Interner;
use strew_wire::workloadspread::annotations::{self, ANY_KIND};
use strew_wire::workloadspread::facts::white_list::{CONFIG_MAP, WhiteList};
use strew_workloadspread::GroupKind;

use crate::reads::Reads;
use crate::warning::Warning;
use crate::watch::{Kind, Reading, Scope, Served, ServedKind, Watches};

/// Group and kind.
type Key = (Box<str>, Box<str>);

/// Which of the possible kinds are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    Named,
    Every,
}

/// The kinds of the workloads that a WorkloadSpread spreads.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    /// The kind of its target.
    key: Key,
    version: Box<str>,
    /// True if the kind needs no entry in the list.
    any_kind: bool,
    /// True if it takes further workloads by labels, CloneSets among them. Source: spec/workloadspread §4.2.
    takes_others: bool,
}

impl Named {
    /// `None` if it has no target.
    fn of(wire: &WorkloadSpread) -> Option<Self> {
        let target = wire.spec.as_ref()?.target_reference.as_ref()?;
        let version = &target.api_version;
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        Some(Self {
            key: (group.into(), target.kind.as_str().into()),
            version: version.into(),
            any_kind: annotations::is_true(&wire.metadata, ANY_KIND),
            takes_others: matches!(annotations::target_selector(&wire.metadata), Ok(Some(_))),
        })
    }

    /// The kinds besides the target's own, of those that are watched only as targets.
    fn others(&self) -> Option<Key> {
        self.takes_others.then(clone_set)
    }
}

fn clone_set() -> Key {
    (KRUISE.into(), CloneSet::KIND.into())
}

/// The kinds that targets of one machine may have.
#[derive(Debug)]
pub struct TargetKinds {
    follows: Follows,
    /// `None` before the first discovery.
    served: Option<Arc<Served>>,
    list: WhiteList,
    /// Named kinds by the WorkloadSpread's namespace and name; the last one is the present one.
    named: BTreeMap<[Box<str>; 2], Vec<Named>>,
    /// Kinds that are watched only as targets, and whether all their objects were listed once.
    watched: BTreeMap<Key, Watched>,
    /// Named kinds that the API server does not serve; each is logged once.
    missed: BTreeSet<Key>,
    is_open: bool,
}

#[derive(Debug)]
struct Watched {
    kind: Kind,
    is_listed: bool,
}

const REPLICAS: &str = "a target, and how many pods it asks for";

/// Kubernetes' own kinds that a WorkloadSpread can name.
pub const OWN: &[Reads] = &[
    Reads::of::<Deployment>(REPLICAS),
    Reads::of::<ReplicaSet>("a target, and the owner of a Deployment's pods"),
    Reads::of::<StatefulSet>(REPLICAS),
    Reads::of::<Job>(REPLICAS),
];

/// Kruise's kinds that a WorkloadSpread can name. Where they are not served, nothing is missing.
pub const OF_KRUISE: &[Reads] = &[
    Reads::of::<CloneSet>(REPLICAS).later(),
    Reads::of::<AdvancedStatefulSet>(REPLICAS).later(),
];

/// A built-in kind of workloads by group and kind, in the version that is read.
pub fn known(group: &str, kind: &str) -> Option<Kind> {
    let mut all = OWN.iter().chain(OF_KRUISE);
    let known = all.find(|known| known.row.group == group && known.row.kind == kind);
    known.map(Reads::kind)
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
    /// Watches the kinds that WorkloadSpreads name and that the API server serves.
    pub fn of_named(served: Arc<Served>) -> Self {
        Self {
            served: Some(served),
            is_open: true,
            ..Self::empty(Follows::Named)
        }
    }

    /// Watches all kinds, and the kinds that they control: a pod may arrive before any WorkloadSpread. Nothing is
    /// watched before [`serve`](Self::serve), and custom kinds not before [`open`](Self::open).
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

    /// Sets the kinds that the API server serves.
    pub fn serve(&mut self, served: Arc<Served>, watches: &mut Watches) {
        self.served = Some(served);
        self.follow(watches);
    }

    /// Watches custom kinds from now on: before, a kind that cannot be read would delay others.
    pub fn open(&mut self, watches: &mut Watches) {
        self.is_open = true;
        self.follow(watches);
    }

    /// Sets the ConfigMap; null if it was deleted. Returns true if the list of kinds changed.
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

    /// Sets the target of a WorkloadSpread. Its earlier targets count until [`settle`](Self::settle).
    pub fn name(&mut self, wire: &WorkloadSpread, watches: &mut Watches) {
        let Some(named) = Named::of(wire) else {
            return;
        };
        let all = self.named.entry(key_of(wire)).or_default();
        if all.last() == Some(&named) {
            return;
        }
        all.push(named.clone());
        let own = Some(&named.key).filter(|_| self.may_be(&named));
        let others = named.others();
        let mut keys = own.into_iter().chain(&others);
        if keys.any(|key| !self.watched.contains_key(key)) {
            self.follow(watches);
        }
    }

    /// Drops the earlier targets of a WorkloadSpread.
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

    /// Removes a WorkloadSpread.
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

    /// True once discovery has reported the kinds.
    pub fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// True if custom kinds are watched.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// True if a kind is watched only as a target.
    pub fn follows(&self, kind: &Kind) -> bool {
        self.watched.values().any(|watched| watched.kind == *kind)
    }

    /// True if all objects of the kinds of a WorkloadSpread's workloads are known, as far as possible.
    pub fn is_known(&self, wire: &WorkloadSpread, watches: &Watches) -> bool {
        let Some(named) = Named::of(wire) else {
            return true;
        };
        let others = named.others();
        let keys = std::iter::once(&named.key).chain(&others);
        let mut watched = keys.filter_map(|key| self.watched.get(key));
        watched.all(|watched| {
            let mut kinds = watches.kinds();
            kinds.any(|(kind, is_listed)| is_listed && *kind == watched.kind)
        })
    }

    /// The path of the replicas of this kind; `None`: its scale has them.
    pub fn replicas_path(&self, kind: &Kind) -> Option<&str> {
        (self.list).replicas_path(&kind.group, &kind.version, &kind.kind)
    }

    /// The kinds of the list.
    pub fn kinds(&self, names: &mut Interner) -> Box<[GroupKind]> {
        self.list.kinds(names)
    }

    /// The kinds of the list whose objects are known. For another kind (the right to read it may be missing), each pod
    /// would be refused because its owner is not found.
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

    /// Starts and stops watches to match the wanted ones.
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
            let reading = match versions_read(&key).is_empty() {
                true => Reading::Custom { has_scale },
                false => Reading::Known,
            };
            watches.start(kind.clone(), reading, &Scope::default());
            let is_listed = false;
            self.watched.insert(key, Watched { kind, is_listed });
        }
    }

    /// The kinds to watch, each in its version.
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
                // Its watch reports what is gone.
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

    /// The possible kinds, and whether a WorkloadSpread names them. A watched kind stays while it is named, even if it
    /// is no longer in the list.
    fn candidates(&self) -> BTreeMap<Key, bool> {
        let mut all = BTreeMap::new();
        if self.follows == Follows::Every {
            let kruise = OF_KRUISE.iter().map(|reads| reads.row);
            all.extend(kruise.map(|row| ((row.group.into(), row.kind.into()), false)));
            for listed in &self.list.workloads {
                let below = listed.sub_resources.iter();
                let below = below.map(|[group, _, kind]| (group, kind));
                let own = std::iter::once((&listed.group, &listed.kind));
                let keys = own.chain(below);
                all.extend(keys.map(|(g, k)| ((g.as_str().into(), k.as_str().into()), false)));
            }
        }
        // Where they do not exist, nothing is missing.
        let others = self.named.values().flatten().filter_map(Named::others);
        all.extend(others.map(|key| (key, false)));
        let named = self.named.values().flatten();
        let named =
            named.filter(|named| self.may_be(named) || self.watched.contains_key(&named.key));
        all.extend(named.map(|named| (named.key.clone(), true)));
        all.retain(|key, _| self.is_open || !versions_read(key).is_empty());
        all
    }

    /// True if a named kind may be a target, beside those that the machine watches anyway.
    fn may_be(&self, named: &Named) -> bool {
        let (group, kind) = &named.key;
        named.any_kind || !versions_read(&named.key).is_empty() || self.list.allows(group, kind)
    }

    /// The version of a kind to watch: for Kruise's kinds the newest that can be read; for others that of the list,
    /// else the target's own, else the preferred one.
    ///
    /// The present version of a watched kind stays: until another one is listed, its WorkloadSpreads would have no
    /// pods. If every kind is watched, the list has precedence, since its `replicasPath` is valid for its version only.
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

/// The versions of one of Kruise's kinds that can be read, the newest first; empty: it is read as JSON.
fn versions_read((group, kind): &Key) -> Vec<&'static str> {
    let is_it = |reads: &Reads| *reads.row.group == **group && *reads.row.kind == **kind;
    match OF_KRUISE.iter().any(is_it) {
        true => kinds::versions(group, kind),
        false => Vec::new(),
    }
}

fn key_of(wire: &WorkloadSpread) -> [Box<str>; 2] {
    let metadata = &wire.metadata;
    [&metadata.namespace, &metadata.name].map(|text| text.as_deref().unwrap_or_default().into())
}

#[cfg(test)]
mod tests;
