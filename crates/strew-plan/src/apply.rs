//! Changes carried out on a copy of a cluster, and taken back.

use strew_cluster::{Cluster, NodeFact, NodeIdx, PodFact, PodIdx, PodSpec, SpreadConstraint};
use strew_model::{Labels, Symbol, Taint, well_known};
use strew_scheduler::plugins::node_affinity::narrow;
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};

use crate::change::Change;
use crate::edit::set_amount;

/// The pods that changes of "the pod" are made to.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) pods: &'a [PodIdx],
    /// The constraints as the pods could have them themselves.
    pub(crate) constraints: &'a [SpreadConstraint],
}

/// What a change did, in order.
pub(crate) struct Applied(Vec<Step>);

enum Step {
    SetNode(Box<NodeFact>),
    AddedNode(Symbol),
    RemovedNode(Box<NodeFact>),
    Left(PodIdx, NodeIdx),
    Bound(PodIdx),
    Respec(PodIdx, Box<PodSpec>),
    AddedPod(Box<str>),
}

impl Applied {
    /// The pods that the change took off their nodes, with these.
    pub(crate) fn left(&self) -> impl Iterator<Item = (PodIdx, NodeIdx)> + '_ {
        self.0.iter().filter_map(|step| match step {
            Step::Left(pod, node) => Some((*pod, *node)),
            _ => None,
        })
    }

    /// The pods of which the change altered what they ask for.
    pub(crate) fn edited(&self) -> impl Iterator<Item = PodIdx> + '_ {
        self.0.iter().filter_map(|step| match step {
            Step::Respec(pod, _) => Some(*pod),
            _ => None,
        })
    }

    /// Takes the change back. The order of nodes stays another one after [`Change::reorders_nodes`].
    pub(crate) fn undo(self, cluster: &mut Cluster) {
        for step in self.0.into_iter().rev() {
            match step {
                Step::SetNode(fact) | Step::RemovedNode(fact) => {
                    cluster.set_node(*fact);
                }
                Step::AddedNode(name) => cluster.remove_node(name),
                Step::Left(pod, node) => cluster.bind(pod, node),
                Step::Bound(pod) => cluster.unbind(pod),
                Step::Respec(pod, spec) => cluster.respec(pod, &spec),
                Step::AddedPod(uid) => cluster.remove_pod(&uid),
            }
        }
    }
}

impl Change {
    /// Carries the change out, and returns what was done.
    pub(crate) fn apply(&self, cluster: &mut Cluster, subject: Subject<'_>) -> Applied {
        let mut steps = Vec::new();
        match self {
            Self::LoseNode { node } => lose(cluster, *node, &mut steps),
            Self::DrainNode { node } => {
                set_node(cluster, *node, cordon, &mut steps);
                let is_made_for = |cluster: &Cluster, pod| is_made_for(cluster, pod, *node);
                leave(cluster, *node, |c, pod| !is_made_for(c, pod), &mut steps);
            }
            Self::Cordon { node } => set_node(cluster, *node, cordon, &mut steps),
            Self::Uncordon { node } => set_node(cluster, *node, uncordon, &mut steps),
            Self::TaintNode { node, taint: new } => {
                set_node(cluster, *node, |fact| taint(fact, new), &mut steps);
                leave(cluster, *node, |c, pod| is_evicted(c, pod, new), &mut steps);
            }
            Self::UntaintNode { node, key, effect } => {
                let stays = |t: &&Taint| t.key != *key || effect.is_some_and(|e| e != t.effect);
                let untaint = |fact: &mut NodeFact| {
                    fact.taints = fact.taints.iter().filter(stays).cloned().collect();
                };
                set_node(cluster, *node, untaint, &mut steps);
            }
            Self::LabelNode {
                node, key, value, ..
            } => {
                let label = |fact: &mut NodeFact| fact.labels = fact.labels.with([(*key, *value)]);
                set_node(cluster, *node, label, &mut steps);
            }
            Self::UnlabelNode { node, key } => {
                let unlabel = |fact: &mut NodeFact| {
                    let rest = fact.labels.iter().filter(|(k, _)| k != key);
                    fact.labels = Labels::new(rest.collect());
                };
                set_node(cluster, *node, unlabel, &mut steps);
            }
            Self::FreeResources { node, short } => {
                set_node(cluster, *node, |fact| free(fact, short), &mut steps);
            }
            Self::DeletePod { pod } => take_off(cluster, *pod, &mut steps),
            Self::MovePod { pod, to } => {
                take_off(cluster, *pod, &mut steps);
                cluster.bind(*pod, *to);
                steps.push(Step::Bound(*pod));
            }
            Self::AddNodeLike { like, .. } => add_node(cluster, *like, None, &mut steps),
            Self::AddNodeInNewDomain { like, key } => {
                add_node(cluster, *like, Some(*key), &mut steps);
            }
            Self::AddFirstNode => {
                if let Some(&pod) = subject.pods.first() {
                    add_first_node(cluster, pod, subject.constraints, &mut steps);
                }
            }
            Self::StartPod {
                node,
                namespace,
                labels,
            } => start_pod(cluster, *node, *namespace, labels, &mut steps),
            Self::Tolerate { .. }
            | Self::Policy { .. }
            | Self::MaxSkew { .. }
            | Self::MinDomains { .. }
            | Self::ScheduleAnyway { .. }
            | Self::DropConstraint { .. }
            | Self::RequestLess { .. }
            | Self::DropNodeSelector { .. }
            | Self::DropNodeExpression { .. }
            | Self::DropNodeAffinity
            | Self::DropPodAffinity { .. }
            | Self::DropHostPort { .. }
            | Self::DropClaim { .. }
            | Self::DropUnsupported { .. } => {
                for &pod in subject.pods {
                    let before = cluster.spec_of(pod).clone();
                    let mut spec = before.clone();
                    self.edit(&mut spec, subject.constraints);
                    cluster.respec(pod, &spec);
                    steps.push(Step::Respec(pod, Box::new(before)));
                }
            }
        }
        Applied(steps)
    }

