//! A pod's spec, with the fields that decisions read.

use strew_model::{
    Holds, Interner, Labels, Marks, NodeSelectorTerm, Resources, Selector, Symbol, Toleration,
};

/// The deciding part of a pod's spec. Equal specs are stored once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PodSpec {
    /// `spec.schedulerName`.
    pub scheduler_name: Symbol,
    /// `spec.priority`, or 0.
    pub priority: i32,
    /// True if `preemptionPolicy` is `Never`: the pod preempts no other pods.
    pub never_preempts: bool,
    /// The requests that filters check (spec/scheduler §3.8).
    pub requests: Resources,
    /// CPU (milli) and memory (bytes) for the score of `NodeResourcesFit`: containers without a request count with 100m
    /// and 200Mi, and pod-level requests are ignored (a quirk of v1.36.3).
    pub scored: (i64, i64),
    /// The resources that it uses on its node.
    pub used: Resources,
    /// CPU and memory that it uses for scores: containers without a request count with 100m and 200Mi.
    pub used_scored: (i64, i64),
    /// Required node affinity.
    pub node_affinity: NodeAffinity,
    /// Preferred node affinity: weight and term.
    pub preferred_nodes: Box<[(i32, NodeSelectorTerm)]>,
    /// Its tolerations.
    pub tolerations: Box<[Toleration]>,
    /// Its host ports.
    pub host_ports: Box<[HostPort]>,
    /// Normalized images of its init containers, containers and image volumes.
    pub images: Box<[Symbol]>,
    /// The number of its init containers and containers.
    pub containers: u32,
    /// Its own topology spread constraints, in the order of the spec.
    pub spread: Box<[SpreadConstraint]>,
    /// Affinity to other pods.
    pub affinity: PodAffinity,
    /// `spec.schedulingGates`.
    pub gates: Box<[Symbol]>,
    /// Its volumes with a PersistentVolumeClaim, in the order of the spec.
    pub claims: Box<[PodClaim]>,
    /// Needs that strew does not implement: such a pod stays Pending with that reason.
    pub unsupported: Box<[Unsupported]>,
}

/// Required node affinity: `spec.nodeSelector` and the required terms. Both must hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeAffinity {
    /// Labels that the node needs.
    pub node_selector: Labels,
    /// One of these terms must match; an empty list matches no node.
    pub terms: Option<Box<[NodeSelectorTerm]>>,
}

impl NodeAffinity {
    /// True if a node with this name and these labels meets it. Source: spec/scheduler §0.
    pub fn matches(&self, name: Symbol, labels: &Labels, names: &Interner) -> bool {
        let any = |terms: &[NodeSelectorTerm]| terms.iter().any(|t| t.matches(name, labels, names));
        labels.contains_all(&self.node_selector) && self.terms.as_deref().is_none_or(any)
    }

    /// True if nothing is required.
    pub fn is_none(&self) -> bool {
        self.node_selector.is_empty() && self.terms.is_none()
    }
}

/// A host port, which only one pod on a node can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// `hostIP`; the symbol of `0.0.0.0` stands for every address, and `any_ip` must be set accordingly.
    pub ip: Symbol,
    /// True if `ip` is the wildcard.
    pub any_ip: bool,
    /// TCP, UDP or SCTP.
    pub protocol: Symbol,
    /// The number.
    pub port: i32,
}

impl HostPort {
    /// True if both cannot be on one node. Source: spec/scheduler §3.7.
    pub fn conflicts_with(&self, other: &HostPort) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.any_ip || other.any_ip || self.ip == other.ip)
    }
}

/// A topology spread constraint. Defaults that explanations distinguish from given values stay absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpreadConstraint {
    /// Positive.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub key: Symbol,
    /// `DoNotSchedule` (true) or `ScheduleAnyway`.
    pub hard: bool,
    /// The pods of the namespace that count.
    pub selector: Selector,
    /// Positive; 1 by default.
    pub min_domains: Option<i32>,
    /// Whether required node affinity affects which nodes count. Default: Honor.
    pub node_affinity_policy: Policy,
    /// Whether untolerated taints affect which nodes count. Default: Ignore.
    pub node_taints_policy: Policy,
    /// Label keys whose values on the incoming pod are added to the selector.
    pub match_label_keys: Box<[Symbol]>,
}

/// A node inclusion policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nodes that fail the test do not count.
    Honor,
    /// Nodes are not tested.
    Ignore,
}

/// Affinity and anti-affinity to other pods.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct PodAffinity {
    /// Terms of which all must hold.
    pub required: Box<[AffinityTerm]>,
    /// Terms of which none may hold.
    pub required_anti: Box<[AffinityTerm]>,
    /// Weight (negative for anti-affinity) and term.
    pub preferred: Box<[(i32, AffinityTerm)]>,
}

