//! The inputs of the placement machine.

use std::sync::Arc;

use strew_model::Symbol;

use super::effect::EffectId;
use crate::facts::cluster::ClusterFact;
use crate::facts::cluster_set::ClusterSetFact;
use crate::facts::decision::DecisionFact;
use crate::facts::placement::PlacementFact;
use crate::facts::scores::ScoresFact;

/// An input. Facts are complete and idempotent, and come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A cluster was added or changed.
    ClusterSet(ClusterFact),
    /// A cluster was deleted.
    ClusterGone(Symbol),
    /// A ClusterSet was added or changed.
    ClusterSetSet(ClusterSetFact),
    /// A ClusterSet was deleted.
    ClusterSetGone(Symbol),
    /// A binding was added.
    BindingSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name, which is that of the set.
        name: Symbol,
    },
    /// A binding was deleted.
    BindingGone {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// An AddOnPlacementScore was added or changed.
    ScoresSet(ScoresFact),
    /// An AddOnPlacementScore was deleted.
    ScoresGone {
        /// Its namespace: the cluster.
        cluster: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// A Placement was added or changed.
    PlacementSet(Box<PlacementFact>),
    /// A Placement was deleted.
    PlacementGone {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// A PlacementDecision was added or changed.
    DecisionSet(DecisionFact),
    /// A PlacementDecision was deleted.
    DecisionGone {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// The outcome of an effect.
    Outcome {
        /// The effect.
        effect: EffectId,
        /// The outcome.
        outcome: Outcome,
    },
    /// Only time has passed.
    Tick,
}

/// The outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The write succeeded, and the object has this resourceVersion.
    Ok {
        /// The resourceVersion as a number that grows.
        revision: u64,
    },
    /// The precondition failed.
    Conflict(Arc<str>),
    /// The object does not exist.
    Gone,
    /// The write failed, or its result is unknown.
    Failed(Arc<str>),
}
