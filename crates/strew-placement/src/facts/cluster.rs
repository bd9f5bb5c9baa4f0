//! A ManagedCluster, as far as placement reads it. Source: spec/placement §1.3.

use strew_model::{Holds, Instant, Labels, Marks, Symbol};

/// A cluster of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFact {
    /// Its name.
    pub name: Symbol,
    /// Its labels.
    pub labels: Labels,
    /// `status.clusterClaims` as name and value; of a repeated name the last counts.
    pub claims: Labels,
    /// `spec.taints`.
    pub taints: Box<[ClusterTaint]>,
    /// `cpu`, in thousandths.
    pub cpu: Amounts,
    /// `memory`, in bytes.
    pub memory: Amounts,
    /// Whether it is being deleted: no candidate any more.
    pub deleting: bool,
    /// Stands for the whole object, all that CEL can read: another object, another number.
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

/// How much of a resource there is; `None` where the status does not say.
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
    /// Its value, often empty.
    pub value: Symbol,
    /// What it does.
    pub effect: TaintEffect,
    /// `timeAdded`; `None` where it is zero, and thus long ago.
    pub added: Option<Instant>,
}

/// What a cluster's taint does to placements that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// The cluster is not selected, and leaves the decisions that hold it.
    NoSelect,
    /// Nothing: upstream neither filters by it nor scores it.
    PreferNoSelect,
    /// The cluster is not selected, but stays in the decisions that hold it.
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