impl PodAffinity {
    /// True if there are no terms.
    pub fn is_none(&self) -> bool {
        self.required.is_empty() && self.required_anti.is_empty() && self.preferred.is_empty()
    }
}

/// An affinity term: the matching pods, counted per value of a node label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AffinityTerm {
    /// The node label.
    pub key: Symbol,
    /// The pods.
    pub selector: Selector,
    /// The listed namespaces.
    pub namespaces: Box<[Symbol]>,
    /// Namespaces by their labels; `Nothing` if absent. If it is absent and no namespace is listed: the pod's own.
    pub namespace_selector: Selector,
}

impl AffinityTerm {
    /// True if the term applies only to the namespace of its pod.
    pub fn is_own_namespace(&self) -> bool {
        self.namespaces.is_empty() && self.namespace_selector == Selector::Nothing
    }
}

/// A volume of a pod with a PersistentVolumeClaim of its namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PodClaim {
    /// The volume's name in the pod.
    pub volume: Symbol,
    /// The claim's name; `None` for a generic ephemeral volume, whose claim is made for this pod and named
    /// `POD-VOLUME`. So pods of a workload still share one class.
    pub named: Option<Symbol>,
}

impl PodClaim {
    /// The name of the claim for a pod with this name.
    pub fn claim_name(&self, pod: &str, names: &Interner) -> String {
        match self.named {
            Some(claim) => names.text(claim).to_owned(),
            None => format!("{pod}-{}", names.text(self.volume)),
        }
    }
}

/// A need that strew does not implement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Unsupported {
    /// A claim that is bound when its first pod is placed: the volume, the claim and its storage class.
    UnboundClaim(Symbol, Symbol, Option<Symbol>),
    /// An unbound claim that no controller binds: the volume and the claim.
    UnattendedClaim(Symbol, Symbol),
    /// A volume of a kind that only one node may use at a time (GCE PD, EBS, iSCSI, RBD), and the volume's name.
    ExclusiveDisk(Symbol),
    /// An in-tree disk whose number per node is limited, and the volume's name.
    CountedDisk(Symbol),
    /// Dynamic resource allocation, and the claim's name.
    ResourceClaim(Symbol),
    /// A pod group that must be scheduled as a whole.
    PodGroup(Symbol),
    /// An invalid selector, and its field.
    BadSelector(Symbol),
}

// === the symbols in it ===

impl Holds for PodSpec {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            scheduler_name,
            priority: _,
            never_preempts: _,
            requests,
            scored: _,
            used,
            used_scored: _,
            node_affinity,
            preferred_nodes,
            tolerations,
            host_ports,
            images,
            containers: _,
            spread,
            affinity,
            gates,
            claims,
            unsupported,
        } = self;
        scheduler_name.mark(marks);
        requests.mark(marks);
        used.mark(marks);
        node_affinity.mark(marks);
        preferred_nodes.mark(marks);
        tolerations.mark(marks);
        host_ports.mark(marks);
        images.mark(marks);
        spread.mark(marks);
        affinity.mark(marks);
        gates.mark(marks);
        claims.mark(marks);
        unsupported.mark(marks);
    }
}

impl Holds for NodeAffinity {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            node_selector,
            terms,
        } = self;
        node_selector.mark(marks);
        terms.mark(marks);
    }
}

impl Holds for HostPort {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            ip,
            any_ip: _,
            protocol,
            port: _,
        } = self;
        ip.mark(marks);
        protocol.mark(marks);
    }
}

impl Holds for SpreadConstraint {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            max_skew: _,
            key,
            hard: _,
            selector,
            min_domains: _,
            node_affinity_policy: _,
            node_taints_policy: _,
            match_label_keys,
        } = self;
        key.mark(marks);
        selector.mark(marks);
        match_label_keys.mark(marks);
    }
}

impl Holds for PodAffinity {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            required,
            required_anti,
            preferred,
        } = self;
        required.mark(marks);
        required_anti.mark(marks);
        preferred.mark(marks);
    }
}

impl Holds for AffinityTerm {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            selector,
            namespaces,
            namespace_selector,
        } = self;
        key.mark(marks);
        selector.mark(marks);
        namespaces.mark(marks);
        namespace_selector.mark(marks);
    }
}

impl Holds for PodClaim {
    fn mark(&self, marks: &mut Marks) {
        let Self { volume, named } = self;
        volume.mark(marks);
        named.mark(marks);
    }
}

impl Holds for Unsupported {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::UnboundClaim(volume, claim, class) => {
                (*volume, *claim).mark(marks);
                class.mark(marks);
            }
            Self::UnattendedClaim(volume, claim) => (*volume, *claim).mark(marks),
            Self::ExclusiveDisk(name)
            | Self::CountedDisk(name)
            | Self::ResourceClaim(name)
            | Self::PodGroup(name)
            | Self::BadSelector(name) => name.mark(marks),
        }
    }
}
