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
    /// Which clusters belong to it.
    pub selector: SetSelector,
}

/// Which clusters belong to a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetSelector {
    /// Those labelled [`CLUSTER_SET_LABEL`] with the set's name.
    Exclusive,
    /// Those whose labels match; a missing selector matches nothing.
    Labels(Selector),
    /// A selector type that nobody knows: no placement that uses the set is decided.
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
