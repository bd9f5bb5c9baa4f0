//! Converts workloads to facts.
//!
//! Source: spec/workloadspread §2.2 (`replicasPathList`), §3, §5.3.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::Resource;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::Value;
use strew_model::{Interner, Labels, Selector};
use strew_workloadspread::facts::workload::WorkloadFact;

use super::scale::selector_of;
use super::{Translator, controller_of, workload_key};
use crate::facts::{self, selector};
use crate::rolling::{self, Rolling};
use crate::workloadspread::subset_contents::SubsetContents;
use strew_manifest::json::Json;
use strew_manifest::read::KubeObject;

/// The annotation with the number of a Deployment's ReplicaSet.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The label that distinguishes the ReplicaSets of a Deployment.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// The parts in which kinds of workloads differ.
struct Parts<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: &'a ObjectMeta,
    replicas: Option<i64>,
    selector: Option<&'a LabelSelector>,
    finds: Option<Cow<'a, LabelSelector>>,
    template: Option<&'a PodTemplateSpec>,
    /// The template whose labels say with which other workloads it may be spread.
    labelled: Option<&'a PodTemplateSpec>,
    revisions: Option<[&'a str; 2]>,
    first_ordinal: i64,
    reserved_ordinals: Box<[(i64, i64)]>,
    ignores_disruption: bool,
    rolling: Option<Rolling>,
}

impl Translator {
    /// A workload of a built-in kind; `None` for other objects.
    pub fn workload(&mut self, object: &KubeObject, names: &mut Interner) -> Option<WorkloadFact> {
        let parts = parts(object)?;
        let numbers = self.numbers(|| object.to_json());
        Some(self.fact(&parts, numbers, names))
    }

    /// A workload of a custom kind: the object from the API server, and its scale, if it has one. `replicas_path` is
    /// that of the white list and overrides the scale's number.
    pub fn custom(
        &mut self,
        object: &Value,
        scale: Option<&Value>,
        replicas_path: Option<&str>,
        names: &mut Interner,
    ) -> WorkloadFact {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let metadata = ObjectMeta::of_json(object["metadata"].clone()).unwrap_or_default();
        let of_scale = scale.and_then(|scale| scale.pointer("/spec/replicas")?.as_i64());
        let selector = scale.and_then(|scale| scale.pointer("/status/selector")?.as_str());
        // An invalid selector selects no pods, like an empty one.
        let selector = selector
            .filter(|text| !text.is_empty())
            .and_then(selector_of);
        let of_path = replicas_path.and_then(|path| number_at(object, path));
        let parts = Parts {
            api_version: text("apiVersion"),
            kind: text("kind"),
            metadata: &metadata,
            replicas: of_path.or(of_scale),
            selector: selector.as_ref(),
            finds: selector.as_ref().map(Cow::Borrowed),
            template: None,
            labelled: None,
            revisions: None,
            first_ordinal: 0,
            reserved_ordinals: Box::default(),
            ignores_disruption: false,
            rolling: None,
        };
        let numbers = self.numbers(|| object.clone());
        self.fact(&parts, numbers, names)
    }

    fn fact(
        &mut self,
        parts: &Parts<'_>,
        numbers: Box<[(Arc<str>, i64)]>,
        names: &mut Interner,
    ) -> WorkloadFact {
        let metadata = parts.metadata;
        let of = |map: &Option<std::collections::BTreeMap<String, String>>, key: &str| {
            map.as_ref().and_then(|all| all.get(key)).cloned()
        };
        let hash = of(&metadata.labels, TEMPLATE_HASH);
        let revision = of(&metadata.annotations, REVISION);
        let key = workload_key(parts.api_version, parts.kind, metadata, names);
        let controller = controller_of(metadata, names);
        // The template of a workload that another one controls is that one's.
        let labelled = parts.labelled.filter(|_| controller.is_none());
        WorkloadFact {
            key,
            uid: uid(parts),
            deleting: metadata.deletion_timestamp.is_some(),
            controller,
            replicas: parts.replicas,
            numbers,
            selector: parts.selector.map(|wire| parsed(wire, names)),
            finds: parts.finds.as_deref().map(|wire| parsed(wire, names)),
            pod_labels: labelled.map(|template| labels_of(template, names)),
            template: parts.template.map(SubsetContents::template_id),
            template_hash: hash.map(|hash| names.intern(&hash)),
            revision: revision.and_then(|revision| revision.parse().ok()),
            revisions: parts
                .revisions
                .map(|both| both.map(|text| names.intern(text))),
            first_ordinal: parts.first_ordinal,
            reserved_ordinals: parts.reserved_ordinals.clone(),
            ignores_disruption: parts.ignores_disruption,
            rolling: parts.rolling,
        }
    }

