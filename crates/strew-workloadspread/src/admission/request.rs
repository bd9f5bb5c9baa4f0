//! The requests to admission.

use std::sync::Arc;

use strew_cluster::PodFact;
use strew_model::{Holds, Labels, Marks, Symbol};

use crate::facts::workload::Controller;
use crate::marker::Marked;

/// Identifies a request; chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request about a pod.
#[derive(Debug, Clone)]
pub struct Request {
    /// The id for its answer.
    pub id: RequestId,
    /// The operation.
    pub operation: Operation,
    /// True for a dry run: `request.dryRun`, or that of the delete options.
    pub dry_run: bool,
    /// True if it is about a subresource of the pod, such as an eviction.
    pub subresource: bool,
    /// The pod.
    pub pod: PodAsked,
}

/// The operation on a pod.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Create it.
    Create {
        /// What it asks for, for simulated scheduling; its uid is ignored. `None` if scheduling is never simulated.
        fact: Option<Box<PodFact>>,
        /// A fresh UUID, for a pod without a name.
        fresh_uid: Arc<str>,
    },
    /// Delete it. Admission never sees evictions: a budget may refuse them afterwards, and then they must not give
    /// room.
    Delete,
}

/// The pod of a request.
#[derive(Debug, Clone)]
pub struct PodAsked {
    /// Its namespace, or that of the request.
    pub namespace: Symbol,
    /// Its name; `None` if the API server has not generated it yet.
    pub name: Option<Arc<str>>,
    /// Its labels.
    pub labels: Labels,
    /// Its controller.
    pub controller: Option<Controller>,
    /// True if it counts (spec/workloadspread §2.3).
    pub active: bool,
    /// Its marker annotation.
    pub marker: Marked,
}

// === the symbols in it ===

impl Holds for Request {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            id: _,
            operation,
            dry_run: _,
            subresource: _,
            pod,
        } = self;
        pod.mark(marks);
        match operation {
            Operation::Create { fact, fresh_uid: _ } => fact.mark(marks),
            Operation::Delete => {}
        }
    }
}

impl Holds for PodAsked {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            namespace,
            name: _,
            labels,
            controller,
            active: _,
            marker: _,
        } = self;
        namespace.mark(marks);
        labels.mark(marks);
        controller.mark(marks);
    }
}
