//! Single changes of a cluster, or of the pods of a workload.

use strew_cluster::{NodeIdx, PodIdx, Policy};
use strew_model::{Effect, NodeExpression, Symbol, Taint};
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};

/// One change of a cluster. Those of "the pod" are made to the pods that the plan is about; constraints are named by
/// their index in the spec, or in the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A node is gone, and with it its pods.
    LoseNode {
        /// The node.
        node: NodeIdx,
    },
    /// A node is cordoned, and its pods but those made for it leave. PodDisruptionBudgets are not asked.
    DrainNode {
        /// The node.
        node: NodeIdx,
    },
    /// A node takes no new pods.
    Cordon {
        /// The node.
        node: NodeIdx,
    },
    /// A node gets a taint; pods that do not tolerate a `NoExecute` leave.
    TaintNode {
        /// The node.
        node: NodeIdx,
        /// The taint.
        taint: Taint,
    },
    /// A node loses its taints of a key.
    UntaintNode {
        /// The node.
        node: NodeIdx,
        /// The key.
        key: Symbol,
        /// Only those with this effect; `None`: with any.
        effect: Option<Effect>,
    },
    /// A node loses a label.
    UnlabelNode {
        /// The node.
        node: NodeIdx,
        /// The label.
        key: Symbol,
    },
    /// A pod goes to another node, whether it fits there or not.
    MovePod {
        /// The pod.
        pod: PodIdx,
        /// The node.
        to: NodeIdx,
    },
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

/// The kinds of changes, those that do least harm first: what only this pod's own spec or more nodes change comes before
/// what weakens a rule, and that before what stops another pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKind {
    /// Uncordon a node.
    Uncordon,
    /// Another node inclusion policy.
    Policy,
    /// Tolerate a taint.
    Tolerate,
    /// Label a node.
    LabelNode,
    /// Ask for less.
    RequestLess,
    /// Free resources on a node.
    FreeResources,
    /// Add a node where there are some.
    AddNode,
    /// Add a node where there is none.
    AddDomain,
    /// A smaller minDomains.
    MinDomains,
    /// A larger maxSkew.
    MaxSkew,
    /// Start a pod.
    StartPod,
    /// Make a constraint soft.
    ScheduleAnyway,
    /// Delete a pod.
    DeletePod,
    /// Drop a part of the node selector or of required node affinity.
    DropNodeAffinity,
    /// Drop a host port.
    DropHostPort,
    /// Drop a required term of affinity to pods.
    DropPodAffinity,
    /// Drop a constraint.
    DropConstraint,
    /// Drop a volume.
    DropClaim,
    /// Drop a need that strew does not implement.
    DropUnsupported,
    /// Lose a node.
    LoseNode,
    /// Drain a node.
    DrainNode,
    /// Cordon a node.
    Cordon,
    /// Taint a node.
    TaintNode,
    /// Take a taint off a node.
    UntaintNode,
    /// Take a label off a node.
    UnlabelNode,
    /// Move a pod.
    MovePod,
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
            Self::LoseNode => "LoseNode",
            Self::DrainNode => "DrainNode",
            Self::Cordon => "Cordon",
            Self::TaintNode => "TaintNode",
            Self::UntaintNode => "UntaintNode",
            Self::UnlabelNode => "UnlabelNode",
            Self::MovePod => "MovePod",
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
            Self::LoseNode => "lose a node",
            Self::DrainNode => "drain a node",
            Self::Cordon => "cordon a node",
            Self::TaintNode => "taint a node",
            Self::UntaintNode => "take a taint off a node",
            Self::UnlabelNode => "take a label off a node",
            Self::MovePod => "move a pod",
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
            Self::LoseNode { .. } => ChangeKind::LoseNode,
            Self::DrainNode { .. } => ChangeKind::DrainNode,
            Self::Cordon { .. } => ChangeKind::Cordon,
            Self::TaintNode { .. } => ChangeKind::TaintNode,
            Self::UntaintNode { .. } => ChangeKind::UntaintNode,
            Self::UnlabelNode { .. } => ChangeKind::UnlabelNode,
            Self::MovePod { .. } => ChangeKind::MovePod,
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
}
