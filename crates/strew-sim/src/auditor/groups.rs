//! Judges node groups at rest: no Pending pod would fit on one more node. Source: spec/controllers §11.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node as WireNode;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use strew_apiserver::object::{DaemonSet, Pod};
use strew_manifest::quantity::Quantity;
use strew_manifest::read::KubeObject;
use strew_wire::facts;

use super::rest::Resting;
use super::verdict::{Beside, profile_of, stored, takes};
use super::{Rule, Witness, quotas};

/// Judges every group that may grow.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    let nodes = world.autoscaler.map_or_else(Vec::new, |a| a.next_nodes());
    for node in nodes {
        for pod in world.server.tables().of::<Pod>().iter() {
            let waits = pod.node.is_none() && pod.is_active();
            if waits && would_take(node.clone(), pod, world) {
                let text = format!("{} waits", pod.meta.name);
                let node = node.metadata.name.clone().unwrap_or_default();
                witness.blame(Rule::PendingThoughItFits, node, text);
            }
        }
    }
}

/// True if a pod would fit on a new node, beside the daemon pods that the node would get.
fn would_take(mut node: WireNode, pod: &Arc<Pod>, world: Resting<'_>) -> bool {
    let tables = world.server.tables();
    let daemons = tables.of::<DaemonSet>();
    let templates = daemons.iter().map(|set| &set.spec.template);
    let theirs: i64 = templates
        .filter_map(|t| Some(quotas::cpu(t.spec.as_ref()?)))
        .sum();
    if let Some(allocatable) = node.status.as_mut().and_then(|s| s.allocatable.as_mut()) {
        let mut take = |resource: &str, milli: i64| {
            if let Some(amount) = allocatable.get_mut(resource) {
                let has = Quantity::parse(&amount.0).map_or(0, Quantity::milli_value);
                *amount = WireQuantity(format!("{}m", (has - milli).max(0)));
            }
        };
        take("cpu", theirs);
        take("pods", daemons.len() as i64 * 1000);
    }
    let mut cluster = stored(tables, &world.blueprint.names);
    let name = cluster
        .names
        .intern(node.metadata.name.as_deref().unwrap_or_default());
    if facts::apply(&KubeObject::from(node), &mut cluster).is_err() {
        return false;
    }
    cluster.refresh_order();
    let (Some(pod), Some(at)) = (cluster.find_pod(&pod.meta.uid), cluster.find_node(name)) else {
        return false;
    };
    if !daemons.is_empty() && !cluster.spec_of(pod).host_ports.is_empty() {
        return false;
    }
    let profile = profile_of(&cluster, &world.blueprint.profiles, pod);
    profile.is_ok_and(|profile| takes(&mut cluster, profile, pod, at, Beside::Perhaps).is_ok())
}
