//! The type of a story: a small world, and a list of actions and faults.

use strew_apiserver::Propagation;
use strew_model::time::Span;

use crate::fault::{Crash, Fault};
use crate::limits::MachineLimits;
use crate::registration::{HookDeed, RegistrationPlan};

/// A world and its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// The seed of the run; the story was generated from it too.
    pub seed: u64,
    /// The settings of the machines.
    pub limits: MachineLimits,
    /// The cluster at second 0.
    pub world: ClusterPlan,
    /// The events, in the order of time.
    pub events: Vec<Event>,
    /// When faults are over.
    pub calm: Span,
}

/// A cluster at second 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterPlan {
    /// Nodes.
    pub nodes: Vec<NodePlan>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// A quota of their namespace.
    pub quota: Option<Quota>,
    /// A node group for the autoscaler.
    pub group: Option<Group>,
    /// True if the scheduler's replicas elect a leader.
    pub elects: bool,
    /// WorkloadSpreads.
    pub spreads: Vec<SpreadPlan>,
    /// Replicas of the webhook; 0: the default number.
    pub n_webhooks: u8,
    /// How they register themselves; `None`: all of them are asked, always.
    pub registration: Option<RegistrationPlan>,
}

/// A WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadPlan {
    /// The workload; the WorkloadSpread has the same name.
    pub of: String,
    /// The subsets; each is the zone with its index.
    pub subsets: Vec<SubsetPlan>,
    /// Critical seconds, and whether scheduling is simulated; `None`: the strategy Fixed.
    pub adaptive: Option<(u32, bool)>,
    /// True if its limits hold over all revisions.
    pub is_whole: bool,
    /// True if it also takes every other Deployment, ReplicaSet and CloneSet.
    pub takes_others: bool,
}

/// The limit of a subset of a WorkloadSpread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubsetPlan {
    /// `maxReplicas`, a number.
    Count(u32),
    /// `maxReplicas`, in percent.
    Percent(u32),
    /// No limit.
    Unlimited,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// Its name, which is its hostname too.
    pub name: String,
    /// Its zone; `None`: without the label.
    pub zone: Option<u8>,
    /// Thousandths of a CPU.
    pub cpu: u32,
    /// The number of pods that it takes.
    pub pods: u32,
    /// True if it has the taint `dedicated`.
    pub is_tainted: bool,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
}

/// A group of nodes that the autoscaler adds and removes; it has none at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The largest size.
    pub max: u32,
    /// Their zone.
    pub zone: u8,
    /// Thousandths of a CPU of each.
    pub cpu: u32,
}

/// A quota of the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Pods.
    pub pods: u32,
    /// Thousandths of a CPU that they request; 0: no limit.
    pub cpu: u32,
}

/// The kind of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// A Deployment; `true`: with strategy Recreate.
    Deployment(bool),
    /// A ReplicaSet without a Deployment.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// A StatefulSet; `true`: it starts pods in parallel.
    StatefulSet(bool),
    /// A DaemonSet.
    DaemonSet,
    /// A Job whose pods run half a minute.
    Job,
    /// A CronJob that makes such a Job in each of the first minutes.
    CronJob(Concurrency),
    /// A CloneSet.
    CloneSet,
}

/// `concurrencyPolicy` of a CronJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is Kubernetes' of its name")]
pub enum Concurrency {
    Allow,
    Forbid,
    Replace,
}

impl Concurrency {
    /// The value in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Forbid => "Forbid",
            Self::Replace => "Replace",
        }
    }
}

/// The bounds of a HorizontalPodAutoscaler; its target is half of the CPU that pods request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaling {
    /// `minReplicas`
    pub min: u32,
    /// `maxReplicas`
    pub max: u32,
}

/// A workload. Its pods have the label `app: <name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub worker: Worker,
    /// The number of pods.
    pub replicas: u32,
    /// The CPU request of each pod, in thousandths.
    pub cpu: u32,
    /// The number of its priority class; 0: none.
    pub priority: u8,
    /// True if its pods tolerate the taint `dedicated`.
    pub tolerates: bool,
    /// True if each pod needs a host port.
    pub has_port: bool,
    /// The spread constraints of its pods.
    pub spread: Vec<Spread>,
    /// The pods that they keep away from.
    pub anti: Option<Anti>,
    /// A budget for its pods.
    pub budget: Option<Budgeting>,
    /// True if the budget is kept by zone (docs/budgets.md).
    pub is_zone_aware: bool,
    /// True if it asks to stay spread when it is scaled down (docs/keep.md).
    pub keeps_spread: bool,
    /// Its HorizontalPodAutoscaler.
    pub scaling: Option<Scaling>,
    /// True if an event creates it.
    pub is_late: bool,
}

