//! Single changes of a cluster, or of the pods of a workload.

use strew_cluster::{NodeIdx, PodIdx, Policy, SpreadConstraint};
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
    /// All nodes of a domain are gone, and with them their pods.
    LoseDomain {
        /// The topology key.
        key: Symbol,
        /// The domain.
        value: Symbol,
    },
    /// A node is cordoned, and its pods but those made for it are evicted as their PodDisruptionBudgets allow it.
    DrainNode {
        /// The node.
        node: NodeIdx,
    },
    /// A node takes no new pods, and its pods get no requests while they run on, as in a zonal shift.
    Shift {
        /// The node.
        node: NodeIdx,
    },
    /// The workload of the pods gets this number of them.
    Scale {
        /// How many.
        to: usize,
    },
    /// A constraint is added.
    AddConstraint {
        /// The constraint.
        constraint: SpreadConstraint,
    },
    /// A PodDisruptionBudget allows this number of disruptions.
    AllowDisruptions {
        /// The budget's namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
        /// How many.
        allowed: i32,
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

macro_rules! kinds {
    ($(#[$about:meta])* $($kind:ident: $words:literal,)*) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ChangeKind {
            $(#[doc = $words] $kind,)*
        }

        impl ChangeKind {
            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }

            /// The kind in a few words.
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$kind => $words,)*
                }
            }
        }
    };
}

kinds! {
    /// The kinds of changes, those that do least harm first: what only this pod's own spec or more nodes change comes before
    /// what weakens a rule, and that before what stops another pod.
    Uncordon: "uncordon a node",
    Policy: "another node inclusion policy",
    Tolerate: "tolerate a taint",
    LabelNode: "label a node",
    RequestLess: "ask for less",
    FreeResources: "free resources on a node",
    AddNode: "add a node",
    AddDomain: "add a node in a new domain",
    MinDomains: "a smaller minDomains",
    MaxSkew: "a larger maxSkew",
    StartPod: "start a pod",
    ScheduleAnyway: "whenUnsatisfiable: ScheduleAnyway",
    DeletePod: "delete a pod",
    DropNodeAffinity: "drop a part of node affinity",
    DropHostPort: "drop a host port",
    DropPodAffinity: "drop a term of pod affinity",
    DropConstraint: "drop a constraint",
    DropClaim: "drop a volume",
    DropUnsupported: "drop what strew does not implement",
    LoseNode: "lose a node",
    LoseDomain: "lose a domain",
    DrainNode: "drain a node",
    Cordon: "cordon a node",
    TaintNode: "taint a node",
    UntaintNode: "take a taint off a node",
    UnlabelNode: "take a label off a node",
    MovePod: "move a pod",
    Shift: "take a node out of service",
    Scale: "scale the workload",
    AddConstraint: "add a constraint",
    AllowDisruptions: "another budget",
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
            Self::LoseDomain { .. } => ChangeKind::LoseDomain,
            Self::DrainNode { .. } => ChangeKind::DrainNode,
            Self::Shift { .. } => ChangeKind::Shift,
            Self::Scale { .. } => ChangeKind::Scale,
            Self::AddConstraint { .. } => ChangeKind::AddConstraint,
            Self::AllowDisruptions { .. } => ChangeKind::AllowDisruptions,
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