    /// The numbers of an object that filters name. Usually there are none, and no JSON is made.
    fn numbers(&self, object: impl FnOnce() -> Value) -> Box<[(Arc<str>, i64)]> {
        let mut paths = self.contents.paths().peekable();
        if paths.peek().is_none() {
            return Box::default();
        }
        let object = object();
        paths
            .filter_map(|path| Some((Arc::clone(path), number_at(&object, path)?)))
            .collect()
    }
}

/// An invalid selector selects no pods.
fn parsed(wire: &LabelSelector, names: &mut Interner) -> Selector {
    selector(Some(wire), names).unwrap_or(Selector::Nothing)
}

/// The uid, or a substitute in files without uids.
fn uid(parts: &Parts<'_>) -> Arc<str> {
    match parts.metadata.uid.as_deref() {
        None | Some("") => {
            let namespace = parts
                .metadata
                .namespace
                .as_deref()
                .filter(|n| !n.is_empty());
            let (kind, name) = (parts.kind, parts.metadata.name.as_deref());
            format!(
                "{kind}/{}/{}",
                namespace.unwrap_or("default"),
                name.unwrap_or_default()
            )
            .into()
        }
        Some(uid) => uid.into(),
    }
}

fn parts(object: &KubeObject) -> Option<Parts<'_>> {
    fn of<'a, T: Resource>(
        metadata: &'a ObjectMeta,
        replicas: Option<i32>,
        template: Option<&'a PodTemplateSpec>,
    ) -> Parts<'a> {
        Parts {
            api_version: T::API_VERSION,
            kind: T::KIND,
            metadata,
            replicas: replicas.map(i64::from),
            selector: None,
            finds: None,
            template,
            labelled: None,
            revisions: None,
            first_ordinal: 0,
            reserved_ordinals: Box::default(),
            ignores_disruption: false,
            rolling: None,
        }
    }
    use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
    use strew_manifest::kruise::workloads::{AdvancedStatefulSet, CloneSet};
    Some(match object {
        KubeObject::Deployment(o) => {
            let spec = o.spec.as_ref();
            let template = spec.map(|s| &s.template);
            Parts {
                labelled: template,
                rolling: spec.and_then(rolling::of_deployment),
                finds: spec.map(|s| Cow::Borrowed(&s.selector)),
                ..of::<apps::Deployment>(&o.metadata, spec.and_then(|s| s.replicas), template)
            }
        }
        KubeObject::ReplicaSet(o) => {
            let spec = o.spec.as_ref();
            let template = spec.and_then(|s| s.template.as_ref());
            Parts {
                labelled: template,
                finds: spec.map(|s| Cow::Borrowed(&s.selector)),
                ..of::<apps::ReplicaSet>(&o.metadata, spec.and_then(|s| s.replicas), template)
            }
        }
        KubeObject::StatefulSet(o) => {
            let spec = o.spec.as_ref();
            let ordinals = spec.and_then(|s| s.ordinals.as_ref());
            Parts {
                first_ordinal: i64::from(ordinals.and_then(|o| o.start).unwrap_or(0)),
                finds: spec.map(|s| Cow::Borrowed(&s.selector)),
                ..of::<apps::StatefulSet>(&o.metadata, spec.and_then(|s| s.replicas), None)
            }
        }
        KubeObject::CloneSet(o) => {
            let spec = o.spec.as_ref();
            let revisions = o.status.as_ref().and_then(|s| {
                let update = s.update_revision.as_deref()?;
                Some([s.current_revision.as_deref().unwrap_or_default(), update])
            });
            let replaces = spec.filter(|spec| rolling::replaces_pods(spec));
            Parts {
                labelled: spec.map(|s| &s.template),
                revisions,
                rolling: replaces.map(rolling::of_clone_set),
                finds: spec.and_then(|s| s.selector.as_ref()).map(Cow::Borrowed),
                ..of::<CloneSet>(&o.metadata, spec.and_then(|s| s.replicas), None)
            }
        }
        KubeObject::AdvancedStatefulSet(o) => {
            let spec = o.spec.as_ref();
            let ordinals = spec.and_then(|s| s.ordinals.as_ref());
            Parts {
                first_ordinal: ordinals.and_then(|o| o["start"].as_i64()).unwrap_or(0),
                reserved_ordinals: reserved(spec.and_then(|s| s.reserve_ordinals.as_ref())),
                finds: spec.and_then(|s| s.selector.as_ref()).map(Cow::Borrowed),
                ..of::<AdvancedStatefulSet>(&o.metadata, spec.and_then(|s| s.replicas), None)
            }
        }
        KubeObject::ReplicationController(o) => {
            let spec = o.spec.as_ref();
            let pairs = spec.and_then(|s| s.selector.clone());
            let finds = pairs.map(|pairs| LabelSelector {
                match_labels: Some(pairs),
                ..LabelSelector::default()
            });
            let replicas = spec.and_then(|s| s.replicas).or(Some(1));
            Parts {
                finds: finds.map(Cow::Owned),
                ..of::<core::ReplicationController>(&o.metadata, replicas, None)
            }
        }
        KubeObject::Job(o) => {
            let spec = o.spec.as_ref();
            let parallelism = spec.and_then(|s| s.parallelism);
            let policy = spec.and_then(|s| s.pod_failure_policy.as_ref());
            Parts {
                ignores_disruption: policy.is_some_and(ignores_disruption),
                selector: spec.and_then(|s| s.selector.as_ref()),
                finds: spec.and_then(|s| s.selector.as_ref()).map(Cow::Borrowed),
                ..of::<batch::Job>(&o.metadata, parallelism, None)
            }
        }
        _ => return None,
    })
}

