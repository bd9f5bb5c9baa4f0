//! Which controllers a cluster has.

use strew_controllers::{Controller, DeploymentController, ReplicaSetController};

/// All controllers of kube-controller-manager that the simulation knows.
pub fn controllers() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(DeploymentController::new()),
        Box::new(ReplicaSetController::new()),
        Box::new(ReplicaSetController::for_replication_controllers()),
    ]
}
