//! What is asked of admission.

use std::sync::Arc;

use strew_cluster::PodFact;
use strew_model::{Holds, Labels, Marks, Symbol};

use crate::facts::workload::Controller;
use crate::marker::Marked;

/// Names a request, as who asks has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A request about a pod.
#[derive(Debug, Clone)]
pub struct Request {
    /// What its answer is told under.
    pub id: RequestId,
    /// What is to be done.
    pub operation: Operation,
    /// Whether nothing is to be done in earnest: `request.dryRun`, or that of the delete options.
    pub dry_run: bool,
    /// Whether it is about a subresource of the pod, such as an eviction.
    pub subresource: bool,
    /// The pod.
    pub pod: PodAsked,
}

/// What is to be done with a pod.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Create it.
    Create {
        /// What it asks for, for simulated scheduling; its uid does not matter. `None` where that is never done.
        fact: Option<Box<PodFact>>,
        /// A fresh UUID, for a pod without a name.
        fresh_uid: Arc<str>,
    },
    /// Delete it. Of evictions admission is told nothing: a budget may refuse them afterwards, and then they must give no
    /// room.
    Delete,
}

/// The pod of a request.
#[derive(Debug, Clone)]
pub struct PodAsked {
    /// Its namespace, or that of the request.
    pub namespace: Symbol,
    /// Its name; `None` where the API server has still to make one up.
    pub name: Option<Arc<str>>,
    /// Its labels.
    pub labels: Labels,
    /// Its controller.
    pub controller: Option<Controller>,
    /// Whether it counts (spec/workloadspread §2.3).
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
