//! The controllers of a simulated cluster.

use strew_controllers::daemon_set::DaemonSetController;
use strew_controllers::disruption::Disruption;
use strew_controllers::garbage_collector::GarbageCollector;
use strew_controllers::node_lifecycle::{self, NodeLifecycle};
use strew_controllers::pod_gc::{self, PodGc};
use strew_controllers::quota::Quotas;
use strew_controllers::stateful_set::{StatefulSetController, StatefulSetSettings};
use strew_controllers::taint_eviction::TaintEviction;
use strew_controllers::{
    AutoscalerController, ClaimBinder, CloneSetController, Controller, CronJobController,
    DeploymentController, EphemeralVolumes, JobController, ReplicaSetController, TtlController,
};

/// The controllers of kube-controller-manager that the simulation has, and Kruise's controller of CloneSets.
pub fn controllers() -> Vec<Box<dyn Controller>> {
    let stateful_sets = StatefulSetSettings {
        max_unavailable: false,
    };
    vec![
        Box::new(DeploymentController::new()),
        Box::new(ReplicaSetController::new()),
        Box::new(ReplicaSetController::for_replication_controllers()),
        Box::new(StatefulSetController::new(stateful_sets)),
        Box::new(DaemonSetController::new()),
        Box::new(CloneSetController::new()),
        Box::new(JobController::new()),
        Box::new(TtlController::new()),
        Box::new(CronJobController::new()),
        Box::new(AutoscalerController::new()),
        Box::new(NodeLifecycle::new(
            node_lifecycle::Settings::KUBERNETES_1_36,
        )),
        Box::new(TaintEviction::new()),
        Box::new(PodGc::new(pod_gc::Settings::KUBERNETES_1_36)),
        Box::new(GarbageCollector::new()),
        Box::new(Disruption::new()),
        Box::new(Quotas::new()),
        Box::new(ClaimBinder::new()),
        Box::new(EphemeralVolumes),
    ]
}
