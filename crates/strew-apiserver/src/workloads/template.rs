//! A pod from a template.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use strew_manifest::names::NameSource;

use super::names;
use super::{
    ExpandError, Expansion, N_PODS_MAX, Note, PodOf, WorkloadKind, WorkloadRef, name_of,
    namespace_of,
};

/// The hash of a template: 7 to 10 characters, the same for equal templates.
///
/// Upstream hashes a dump of Go structures; this one hashes the template's JSON, so the values
/// differ from a real cluster's while everything that depends on equality is the same.
/// The template's own label `pod-template-hash` is left out, as upstream does when it compares.
pub fn template_hash(template: &PodTemplateSpec) -> String {
    template_hash_after(template, None)
}

/// The hash of a template where others with its name have been met; `None`: no other was.
pub fn template_hash_after(template: &PodTemplateSpec, collision_count: Option<i32>) -> String {
    let mut bytes = canonical(template).into_bytes();
    bytes.extend(collision_count.into_iter().flat_map(i32::to_le_bytes));
    names::safe_encode(names::fnv_1a_32(&bytes))
}

/// Field order is that of the types and maps are sorted: equal templates, equal text.
pub(super) fn canonical(template: &PodTemplateSpec) -> String {
    let mut template = template.clone();
    let metadata = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(super::owners::POD_TEMPLATE_HASH);
    }
    // Templates come from JSON and hold only strings, numbers and maps with text keys.
    serde_json::to_string(&template).unwrap_or_default()
}

/// The controller that makes pods, and its workload.
#[derive(Clone, Copy)]
pub(super) struct Maker<'a> {
    /// The controller's kind.
    pub(super) kind: WorkloadKind,
    /// The controller.
    pub(super) metadata: &'a ObjectMeta,
    /// What the person wrote.
    pub(super) workload: &'a WorkloadRef,
}

/// How a new pod is called.
pub(super) enum PodName {
    Exactly(String),
    Generate(String),
}

/// Collects what is made.
pub(super) struct PodMaker<'a> {
    names: &'a mut NameSource,
    taken: BTreeSet<(&'a str, &'a str)>,
    made: Expansion,
}

impl<'a> PodMaker<'a> {
    pub(super) fn new(pods: &'a [Pod], names: &'a mut NameSource) -> Self {
        let names_of = |pod: &'a Pod| (namespace_of(&pod.metadata), name_of(&pod.metadata));
        Self {
            names,
            taken: pods.iter().map(names_of).collect(),
            made: Expansion::default(),
        }
    }

    pub(super) fn finish(self) -> Expansion {
        self.made
    }

    /// To be asked before a workload's pods are made.
    pub(super) fn check_room(
        &self,
        workload: &WorkloadRef,
        n_pods: usize,
    ) -> Result<(), ExpandError> {
        if n_pods > N_PODS_MAX - self.made.pods.len() {
            return Err(ExpandError::TooManyPods {
                workload: workload.clone(),
                n_pods,
            });
        }
        Ok(())
    }

    pub(super) fn note(&mut self, workload: &WorkloadRef, text: impl Into<String>) {
        self.made.notes.push(Note {
            workload: workload.clone(),
            text: text.into(),
        });
    }

    pub(super) fn replica_set(&mut self, set: k8s_openapi::api::apps::v1::ReplicaSet) {
        self.made.replica_sets.push(set);
    }

    pub(super) fn is_taken(&self, namespace: &str, name: &str) -> bool {
        self.taken.contains(&(namespace, name))
    }

    /// Makes a pod of `template`; `finish` adds what only this kind of controller adds.
    pub(super) fn pod(
        &mut self,
        maker: Maker<'_>,
        template: &PodTemplateSpec,
        name: PodName,
        finish: impl FnOnce(&mut Pod),
    ) {
        let namespace = namespace_of(maker.metadata);
        let (generate_name, name) = match name {
            PodName::Exactly(name) => (None, name),
            PodName::Generate(base) => {
                let name = self.free_name(namespace, &base);
                (Some(base), name)
            }
        };
        let mut pod = pod_from_template(maker.kind, maker.metadata, template);
        pod.metadata.uid = Some(names::uid("Pod", namespace, &name));
        pod.metadata.name = Some(name);
        pod.metadata.generate_name = generate_name;
        finish(&mut pod);
        self.made.pods.push(PodOf {
            pod,
            workload: maker.workload.clone(),
        });
    }

    /// Ends: fewer names are taken than there are suffixes.
    fn free_name(&mut self, namespace: &str, base: &str) -> String {
        loop {
            let name = self.names.generate(base);
            if !self.taken.contains(&(namespace, name.as_str())) {
                return name;
            }
        }
    }
}

/// What all pods of a template have; no name yet.
pub(super) fn pod_from_template(
    kind: WorkloadKind,
    owner: &ObjectMeta,
    template: &PodTemplateSpec,
) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace_of(owner).to_string()),
            labels: given.labels,
            annotations: given.annotations,
            finalizers: given.finalizers,
            owner_references: Some(vec![owner_reference(kind, owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

pub(super) fn owner_reference(kind: WorkloadKind, owner: &ObjectMeta) -> OwnerReference {
    OwnerReference {
        api_version: kind.api_version().to_string(),
        kind: kind.as_str().to_string(),
        name: name_of(owner).to_string(),
        uid: uid_of(kind, owner),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The object's uid, or one made from its name.
pub(super) fn uid_of(kind: WorkloadKind, object: &ObjectMeta) -> String {
    let given = object.uid.clone().filter(|uid| !uid.is_empty());
    given.unwrap_or_else(|| names::uid(kind.as_str(), namespace_of(object), name_of(object)))
}

/// Sets a label of a pod.
pub(super) fn set_label(pod: &mut Pod, key: &str, value: &str) {
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(key.to_string(), value.to_string());
}
