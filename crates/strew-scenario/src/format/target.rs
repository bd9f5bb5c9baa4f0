//! The targets of verbs and expectations: `deployment/web`, `n1`, `zone=a`.

use std::cell::RefCell;
use std::fmt;
use std::sync::LazyLock;

use strew_apiserver::object::{Key, Kind, Name};
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::{self, KindRow, Pods, Rollout};

use super::diagnostics;
use super::existence::Mention;
use super::known::Bearer;
use super::problems::Problems;
use super::value::At;

/// An object, by type and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectTarget {
    /// Its type.
    pub type_name: &'static KindRow,
    /// Its namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectTarget {
    /// The object of a key; `None` if its kind is none of the table.
    pub fn of_key(key: &strew_apiserver::object::Key) -> Option<Self> {
        let type_name = kinds::of_kind(key.kind.name())?;
        Some(Self {
            type_name,
            namespace: type_name
                .is_namespaced
                .then(|| key.name.namespace.to_string()),
            name: key.name.name.to_string(),
        })
    }
}

/// Nodes: one by name, or all with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeTarget {
    /// `n1`, `node/n1`
    Name(String),
    /// `zone=a`
    Label(String, String),
    /// `zone=<most pods>`: the nodes of the domain with most pods; `<most pods>`: the node with most pods.
    MostPods(Option<String>),
    /// `<lost>`: the nodes that `lose` took and that no `restore` has brought back.
    Lost,
}

/// Pods: one by name, or all with these labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodTarget {
    /// `pod/web-0`
    Pod(ObjectTarget),
    /// `app=web,tier=front`, in all namespaces.
    Labels(Vec<(String, String)>),
}

/// An object, or all nodes with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `deployment/web`; a bare name is a node.
    Object(ObjectTarget),
    /// `zone=a`
    NodeLabel(String, String),
}

/// The objects of `delete`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// `deployment/web`; a bare name is a node.
    Object(ObjectTarget),
    /// `app=web,tier=front`: the nodes with these labels; if no node has one of the keys, the pods with them, in all
    /// namespaces.
    Labelled(Vec<(String, String)>),
    /// `{pods: "app=web"}`: the pods with these labels, in all namespaces.
    Pods(Vec<(String, String)>),
    /// `{pods: deployment/web}`: the pods of a workload.
    PodsOf(ObjectTarget),
}

impl ObjectTarget {
    /// Its key in the store.
    pub(crate) fn key(&self) -> Key {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        Key {
            kind: Kind::of(self.type_name.kind),
            name: Name::new(namespace, self.name.as_str()),
        }
    }
}

impl fmt::Display for ObjectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_deref() {
            None | Some(DEFAULT_NAMESPACE) => {}
            Some(namespace) => write!(f, "{namespace}/")?,
        }
        write!(f, "{}/{}", self.type_name.kind.to_lowercase(), self.name)
    }
}

pub(super) const DEFAULT_NAMESPACE: &str = "default";
pub(super) const NODE: &str = "Node";
pub(super) const CLUSTER: &str = "ManagedCluster";

/// Stands for nodes that are chosen when the step begins. No label can have this value.
const MOST_PODS: &str = "<most pods>";
const LOST: &str = "<lost>";

/// The targets that a field accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The accepted kinds; empty: all.
    pub(super) kinds: &'static [&'static str],
    /// The verb or expectation, for messages.
    pub(super) by: &'static str,
}

/// Kinds that make pods.
pub(super) static WORKLOADS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| kinds::names(|row| row.pods == Pods::Make));

/// Pods, and kinds that make pods.
pub(super) static WITH_PODS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| kinds::names(|row| row.pods != Pods::No));

/// Kinds with the subresource `scale`.
pub(super) static SCALABLE: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| kinds::names(|row| row.scales));

/// Workloads that a budget may select, and budgets.
pub(super) static BUDGETED: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| kinds::names(|row| row.scales || row.kind == "PodDisruptionBudget"));

