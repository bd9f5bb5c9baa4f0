//! The controller of WorkloadSpreads on a real API server: the machine of [`strew_runtime::workloadspread`] with
//! watches and requests.
//!
//! Source: spec/workloadspread §5.

pub mod metrics;

use std::sync::Arc;

use strew_model::Interner;
use strew_runtime::watch::Served;
use strew_runtime::workloadspread::{Spreads, watches};
use strew_workloadspread::controller::Limits;

use crate::work::{Links, Worker};

/// The inputs of [`begin`].
pub(super) struct Origin {
    pub(super) hostname: String,
    /// The namespace of the ConfigMap that names custom kinds.
    pub(super) namespace: String,
    pub(super) served: Arc<Served>,
}

/// Starts the controller, which lists its objects first.
pub(super) fn begin(links: Links, of: Origin) -> Worker<Spreads> {
    let limits = Limits::production();
    let machine = Spreads::new(Interner::new(), limits, of.hostname, of.served);
    Worker::new(machine, watches(&of.namespace), links)
}
