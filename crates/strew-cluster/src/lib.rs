//! The cluster for decisions: nodes, pods, pod classes, and counts that are kept current.
//!
//! Speed comes from *not recounting*. Pods that no decision can tell apart share one [`PodClass`]. A [`Census`] counts
//! pods per node and is updated with every bound or removed pod; a [`strew_spread::Tally`] per topology key is derived
//! from it. Decisions read counts and never search for pods.
//!
//! Reading order: [`pod_spec`], [`fact`] (the input), [`index`], [`cluster`] (the tables and their updates), [`class`],
//! [`census`], [`eligibility`], [`topology`], [`node_order`], [`changes`], [`owners`], [`images`], [`volumes`],
//! [`scale_down`] (which pods a ReplicaSet deletes).
//!
//! This crate has no clocks, sockets or text parsing, and no rule of a scheduling plugin except what it counts.

pub mod census;
pub mod changes;
pub mod class;
pub mod cluster;
pub mod eligibility;
pub mod fact;
pub mod images;
pub mod index;
pub mod node_order;
pub mod owners;
pub mod pod_spec;
pub mod scale_down;
pub mod topology;
pub mod volumes;

pub use census::{Census, CensusId, CensusKey, DomainTally, TallyId, TallyKey};
pub use changes::ChangeLog;
pub use class::{AffinityId, ClassId, LabelsId, NodeAffinityId, PodClass, SpecId, TolerationsId};
pub use cluster::{Cluster, Draft, Kept, NodeRow, PodRow, Sweep};
pub use eligibility::{Eligibility, EligibilityId};
pub use fact::{NodeFact, PodFact, PodHistory};
pub use index::{NodeIdx, PodIdx};
pub use owners::{OwnerKind, OwnerRef};
pub use pod_spec::{
    AffinityTerm, HostPort, NodeAffinity, PodAffinity, PodClaim, PodSpec, Policy, SpreadConstraint,
    Unsupported,
};
pub use topology::{KeyId, Topology, TopologyColumn};
pub use volumes::{AttachLimits, ClaimFact, StorageClassFact, VolumeFact, Volumes};
