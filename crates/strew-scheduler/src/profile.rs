//! A profile: enabled plugins, weights and arguments.
//!
//! Source: spec/scheduler §2.10 (the default profile of v1.36.3), §1.5 (default constraints), §3.8 (scoring).

use std::fmt;

use strew_cluster::{Policy, SpreadConstraint};
use strew_model::{NodeSelectorTerm, ResourceName, Selector, Symbol, well_known};

macro_rules! plugins {
    ($($(#[$doc:meta])* $plugin:ident,)*) => {
        /// The deciding plugins of the default profile, in kube-scheduler's order, and the legacy one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum PluginId {
            $($(#[$doc])* $plugin,)*
        }

        impl PluginId {
            /// All plugins, in the order in which they run.
            pub const ALL: [Self; [$(Self::$plugin,)*].len()] = [$(Self::$plugin,)*];

            /// kube-scheduler's name of the plugin.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$plugin => stringify!($plugin),)*
                }
            }
        }
    };
}

plugins! {
    /// Pods with scheduling gates are not tried.
    SchedulingGates,
    /// Refuses cordoned nodes.
    NodeUnschedulable,
    /// `spec.nodeName`.
    NodeName,
    /// Taints.
    TaintToleration,
    /// Node selector and affinity.
    NodeAffinity,
    /// Host ports.
    NodePorts,
    /// Free resources for the pod's requests.
    NodeResourcesFit,
    /// Claims that only one pod may use.
    VolumeRestrictions,
    /// The number of volumes that a driver attaches to a node.
    NodeVolumeLimits,
    /// Claims.
    VolumeBinding,
    /// Volumes in zones.
    VolumeZone,
    /// Topology spread constraints, own and default ones.
    PodTopologySpread,
    /// Affinity to other pods.
    InterPodAffinity,
    /// Dynamic resource allocation.
    DynamicResources,
    /// Features that kubelets declare.
    NodeDeclaredFeatures,
    /// Pods that are scheduled as a group.
    GangScheduling,
    /// Even use of resources.
    NodeResourcesBalancedAllocation,
    /// Images that are already there.
    ImageLocality,
    /// The spreading score before default constraints (spec/scheduler §6).
    SelectorSpread,
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which choices count if kube-scheduler's are only historical.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// Decisions, tie rule and quirks of kube-scheduler v1.36.3.
    #[default]
    V1_36,
    /// strew's own choices; the docs list each in the table of differences.
    Strew,
}

/// How one of several best nodes is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TieRule {
    /// The first in pre-order of the binary heap over the feasible nodes, as v1.36.3 (spec/scheduler §2.5).
    #[default]
    Upstream136,
    /// The smallest name, byte by byte.
    FirstName,
    /// A random one, drawn from this seed.
    Random(u64),
}

/// The order in which feasible nodes are found. It decides ties under [`TieRule::Upstream136`], and which nodes a
/// sampled search finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FilterOrder {
    /// In visiting order, as with `parallelism: 1`.
    #[default]
    Visiting,
    /// In the order in which parallel workers finish them.
    Raced {
        /// `parallelism`: the number of workers.
        workers: u32,
        /// The seed of the race.
        seed: u64,
    },
}

/// The constraints of pods without their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DefaultConstraints {
    /// `defaultingType: System`: hostname maxSkew 3 and zone maxSkew 5, both soft; nodes may lack the labels.
    #[default]
    System,
    /// `defaultingType: List`: exactly these, with selectors still to be deduced; nodes need all of the labels.
    List(Vec<SpreadConstraint>),
}

impl DefaultConstraints {
    /// The constraints, with selectors still to be deduced.
    pub fn constraints(&self) -> Vec<SpreadConstraint> {
        let soft = |key, max_skew| SpreadConstraint {
            max_skew,
            key,
            hard: false,
            selector: Selector::Nothing,
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        };
        match self {
            Self::System => vec![soft(well_known::HOSTNAME, 3), soft(well_known::ZONE, 5)],
            Self::List(list) => list.clone(),
        }
    }
}

/// Arguments of `NodeResourcesFit`. Source: spec/scheduler §3.8, §5.3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FitArgs {
    /// Extended resources that Filter ignores.
    pub ignored_resources: Vec<Symbol>,
    /// Prefixes (before the `/`) of extended resources that Filter ignores.
    pub ignored_resource_groups: Vec<String>,
    /// The scoring strategy.
    pub strategy: ScoringStrategy,
    /// The scored resources, each with its weight (1 to 100).
    pub resources: Vec<(ResourceName, i64)>,
}

/// How `NodeResourcesFit` scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScoringStrategy {
    /// Prefers emptier nodes.
    LeastAllocated,
    /// Prefers fuller nodes.
    MostAllocated,
    /// Points (utilization 0 to 100, ascending; score 0 to 10), interpolated linearly.
    RequestedToCapacityRatio(Vec<(i64, i64)>),
}

/// Argument of `NodeAffinity`: affinity of all pods of the profile besides their own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddedAffinity {
    /// One of these terms must match.
    pub required: Option<Vec<NodeSelectorTerm>>,
    /// Weight and term.
    pub preferred: Vec<(i32, NodeSelectorTerm)>,
}

/// Arguments of `DefaultPreemption`. Source: spec/scheduler §3.16, §5.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreemptionArgs {
    /// The least share of the nodes to try, in percent.
    pub candidate_nodes_percentage_min: u8,
    /// The least number of nodes to try.
    pub candidate_nodes_min: u32,
}