/// A spread constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// True: over zones; false: over hosts.
    pub by_zone: bool,
    /// `maxSkew`
    pub max_skew: u8,
    /// `DoNotSchedule`
    pub is_hard: bool,
    /// `minDomains`; 0: none. Only if it is hard.
    pub min_domains: u8,
    /// `matchLabelKeys: [pod-template-hash]`
    pub by_revision: bool,
    /// True if nodes with untolerated taints do not count.
    pub honors_taints: bool,
    /// True if pods of all workloads count.
    pub of_all: bool,
}

/// Required anti-affinity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anti {
    /// True: over zones; false: over hosts.
    pub by_zone: bool,
    /// The workload whose pods are avoided.
    pub from: String,
}

/// A disruption budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budgeting {
    /// `maxUnavailable`
    MaxUnavailable(u32),
    /// `minAvailable`
    MinAvailable(u32),
    /// `minAvailable`, in percent.
    MinPercent(u32),
}

/// An event of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event<A = Action> {
    /// The time since the start.
    pub at: Span,
    /// The action.
    pub action: A,
}

/// Actions of users, and faults. An action on an object that does not exist does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the verb of its name")]
pub enum Action {
    Create(String),
    Scale(String, u32),
    SetImage(String, u32),
    Restart(String),
    Undo(String),
    Pause(String),
    Resume(String),
    Ready(String, bool),
    /// The pods of a workload use this much of the CPU that they request, in percent.
    Use(String, u32),
    Delete(String, Propagation),
    /// Deletes the pod with this number, counted by name.
    DeletePod(u32),
    /// Cordons a node and requests the eviction of all its pods, once.
    Drain(String),
    Cordon(String),
    Uncordon(String),
    Taint(String, TaintEffect),
    Untaint(String),
    /// Gives a node another zone.
    Rezone(String, u8),
    Lose(String),
    Restore(String),
    DeleteNode(String),
    CreateNode(String),
    /// Sets the limit of a subset of a WorkloadSpread, by the subset's index.
    Limit(String, u32, u32),
    Fault(Fault, Span),
    Crash(Crash),
    Jump(Span),
    /// Something happens to the registration of the webhook.
    Hooks(HookDeed),
}

/// The effect of a taint that an event sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is Kubernetes' of its name")]
pub enum TaintEffect {
    NoSchedule,
    NoExecute,
}

impl TaintEffect {
    /// The value in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl Action {
    /// The workload or node that the action is about.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Create(name)
            | Self::Scale(name, _)
            | Self::SetImage(name, _)
            | Self::Restart(name)
            | Self::Undo(name)
            | Self::Pause(name)
            | Self::Resume(name)
            | Self::Ready(name, _)
            | Self::Use(name, _)
            | Self::Limit(name, ..)
            | Self::Delete(name, _)
            | Self::Drain(name)
            | Self::Cordon(name)
            | Self::Uncordon(name)
            | Self::Taint(name, _)
            | Self::Untaint(name)
            | Self::Rezone(name, _)
            | Self::Lose(name)
            | Self::Restore(name)
            | Self::DeleteNode(name)
            | Self::CreateNode(name) => Some(name),
            Self::DeletePod(_)
            | Self::Fault(..)
            | Self::Crash(_)
            | Self::Jump(_)
            | Self::Hooks(_) => None,
        }
    }

    /// The kind under which the action counts as a fault; `None` if it is none.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Fault(Fault::Watch(fault), _) if fault.cut_ppm > 0 => Some("watch cut"),
            Self::Fault(Fault::Watch(_), _) => Some("watch late"),
            Self::Fault(Fault::Write(_), _) => Some("write conflicts"),
            Self::Fault(Fault::Bind(_), _) => Some("binds slow or lost"),
            Self::Fault(Fault::Lease(_), _) => Some("lease requests lost"),
            Self::Fault(Fault::Webhook(_), _) => Some("webhook calls lost"),
            Self::Fault(Fault::SecondScheduler, _) => Some("second scheduler"),
            Self::Crash(crash) => Some(match crash.component {
                crate::fault::Component::Scheduler => "scheduler dies",
                crate::fault::Component::Controllers => "controllers die",
                crate::fault::Component::Webhook => "webhook dies",
                crate::fault::Component::WebhookReplica => "replica of the webhook dies",
                crate::fault::Component::Controller => "controller dies",
            }),
            Self::Hooks(deed) => Some(deed.fault()),
            Self::Jump(_) => Some("clock jumps"),
            Self::Lose(_) => Some("node lost"),
            Self::DeleteNode(_) => Some("node deleted"),
            _ => None,
        }
    }
}
