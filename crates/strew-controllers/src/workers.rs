//! The number of workers of each controller.
//!
//! Source: kube-controller-manager v1.36.3, `pkg/controller/*/config/v1alpha1/defaults.go` (the defaults of
//! `--concurrent-*-syncs`), where nothing else is said; spec/controllers §0.

/// `ConcurrentDeploymentSyncs`
pub const DEPLOYMENT: usize = 5;

/// `ConcurrentRSSyncs`
pub const REPLICA_SET: usize = 5;

/// `ConcurrentRCSyncs`
pub const REPLICATION_CONTROLLER: usize = 5;

/// `ConcurrentStatefulSetSyncs`
pub const STATEFUL_SET: usize = 5;

/// `ConcurrentDaemonSetSyncs`
pub const DAEMON_SET: usize = 2;

/// `ConcurrentJobSyncs`
pub const JOB: usize = 5;

/// `ConcurrentTTLSyncs`
pub const TTL_AFTER_FINISHED: usize = 5;

/// `ConcurrentCronJobSyncs`
pub const CRON_JOB: usize = 5;

/// `ConcurrentHorizontalPodAutoscalerSyncs`
pub const AUTOSCALER: usize = 5;

/// `ConcurrentGCSyncs`
pub const GARBAGE_COLLECTOR: usize = 20;

/// The volume controller and provisioners together: they handle claims concurrently.
pub const CLAIMS: usize = 10;

/// `ConcurrentEphemeralVolumeSyncs`
pub const EPHEMERAL_VOLUMES: usize = 5;

/// `ConcurrentResourceQuotaSyncs`
pub const QUOTA: usize = 5;

/// `UpdateWorkerSize` in pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, pkg/controller/tainteviction:
/// workers for the taints of nodes, and for what follows from them.
pub const TAINTS: usize = 8;

/// `Run` in pkg/controller/disruption/disruption.go starts one worker.
pub const DISRUPTION: usize = 1;

/// `Run` in pkg/controller/podgc/gc_controller.go is one loop.
pub const POD_GC: usize = 1;

/// `concurrentReconciles` in pkg/controller/cloneset/cloneset_controller.go of openkruise/kruise at 07169cfa.
pub const CLONE_SET: usize = 3;