/// Feature gates that decisions depend on; all on is v1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerGates {
    /// `MinDomainsInPodTopologySpread`: off, minDomains counts as 1.
    pub min_domains: bool,
    /// `NodeInclusionPolicyInPodTopologySpread`: off, node affinity is honoured and taints are ignored.
    pub node_inclusion_policy: bool,
    /// `MatchLabelKeysInPodTopologySpread`: off, match label keys are ignored.
    pub match_label_keys: bool,
}

/// One scheduler profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// `schedulerName` of the pods that it decides for.
    pub scheduler_name: String,
    /// Percentage of nodes to examine, at least 100 nodes; `None`: all. 0 is kube-scheduler's adaptive choice.
    pub percentage_of_nodes_to_score: Option<u8>,
    /// The arguments of `DefaultPreemption`; `None` if it is not enabled.
    pub preemption: Option<PreemptionArgs>,
    /// Arguments of `NodeResourcesFit`.
    pub fit: FitArgs,
    /// Argument of `NodeResourcesBalancedAllocation`: the resources to balance.
    pub balanced: Vec<ResourceName>,
    /// Argument of `NodeAffinity`.
    pub added_affinity: AddedAffinity,
    /// Feature gates.
    pub gates: SchedulerGates,
    /// Filter plugins in order: the first that refuses gives the node's reason.
    pub filters: Vec<PluginId>,
    /// Score plugins in order, with their weights.
    pub scores: Vec<(PluginId, i64)>,
    /// Arguments of `PodTopologySpread`.
    pub default_constraints: DefaultConstraints,
    /// Argument of `InterPodAffinity`: the weight of a required affinity term of an existing pod.
    pub hard_pod_affinity_weight: i32,
    /// Argument of `InterPodAffinity`.
    pub ignore_preferred_terms_of_existing_pods: bool,
    /// Which choices count.
    pub compat: Compat,
    /// How one of several best nodes is chosen.
    pub ties: TieRule,
    /// The order in which nodes pass the filters.
    pub filter_order: FilterOrder,
    /// True if claims that wait for their first pod (`WaitForFirstConsumer`) are bound to a volume reachable from the
    /// pod's node, as in the simulation. Otherwise such a pod stays Pending: the scheduler itself does not bind claims.
    pub binds_claims: bool,
}

impl Default for Profile {
    /// The default profile of kube-scheduler v1.36.3.
    fn default() -> Self {
        use PluginId::*;
        Self {
            scheduler_name: "default-scheduler".to_owned(),
            percentage_of_nodes_to_score: None,
            preemption: Some(PreemptionArgs {
                candidate_nodes_percentage_min: 10,
                candidate_nodes_min: 100,
            }),
            fit: FitArgs {
                ignored_resources: Vec::new(),
                ignored_resource_groups: Vec::new(),
                strategy: ScoringStrategy::LeastAllocated,
                resources: vec![(ResourceName::Cpu, 1), (ResourceName::Memory, 1)],
            },
            balanced: vec![ResourceName::Cpu, ResourceName::Memory],
            added_affinity: AddedAffinity::default(),
            gates: SchedulerGates {
                min_domains: true,
                node_inclusion_policy: true,
                match_label_keys: true,
            },
            filters: vec![
                NodeUnschedulable,
                NodeName,
                TaintToleration,
                NodeAffinity,
                NodePorts,
                NodeResourcesFit,
                VolumeRestrictions,
                NodeVolumeLimits,
                VolumeBinding,
                VolumeZone,
                PodTopologySpread,
                InterPodAffinity,
                DynamicResources,
                NodeDeclaredFeatures,
            ],
            scores: vec![
                (TaintToleration, 3),
                (NodeAffinity, 2),
                (NodeResourcesFit, 1),
                (VolumeBinding, 1),
                (PodTopologySpread, 2),
                (InterPodAffinity, 2),
                (DynamicResources, 2),
                (NodeResourcesBalancedAllocation, 1),
                (ImageLocality, 1),
            ],
            default_constraints: DefaultConstraints::System,
            hard_pod_affinity_weight: 1,
            ignore_preferred_terms_of_existing_pods: false,
            compat: Compat::V1_36,
            ties: TieRule::Upstream136,
            filter_order: FilterOrder::Visiting,
            binds_claims: false,
        }
    }
}

impl Profile {
    /// The default profile from before default constraints: with `SelectorSpread`, weight 1, instead of them.
    pub fn with_selector_spread() -> Self {
        let mut profile = Self {
            default_constraints: DefaultConstraints::List(Vec::new()),
            ..Self::default()
        };
        profile.scores.push((PluginId::SelectorSpread, 1));
        profile
    }

    /// This profile for a simulation: kube-scheduler's random choices are drawn from `seed`. Filters run in `workers`
    /// workers; with one, and with [`Compat::Strew`], nodes are checked in visiting order.
    pub fn drawn_from(self, seed: u64, workers: u32) -> Self {
        let is_raced = workers > 1 && self.compat == Compat::V1_36;
        Self {
            ties: match self.ties {
                TieRule::Random(_) => TieRule::Random(seed),
                rule => rule,
            },
            filter_order: match is_raced {
                true => FilterOrder::Raced { workers, seed },
                false => FilterOrder::Visiting,
            },
            ..self
        }
    }

    /// True if a filter plugin is enabled.
    pub fn filters_with(&self, plugin: PluginId) -> bool {
        self.filters.contains(&plugin)
    }

    /// The weight of a score plugin; 0 if it is not enabled.
    pub fn weight(&self, plugin: PluginId) -> i64 {
        self.scores
            .iter()
            .find(|&&(p, _)| p == plugin)
            .map_or(0, |&(_, w)| w)
    }
}
