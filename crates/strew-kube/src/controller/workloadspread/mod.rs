//! The controller of WorkloadSpreads on a real API server: [`strew_runtime::workloadspread`] between sockets.
//!
//! Source: spec/workloadspread §5.

pub mod metrics;

use std::sync::Arc;

use strew_model::Interner;
use strew_runtime::watch::Served;
use strew_runtime::workloadspread::{Spreads, watches};
use strew_workloadspread::controller::Limits;

use crate::work::{Links, Worker};

/// What the controller begins with.
pub(super) struct Origin {
    pub(super) hostname: String,
    /// Where the ConfigMap is that names custom kinds.
    pub(super) namespace: String,
    pub(super) served: Arc<Served>,
}

/// A controller that begins by listing what there is.
pub(super) fn begin(links: Links, of: Origin) -> Worker<Spreads> {
    let limits = Limits::production();
    let machine = Spreads::new(Interner::new(), limits, of.hostname, of.served);
    Worker::new(machine, watches(&of.namespace), links)
}
