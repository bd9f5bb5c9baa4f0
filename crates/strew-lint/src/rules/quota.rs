//! ResourceQuotas and LimitRanges, and the pods that workloads of their namespace ask for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LimitRange, Pod, PodTemplateSpec, ResourceQuota};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_apiserver::admission::limit_range::{apply_defaults, check};
use strew_apiserver::admission::quota::{charge_pod, used_by_pods};
use strew_manifest::defaults::default_pod;
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::read::KubeObject;
use strew_manifest::validation::pod::validate_template;
use strew_wire::rolling::of_deployment;

use crate::Found;
use crate::files::{Files, Workload, namespace_of};
use crate::placings::rolling_path;

/// The most pods of a workload that are counted.
const PODS_MAX: i64 = 1_000;

/// The age of pods plays no part: none is being deleted.
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Workloads whose pods a quota does not allow, all of them: the API server's own sum, in the order of the files.
///
/// A namespace with pods is a cluster's, whose quota has counted them.
///
/// Source: spec/controllers §10
pub(crate) fn too_small(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for namespace in namespaces(files) {
        let mut quotas = Quotas::of(files, namespace);
        for (_, workload) in files.of_namespace(namespace) {
            found.extend(quotas.take(workload));
        }
    }
    found
}

/// Deployments whose rollouts never end: no old pod goes before a new one is ready, and a quota refuses the first new one
/// beside all pods of the namespace.
///
/// Source: spec/controllers §2.3, §10
pub(crate) fn refuses_surge(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for namespace in namespaces(files) {
        let mut quotas = Quotas::of(files, namespace);
        // Which pods are there is open where some are refused.
        let is_full = files
            .of_namespace(namespace)
            .any(|(_, workload)| quotas.take(workload).is_some());
        if is_full {
            continue;
        }
        for (_, workload) in files.of_namespace(namespace) {
            found.extend(quotas.refuse_surge(files, workload));
        }
    }
    found
}

/// Workloads of which no pod is made: a LimitRange forbids it, or gives it limits below its requests.
pub(crate) fn limit_range(files: &Files<'_>) -> Vec<Found> {
    let mut ranges: BTreeMap<&str, Vec<(usize, LimitRange)>> = BTreeMap::new();
    for (index, object) in files.objects.iter().enumerate() {
        if let KubeObject::LimitRange(range) = object {
            let of_namespace = ranges.entry(namespace_of(&range.metadata)).or_default();
            of_namespace.push((index, (**range).clone()));
        }
    }
    let mut found = Vec::new();
    for (namespace, ranges) in ranges {
        let (objects, ranges): (Vec<usize>, Vec<LimitRange>) = ranges.into_iter().unzip();
        for (_, workload) in files.of_namespace(namespace) {
            // A pod that is there was made.
            if workload.n_pods == Some(0) || workload.kind == "Pod" {
                continue;
            }
            let Some(why) = refused(workload, &ranges) else {
                continue;
            };
            let path = workload.spec_path.child("containers");
            let message =
                format!("no pod is made, since the LimitRange of the namespace forbids it: {why}");
            let mut warning = Found::warning(workload.object, path, message)
                .help("requests and limits within those of the LimitRange");
            if let [object] = objects[..] {
                warning = warning.related(object, "the LimitRange");
            }
            found.push(warning);
        }
    }
    found
}

/// Why the API server makes no pod of a workload under these LimitRanges.
fn refused(workload: &Workload<'_>, ranges: &[LimitRange]) -> Option<String> {
    let mut pod = pod_of(workload);
    let mut errors = Vec::new();
    let mut validate = |pod: &Pod| {
        let template = PodTemplateSpec {
            metadata: Some(pod.metadata.clone()),
            spec: pod.spec.clone(),
        };
        errors.clear();
        validate_template(&template, &FieldPath::root(), &mut errors);
        errors.first().map(ToString::to_string)
    };
    // What is invalid anyway is an error elsewhere.
    if validate(&pod).is_some() {
        return None;
    }
    apply_defaults(&mut pod, ranges);
    let invalid = validate(&pod);
    invalid.or_else(|| Some(check(&pod, ranges).err()?.reason))
}

/// Those with quotas and without pods.
fn namespaces<'f>(files: &'f Files<'_>) -> impl Iterator<Item = &'f str> {
    let pods = { files.objects.iter() }.filter(|object| matches!(object, KubeObject::Pod(_)));
    let with_pods = pods.filter_map(|object| object.metadata().map(namespace_of));
    let with_pods: BTreeSet<&str> = with_pods.collect();
    let with_quota = files.with_quota.iter().copied();
    with_quota.filter(move |namespace| !with_pods.contains(namespace))
}

