//! The cluster as decisions see it: nodes, pods, pod classes, and counts that are kept current.
//!
//! Speed comes from *not recounting*. Pods that no decision can tell apart share one [`PodClass`]. What decisions count is
//! a [`Census`], updated with every pod that comes or goes, with a [`strew_spread::Tally`] per topology key derived from
//! it. A count is read, never searched for.
//!
//! Reading order: [`pod_spec`], [`fact`] (the input), [`cluster`] (the tables and their updates), [`class`], [`census`],
//! [`eligibility`], [`topology`], [`node_order`], [`changes`], [`owners`], [`images`], [`volumes`].
//!
//! Absent on purpose: clocks, sockets, text parsing, and any rule of a scheduling plugin beyond what is counted.

pub mod census;
pub mod changes;
pub mod class;
pub mod cluster;
pub mod eligibility;
pub mod fact;
pub mod images;
pub mod node_order;
pub mod owners;
pub mod pod_spec;
pub mod topology;
pub mod volumes;

pub use census::{Census, CensusId, CensusKey, DomainTally, TallyId, TallyKey};
pub use changes::ChangeLog;
pub use class::{AffinityId, ClassId, LabelsId, NodeAffinityId, PodClass, SpecId, TolerationsId};
pub use cluster::{Cluster, Kept, NodeIdx, NodeRow, PodIdx, PodRow, Sweep};
pub use eligibility::{Eligibility, EligibilityId};
pub use fact::{NodeFact, PodFact, PodHistory};
pub use owners::{OwnerKind, OwnerRef};
pub use pod_spec::{
    AffinityTerm, HostPort, NodeAffinity, PodAffinity, PodClaim, PodSpec, Policy, SpreadConstraint,
    Unsupported,
};
pub use topology::{KeyId, Topology, TopologyColumn};
pub use volumes::{AttachLimits, ClaimFact, StorageClassFact, VolumeFact, Volumes};
