//! Checks a bind before it is sent.
//!
//! The cluster is built from what the replica's watch delivered and from the pods that the replica assumed; the pod to
//! bind is on no node. Then every filter is evaluated by recounts.

use strew_apiserver::Tables;
use strew_apiserver::object::{Object, Pod};
use strew_cluster::{Cluster, NodeFact, NodeIdx, PodIdx, PodSpec};
use strew_model::{Interner, Symbol, Taint, tolerates_all};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Input, Scheduler};
use strew_scheduler::naive::{NaiveAffinity, NaiveSpread, NaiveVolumes};
use strew_wire::facts::{self, PodFacts};

use super::witness::Assumed;

/// The cluster that the scheduler knows: the facts of its watch, with the binds and nominations that it assumed.
pub(crate) fn recount(seen: &Tables, machine: &Scheduler, assumed: &Assumed) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.names = machine.cluster().names.clone();
    for object in seen.all() {
        match &object {
            Object::Pod(pod) => put_pod(&mut cluster, pod, assumed),
            other => put_other(&mut cluster, other),
        }
    }
    let pods: Vec<PodIdx> = cluster.pods().map(|(pod, _)| pod).collect();
    for pod in pods {
        let known = machine.cluster();
        if let Some(same) = known.find_pod(&cluster.pod(pod).uid) {
            cluster.nominate(pod, known.pod(same).history.nominated);
        }
    }
    cluster
}

/// The stored objects as a cluster, in the symbols of `names`.
pub(super) fn stored(tables: &Tables, names: &Interner) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.names = names.clone();
    for object in tables.all() {
        match &object {
            Object::Pod(pod) => put_pod(&mut cluster, pod, &Assumed::new()),
            other => put_other(&mut cluster, other),
        }
    }
    cluster
}

fn put_pod(cluster: &mut Cluster, pod: &Pod, assumed: &Assumed) {
    if pod.is_finished() {
        return;
    }
    let mut names = std::mem::take(&mut cluster.names);
    let fact = PodFacts::default().fact(pod, &mut names);
    cluster.names = names;
    let Ok(Some(mut fact)) = fact else { return };
    fact.node = fact.node.or(assumed.get(&pod.meta.uid).copied());
    cluster.set_pod(fact);
}

fn put_other(cluster: &mut Cluster, object: &Object) {
    let Some(wire) = strew_apiserver::object::scheduling::wire_of(object) else {
        return;
    };
    let mut names = std::mem::take(&mut cluster.names);
    let input = facts::input(&wire, &mut names);
    cluster.names = names;
    if let Ok(Some(input)) = input {
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
            Input::ClaimSet {
                namespace,
                name,
                claim,
            } => {
                cluster.set_claim(namespace, name, claim);
            }
            Input::VolumeSet { name, volume } => {
                cluster.set_volume(name, volume);
            }
            Input::StorageClassSet { name, class } => {
                cluster.set_storage_class(name, class);
            }
            Input::AttachLimitsSet { node, limits } => {
                cluster.set_attach_limits(node, limits);
            }
            _ => {}
        }
    }
}

/// Checks whether a pod may be bound to a node, on the facts as they are.
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
    let at = cluster.find_node(node).ok_or("no such node was told")?;
    let profile = profile_of(&cluster, profiles, pod)?;
    takes(&mut cluster, profile, pod, at, Beside::Surely)
}

/// The profile that schedules a pod.
pub(super) fn profile_of<'a>(
    cluster: &Cluster,
    profiles: &'a [Profile],
    pod: PodIdx,
) -> Result<&'a Profile, String> {
    let name = cluster.names.text(cluster.spec_of(pod).scheduler_name);
    let profile = profiles.iter().find(|p| p.scheduler_name == name);
    profile.ok_or_else(|| "no profile has the pod's schedulerName".to_owned())
}

/// How the filters treat pods nominated to the node. PreFilter may skip a filter without those pods, and then it is not
/// run with them either (spec/scheduler §2.3); a recount cannot always tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// Check only filters that surely run.
    Surely,
    /// Check also filters that may be skipped.
    Perhaps,
}

/// Checks whether a node takes a pod that is on none: the node as it is, and with the nominated pods of the same or a
/// higher priority on it. Source: spec/scheduler §2.6.
pub(super) fn takes(
    cluster: &mut Cluster,
    profile: &Profile,
    pod: PodIdx,
    at: NodeIdx,
    beside: Beside,
) -> Result<(), String> {
    as_it_is(cluster, profile, pod, at, Asks::ALL)?;
    let name = cluster.node(at).name();
    let priority = cluster.spec_of(pod).priority;
    let nominated: Vec<PodIdx> = cluster
        .pods()
        .filter(|(other, row)| {
            let counts = cluster.spec_of(*other).priority >= priority;
            *other != pod && counts && row.node.is_none() && row.history.nominated == Some(name)
        })
        .map(|(other, _)| other)
        .collect();
    if nominated.is_empty() {
        return Ok(());
    }
    nominated.iter().for_each(|&other| cluster.bind(other, at));
    let own = &cluster.spec_of(pod).affinity;
    let has_own = !own.required.is_empty() || !own.required_anti.is_empty();
    let asks = Asks {
        affinity: beside == Beside::Perhaps || has_own,
        claims_in_use: false,
    };
    let verdict = as_it_is(cluster, profile, pod, at, asks);
    nominated.iter().for_each(|&other| cluster.unbind(other));
    verdict.map_err(|text| format!("beside {} nominated pods: {text}", nominated.len()))
}

/// Filters that PreFilter may have skipped; true: check them.
#[derive(Debug, Clone, Copy)]
struct Asks {
    affinity: bool,
    claims_in_use: bool,
}

impl Asks {
    const ALL: Self = Self {
        affinity: true,
        claims_in_use: true,
    };
}

fn as_it_is(
    cluster: &Cluster,
    profile: &Profile,
    pod: PodIdx,
    at: NodeIdx,
    asks: Asks,
) -> Result<(), String> {
    let fact = cluster.node(at).fact().ok_or("no such node was told")?;
    if cluster.class_of(pod).key.terminating {
        return Err("the pod is being deleted".to_owned());
    }
    let spec = cluster.spec_of(pod);
    fits(cluster, at, fact, spec)?;
    suits(cluster, fact, spec)?;
    let volumes = NaiveVolumes::new(cluster, pod, profile.binds_claims);
    if let Some(refusal) = volumes
        .pre_filter()
        .or_else(|| volumes.filter(at, asks.claims_in_use))
    {
        return Err(format!("volumes: {refusal:?}"));
    }
    others_agree(cluster, profile, pod, at, asks.affinity)
}

/// Resources, the number of pods and host ports, recounted from the pods on the node.
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

/// Cordon, taints, node affinity, and scheduling gates.
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

/// Topology spread and inter-pod affinity, by the naive oracle.
fn others_agree(
    cluster: &Cluster,
    profile: &Profile,
    pod: PodIdx,
    at: NodeIdx,
    asks_affinity: bool,
) -> Result<(), String> {
    let verdicts = NaiveSpread::new(cluster, profile, pod).filter();
    let of_node = verdicts.into_iter().find(|(node, _)| *node == at);
    let (_, refusal) = of_node.ok_or("the node is in no order of nodes")?;
    if let Some(refusal) = refusal {
        return Err(format!("spread: {refusal:?}"));
    }
    if !asks_affinity {
        return Ok(());
    }
    match NaiveAffinity::new(cluster, profile, pod).filter(at) {
        Some(refusal) => Err(format!("affinity: {refusal:?}")),
        None => Ok(()),
    }
}
