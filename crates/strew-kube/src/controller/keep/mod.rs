//! The controller that keeps ReplicaSets spread, on a real API server: the machine of [`strew_runtime::keep`] with
//! watches and requests.

pub mod metrics;

use strew_keep::Limits;
use strew_model::Interner;
use strew_runtime::keep::{Keeping, watches};
use strew_scheduler::Profile;

use crate::work::{Links, Worker};

/// Starts the controller, which lists its objects first. Pods without constraints have the default ones of
/// kube-scheduler.
pub(super) fn begin(links: Links) -> Worker<Keeping> {
    let profiles = vec![Profile::default()];
    let machine = Keeping::new(Interner::new(), profiles, Limits::production());
    Worker::new(machine, watches(), links)
}
