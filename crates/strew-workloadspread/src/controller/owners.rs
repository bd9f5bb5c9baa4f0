//! Several WorkloadSpreads that match the same pods: the oldest has them, as in admission.
//!
//! They overlap if both name the same workload, or one names an owner of the other's target: a Deployment and one of
//! its ReplicaSets. Validation refuses the second one; both exist if no webhook was asked, or if the ReplicaSet was
//! created later. With Kruise, the two adopt each other's pods without end.

use std::sync::Arc;

use crate::facts::kinds::Kinds;
use crate::facts::pod::Pod;
use crate::facts::spec::{TargetRef, WorkloadSpread, WsKey};
use crate::facts::workload::WorkloadKey;
use crate::spreads::{Owners, Spreads};
use crate::workloads::{CHAIN_MAX, Workloads};

use super::plan::Facts;

/// Removes the pods of older WorkloadSpreads. Returns the name of one that has pods which `ws` names, too, or will have
/// them as soon as there are some; `None` if there is none.
pub(super) fn keep_own(
    ws: &WorkloadSpread,
    pods: &mut Vec<&Pod>,
    (facts, spreads): (&Facts, &Spreads),
    kinds: &Kinds,
) -> Option<Arc<str>> {
    let mut lost_to: Option<Arc<str>> = None;
    // Consecutive pods mostly have the same controller.
    let mut last: Option<(&Pod, Vec<&Arc<WorkloadSpread>>)> = None;
    pods.retain(|&pod| {
        let Some(controller) = &pod.controller else {
            return true;
        };
        if last
            .as_ref()
            .is_none_or(|(known, _)| known.controller != pod.controller)
        {
            let chain = facts.workloads.chain(pod.namespace, controller, kinds);
            let owners = Owners {
                chain: &chain.owners,
                top: facts.workloads.top(pod.namespace, &chain),
            };
            last = Some((pod, spreads.older_of(ws, &owners)));
        }
        let older = last.iter().flat_map(|(_, older)| older);
        let mut takes = older.filter(|other| other.spec.selects(&pod.labels) == Some(true));
        match takes.next() {
            None => true,
            Some(owner) => {
                lost_to.get_or_insert_with(|| Arc::clone(&owner.key.name));
                false
            }
        }
    });
    lost_to.or_else(|| {
        let target = ws.spec.target?;
        let chain = above(&facts.workloads, ws, target);
        let namespace = ws.key.namespace;
        let top = chain.last().copied();
        let owners = Owners {
            chain: &chain,
            top: top.and_then(|target| facts.workloads.get(WorkloadKey { namespace, target })),
        };
        let mut older = spreads.older_of(ws, &owners).into_iter();
        // Different filters may match different pods.
        let own = &ws.spec.filter;
        let all_pods = older.find(|other| {
            own.is_none() || other.spec.filter.is_none() || other.spec.filter == *own
        });
        all_pods.map(|other| Arc::clone(&other.key.name))
    })
}

/// The WorkloadSpreads that may match the same pods: of the same target, of its owners, and of the workloads that it
/// owns.
pub(super) fn relatives(
    ws: &WorkloadSpread,
    workloads: &Workloads,
    spreads: &Spreads,
) -> Vec<WsKey> {
    let Some(target) = ws.spec.target else {
        return Vec::new();
    };
    let namespace = ws.key.namespace;
    let mut targets = above(workloads, ws, target);
    let uid = workloads
        .get(WorkloadKey { namespace, target })
        .map(|fact| &fact.uid);
    let below = uid.into_iter().flat_map(|uid| workloads.controlled_by(uid));
    targets.extend(below.map(|fact| fact.key.target));
    let all = targets
        .iter()
        .flat_map(|&target| spreads.of_target(namespace, target));
    all.filter(|key| **key != ws.key).cloned().collect()
}

/// A target and its owners.
fn above(workloads: &Workloads, ws: &WorkloadSpread, target: TargetRef) -> Vec<TargetRef> {
    let namespace = ws.key.namespace;
    let mut owners = vec![target];
    while owners.len() < CHAIN_MAX {
        let target = owners[owners.len() - 1];
        let fact = workloads.get(WorkloadKey { namespace, target });
        let Some(owner) = fact.and_then(|fact| fact.controller.as_ref()) else {
            break;
        };
        owners.push(owner.target);
    }
    owners
}
