//! Deletion costs so that a ReplicaSet stays spread when it is scaled down.
//!
//! kube-scheduler spreads pods when they are created, and nothing does when they are deleted: a ReplicaSet's controller
//! thins the fullest nodes and then takes any pod, whatever its zone. It deletes pods with a lower deletion cost first,
//! though, so costs can be the order in which [`strew_spread::removal`] removes pods: after each deletion the workload's
//! constraints are kept, wherever that is possible.
//!
//! A workload asks for it with the label [`LABEL`], on itself or on its namespace. Costs of others are never changed:
//! one such cost, or the marker of a WorkloadSpread, on any pod leaves the whole ReplicaSet alone.
//!
//! Reading order: [`facts`] (input), [`costs`] (which costs make an order), [`machine`] (when they are written),
//! [`effect`].

pub mod costs;
pub mod effect;
pub mod facts;
pub mod machine;

pub use effect::{Effect, EffectId, Outcome, PodName};
pub use facts::{CostsDecision, Input, Leaves, Limits, SetKey, Wish};
pub use machine::Keeper;

/// The label of a ReplicaSet, a Deployment or a namespace: `true` or `false`. The nearest one decides, in this order.
pub const LABEL: &str = "keep.strew.dev/spread";

/// The annotation of a pod with the deletion cost that strew wrote. A cost that differs from it is another's.
pub const OWN_COST: &str = "keep.strew.dev/cost";
