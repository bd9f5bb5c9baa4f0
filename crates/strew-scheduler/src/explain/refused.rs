//! Each refused node with all causes and their numbers.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use strew_cluster::{CensusId, Cluster, HostPort, KeyId, NodeIdx, PodIdx};
use strew_model::{Symbol, Taint};
use strew_spread::{DomainIdx, SkewCheck};

use super::volumes::{self, VolumeCause};
use crate::engine::{Engine, Evaluation, NodeRefusals};
use crate::plan::ClassPlan;
use crate::plugins::inter_pod_affinity::{self, Counted};
use crate::plugins::node_affinity::{self, Gap};
use crate::plugins::node_resources_fit::{self, Shortage};
use crate::plugins::pod_topology_spread::filter::{Verdict, verdict};
use crate::plugins::{node_ports, pod_volumes::VolumePlugin, taint_toleration};
use crate::preemption::nominations::{Barred, Nominations};
use crate::profile::PluginId;
use crate::status::{Reason, Refusal, Unfit};

/// A node that refuses the pod.
#[derive(Debug, Clone)]
pub struct RefusedNode {
    /// The node.
    pub node: NodeIdx,
    /// The refusal of the first plugin, which kube-scheduler reports.
    pub first: Refusal,
    /// Every cause, of every plugin, in the order of plugins.
    pub causes: Vec<Cause>,
}

/// A cause that keeps the pod off a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The node is cordoned.
    Cordoned,
    /// A taint that the pod does not tolerate.
    Taint(Taint),
    /// Node selector or affinity, with the parts that the node does not meet.
    NodeAffinity(Gap),
    /// Required affinity names other nodes.
    NarrowedOut,
    /// A host port is taken.
    Port {
        /// The requested port.
        port: HostPort,
        /// The pods that hold it.
        holders: Blockers,
    },
    /// Not enough of a resource.
    Shortage(Shortage),
    /// The node lacks the label of a hard constraint.
    NoTopologyLabel {
        /// The constraint's index in the spec, or in the defaults.
        constraint: usize,
        /// The label.
        key: Symbol,
    },
    /// The skew would be too large.
    Skew {
        /// The constraint's index in the spec, or in the defaults.
        constraint: usize,
        /// The node's domain.
        domain: DomainIdx,
        /// The comparison.
        check: SkewCheck,
    },
    /// A required affinity term matches no pod in the node's domain.
    PodAffinity {
        /// The term's index among the required ones.
        term: usize,
        /// Its topology key.
        key: Symbol,
        /// True if the node has that label.
        labelled: bool,
    },
    /// A required anti-affinity term of the pod matches pods in the node's domain.
    AntiAffinity {
        /// The term's index among the required ones.
        term: usize,
        /// Its topology key.
        key: Symbol,
        /// The matching pods.
        found: Blockers,
    },
    /// Pods in the node's domain have required anti-affinity to this pod.
    ExistingAntiAffinity {
        /// Their terms' topology key.
        key: Symbol,
        /// These pods.
        found: Blockers,
    },
    /// A volume of the pod.
    Volume(VolumeCause),
    /// Room on the node is reserved for nominated pods: a plugin refuses when they are added.
    Nominated {
        /// The plugin.
        plugin: PluginId,
        /// Its reason.
        reason: Reason,
        /// The nominated pods.
        pods: Blockers,
    },
    /// Any other refusal.
    Other(Refusal),
}

impl Cause {
    /// The plugin of this cause.
    pub fn plugin(&self) -> PluginId {
        match self {
            Self::Cordoned => PluginId::NodeUnschedulable,
            Self::Taint(_) => PluginId::TaintToleration,
            Self::NodeAffinity(_) | Self::NarrowedOut => PluginId::NodeAffinity,
            Self::Port { .. } => PluginId::NodePorts,
            Self::Shortage(_) => PluginId::NodeResourcesFit,
            Self::NoTopologyLabel { .. } | Self::Skew { .. } => PluginId::PodTopologySpread,
            Self::PodAffinity { .. }
            | Self::AntiAffinity { .. }
            | Self::ExistingAntiAffinity { .. } => PluginId::InterPodAffinity,
            Self::Volume(cause) => cause.plugin(),
            Self::Nominated { plugin, .. } => *plugin,
            Self::Other(refusal) => refusal.plugin,
        }
    }

