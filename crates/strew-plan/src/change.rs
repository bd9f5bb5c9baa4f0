//! Single changes of a cluster or a pod, and carrying them out on a copy.

use strew_cluster::{
    Cluster, NodeFact, NodeIdx, PodFact, PodIdx, PodSpec, Policy, SpreadConstraint,
};
use strew_model::{
    Labels, NodeExpression, NodeSelectorTerm, Resources, Symbol, Taint, Toleration,
    TolerationOperator, well_known,
};
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};

/// One change that might let the pod be placed. Constraints are named by their place in the spec, or in the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The node is not cordoned any more.
    Uncordon {
        /// The node.
        node: NodeIdx,
    },
    /// A node gets a label.
    LabelNode {
        /// The node.
        node: NodeIdx,
        /// The label.
        key: Symbol,
        /// Its value.
        value: Symbol,
        /// Whether the label says where the node is: then it is the node's true place that counts.
        is_topology: bool,
    },
    /// The pod tolerates a taint.
    Tolerate {
        /// The taint.
        taint: Taint,
        /// On how many nodes it is all that keeps the pod off.
        nodes: usize,
    },
    /// A constraint's `nodeTaintsPolicy` or `nodeAffinityPolicy` is another.
    Policy {
        /// The constraint.
        constraint: usize,
        /// Whether it is the policy on taints.
        on_taints: bool,
        /// What it becomes.
        to: Policy,
    },
    /// A constraint allows more.
    MaxSkew {
        /// The constraint.
        constraint: usize,
        /// What it allows now.
        from: i32,
        /// The least that works.
        to: i32,
    },
    /// A constraint asks for fewer domains.
    MinDomains {
        /// The constraint.
        constraint: usize,
        /// What it asks for now.
        from: i32,
        /// The most that works.
        to: i32,
    },
    /// A constraint becomes `whenUnsatisfiable: ScheduleAnyway`.
    ScheduleAnyway {
        /// The constraint.
        constraint: usize,
    },
    /// A constraint goes.
    DropConstraint {
        /// The constraint.
        constraint: usize,
    },
    /// The pod asks for less.
    RequestLess {
        /// Of what.
        resource: Lacking,
        /// What it asks for now.
        from: i64,
        /// The most that fits.
        to: i64,
    },
    /// A node has more left.
    FreeResources {
        /// The node.
        node: NodeIdx,
        /// What is short there now.
        short: Vec<Shortage>,
    },
    /// A pod goes away.
    DeletePod {
        /// The pod.
        pod: PodIdx,
    },
    /// A further node like one that is there: empty, not cordoned, without taints of Kubernetes' own.
    AddNodeLike {
        /// The node that it is like.
        like: NodeIdx,
        /// The label that says where it is, and its value.
        place: Option<(Symbol, Symbol)>,
    },
    /// A further node in a domain that does not exist yet, otherwise as [`AddNodeLike`](Self::AddNodeLike).
    AddNodeInNewDomain {
        /// The node that it is like.
        like: NodeIdx,
        /// The label that has a new value.
        key: Symbol,
    },
    /// A first node, with all that the pod asks for.
    AddFirstNode,
    /// A pair of `spec.nodeSelector` goes.
    DropNodeSelector {
        /// The label.
        key: Symbol,
        /// Its value.
        value: Symbol,
    },
    /// An expression of a required node affinity term goes.
    DropNodeExpression {
        /// The term's place.
        term: usize,
        /// The expression.
        expression: NodeExpression,
    },
    /// All required node affinity terms go.
    DropNodeAffinity,
    /// A required term of affinity (or anti-affinity) to pods goes.
    DropPodAffinity {
        /// The term's place among the required ones of its kind.
        term: usize,
        /// Whether it is one of anti-affinity.
        anti: bool,
    },
    /// A pod with these labels runs on a node.
    StartPod {
        /// The node.
        node: NodeIdx,
        /// Its namespace.
        namespace: Symbol,
        /// Its labels.
        labels: Vec<(Symbol, Symbol)>,
    },
    /// The pod does without a port of the host.
    DropHostPort {
        /// The port's number.
        port: i32,
    },
    /// The pod does without a volume that stands for a claim.
    DropClaim {
        /// The claim's place.
        claim: usize,
    },
    /// The pod does without the need that strew does not implement.
    DropUnsupported {
        /// The need's place.
        need: usize,
    },
}

