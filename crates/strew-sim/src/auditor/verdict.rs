//! A bind, judged anew from the facts before it is sent.
//!
//! The cluster is built afresh from what the replica's watch told and from the pods that it assumed itself; the pod in
//! question is on no node. Then every filter is read once more, by recounts.

use strew_api::facts;
use strew_cluster::{Cluster, NodeFact, NodeIdx, PodIdx, PodSpec};
use strew_controllers::Tables;
use strew_controllers::object::{Object, Pod};
use strew_model::{Symbol, Taint, tolerates_all};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Input, Scheduler, Standing};
use strew_scheduler::naive::{NaiveAffinity, NaiveSpread};

use crate::scheduler::Facts;

/// The facts of a watch, and what the scheduler assumed.
pub(crate) fn recount(seen: &Tables, machine: &Scheduler) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.names = machine.cluster().names.clone();
    for object in seen.all() {
        match &object {
            Object::Pod(pod) => put_pod(&mut cluster, pod, machine),
            other => put_other(&mut cluster, other),
        }
    }
    cluster
}

fn put_pod(cluster: &mut Cluster, pod: &Pod, machine: &Scheduler) {
    if pod.is_finished() {
        return;
    }
    let mut names = std::mem::take(&mut cluster.names);
    let fact = Facts::default().pod(pod, &mut names);
    cluster.names = names;
    let Some(mut fact) = fact else { return };
    if machine.standing(&pod.meta.uid) == Some(Standing::Assumed) {
        let known = machine.cluster();
        let node = known.find_pod(&pod.meta.uid);
        fact.node = node.and_then(|pod| Some(known.node(known.pod(pod).node?).name()));
    }
    cluster.set_pod(fact);
}

fn put_other(cluster: &mut Cluster, object: &Object) {
    let Some(wire) = crate::scheduler::wire_of(object) else {
        return;
    };
    let mut names = std::mem::take(&mut cluster.names);
    let inputs = facts::inputs(&wire, &mut names);
    cluster.names = names;
    for input in inputs {
        match input {
            Input::NodeSet(fact) => {
                cluster.set_node(fact);
            }
            Input::ServiceSet {
                namespace,
                name,
                selector,
            } => cluster.set_service(namespace, name, selector),
            Input::ControllerSet {
                namespace,
                owner,
                selector,
            } => cluster.set_controller(namespace, owner, selector),
            Input::NamespaceSet { name, labels } => cluster.set_namespace(name, labels),
            _ => {}
        }
    }
}

/// Whether a pod may go to a node, as the facts are.
///
/// # Errors
/// The first rule that forbids it, in words.
pub(crate) fn judge(
    mut cluster: Cluster,
    profiles: &[Profile],
    uid: &str,
    node: Symbol,
) -> Result<(), String> {
    let pod = cluster.find_pod(uid).ok_or("no such pod was told")?;
    cluster.unbind(pod);
    cluster.refresh_order();
    let cluster = &cluster;
    let at = cluster.find_node(node).ok_or("no such node was told")?;
    let fact = cluster.node(at).fact().ok_or("no such node was told")?;
    if cluster.class_of(pod).key.terminating {
        return Err("the pod is being deleted".to_owned());
    }
    let spec = cluster.spec_of(pod);
    let profile = profiles
        .iter()
        .find(|p| p.scheduler_name == cluster.names.text(spec.scheduler_name))
        .ok_or("no profile has the pod's schedulerName")?;
    fits(cluster, at, fact, spec)?;
    suits(cluster, fact, spec)?;
    others_agree(cluster, profile, pod, at)
}

/// Resources, the number of pods, ports: recounted from the pods on the node.
fn fits(cluster: &Cluster, at: NodeIdx, fact: &NodeFact, spec: &PodSpec) -> Result<(), String> {
    let mut used = spec.requests.clone();
    let pods = cluster.node(at).pods();
    for &other in pods {
        let other = cluster.spec_of(other);
        used.add(&other.used, 1);
        let clash = |port| other.host_ports.iter().any(|o| o.conflicts_with(port));
        if spec.host_ports.iter().any(clash) {
            return Err("a port is taken".to_owned());
        }
    }
    if pods.len() as i64 >= fact.pods_max {
        return Err(format!("{} pods are there already", pods.len()));
    }
    let (wants, has) = (&spec.requests, &fact.allocatable);
    let amounts = [
        ("cpu", wants.cpu_milli, used.cpu_milli, has.cpu_milli),
        ("memory", wants.memory, used.memory, has.memory),
        (
            "ephemeral-storage",
            wants.ephemeral_storage,
            used.ephemeral_storage,
            has.ephemeral_storage,
        ),
    ];
    for (what, wanted, used, has) in amounts {
        if wanted > 0 && used > has {
            return Err(format!("{what}: {used} of {has}"));
        }
    }
    let short =
        |&&(name, wanted): &&(Symbol, i64)| wanted > 0 && used.scalar(name) > has.scalar(name);
    match wants.scalars().iter().find(short) {
        Some((name, _)) => Err(format!("too little {}", cluster.names.text(*name))),
        None => Ok(()),
    }
}

/// Cordon, taints, node affinity, gates.
fn suits(cluster: &Cluster, fact: &NodeFact, spec: &PodSpec) -> Result<(), String> {
    let bears_cordon = spec
        .tolerations
        .iter()
        .any(|t| t.tolerates(&Taint::UNSCHEDULABLE));
    let affinity = &spec.node_affinity;
    let rules = [
        ("the node is cordoned", !fact.unschedulable || bears_cordon),
        (
            "a taint is not tolerated",
            tolerates_all(&spec.tolerations, &fact.taints),
        ),
        (
            "node affinity does not match",
            affinity.matches(fact.name, &fact.labels, &cluster.names),
        ),
        ("the pod is gated", spec.gates.is_empty()),
        (
            "the pod needs what is not there",
            spec.unsupported.is_empty(),
        ),
    ];
    match rules.iter().find(|(_, holds)| !holds) {
        Some((text, _)) => Err((*text).to_owned()),
        None => Ok(()),
    }
}

/// Spread and affinity between pods, by the naive oracle.
fn others_agree(
    cluster: &Cluster,
    profile: &Profile,
    pod: PodIdx,
    at: NodeIdx,
) -> Result<(), String> {
    let verdicts = NaiveSpread::new(cluster, profile, pod).filter();
    let of_node = verdicts.into_iter().find(|(node, _)| *node == at);
    let (_, refusal) = of_node.ok_or("the node is in no order of nodes")?;
    if let Some(refusal) = refusal {
        return Err(format!("spread: {refusal:?}"));
    }
    match NaiveAffinity::new(cluster, profile, pod).filter(at) {
        Some(refusal) => Err(format!("affinity: {refusal:?}")),
        None => Ok(()),
    }
}