/// Kinds whose templates a rollout carries to their pods.
pub(super) static RESTARTED: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| kinds::names(|row| row.rollout != Rollout::None));

/// Kinds that `kubectl rollout` knows.
pub(super) static ROLLED_OUT: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| kinds::names(|row| row.rollout == Rollout::Kubectl));

/// Reads targets; knows the namespace of targets that give none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Targets<'a> {
    pub(super) namespace: &'a str,
    /// All mentions so far.
    pub(super) mentions: &'a RefCell<Vec<Mention>>,
}

impl Targets<'_> {
    /// `TYPE/NAME`, or `NAMESPACE/TYPE/NAME`.
    pub(super) fn object(
        &self,
        text: &str,
        wanted: Wanted,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<ObjectTarget> {
        let object = self.parse_object(text);
        let object = object.and_then(|object| {
            let kind = object.type_name.kind;
            match wanted.kinds.is_empty() || wanted.kinds.contains(&kind) {
                true => Ok(object),
                false => Err(diagnostics::wrong_kind(wanted.by, wanted.kinds, kind)),
            }
        });
        let object = object
            .map_err(|error| problems.add_target(&at.path, error))
            .ok()?;
        self.named(object.clone(), &at.path);
        Some(object)
    }

    fn parse_object(&self, text: &str) -> Result<ObjectTarget, strew_manifest::read::Diagnostic> {
        let parts: Vec<&str> = text.split('/').collect();
        let (namespace, type_text, name) = match parts.as_slice() {
            [type_text, name] => (None, *type_text, *name),
            [namespace, type_text, name] => (Some(*namespace), *type_text, *name),
            _ => return Err(diagnostics::no_target(text)),
        };
        if name.is_empty() || namespace.is_some_and(str::is_empty) {
            return Err(diagnostics::no_target(text));
        }
        let Some(type_name) = kinds::find(type_text) else {
            return Err(diagnostics::unknown_type(type_text));
        };
        if namespace.is_some() && !type_name.is_namespaced {
            return Err(diagnostics::no_namespace(type_name.kind));
        }
        let namespace = namespace.unwrap_or(self.namespace).to_owned();
        Ok(ObjectTarget {
            type_name,
            namespace: type_name.is_namespaced.then_some(namespace),
            name: name.to_owned(),
        })
    }

    /// An object, a bare node name, or a label of nodes.
    pub(super) fn any(
        &self,
        text: &str,
        wanted: Wanted,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<Target> {
        if let Some(pair) = label_pair(text) {
            if wanted.kinds.is_empty() || wanted.kinds.contains(&NODE) {
                self.label(Bearer::Node, &pair.0, vec![pair.1.clone()], &at.path);
                return Some(Target::NodeLabel(pair.0, pair.1));
            }
            problems.add_target(
                &at.path,
                diagnostics::wrong_kind(wanted.by, wanted.kinds, NODE),
            );
            return None;
        }
        let bare;
        let text = match text.contains('/') || text.is_empty() {
            true => text,
            // A bare name is a node's.
            false if wanted.kinds.is_empty() || wanted.kinds.contains(&NODE) => {
                bare = format!("node/{text}");
                &bare
            }
            false => text,
        };
        self.object(text, wanted, at, problems).map(Target::Object)
    }

    /// Nodes.
    pub(super) fn nodes(
        &self,
        text: &str,
        by: &'static str,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<NodeTarget> {
        match text {
            LOST => return Some(NodeTarget::Lost),
            MOST_PODS => return Some(NodeTarget::MostPods(None)),
            _ => {}
        }
        if let Some((key, MOST_PODS)) = text.split_once('=')
            && !key.is_empty()
        {
            self.label(Bearer::Node, key, Vec::new(), &at.path);
            return Some(NodeTarget::MostPods(Some(key.to_owned())));
        }
        let wanted = Wanted { kinds: &[NODE], by };
        Some(match self.any(text, wanted, at, problems)? {
            Target::Object(object) => NodeTarget::Name(object.name),
            Target::NodeLabel(key, value) => NodeTarget::Label(key, value),
        })
    }

    /// Pods.
    pub(super) fn pods(
        &self,
        text: &str,
        by: &'static str,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<PodTarget> {
        if !text.contains('=') {
            let wanted = Wanted {
                kinds: &["Pod"],
                by,
            };
            return self.object(text, wanted, at, problems).map(PodTarget::Pod);
        }
        let pairs = self.pairs(text, Bearer::Pod, at, problems)?;
        Some(PodTarget::Labels(pairs))
    }

    /// Labels that are all wanted: `app=web,tier=front`.
    fn pairs(
        &self,
        text: &str,
        of: Bearer,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<Vec<(String, String)>> {
        let pairs: Option<Vec<_>> = text.split(',').map(label_pair).collect();
        if pairs.is_none() {
            problems.add_target(&at.path, diagnostics::no_target(text));
        }
        for (key, value) in pairs.iter().flatten() {
            self.label(of, key, vec![value.clone()], &at.path);
        }
        pairs
    }

    /// What `delete` deletes.
    pub(super) fn deleted(
        &self,
        text: &str,
        wanted: Wanted,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<Deleted> {
        // As kubectl has it.
        let selected = text
            .strip_prefix("pods -l ")
            .or_else(|| text.strip_prefix("pod -l "));
        if let Some(selected) = selected {
            return self.pods_of(selected.trim(), wanted.by, at, problems);
        }
        if text.contains('=') {
            let pairs = self.pairs(text, Bearer::NodeOrPod, at, problems)?;
            return Some(Deleted::Labelled(pairs));
        }
        Some(match self.any(text, wanted, at, problems)? {
            Target::Object(object) => Deleted::Object(object),
            Target::NodeLabel(key, value) => Deleted::Labelled(vec![(key, value)]),
        })
    }

    /// Pods by label, of a workload, or one by name.
    pub(super) fn pods_of(
        &self,
        text: &str,
        by: &'static str,
        at: &At<'_>,
        problems: &mut Problems,
    ) -> Option<Deleted> {
        if text.contains('=') {
            let pairs = self.pairs(text, Bearer::Pod, at, problems)?;
            return Some(Deleted::Pods(pairs));
        }
        let kinds = &WITH_PODS;
        let wanted = Wanted { kinds, by };
        let object = self.object(text, wanted, at, problems)?;
        Some(match object.type_name.kind {
            "Pod" => Deleted::Object(object),
            _ => Deleted::PodsOf(object),
        })
    }

    /// Records that an object must exist.
    pub(super) fn named(&self, object: ObjectTarget, path: &FieldPath) {
        let mention = Mention::Named(object, path.clone());
        self.mentions.borrow_mut().push(mention);
    }

    /// Records that there must be objects of a kind, in this API version unless it is empty.
    pub(super) fn kind(&self, api_version: &str, kind: &str, path: &FieldPath) {
        self.mentions.borrow_mut().push(Mention::Kind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            path: path.clone(),
        });
    }

    /// Records that nodes, pods or clusters are selected by a label, with one of these values; any value if the list is
    /// empty.
    pub(super) fn label(&self, of: Bearer, key: &str, values: Vec<String>, path: &FieldPath) {
        self.mentions.borrow_mut().push(Mention::Label {
            of,
            key: key.to_owned(),
            values,
            path: path.clone(),
        });
    }

    /// One text, or a list of them.
    pub(super) fn each<T>(
        &self,
        at: &At<'_>,
        problems: &mut Problems,
        read: impl Fn(&Self, &str, &At<'_>, &mut Problems) -> Option<T>,
    ) -> Vec<(T, FieldPath)> {
        let mut found = Vec::new();
        for at in at.one_or_many(problems) {
            let Some(text) = at.text(problems) else {
                continue;
            };
            if let Some(target) = read(self, text, &at, problems) {
                found.push((target, at.path));
            }
        }
        found
    }
}

fn label_pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let is_whole = !key.is_empty() && !value.contains(['=', ',']);
    is_whole.then(|| (key.to_owned(), value.to_owned()))
}