/// The labels of a template.
fn labels_of(template: &PodTemplateSpec, names: &mut Interner) -> Labels {
    let metadata = template.metadata.as_ref();
    facts::labels(metadata.and_then(|m| m.labels.as_ref()), names)
}

/// `reserveOrdinals` of Kruise's StatefulSet: numbers, and ranges such as `"3-5"`. What is neither is left out, as Kruise
/// does.
fn reserved(wire: Option<&Value>) -> Box<[(i64, i64)]> {
    let range = |value: &Value| {
        if let Some(number) = value.as_i64() {
            return Some((number, number));
        }
        let text = value.as_str()?;
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        (from <= to).then_some((from, to))
    };
    let all = wire.and_then(Value::as_array).into_iter().flatten();
    all.filter_map(range).collect()
}

/// True if a Job does not count evicted pods as failed, by the first matching rule of its policy.
pub fn ignores_disruption(policy: &batch::PodFailurePolicy) -> bool {
    let is_of_disruption = |rule: &&batch::PodFailurePolicyRule| {
        let mut patterns = rule.on_pod_conditions.iter().flatten();
        patterns.any(|p| {
            p.type_ == "DisruptionTarget" && p.status.as_deref().unwrap_or("True") == "True"
        })
    };
    let first = policy.rules.iter().find(is_of_disruption);
    first.is_some_and(|rule| rule.action == "Ignore")
}

/// The integer at a dotted path, with indexes of lists as numbers; `None` for an empty path.
pub fn number_at(object: &Value, path: &str) -> Option<i64> {
    let mut value = object;
    for step in path.split('.') {
        value = match value {
            Value::Object(map) => map.get(step)?,
            Value::Array(list) => list.get(step.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    value.as_i64()
}
