//! All that placement can see.

use std::sync::Arc;

use strew_model::Symbol;

use super::effect::EffectId;
use crate::facts::cluster::ClusterFact;
use crate::facts::cluster_set::ClusterSetFact;
use crate::facts::decision::DecisionFact;
use crate::facts::placement::PlacementFact;
use crate::facts::scores::ScoresFact;

/// What the world tells. Facts are whole and idempotent; they may come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A cluster is there, and like this.
    ClusterSet(ClusterFact),
    /// A cluster is gone.
    ClusterGone(Symbol),
    /// A set of clusters is there, and like this.
    ClusterSetSet(ClusterSetFact),
    /// A set of clusters is gone.
    ClusterSetGone(Symbol),
    /// A binding is there.
    BindingSet {
        /// Its namespace.
        namespace: Symbol,
        /// Its name, which is that of the set.
        name: Symbol,
    },
    /// A binding is gone.
    BindingGone {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// An AddOnPlacementScore is there, and like this.
    ScoresSet(ScoresFact),
    /// An AddOnPlacementScore is gone.
    ScoresGone {
        /// Its namespace: the cluster.
        cluster: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// A Placement is there, and like this.
    PlacementSet(Box<PlacementFact>),
    /// A Placement is gone.
    PlacementGone {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// A PlacementDecision is there, and like this.
    DecisionSet(DecisionFact),
    /// A PlacementDecision is gone.
    DecisionGone {
        /// Its namespace.
        namespace: Symbol,
        /// Its name.
        name: Symbol,
    },
    /// What became of an effect.
    Outcome {
        /// Which effect.
        effect: EffectId,
        /// What became of it.
        outcome: Outcome,
    },
    /// Nothing but time.
    Tick,
}

/// What became of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out; the object's resourceVersion is this now.
    Ok {
        /// As a number that grows.
        revision: u64,
    },
    /// Its precondition did not hold.
    Conflict(Arc<str>),
    /// Its object is not there.
    Gone,
    /// It was not carried out, or nobody knows.
    Failed(Arc<str>),
}
