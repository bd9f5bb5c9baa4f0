//! Converts objects to inputs of the machines of WorkloadSpread; simulation and real clusters share this code.
//!
//! Admission and controller read different parts of an object, each with its own symbols. A [`Translator`] gives both
//! the same ids for texts. If a new filter names further numbers of a target, the caller converts the target again
//! ([`Translator::look_again`]).

pub mod pod;
pub mod scale;
pub mod spread;
pub mod white_list;
pub mod workload;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_cluster::{OwnerKind, OwnerRef};
use strew_model::{Interner, Symbol, well_known};
use strew_workloadspread::facts::workload::{Controller, WorkloadKey};
use strew_workloadspread::{TargetRef, WsKey, admission, controller};

use super::bounds;
use super::subset_contents::SubsetContents;
use crate::facts as common;
use crate::facts::Named;
use strew_manifest::kruise::GROUP;
use strew_manifest::read::KubeObject;

/// Turns objects into inputs of both machines.
#[derive(Debug, Default)]
pub struct Translator {
    /// Texts that decisions refer to by id.
    pub contents: SubsetContents,
    /// Targets to convert again: namespace, group, kind and name.
    again: BTreeSet<[String; 4]>,
}

impl Translator {
    /// The inputs of admission for the current state of an object; empty if no decision can be based on it.
    pub fn admission(
        &mut self,
        object: &KubeObject,
        names: &mut Interner,
    ) -> Vec<admission::Input> {
        use admission::Input;
        let input = match object {
            KubeObject::WorkloadSpread(wire) => {
                Some(Input::SpreadSet(Box::new(self.spread(wire, names))))
            }
            KubeObject::Pod(wire) => match common::pod(&bounds::stored(wire), names) {
                Ok(Some(fact)) => {
                    let marker = pod::marked(&wire.metadata).marker().cloned();
                    Some(Input::PodSet(Box::new(fact), marker))
                }
                Ok(None) => Some(Input::PodGone(pod::uid(&wire.metadata))),
                Err(_) => None,
            },
            KubeObject::Node(wire) => common::node(wire, names)
                .ok()
                .map(|fact| Input::NodeSet(Box::new(fact))),
            KubeObject::Service(wire) => {
                let (namespace, name, selector) = common::service(wire, names);
                Some(Input::ServiceSet(namespace, name, selector))
            }
            KubeObject::Namespace(wire) => {
                let (name, labels) = common::labelled(&wire.metadata, names);
                Some(Input::NamespaceSet(name, Some(labels)))
            }
            _ => None,
        };
        let selecting = common::controller(object, names)
            .map(|(namespace, owner, selector)| Input::ControllerSet(namespace, owner, selector));
        let workload = self.workload(object, names);
        let workload = workload.map(|fact| Input::WorkloadSet(Box::new(fact)));
        input.into_iter().chain(selecting).chain(workload).collect()
    }

    /// The inputs of admission for a deleted object.
    pub fn admission_gone(
        &mut self,
        object: &KubeObject,
        names: &mut Interner,
    ) -> Vec<admission::Input> {
        use admission::Input;
        let gone = |input| match input {
            Input::SpreadSet(ws) => Some(Input::SpreadGone(ws.key)),
            Input::PodSet(fact, _) => Some(Input::PodGone(fact.uid)),
            Input::NodeSet(fact) => Some(Input::NodeGone(fact.name)),
            Input::ServiceSet(namespace, name, _) => Some(Input::ServiceSet(namespace, name, None)),
            Input::NamespaceSet(name, _) => Some(Input::NamespaceSet(name, None)),
            Input::ControllerSet(namespace, owner, _) => {
                Some(Input::ControllerSet(namespace, owner, None))
            }
            Input::WorkloadSet(fact) => Some(Input::WorkloadGone(fact.key)),
            other => Some(other),
        };
        let inputs = self.admission(object, names).into_iter();
        let inputs = inputs.filter_map(gone).collect();
        self.forget(object);
        inputs
    }

