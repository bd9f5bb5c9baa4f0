//! Which controllers a cluster has.

use strew_controllers::Controller;
use strew_controllers::daemon_set::DaemonSetController;
use strew_controllers::stateful_set::{StatefulSetController, StatefulSetSettings};

/// All controllers of kube-controller-manager that the simulation knows.
pub fn controllers() -> Vec<Box<dyn Controller>> {
    let stateful_sets = StatefulSetSettings {
        max_unavailable: false,
    };
    vec![
        Box::new(StatefulSetController::new(stateful_sets)),
        Box::new(DaemonSetController::new()),
    ]
}
