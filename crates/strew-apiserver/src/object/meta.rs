//! Metadata that every object has.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use strew_model::time::{Instant, Span};

use super::moment;

/// Labels or annotations.
pub type Pairs = BTreeMap<String, String>;

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Ord for Name {
    /// By namespace, then by name. Names of one set of pods begin alike and share their namespace, and are compared more
    /// often than anything else in a simulation: what is the same text in memory is not read.
    fn cmp(&self, other: &Self) -> Ordering {
        let compared = |a: &Arc<str>, b: &Arc<str>| match Arc::ptr_eq(a, b) {
            true => Ordering::Equal,
            false => a.cmp(b),
        };
        compared(&self.namespace, &other.namespace).then_with(|| compared(&self.name, &other.name))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Name {
    /// A name in a namespace.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Metadata. Cloning is cheap, because fields are shared.
#[derive(Debug, Clone, PartialEq)]
pub struct Meta {
    /// Namespace and name.
    pub name: Name,
    /// Unique among all objects, ever.
    pub uid: Arc<str>,
    /// `resourceVersion`; 0 if it is not stored yet.
    pub version: u64,
    /// Counts the changes of the spec.
    pub generation: i64,
    /// When it was created.
    pub created: Instant,
    /// Its requested deletion.
    pub deletion: Option<Deletion>,
    /// Labels.
    pub labels: Arc<Pairs>,
    /// Annotations.
    pub annotations: Arc<Pairs>,
    /// Its owners.
    pub owners: Arc<[Owner]>,
    /// Its finalizers.
    pub finalizers: Arc<[String]>,
    /// The prefix of its name, if the store generated the rest.
    pub generate_name: Option<Arc<str>>,
}

/// A requested deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// `deletionTimestamp`: the end of the grace period.
    pub at: Instant,
    /// `deletionGracePeriodSeconds`.
    pub grace: Span,
}

/// An owner reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Group and version.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name. The owner is in the same namespace, or cluster-scoped.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// `controller`: true if it manages the object.
    pub is_controller: bool,
    /// `blockOwnerDeletion`: true if its foreground deletion waits for the object.
    pub blocks_deletion: bool,
}

impl Meta {
    /// Metadata of an object that is not stored yet.
    pub fn new(name: Name) -> Self {
        Self {
            name,
            uid: "".into(),
            version: 0,
            generation: 0,
            created: Instant::default(),
            deletion: None,
            labels: Arc::default(),
            annotations: Arc::default(),
            owners: Arc::new([]),
            finalizers: Arc::new([]),
            generate_name: None,
        }
    }

    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.is_controller)
    }

    /// True if its deletion was requested.
    pub fn is_terminating(&self) -> bool {
        self.deletion.is_some()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, key: &str, value: impl Into<String>) {
        let value = value.into();
        if self.annotations.get(key) != Some(&value) {
            Arc::make_mut(&mut self.annotations).insert(key.to_owned(), value);
        }
    }

    /// This metadata, with the server's fields from the stored object.
    pub(crate) fn with_server_fields_of(&self, stored: &Self) -> Self {
        Self {
            generation: stored.generation,
            version: stored.version,
            created: stored.created,
            deletion: stored.deletion,
            ..self.clone()
        }
    }

    /// Reads metadata of the wire. A missing namespace means `default`, unless `is_namespaced` is false.
    pub fn of_wire(wire: ObjectMeta, is_namespaced: bool) -> Self {
        let namespace = match wire.namespace {
            _ if !is_namespaced => "".into(),
            Some(namespace) if !namespace.is_empty() => namespace.into(),
            _ => "default".into(),
        };
        let name = wire.name.unwrap_or_default();
        let owners = wire.owner_references.into_iter().flatten();
        let grace = wire.deletion_grace_period_seconds.unwrap_or(0);
        let grace = Span::from_secs(u64::try_from(grace).unwrap_or(0));
        Self {
            name: Name {
                namespace,
                name: name.into(),
            },
            uid: wire.uid.unwrap_or_default().into(),
            version: wire
                .resource_version
                .and_then(|v| v.parse().ok())
                .unwrap_or(0),
            generation: wire.generation.unwrap_or(0),
            created: moment::of_wire(wire.creation_timestamp.as_ref()).unwrap_or_default(),
            deletion: moment::of_wire(wire.deletion_timestamp.as_ref())
                .map(|at| Deletion { at, grace }),
            labels: Arc::new(wire.labels.unwrap_or_default()),
            annotations: Arc::new(wire.annotations.unwrap_or_default()),
            owners: owners.map(Owner::of_wire).collect(),
            finalizers: wire.finalizers.unwrap_or_default().into(),
            generate_name: wire.generate_name.filter(|n| !n.is_empty()).map(Into::into),
        }
    }

    /// Metadata in its wire form.
    pub fn to_wire(&self) -> ObjectMeta {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let pairs = |pairs: &Arc<Pairs>| (!pairs.is_empty()).then(|| Pairs::clone(pairs));
        let owners: Vec<OwnerReference> = self.owners.iter().map(Owner::to_wire).collect();
        ObjectMeta {
            namespace: some(&self.name.namespace),
            name: some(&self.name.name),
            uid: some(&self.uid),
            resource_version: (self.version > 0).then(|| self.version.to_string()),
            generation: (self.generation != 0).then_some(self.generation),
            creation_timestamp: (self.created > Instant::default())
                .then(|| moment::to_wire(self.created)),
            deletion_timestamp: self.deletion.map(|d| moment::to_wire(d.at)),
            deletion_grace_period_seconds: self
                .deletion
                .map(|d| i64::try_from(d.grace.0 / 1_000_000_000).unwrap_or(i64::MAX)),
            labels: pairs(&self.labels),
            annotations: pairs(&self.annotations),
            owner_references: (!owners.is_empty()).then_some(owners),
            finalizers: (!self.finalizers.is_empty()).then(|| self.finalizers.to_vec()),
            generate_name: self.generate_name.as_deref().map(str::to_owned),
            ..ObjectMeta::default()
        }
    }
}

impl Owner {
    fn of_wire(wire: OwnerReference) -> Self {
        Self {
            api_version: wire.api_version.into(),
            kind: wire.kind.into(),
            name: wire.name.into(),
            uid: wire.uid.into(),
            is_controller: wire.controller == Some(true),
            blocks_deletion: wire.block_owner_deletion == Some(true),
        }
    }

    fn to_wire(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.to_string(),
            kind: self.kind.to_string(),
            name: self.name.to_string(),
            uid: self.uid.to_string(),
            controller: Some(self.is_controller),
            block_owner_deletion: Some(self.blocks_deletion),
        }
    }
}
