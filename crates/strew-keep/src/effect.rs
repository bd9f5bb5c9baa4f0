//! The effects of the machine.

use strew_model::{Holds, Marks};
pub use strew_scheduler::machine::{EffectId, PodName};

use crate::facts::{Leaves, SetKey};

/// An effect. It may be carried out twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Patch the deletion cost of a pod, and with it the annotation [`OWN_COST`](crate::OWN_COST). Precondition: it has
    /// this version; another client may have written a cost since.
    SetCost {
        /// The id for its outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// The resourceVersion on which the decision is based.
        version: u64,
        /// The cost; `None`: both annotations are removed.
        cost: Option<i32>,
    },
    /// Tell why a ReplicaSet that asks for costs gets none. It has no outcome.
    Leave(SetKey, Leaves),
}

/// The outcome of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out; the pod has this resourceVersion now.
    Written(u64),
    /// The pod does not exist.
    Gone,
    /// The pod has another version.
    Conflict,
    /// It failed, or its result is unknown.
    Failed,
}

impl Holds for Effect {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::SetCost { pod, .. } => pod.namespace.mark(marks),
            Self::Leave((namespace, name), _) => {
                namespace.mark(marks);
                name.mark(marks);
            }
        }
    }
}