    /// The inputs of admission for a deleted object of which only the names are known.
    pub fn admission_lost(
        &mut self,
        api_version: &str,
        kind: &str,
        object: &Named,
        names: &mut Interner,
    ) -> Vec<admission::Input> {
        use admission::Input;
        let metadata = ObjectMeta {
            namespace: Some(object.namespace.to_string()),
            name: Some(object.name.to_string()),
            ..ObjectMeta::default()
        };
        let of_group = (group_of(api_version), kind);
        // Every pod has a new name, which no fact would keep: it is known by its uid only.
        if of_group == ("", "Pod") {
            return vec![Input::PodGone((&*object.uid).into())];
        }
        let name = names.intern(&object.name);
        let owner = match of_group {
            ("", "ReplicationController") => Some(OwnerKind::ReplicationController),
            ("apps", "ReplicaSet") => Some(OwnerKind::ReplicaSet),
            ("apps", "StatefulSet") => Some(OwnerKind::StatefulSet),
            _ => None,
        };
        let selecting = owner.map(|kind| {
            let owner = OwnerRef { kind, name };
            Input::ControllerSet(namespace(&metadata, names), owner, None)
        });
        let gone = match of_group {
            ("", "Node") => Input::NodeGone(name),
            ("", "Namespace") => Input::NamespaceSet(name, None),
            ("", "Service") => Input::ServiceSet(namespace(&metadata, names), name, None),
            (GROUP, "WorkloadSpread") => {
                self.contents.forget(&spread::held(&metadata));
                Input::SpreadGone(key(&metadata, names))
            }
            _ => Input::WorkloadGone(workload_key(api_version, kind, &metadata, names)),
        };
        selecting.into_iter().chain([gone]).collect()
    }

    /// The inputs of the controller for the current state of an object.
    pub fn controller(
        &mut self,
        object: &KubeObject,
        names: &mut Interner,
    ) -> Vec<controller::Input> {
        use controller::Input;
        let input = match object {
            KubeObject::WorkloadSpread(wire) => {
                Some(Input::SpreadSet(Box::new(self.spread(wire, names))))
            }
            KubeObject::Pod(wire) => Some(Input::PodSet(Box::new(pod::pod(wire, names)))),
            KubeObject::Node(wire) => {
                let (name, labels) = common::labelled(&wire.metadata, names);
                let taints = wire.spec.as_ref().and_then(|s| s.taints.as_deref());
                let taints = common::taints(taints.unwrap_or_default(), names);
                Some(Input::NodeSet(name, labels, taints))
            }
            object => {
                let workload = self.workload(object, names);
                workload.map(|fact| Input::WorkloadSet(Box::new(fact)))
            }
        };
        input.into_iter().collect()
    }

    /// The inputs of the controller for a deleted object.
    pub fn controller_gone(
        &mut self,
        object: &KubeObject,
        names: &mut Interner,
    ) -> Vec<controller::Input> {
        use controller::Input;
        let gone = |input| match input {
            Input::SpreadSet(ws) => Input::SpreadGone(ws.key),
            Input::PodSet(pod) => Input::PodGone(pod.uid),
            Input::NodeSet(name, ..) => Input::NodeGone(name),
            Input::WorkloadSet(fact) => Input::WorkloadGone(fact.key),
            other => other,
        };
        let inputs = self.controller(object, names).into_iter();
        let inputs = inputs.map(gone).collect();
        self.forget(object);
        inputs
    }

    fn forget(&mut self, gone: &KubeObject) {
        if let KubeObject::WorkloadSpread(wire) = gone {
            self.contents.forget(&spread::held(&wire.metadata));
        }
    }

    /// The targets to convert again for both machines, as namespace, group, kind and name: a filter names numbers of
    /// them that no filter named before. Each target is returned once.
    pub fn look_again(&mut self) -> BTreeSet<[String; 4]> {
        std::mem::take(&mut self.again)
    }
}

/// The namespace of an object; `default` if it has none.
pub(super) fn namespace(metadata: &ObjectMeta, names: &mut Interner) -> Symbol {
    match metadata.namespace.as_deref() {
        None | Some("") => well_known::DEFAULT_NAMESPACE,
        Some(namespace) => names.intern(namespace),
    }
}

/// The key of a WorkloadSpread.
pub(super) fn key(metadata: &ObjectMeta, names: &mut Interner) -> WsKey {
    WsKey {
        namespace: namespace(metadata, names),
        name: metadata.name.as_deref().unwrap_or_default().into(),
    }
}

/// A target; of its API version only the group matters.
pub(super) fn target(api_version: &str, kind: &str, name: &str, names: &mut Interner) -> TargetRef {
    TargetRef {
        group: names.intern(group_of(api_version)),
        kind: names.intern(kind),
        name: names.intern(name),
    }
}

/// `apps` for `apps/v1`, an empty text for `v1`.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// The owner with `controller: true`.
pub fn controller_of(metadata: &ObjectMeta, names: &mut Interner) -> Option<Controller> {
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true))?;
    Some(Controller {
        target: target(&owner.api_version, &owner.kind, &owner.name, names),
        uid: owner.uid.as_str().into(),
    })
}

/// The key of an object as a workload.
pub(super) fn workload_key(
    api_version: &str,
    kind: &str,
    metadata: &ObjectMeta,
    names: &mut Interner,
) -> WorkloadKey {
    let name = metadata.name.as_deref().unwrap_or_default();
    WorkloadKey {
        namespace: namespace(metadata, names),
        target: target(api_version, kind, name, names),
    }
}