/// The kinds of changes, those that cost least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Uncordon a node.
    Uncordon,
    /// Label a node.
    LabelNode,
    /// Tolerate a taint.
    Tolerate,
    /// Another node inclusion policy.
    Policy,
    /// A larger maxSkew.
    MaxSkew,
    /// A smaller minDomains.
    MinDomains,
    /// Ask for less.
    RequestLess,
    /// Free resources on a node.
    FreeResources,
    /// Delete a pod.
    DeletePod,
    /// Start a pod.
    StartPod,
    /// Add a node where there are some.
    AddNode,
    /// Add a node where there is none.
    AddDomain,
    /// Drop a part of the node selector or of required node affinity.
    DropNodeAffinity,
    /// Drop a host port.
    DropHostPort,
    /// Drop a required term of affinity to pods.
    DropPodAffinity,
    /// Make a constraint soft.
    ScheduleAnyway,
    /// Drop a constraint.
    DropConstraint,
    /// Drop a volume.
    DropClaim,
    /// Drop a need that strew does not implement.
    DropUnsupported,
}

impl ChangeKind {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncordon => "Uncordon",
            Self::LabelNode => "LabelNode",
            Self::Tolerate => "Tolerate",
            Self::Policy => "Policy",
            Self::MaxSkew => "MaxSkew",
            Self::MinDomains => "MinDomains",
            Self::RequestLess => "RequestLess",
            Self::FreeResources => "FreeResources",
            Self::DeletePod => "DeletePod",
            Self::StartPod => "StartPod",
            Self::AddNode => "AddNode",
            Self::AddDomain => "AddDomain",
            Self::DropNodeAffinity => "DropNodeAffinity",
            Self::DropHostPort => "DropHostPort",
            Self::DropPodAffinity => "DropPodAffinity",
            Self::ScheduleAnyway => "ScheduleAnyway",
            Self::DropConstraint => "DropConstraint",
            Self::DropClaim => "DropClaim",
            Self::DropUnsupported => "DropUnsupported",
        }
    }

    /// The kind in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Uncordon => "uncordon a node",
            Self::LabelNode => "label a node",
            Self::Tolerate => "tolerate a taint",
            Self::Policy => "another node inclusion policy",
            Self::MaxSkew => "a larger maxSkew",
            Self::MinDomains => "a smaller minDomains",
            Self::RequestLess => "ask for less",
            Self::FreeResources => "free resources on a node",
            Self::DeletePod => "delete a pod",
            Self::StartPod => "start a pod",
            Self::AddNode => "add a node",
            Self::AddDomain => "add a node in a new domain",
            Self::DropNodeAffinity => "drop a part of node affinity",
            Self::DropHostPort => "drop a host port",
            Self::DropPodAffinity => "drop a term of pod affinity",
            Self::ScheduleAnyway => "whenUnsatisfiable: ScheduleAnyway",
            Self::DropConstraint => "drop a constraint",
            Self::DropClaim => "drop a volume",
            Self::DropUnsupported => "drop what strew does not implement",
        }
    }
}

/// Where the pod goes after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// To a node that is there.
    Node(NodeIdx),
    /// To the node that the change adds.
    NewNode,
}

impl Change {
    /// What kind of change it is.
    pub fn kind(&self) -> ChangeKind {
        match self {
            Self::Uncordon { .. } => ChangeKind::Uncordon,
            Self::LabelNode { .. } => ChangeKind::LabelNode,
            Self::Tolerate { .. } => ChangeKind::Tolerate,
            Self::Policy { .. } => ChangeKind::Policy,
            Self::MaxSkew { .. } => ChangeKind::MaxSkew,
            Self::MinDomains { .. } => ChangeKind::MinDomains,
            Self::RequestLess { .. } => ChangeKind::RequestLess,
            Self::FreeResources { .. } => ChangeKind::FreeResources,
            Self::DeletePod { .. } => ChangeKind::DeletePod,
            Self::StartPod { .. } => ChangeKind::StartPod,
            Self::AddFirstNode | Self::AddNodeLike { .. } => ChangeKind::AddNode,
            Self::AddNodeInNewDomain { .. } => ChangeKind::AddDomain,
            Self::DropNodeSelector { .. }
            | Self::DropNodeExpression { .. }
            | Self::DropNodeAffinity => ChangeKind::DropNodeAffinity,
            Self::DropHostPort { .. } => ChangeKind::DropHostPort,
            Self::DropPodAffinity { .. } => ChangeKind::DropPodAffinity,
            Self::ScheduleAnyway { .. } => ChangeKind::ScheduleAnyway,
            Self::DropConstraint { .. } => ChangeKind::DropConstraint,
            Self::DropClaim { .. } => ChangeKind::DropClaim,
            Self::DropUnsupported { .. } => ChangeKind::DropUnsupported,
        }
    }

