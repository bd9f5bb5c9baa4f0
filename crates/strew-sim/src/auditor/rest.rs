//! The rules that hold at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::object::{Name, Object, Phase, Pod};
use strew_apiserver::server::Server;
use strew_model::time::Instant;

use super::{Rule, Witness};
use crate::autoscaler::Autoscaler;
use crate::kubelet::Kubelets;
use crate::placement::Fleet;
use crate::scheduler::{Blueprint, Replica};

/// The simulated cluster at rest.
#[derive(Clone, Copy)]
pub(crate) struct Resting<'a> {
    pub(crate) now: Instant,
    pub(crate) server: &'a Server,
    pub(crate) kubelets: &'a Kubelets,
    pub(crate) blueprint: &'a Blueprint,
    pub(crate) autoscaler: Option<&'a Autoscaler>,
    /// The observed utilisation by HorizontalPodAutoscaler, in percent.
    pub(crate) utilisation: &'a BTreeMap<Name, u32>,
}

/// Judges everything that must hold at rest.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    nothing_fits(world, witness);
    pods_move(world, witness);
    nothing_is_orphaned(world, witness);
    super::workloads::judge(world, witness);
    super::budgets::judge(world, witness);
    super::quotas::judge(world, witness);
    super::autoscalers::judge(world, witness);
    super::cron_jobs::judge(world, witness);
    super::groups::judge(world, witness);
    placements_rest(world, witness);
    super::spreads::judge(world, witness);
}

/// A newly started placement controller would write nothing, and no placement exceeds its limits.
fn placements_rest(world: Resting<'_>, witness: &mut Witness) {
    if !world.server.is_hub() {
        return;
    }
    let fleet = Fleet::of(world.server, world.now);
    for text in fleet.broken_limits(world.server.tables()) {
        witness.blame(Rule::Placed, "a recount", text);
    }
    for text in fleet.would_write() {
        witness.blame(Rule::Placed, "a fresh controller", text);
    }
}

/// A newly started scheduler would neither bind nor preempt.
fn nothing_fits(world: Resting<'_>, witness: &mut Witness) {
    for text in Replica::would_do(world.blueprint, world.server, world.now) {
        witness.blame(Rule::PendingThoughItFits, "a fresh scheduler", text);
    }
}

/// Pods on live nodes run or are gone.
fn pods_move(world: Resting<'_>, witness: &mut Witness) {
    for pod in world.server.tables().of::<Pod>().iter() {
        let Some(node) = &pod.node else {
            if pod.meta.is_terminating() {
                blame_pod(pod, "is being deleted, on no node", witness);
            }
            continue;
        };
        if !world.kubelets.is_known(node) {
            blame_pod(pod, "is on a node that is gone", witness);
        } else if world.kubelets.is_alive(node) {
            if pod.meta.is_terminating() {
                blame_pod(pod, "is being deleted, on a node that is alive", witness);
            } else if pod.status.phase == Phase::Pending {
                blame_pod(pod, "does not start, on a node that is alive", witness);
            }
        }
    }
}

fn blame_pod(pod: &Pod, text: &str, witness: &mut Witness) {
    witness.blame(Rule::StuckPod, pod.meta.name.to_string(), text);
}

/// Every object with owners has one that exists, and only a silent node keeps an object terminating.
fn nothing_is_orphaned(world: Resting<'_>, witness: &mut Witness) {
    let all = world.server.tables().all();
    let uids: BTreeSet<Arc<str>> = all.iter().map(|o| Arc::clone(&o.meta().uid)).collect();
    let some_are_silent = world.kubelets.silent().next().is_some();
    for object in &all {
        let meta = object.meta();
        let has_owner = meta.owners.is_empty() || meta.owners.iter().any(|o| uids.contains(&o.uid));
        let waits = some_are_silent && meta.is_terminating();
        if !has_owner && !waits {
            let text = format!("its owners are gone: {:?}", meta.owners);
            witness.blame(Rule::Orphan, object.key().to_string(), text);
        }
        if !matches!(object, Object::Pod(_)) && meta.is_terminating() && !some_are_silent {
            let text = format!("is being deleted, finalizers {:?}", meta.finalizers);
            witness.blame(Rule::Orphan, object.key().to_string(), text);
        }
    }
}