    /// kube-scheduler's reason.
    pub fn reason(&self) -> Option<Reason> {
        Some(match self {
            Self::Cordoned => Reason::Cordoned,
            Self::Taint(_) => Reason::UntoleratedTaint,
            Self::NodeAffinity(_) => Reason::NodeAffinity,
            Self::NarrowedOut => Reason::NarrowedOut(PluginId::NodeAffinity),
            Self::Port { .. } => Reason::Ports,
            Self::Shortage(shortage) => shortage.reason(),
            Self::NoTopologyLabel { .. } => Reason::MissingTopologyLabel,
            Self::Skew { .. } => Reason::Skew,
            Self::PodAffinity { .. } => Reason::PodAffinity,
            Self::AntiAffinity { .. } => Reason::PodAntiAffinity,
            Self::ExistingAntiAffinity { .. } => Reason::ExistingAntiAffinity,
            Self::Volume(VolumeCause::InUse { .. }) => Reason::ClaimInUse,
            Self::Volume(VolumeCause::Limit { .. }) => Reason::VolumeLimit,
            Self::Volume(VolumeCause::NodeAffinity { .. }) => Reason::VolumeNodeAffinity,
            Self::Volume(VolumeCause::NoVolume { .. }) => Reason::NoVolumeToBind,
            Self::Volume(VolumeCause::Zone { .. }) => Reason::VolumeZone,
            Self::Nominated { reason, .. } => reason.clone(),
            Self::Other(refusal) => return refusal.reasons.first().cloned(),
        })
    }

    /// The hard constraint of this cause.
    pub fn constraint(&self) -> Option<usize> {
        match *self {
            Self::NoTopologyLabel { constraint, .. } | Self::Skew { constraint, .. } => {
                Some(constraint)
            }
            _ => None,
        }
    }

    /// True if the pod can never use the node, regardless of other pods: cordoned, tainted, or excluded by affinity.
    pub fn is_unusable(&self) -> bool {
        matches!(
            self,
            Self::Cordoned
                | Self::Taint(_)
                | Self::NodeAffinity(_)
                | Self::NarrowedOut
                | Self::Volume(VolumeCause::NodeAffinity { .. } | VolumeCause::Zone { .. })
        )
    }
}

/// Pods that prevent a placement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blockers {
    /// The first of them, at most [`Blockers::NAMED_MAX`].
    pub named: SmallVec<[PodIdx; 4]>,
    /// Their number.
    pub count: usize,
}

impl Blockers {
    /// The most pods that are named.
    pub const NAMED_MAX: usize = 4;

    pub(super) fn add(&mut self, pod: PodIdx) {
        self.count += 1;
        if self.named.len() < Self::NAMED_MAX {
            self.named.push(pod);
        }
    }
}

/// Every node that refuses the pod, with all causes.
pub(crate) fn refused_nodes(
    engine: &mut Engine,
    cluster: &mut Cluster,
    pod: PodIdx,
    nominations: &Nominations,
    evaluation: &Evaluation,
) -> Vec<RefusedNode> {
    let firsts: FxHashMap<NodeIdx, &Refusal> = match &evaluation.refused {
        Some(Unfit::EveryNode(refusals)) => refusals.iter().collect(),
        _ => FxHashMap::default(),
    };
    let refusals = engine.all_refusals(cluster, pod, nominations);
    let class = cluster.pod(pod).class;
    let plan = engine.plan(cluster, class);
    let mut look = Look {
        cluster,
        plan,
        pod,
        around: FxHashMap::default(),
    };
    let of_node = |NodeRefusals {
                       node,
                       beside,
                       alone,
                   }: NodeRefusals| {
        let mut causes = Vec::new();
        for refusal in &alone {
            look.causes(node, refusal, &mut causes);
        }
        if let Some(barred) = &beside {
            kept_room(barred, &mut causes);
        }
        let first = match firsts.get(&node) {
            Some(&first) => first.clone(),
            None => alone.into_iter().next()?,
        };
        Some(RefusedNode {
            node,
            first,
            causes,
        })
    };
    refusals.into_iter().filter_map(of_node).collect()
}

