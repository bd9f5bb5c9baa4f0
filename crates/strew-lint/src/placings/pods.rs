//! The pods of workloads as the engine can place them, and those that must be placed before them.

use std::collections::BTreeSet;

use strew_cluster::NodeIdx;
use strew_manifest::read::KubeObject;
use strew_wire::facts;

use super::is_placed;
use crate::files::{Files, Workload};
use crate::trial::{Bench, PODS_MAX, Pods};

/// The pods of all workloads, made when one of them asks for others.
#[derive(Default)]
pub(super) struct AllPods(Option<Vec<Option<Pods>>>);

impl AllPods {
    /// The pods that these are tied to by required podAffinity, directly or by others; `None` if the files do not say
    /// where such pods go.
    pub(super) fn before(
        &mut self,
        files: &Files<'_>,
        number: usize,
        pods: &Pods,
        bench: &mut Bench,
    ) -> Option<Vec<(Pods, i64)>> {
        if pods.spec.affinity.required.is_empty() {
            return Some(Vec::new());
        }
        let all = self.0.get_or_insert_with(|| {
            let workloads = files.workloads.iter();
            workloads.map(|workload| bench.pods(workload)).collect()
        });
        let mut chosen = BTreeSet::from([number]);
        let mut asking = vec![pods.clone()];
        let mut before = Vec::new();
        while let Some(pods) = asking.pop() {
            for (other, workload) in files.workloads.iter().enumerate() {
                let others = all[other].as_ref();
                let is_there = workload.kind == "Pod" && workload.spec.node_name.is_some();
                let is_meant = others.is_some_and(|others| pods.is_tied_to(others));
                if !is_meant || is_there || workload.n_pods == Some(0) || !chosen.insert(other) {
                    continue;
                }
                let is_spread = files.spread.contains_key(&other);
                if !is_placed(workload.kind) || is_spread {
                    return None;
                }
                let n_pods = workload.n_pods.filter(|n| *n <= PODS_MAX)?;
                let others = pods_of(files, workload, bench)?;
                let n_running = i64::try_from(running(workload, bench).len()).ok()?;
                before.push((others.clone(), n_pods - n_running));
                asking.push(others);
            }
        }
        let may_be_made = files.objects.iter().any(|object| match object {
            KubeObject::Other(other) => other.makes_pods,
            _ => false,
        });
        (!before.is_empty() || !may_be_made || pods.is_tied_to(pods)).then_some(before)
    }
}

/// The pods of a workload as the engine can place them; `None` if something else than the default scheduler decides.
pub(super) fn pods_of(
    files: &Files<'_>,
    workload: &Workload<'_>,
    bench: &mut Bench,
) -> Option<Pods> {
    let scheduler = workload.spec.scheduler_name.as_deref();
    if !matches!(scheduler, None | Some("" | "default-scheduler"))
        || workload.spec.node_name.is_some()
    {
        return None;
    }
    let mut pods = bench.pods(workload)?;
    let written = workload.spec.topology_spread_constraints.as_deref();
    let is_whole = pods.spec.spread.len() == written.unwrap_or_default().len();
    if !is_whole || !pods.spec.unsupported.is_empty() {
        return None;
    }
    pods.spec.gates = Box::default();
    // A claim whose volume is not in the files says nothing about nodes.
    let bound = |name: &str| {
        files.objects.iter().any(|object| match object {
            KubeObject::PersistentVolumeClaim(claim) => {
                let volume = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref());
                object.name() == name
                    && object.namespace().unwrap_or("default") == workload.namespace
                    && volume.is_some_and(|volume| {
                        files.objects.iter().any(|other| {
                            matches!(other, KubeObject::PersistentVolume(_))
                                && other.name() == volume
                        })
                    })
            }
            _ => false,
        })
    };
    let volumes = workload.spec.volumes.iter().flatten();
    let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
    let is_known = claims.all(|claim| bound(&claim.claim_name));
    if !is_known || workload.kind == "StatefulSet" {
        pods.spec.claims = Box::default();
    }
    Some(pods)
}

/// The nodes of the workload's pods that run already, as the files have them.
pub(super) fn running(workload: &Workload<'_>, bench: &mut Bench) -> Vec<NodeIdx> {
    let names = &mut bench.cluster.names;
    let selector = facts::selector(workload.selector, names);
    let namespace = names.intern(workload.namespace);
    match (workload.selector, selector) {
        (Some(_), Ok(selector)) => bench.running(namespace, &selector),
        _ => Vec::new(),
    }
}