    /// Whether undoing it does not restore the order of nodes: a node that changes zones or goes, and comes back,
    /// stands last.
    pub(crate) fn reorders_nodes(&self) -> bool {
        matches!(
            self,
            Self::LabelNode { .. } | Self::UnlabelNode { .. } | Self::LoseNode { .. }
        )
    }
}

/// Whether a pod is made for one node, as those of DaemonSets and of a kubelet's own files are: it goes with the node.
pub(crate) fn is_made_for(cluster: &Cluster, pod: PodIdx, node: NodeIdx) -> bool {
    let name = cluster.node(node).name();
    let owner = cluster.class_of(pod).key.owner;
    let affinity = &cluster.spec_of(pod).node_affinity;
    let is_named = || matches!(narrow(affinity), Ok(Some(names)) if names == [name]);
    owner.is_some_and(|owner| owner.name == name) || is_named()
}

fn is_evicted(cluster: &Cluster, pod: PodIdx, taint: &Taint) -> bool {
    let tolerations = &cluster.spec_of(pod).tolerations;
    taint.effect == strew_model::Effect::NoExecute
        && !tolerations.iter().any(|t| t.tolerates(taint))
}

fn set_node(
    cluster: &mut Cluster,
    node: NodeIdx,
    change: impl FnOnce(&mut NodeFact),
    steps: &mut Vec<Step>,
) {
    let Some(before) = cluster.node(node).fact().cloned() else {
        return;
    };
    let mut fact = before.clone();
    change(&mut fact);
    cluster.set_node(fact);
    steps.push(Step::SetNode(Box::new(before)));
}

fn take_off(cluster: &mut Cluster, pod: PodIdx, steps: &mut Vec<Step>) {
    if let Some(node) = cluster.pod(pod).node {
        cluster.unbind(pod);
        steps.push(Step::Left(pod, node));
    }
}

fn leave(
    cluster: &mut Cluster,
    node: NodeIdx,
    does: impl Fn(&Cluster, PodIdx) -> bool,
    steps: &mut Vec<Step>,
) {
    for pod in cluster.node(node).pods().to_vec() {
        if does(cluster, pod) {
            take_off(cluster, pod, steps);
        }
    }
}

