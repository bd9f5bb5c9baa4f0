//! Judges quotas at rest: recounted from the pods of their namespace. Source: spec/controllers §10.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod as WirePod, PodSpec, PodTemplateSpec, ResourceQuota};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_apiserver::admission::quota::charge_pod;
use strew_apiserver::object::{Pod, moment};
use strew_manifest::quantity::Quantity;
use strew_manifest::read::KubeObject;

use super::rest::Resting;
use super::{Rule, Witness};

fn all(world: Resting<'_>) -> Vec<ResourceQuota> {
    let plain = world.server.tables().all_plain();
    let found = plain.filter_map(|plain| match &plain.object {
        KubeObject::ResourceQuota(quota) => Some((**quota).clone()),
        _ => None,
    });
    found.collect()
}

/// True if a quota forbids one more pod of a template.
pub(super) fn refuse(world: Resting<'_>, template: &PodTemplateSpec) -> bool {
    let quotas = all(world);
    let pod = WirePod {
        metadata: ObjectMeta {
            namespace: Some("default".to_owned()),
            ..template.metadata.clone().unwrap_or_default()
        },
        spec: template.spec.clone(),
        ..WirePod::default()
    };
    !quotas.is_empty() && charge_pod(&pod, &quotas, moment::to_wire(world.now).0).is_err()
}

/// The limits in the status are the spec's, and the usage is what a recount finds: pods, and the CPU that they request.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    for quota in all(world) {
        let namespace: Arc<str> = quota.metadata.namespace.clone().unwrap_or_default().into();
        let name = quota.metadata.name.clone().unwrap_or_default();
        let hard = quota.spec.and_then(|spec| spec.hard).unwrap_or_default();
        let status = quota.status.unwrap_or_default();
        let pods = world.server.tables().of::<Pod>().in_namespace(&namespace);
        let counted: Vec<_> = pods.filter(|pod| counts(pod, world)).collect();
        for (resource, limit) in &hard {
            let wanted = match resource.as_str() {
                "pods" => counted.len() as i64 * 1000,
                "requests.cpu" => counted.iter().map(|pod| cpu(&pod.spec)).sum(),
                _ => continue,
            };
            let milli = |text: &str| Quantity::parse(text).ok().map(Quantity::milli_value);
            let said = status.used.as_ref().and_then(|used| used.get(resource));
            let found = said.and_then(|said| milli(&said.0));
            if found != Some(wanted) {
                let text =
                    format!("{resource}: {found:?} thousandths are used, recounted {wanted}");
                witness.blame(Rule::Quota, name.as_str(), text);
            }
            let known = status.hard.as_ref().and_then(|hard| hard.get(resource));
            if known != Some(limit) {
                let text = format!("{resource}: the limit is said to be {known:?}, is {limit:?}");
                witness.blame(Rule::Quota, name.as_str(), text);
            }
        }
    }
}

/// A pod counts until it has finished, or is long overdue to be gone.
fn counts(pod: &Pod, world: Resting<'_>) -> bool {
    let overdue = pod
        .meta
        .deletion
        .is_some_and(|d| world.now > d.at + d.grace);
    !pod.is_finished() && !overdue
}

/// The CPU that a pod requests, in thousandths.
pub(super) fn cpu(pod: &PodSpec) -> i64 {
    let asked = pod.containers.iter().filter_map(|container| {
        let requests = container.resources.as_ref()?.requests.as_ref()?;
        Some(Quantity::parse(&requests.get("cpu")?.0).ok()?.milli_value())
    });
    asked.sum()
}