/// Adds the cause of a node that refuses the pod only because of pods nominated to it.
fn kept_room(barred: &Barred, out: &mut Vec<Cause>) {
    let mut pods = Blockers::default();
    barred.nominated.iter().for_each(|&pod| pods.add(pod));
    let plugin = barred.refusal.plugin;
    for reason in &barred.refusal.reasons {
        let is_it = |c: &Cause| c.plugin() == plugin && c.reason().as_ref() == Some(reason);
        if !out.iter().any(is_it) {
            out.push(Cause::Nominated {
                plugin,
                reason: reason.clone(),
                pods: pods.clone(),
            });
        }
    }
}

/// The inputs for finding causes.
struct Look<'a> {
    cluster: &'a Cluster,
    plan: &'a ClassPlan,
    pod: PodIdx,
    /// Per census and topology key, the pods counted in each domain.
    around: FxHashMap<(CensusId, KeyId), Vec<Blockers>>,
}

impl Look<'_> {
    /// Adds the causes of one plugin's refusal.
    fn causes(&mut self, node: NodeIdx, refusal: &Refusal, out: &mut Vec<Cause>) {
        let before = out.len();
        match refusal.plugin {
            PluginId::NodeUnschedulable => out.push(Cause::Cordoned),
            PluginId::TaintToleration => self.taints(node, out),
            PluginId::NodeAffinity => self.node_affinity(node, refusal, out),
            PluginId::NodePorts => self.ports(node, out),
            PluginId::NodeResourcesFit => {
                let requests = &self.cluster.spec_of(self.pod).requests;
                let lacking = node_resources_fit::shortages(self.cluster.node(node), requests);
                out.extend(lacking.into_iter().map(Cause::Shortage));
            }
            PluginId::PodTopologySpread => self.spread(node, out),
            PluginId::InterPodAffinity => self.affinity(node, out),
            PluginId::VolumeRestrictions => self.volumes(node, VolumePlugin::Restrictions, out),
            PluginId::NodeVolumeLimits => self.volumes(node, VolumePlugin::Limits, out),
            PluginId::VolumeBinding => self.volumes(node, VolumePlugin::Binding, out),
            PluginId::VolumeZone => self.volumes(node, VolumePlugin::Zone, out),
            PluginId::SchedulingGates
            | PluginId::NodeName
            | PluginId::DynamicResources
            | PluginId::NodeDeclaredFeatures
            | PluginId::GangScheduling
            | PluginId::NodeResourcesBalancedAllocation
            | PluginId::ImageLocality
            | PluginId::SelectorSpread => {}
        }
        // A cordoned node also has a taint: the cause is listed once.
        if out.len() == before && out.first() != Some(&Cause::Cordoned) {
            out.push(Cause::Other(refusal.clone()));
        }
    }

    fn volumes(&self, node: NodeIdx, plugin: VolumePlugin, out: &mut Vec<Cause>) {
        let found = volumes::causes(self.cluster, self.pod, node, plugin);
        out.extend(found.into_iter().map(Cause::Volume));
    }

    fn taints(&self, node: NodeIdx, out: &mut Vec<Cause>) {
        let Some(fact) = self.cluster.node(node).fact() else {
            return;
        };
        let tolerations = &self.cluster.spec_of(self.pod).tolerations;
        let cordoned = out.contains(&Cause::Cordoned);
        let taints = taint_toleration::untolerated(fact, tolerations);
        let said = |t: &&Taint| !(cordoned && **t == Taint::UNSCHEDULABLE);
        out.extend(taints.filter(said).cloned().map(Cause::Taint));
    }

    fn node_affinity(&self, node: NodeIdx, refusal: &Refusal, out: &mut Vec<Cause>) {
        if let [Reason::NarrowedOut(_)] = refusal.reasons[..] {
            out.push(Cause::NarrowedOut);
        } else if let Some(fact) = self.cluster.node(node).fact() {
            let affinity = &self.cluster.spec_of(self.pod).node_affinity;
            let gap = node_affinity::gap(affinity, fact, &self.cluster.names);
            out.push(Cause::NodeAffinity(gap));
        }
    }

    fn ports(&self, node: NodeIdx, out: &mut Vec<Cause>) {
        let row = self.cluster.node(node);
        for &port in node_ports::conflicts(row, &self.cluster.spec_of(self.pod).host_ports) {
            let mut holders = Blockers::default();
            for &other in row.pods() {
                let held = &self.cluster.spec_of(other).host_ports;
                if held.iter().any(|taken| port.conflicts_with(taken)) {
                    holders.add(other);
                }
            }
            out.push(Cause::Port { port, holders });
        }
    }

    fn spread(&self, node: NodeIdx, out: &mut Vec<Cause>) {
        for hard in &self.plan.spread.hard {
            let column = self.cluster.column(hard.key);
            match verdict(self.cluster, hard, self.cluster.tally(hard.tally), node) {
                Verdict::NoDomain => out.push(Cause::NoTopologyLabel {
                    constraint: hard.index,
                    key: column.key(),
                }),
                Verdict::Checked(check) if !check.allowed() => {
                    out.extend(column.domain(node).map(|domain| Cause::Skew {
                        constraint: hard.index,
                        domain,
                        check,
                    }));
                }
                Verdict::Checked(_) => {}
            }
        }
    }

    fn affinity(&mut self, node: NodeIdx, out: &mut Vec<Cause>) {
        let (cluster, plan) = (self.cluster, &self.plan.affinity);
        let key = |counted: &Counted| cluster.column(counted.key).key();
        if !inter_pod_affinity::wanted_are_there(cluster, plan, node) {
            for (term, wanted) in plan.wanted.iter().enumerate() {
                if !inter_pod_affinity::is_there(cluster, wanted, node) {
                    out.push(Cause::PodAffinity {
                        term,
                        key: key(wanted),
                        labelled: cluster.column(wanted.key).domain(node).is_some(),
                    });
                }
            }
        }
        for (term, unwanted) in plan.unwanted.iter().enumerate() {
            if inter_pod_affinity::is_there(cluster, unwanted, node) {
                let found = self.around(unwanted, node);
                out.push(Cause::AntiAffinity {
                    term,
                    key: key(unwanted),
                    found,
                });
            }
        }
        for unwelcome in &plan.unwelcome {
            if inter_pod_affinity::is_there(cluster, unwelcome, node) {
                let found = self.around(unwelcome, node);
                out.push(Cause::ExistingAntiAffinity {
                    key: key(unwelcome),
                    found,
                });
            }
        }
    }

    /// The pods that a census counts in the node's domain.
    fn around(&mut self, counted: &Counted, node: NodeIdx) -> Blockers {
        let cluster = self.cluster;
        let Some(domain) = cluster.column(counted.key).domain(node) else {
            return Blockers::default();
        };
        let by_domain = self
            .around
            .entry((counted.tally.census, counted.key))
            .or_insert_with(|| by_domain(cluster, counted));
        by_domain.get(domain.index()).cloned().unwrap_or_default()
    }
}

/// The pods that a census counts in each domain, in the order of the table of pods.
fn by_domain(cluster: &Cluster, counted: &Counted) -> Vec<Blockers> {
    let counts = |&(c, n): &(CensusId, i32)| c == counted.tally.census && n > 0;
    let classes = cluster.tables().populated();
    let classes = classes.filter(|(_, class)| class.counted_in.iter().any(counts));
    let mut pods: Vec<_> = classes
        .flat_map(|(_, class)| class.members.clone())
        .collect();
    pods.sort_unstable();
    let column = cluster.column(counted.key);
    let mut found = vec![Blockers::default(); column.len()];
    for (pod, on) in pods {
        if let Some(domain) = column.domain(on) {
            found[domain.index()].add(pod);
        }
    }
    found
}