fn lose(cluster: &mut Cluster, node: NodeIdx, steps: &mut Vec<Step>) {
    leave(cluster, node, |_, _| true, steps);
    let row = cluster.node(node);
    if let Some(fact) = row.fact().cloned() {
        cluster.remove_node(fact.name);
        steps.push(Step::RemovedNode(Box::new(fact)));
    }
}

fn cordon(fact: &mut NodeFact) {
    fact.unschedulable = true;
    taint(fact, &Taint::UNSCHEDULABLE);
}

fn uncordon(fact: &mut NodeFact) {
    fact.unschedulable = false;
    let rest = fact.taints.iter().filter(|t| **t != Taint::UNSCHEDULABLE);
    fact.taints = rest.cloned().collect();
}

fn taint(fact: &mut NodeFact, taint: &Taint) {
    let is_other = |t: &&Taint| (t.key, t.effect) != (taint.key, taint.effect);
    let others = fact.taints.iter().filter(is_other);
    fact.taints = others.chain([taint]).cloned().collect();
}

fn free(fact: &mut NodeFact, short: &[Shortage]) {
    for shortage in short {
        let more = shortage.requested - shortage.free;
        match shortage.resource {
            Lacking::Pods => fact.pods_max += more,
            resource => {
                let amount = shortage.allocatable.saturating_add(more);
                set_amount(&mut fact.allocatable, resource, amount);
            }
        }
    }
}

/// Names of what is made up, which no object can have.
const NEW_NODE: &str = "(the new node)";
const NEW_DOMAIN: &str = "(a new domain)";
const NEW_POD: &str = "(the new pod)";

/// A node like another, as it would join: empty, and nothing wrong with it.
fn add_node(
    cluster: &mut Cluster,
    like: NodeIdx,
    new_domain_of: Option<Symbol>,
    steps: &mut Vec<Step>,
) {
    let Some(mut fact) = cluster.node(like).fact().cloned() else {
        return;
    };
    let name = cluster.names.intern(NEW_NODE);
    fact.name = name;
    uncordon(&mut fact);
    // Taints that the control plane sets when something is wrong with a node.
    let names = &cluster.names;
    let is_trouble = |t: &Taint| names.text(t.key).starts_with("node.kubernetes.io/");
    fact.taints = fact
        .taints
        .iter()
        .filter(|t| !is_trouble(t))
        .cloned()
        .collect();
    if fact.labels.get(well_known::HOSTNAME).is_some() {
        fact.labels = fact.labels.with([(well_known::HOSTNAME, name)]);
    }
    if let Some(key) = new_domain_of {
        let value = cluster.names.intern(NEW_DOMAIN);
        fact.labels = fact.labels.with([(key, value)]);
    }
    cluster.set_node(fact);
    steps.push(Step::AddedNode(name));
}

fn add_first_node(
    cluster: &mut Cluster,
    pod: PodIdx,
    constraints: &[SpreadConstraint],
    steps: &mut Vec<Step>,
) {
    let name = cluster.names.intern(NEW_NODE);
    let domain = cluster.names.intern(NEW_DOMAIN);
    let spec = cluster.spec_of(pod);
    let keys = constraints
        .iter()
        .filter(|c| c.hard)
        .map(|c| (c.key, domain));
    let labels = Labels::new(vec![(well_known::HOSTNAME, name)]);
    let labels = labels
        .with(keys)
        .with(spec.node_affinity.node_selector.iter());
    let fact = NodeFact {
        name,
        labels,
        taints: Box::default(),
        unschedulable: false,
        allocatable: spec.requests.clone(),
        pods_max: 1,
        images: Box::default(),
    };
    cluster.set_node(fact);
    steps.push(Step::AddedNode(name));
}

fn start_pod(
    cluster: &mut Cluster,
    node: NodeIdx,
    namespace: Symbol,
    labels: &[(Symbol, Symbol)],
    steps: &mut Vec<Step>,
) {
    let node = cluster.node(node).name();
    cluster.set_pod(PodFact {
        uid: NEW_POD.into(),
        name: NEW_POD.into(),
        namespace,
        labels: Labels::new(labels.to_vec()),
        owner: None,
        terminating: false,
        history: strew_cluster::PodHistory::default(),
        node: Some(node),
        spec: PodSpec::default(),
    });
    steps.push(Step::AddedPod(NEW_POD.into()));
}
