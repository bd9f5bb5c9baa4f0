//! The fields of a ManagedCluster that placement reads. Source: spec/placement §1.3.

use strew_model::{Holds, Instant, Labels, Marks, Symbol};

/// A cluster of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFact {
    /// Its name.
    pub name: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// `status.clusterClaims` as name and value. If a name is repeated, the last one counts.
    pub claims: Labels,
    /// `spec.taints`.
    pub taints: Box<[ClusterTaint]>,
    /// `cpu`, in thousandths.
    pub cpu: Amounts,
    /// `memory`, in bytes.
    pub memory: Amounts,
    /// True if it is being deleted: it is no candidate then.
    pub deleting: bool,
    /// Stands for the whole object as CEL reads it: two different objects have different numbers.
    pub raw: u64,
}

impl ClusterFact {
    /// A cluster with nothing but a name.
    pub fn named(name: Symbol) -> Self {
        Self {
            name,
            labels: Labels::default(),
            claims: Labels::default(),
            taints: Box::default(),
            cpu: Amounts::default(),
            memory: Amounts::default(),
            deleting: false,
            raw: 0,
        }
    }
}

/// Amounts of a resource; `None` if the status does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// `status.allocatable`.
    pub allocatable: Option<i64>,
    /// `status.capacity`.
    pub capacity: Option<i64>,
}

/// A taint of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterTaint {
    /// Its key.
    pub key: Symbol,
    /// Its value; may be empty.
    pub value: Symbol,
    /// Its effect.
    pub effect: TaintEffect,
    /// `timeAdded`; `None` if it is zero, which means long ago.
    pub added: Option<Instant>,
}

/// The effect of a cluster's taint on placements that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// The cluster is not selected, and is removed from decisions that hold it.
    NoSelect,
    /// No effect: upstream neither filters nor scores by it.
    PreferNoSelect,
    /// The cluster is not selected, but stays in decisions that hold it.
    NoSelectIfNew,
}

// === the symbols in it ===

impl Holds for ClusterFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            name,
            labels,
            claims,
            taints,
            cpu: _,
            memory: _,
            deleting: _,
            raw: _,
        } = self;
        name.mark(marks);
        labels.mark(marks);
        claims.mark(marks);
        taints.mark(marks);
    }
}

impl Holds for ClusterTaint {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            key,
            value,
            effect: _,
            added: _,
        } = self;
        (*key, *value).mark(marks);
    }
}
