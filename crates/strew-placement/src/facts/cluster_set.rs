//! ManagedClusterSets and their bindings. Source: spec/placement §1.4.

use std::sync::Arc;

use strew_model::{Holds, Marks, Selector, Symbol};

/// The label by which a cluster belongs to one exclusive set.
pub const CLUSTER_SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";

/// A set of clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSetFact {
    /// Its name.
    pub name: Symbol,
    /// The clusters that belong to it.
    pub selector: SetSelector,
}

/// The rule for the clusters that belong to a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetSelector {
    /// The clusters labelled [`CLUSTER_SET_LABEL`] with the set's name.
    Exclusive,
    /// The clusters whose labels match; a missing selector matches nothing.
    Labels(Selector),
    /// An unknown selector type: placements that use the set are not decided.
    Unknown(Arc<str>),
}

impl Holds for ClusterSetFact {
    fn mark(&self, marks: &mut Marks) {
        self.name.mark(marks);
        match &self.selector {
            SetSelector::Labels(selector) => selector.mark(marks),
            SetSelector::Exclusive | SetSelector::Unknown(_) => {}
        }
    }
}