/// The quotas of a namespace, with what was taken of them.
struct Quotas {
    /// The indexes of their objects.
    objects: Vec<usize>,
    quotas: Vec<ResourceQuota>,
    ranges: Vec<LimitRange>,
}

impl Quotas {
    fn of(files: &Files<'_>, namespace: &str) -> Self {
        let mut of = Self {
            objects: Vec::new(),
            quotas: Vec::new(),
            ranges: Vec::new(),
        };
        for (index, object) in files.objects.iter().enumerate() {
            if object.metadata().map(namespace_of) != Some(namespace) {
                continue;
            }
            match object {
                KubeObject::ResourceQuota(quota) => {
                    let mut quota = (**quota).clone();
                    let hard = quota.spec.as_ref().and_then(|spec| spec.hard.clone());
                    let used = used_by_pods(&quota, [], NOW);
                    let status = quota.status.get_or_insert_default();
                    (status.hard, status.used) = (hard, Some(used));
                    of.objects.push(index);
                    of.quotas.push(quota);
                }
                KubeObject::LimitRange(range) => of.ranges.push((**range).clone()),
                _ => {}
            }
        }
        of
    }

    /// Takes the room of a workload's pods; what refuses the first one that has none.
    fn take(&mut self, workload: &Workload<'_>) -> Option<Found> {
        let n_pods = workload.n_pods.filter(|n| (1..=PODS_MAX).contains(n))?;
        let mut pod = pod_of(workload);
        apply_defaults(&mut pod, &self.ranges);
        for n_made in 0..n_pods {
            let refusal = match charge_pod(&pod, &self.quotas, NOW) {
                Ok(charges) => {
                    for charge in charges {
                        let quota = &mut self.quotas[charge.quota_idx];
                        quota.status.get_or_insert_default().used = Some(charge.used);
                    }
                    continue;
                }
                Err(refusal) => refusal,
            };
            let message = format!(
                "{n_made} of {n_pods} pods are made, and the quota refuses the next one: {}",
                refusal.reason
            );
            let path = workload.spec_path.child("containers");
            let mut warning = Found::warning(workload.object, path, message)
                .help("a larger quota, fewer replicas or smaller requests; a rollout needs room for its surge, too")
                .number("pods", n_pods)
                .number("made", n_made);
            if let Some(object) = self.named(&refusal.reason) {
                warning = warning.related(object, "the quota");
            }
            return Some(warning);
        }
        None
    }

    /// The quota that a refusal names.
    fn named(&self, reason: &str) -> Option<usize> {
        let mut all = self.objects.iter().zip(&self.quotas);
        let named = all.find(|(_, quota)| {
            let name = quota.metadata.name.as_deref().unwrap_or_default();
            reason.contains(&format!("quota: {name}"))
        });
        named.map(|(object, _)| *object)
    }

    /// What refuses the first new pod of a rollout beside all pods that took room.
    fn refuse_surge(&self, files: &Files<'_>, workload: &Workload<'_>) -> Option<Found> {
        let KubeObject::Deployment(deployment) = files.objects[workload.object] else {
            return None;
        };
        let rolling = of_deployment(deployment.spec.as_ref()?)?;
        if rolling.unavailable > 0 || workload.n_pods.is_none_or(|n| n < 1) {
            return None;
        }
        let mut pod = pod_of(workload);
        apply_defaults(&mut pod, &self.ranges);
        let refusal = charge_pod(&pod, &self.quotas, NOW).err()?;
        let message = format!(
            "a rollout never ends: with maxUnavailable 0 no old pod goes before a new one is ready, and the quota refuses the first new one: {}",
            refusal.reason
        );
        let mut warning = Found::warning(workload.object, rolling_path(), message)
            .help("room for the surge in the quota, or maxUnavailable: 1, lets it end")
            .number("maxUnavailable", 0);
        if let Some(object) = self.named(&refusal.reason) {
            warning = warning.related(object, "the quota");
        }
        Some(warning.fix(Fix::set(&rolling_path().child("maxUnavailable"), 1)))
    }
}

/// A pod of a workload, with defaults.
fn pod_of(workload: &Workload<'_>) -> Pod {
    let mut pod = Pod {
        metadata: ObjectMeta {
            name: Some(workload.name.to_owned()),
            namespace: Some(workload.namespace.to_owned()),
            labels: Some(workload.written.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(workload.spec.clone()),
        status: None,
    };
    default_pod(&mut pod);
    pod
}
