//! OCM's objects as written: group `cluster.open-cluster-management.io`.
//!
//! Fields are as in OCM's CRDs, with texts unparsed; only strew has `topologyWeights`, `minGroups` and `maxGroups` in
//! `spreadConstraints[]`. Source: spec/placement §1, §3.1, §3.8, §3.10; the OCM spread proposal, "API Spec".

mod cluster;
mod cluster_set;
mod decision;
mod object;
mod placement;
mod policy;
mod scores;
mod selector;

pub use cluster::{
    ClientConfig, ClusterClaim, ManagedCluster, ManagedClusterSpec, ManagedClusterStatus,
    ManagedClusterVersion, ManagedNamespace, Taint,
};
pub use cluster_set::{
    ClusterSetSelector, ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterSetBindingSpec,
    ManagedClusterSetBindingStatus, ManagedClusterSetSpec, ManagedClusterSetStatus,
    ManagedNamespaceConfig,
};
pub use decision::{ClusterDecision, PlacementDecision, PlacementDecisionStatus};
pub use placement::{
    DecisionGroup, DecisionGroupStatus, DecisionStrategy, GroupStrategy, Placement, PlacementSpec,
    PlacementStatus, Toleration,
};
pub use policy::{
    AddOnScore, PrioritizerConfig, PrioritizerPolicy, ScoreCoordinate, SpreadConstraintsTerm,
    SpreadPolicy, TopologyWeight,
};
pub use scores::{AddOnPlacementScore, AddOnPlacementScoreItem, AddOnPlacementScoreStatus};
pub use selector::{
    ClusterCelSelector, ClusterClaimSelector, ClusterPredicate, ClusterSelector,
    GroupClusterSelector,
};

/// The API group of all of them.
pub const GROUP: &str = "cluster.open-cluster-management.io";
/// The label of a PlacementDecision that names its Placement.
pub const PLACEMENT_LABEL: &str = "cluster.open-cluster-management.io/placement";
/// The label of a PlacementDecision that tells the index of its group.
pub const GROUP_INDEX_LABEL: &str = "cluster.open-cluster-management.io/decision-group-index";
/// The label of a PlacementDecision that tells the name of its group.
pub const GROUP_NAME_LABEL: &str = "cluster.open-cluster-management.io/decision-group-name";
/// The annotation that makes the controller leave a Placement alone.
pub const DISABLE_ANNOTATION: &str =
    "cluster.open-cluster-management.io/experimental-scheduling-disable";
/// Ours: weights of topologies.
pub const TOPOLOGY_WEIGHTS_ANNOTATION: &str = "strew.dev/topology-weights";
/// Ours: how many topologies are used.
pub const TOPOLOGY_GROUPS_ANNOTATION: &str = "strew.dev/topology-groups";
/// Ours: of a Placement, how many replicas its clusters get together; of a PlacementDecision, how many each cluster gets.
pub const REPLICAS_ANNOTATION: &str = "strew.dev/replicas";
/// Ours: what replicas are divided by.
pub const REPLICA_DIVISION_ANNOTATION: &str = "strew.dev/replica-division";
/// Ours: what becomes of the decisions of a Placement that cannot be decided.
pub const ON_MISCONFIGURED_ANNOTATION: &str = "strew.dev/on-misconfigured";
/// Ours: whether clusters may leave for the sake of evenness.
pub const SPREAD_REBALANCE_ANNOTATION: &str = "strew.dev/spread-rebalance";
/// All of ours.
pub const ANNOTATIONS: [&str; 6] = [
    TOPOLOGY_WEIGHTS_ANNOTATION,
    TOPOLOGY_GROUPS_ANNOTATION,
    REPLICAS_ANNOTATION,
    REPLICA_DIVISION_ANNOTATION,
    ON_MISCONFIGURED_ANNOTATION,
    SPREAD_REBALANCE_ANNOTATION,
];