    /// Carries the change out, and returns what undoes it.
    pub(crate) fn apply(
        &self,
        cluster: &mut Cluster,
        pod: PodIdx,
        constraints: &[SpreadConstraint],
    ) -> Undo {
        match self {
            Self::Uncordon { node }
            | Self::LabelNode { node, .. }
            | Self::FreeResources { node, .. } => self.change_node(cluster, *node),
            Self::DeletePod { pod } => {
                let Some(node) = cluster.pod(*pod).node else {
                    return Undo::Nothing;
                };
                cluster.unbind(*pod);
                Undo::Bind(*pod, node)
            }
            Self::AddNodeLike { like, .. } => add_node(cluster, *like, None),
            Self::AddNodeInNewDomain { like, key } => add_node(cluster, *like, Some(*key)),
            Self::AddFirstNode => add_first_node(cluster, pod, constraints),
            Self::StartPod {
                node,
                namespace,
                labels,
            } => start_pod(cluster, *node, *namespace, labels),
            _ => {
                let before = cluster.spec_of(pod).clone();
                let mut spec = before.clone();
                self.change_spec(&mut spec, constraints);
                cluster.respec(pod, &spec);
                Undo::Respec(Box::new(before))
            }
        }
    }

    fn change_node(&self, cluster: &mut Cluster, node: NodeIdx) -> Undo {
        let Some(before) = cluster.node(node).fact().cloned() else {
            return Undo::Nothing;
        };
        let mut fact = before.clone();
        match self {
            Self::Uncordon { .. } => uncordon(&mut fact),
            Self::LabelNode { key, value, .. } => {
                fact.labels = fact.labels.with([(*key, *value)]);
            }
            Self::FreeResources { short, .. } => {
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
            _ => {}
        }
        cluster.set_node(fact);
        Undo::SetNode(Box::new(before))
    }

    fn change_spec(&self, spec: &mut PodSpec, constraints: &[SpreadConstraint]) {
        if let Some(index) = self.constraint() {
            // A default becomes a constraint of the pod's own, with the selector that was deduced: the same verdicts.
            let mut own = constraints.to_vec();
            match self {
                Self::Policy { on_taints, to, .. } if *on_taints => {
                    own[index].node_taints_policy = *to;
                }
                Self::Policy { to, .. } => own[index].node_affinity_policy = *to,
                Self::MaxSkew { to, .. } => own[index].max_skew = *to,
                Self::MinDomains { to, .. } => own[index].min_domains = Some(*to),
                Self::ScheduleAnyway { .. } => {
                    own[index].hard = false;
                    own[index].min_domains = None;
                }
                _ => {
                    own.remove(index);
                }
            }
            spec.spread = own.into();
            return;
        }
        match self {
            Self::Tolerate { taint, .. } => push(&mut spec.tolerations, toleration(taint)),
            Self::RequestLess {
                resource, from, to, ..
            } => {
                set_amount(&mut spec.requests, *resource, *to);
                match resource {
                    Lacking::Cpu => spec.scored.0 -= from - to,
                    Lacking::Memory => spec.scored.1 -= from - to,
                    _ => {}
                }
            }
            Self::DropNodeSelector { key, .. } => {
                let pairs = spec.node_affinity.node_selector.iter();
                let rest = pairs.filter(|(k, _)| k != key).collect();
                spec.node_affinity.node_selector = Labels::new(rest);
            }
            Self::DropNodeExpression { term, expression } => {
                drop_expression(&mut spec.node_affinity.terms, *term, expression);
            }
            Self::DropNodeAffinity => spec.node_affinity.terms = None,
            Self::DropPodAffinity { term, anti: true } => {
                remove(&mut spec.affinity.required_anti, *term);
            }
            Self::DropPodAffinity { term, anti: false } => {
                remove(&mut spec.affinity.required, *term);
            }
            Self::DropHostPort { port } => {
                let rest = spec.host_ports.iter().filter(|p| p.port != *port);
                spec.host_ports = rest.copied().collect();
            }
            Self::DropClaim { claim } => remove(&mut spec.claims, *claim),
            Self::DropUnsupported { need } => remove(&mut spec.unsupported, *need),
            _ => {}
        }
    }

    /// The constraint that is changed.
    pub fn constraint(&self) -> Option<usize> {
        match *self {
            Self::Policy { constraint, .. }
            | Self::MaxSkew { constraint, .. }
            | Self::MinDomains { constraint, .. }
            | Self::ScheduleAnyway { constraint }
            | Self::DropConstraint { constraint } => Some(constraint),
            _ => None,
        }
    }

    /// Whether undoing it does not restore the order of nodes: a node that changes zones and comes back stands last.
    pub(crate) fn reorders_nodes(&self) -> bool {
        matches!(self, Self::LabelNode { .. })
    }
}

/// What takes a change back.
pub(crate) enum Undo {
    Nothing,
    SetNode(Box<NodeFact>),
    RemoveNode(Symbol),
    Bind(PodIdx, NodeIdx),
    Respec(Box<PodSpec>),
    RemovePod,
}

impl Undo {
    pub(crate) fn undo(self, cluster: &mut Cluster, pod: PodIdx) {
        match self {
            Self::Nothing => {}
            Self::SetNode(fact) => {
                cluster.set_node(*fact);
            }
            Self::RemoveNode(name) => cluster.remove_node(name),
            Self::Bind(pod, node) => cluster.bind(pod, node),
            Self::Respec(spec) => cluster.respec(pod, &spec),
            Self::RemovePod => cluster.remove_pod(NEW_POD),
        }
    }
}

/// Names of what is made up, which no object can have.
const NEW_NODE: &str = "(the new node)";
const NEW_DOMAIN: &str = "(a new domain)";
const NEW_POD: &str = "(the new pod)";

/// The toleration of just this taint.
fn toleration(taint: &Taint) -> Toleration {
    Toleration {
        key: Some(taint.key),
        operator: TolerationOperator::Equal,
        value: taint.value,
        effect: Some(taint.effect),
    }
}

fn uncordon(fact: &mut NodeFact) {
    fact.unschedulable = false;
    let rest = fact.taints.iter().filter(|t| **t != Taint::UNSCHEDULABLE);
    fact.taints = rest.cloned().collect();
}

/// A node like another, as it would join: empty, and nothing wrong with it.
fn add_node(cluster: &mut Cluster, like: NodeIdx, new_domain_of: Option<Symbol>) -> Undo {
    let Some(mut fact) = cluster.node(like).fact().cloned() else {
        return Undo::Nothing;
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
    Undo::RemoveNode(name)
}

fn add_first_node(cluster: &mut Cluster, pod: PodIdx, constraints: &[SpreadConstraint]) -> Undo {
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
    Undo::RemoveNode(name)
}

fn start_pod(
    cluster: &mut Cluster,
    node: NodeIdx,
    namespace: Symbol,
    labels: &[(Symbol, Symbol)],
) -> Undo {
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
    Undo::RemovePod
}

fn set_amount(amounts: &mut Resources, resource: Lacking, amount: i64) {
    match resource {
        Lacking::Pods => {}
        Lacking::Cpu => amounts.cpu_milli = amount,
        Lacking::Memory => amounts.memory = amount,
        Lacking::EphemeralStorage => amounts.ephemeral_storage = amount,
        Lacking::Scalar(name) => amounts.set_scalar(name, amount),
    }
}

fn drop_expression(
    terms: &mut Option<Box<[NodeSelectorTerm]>>,
    term: usize,
    dropped: &NodeExpression,
) {
    let Some(NodeSelectorTerm::AllOf { expressions, .. }) =
        terms.as_mut().and_then(|t| t.get_mut(term))
    else {
        return;
    };
    let rest = expressions.iter().filter(|e| *e != dropped);
    *expressions = rest.cloned().collect();
}

fn push<T>(list: &mut Box<[T]>, item: T) {
    let mut items = std::mem::take(list).into_vec();
    items.push(item);
    *list = items.into();
}

fn remove<T>(list: &mut Box<[T]>, place: usize) {
    let mut items = std::mem::take(list).into_vec();
    if place < items.len() {
        items.remove(place);
    }
    *list = items.into();
}
