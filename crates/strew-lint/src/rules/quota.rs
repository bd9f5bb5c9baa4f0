//! ResourceQuotas and the pods that workloads of their namespace ask for.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LimitRange, Pod, ResourceQuota};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_apiserver::admission::limit_range::apply_defaults;
use strew_apiserver::admission::quota::{charge_pod, used_by_pods};
use strew_manifest::defaults::default_pod;
use strew_manifest::read::KubeObject;

use crate::Found;
use crate::files::{Files, Workload, namespace_of};

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
            let objects = self.objects.iter();
            let named = objects.zip(&self.quotas).find(|(_, quota)| {
                let name = quota.metadata.name.as_deref().unwrap_or_default();
                refusal.reason.contains(&format!("quota: {name}"))
            });
            if let Some((object, _)) = named {
                warning = warning.related(*object, "the quota");
            }
            return Some(warning);
        }
        None
    }
}
