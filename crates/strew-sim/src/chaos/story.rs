//! The type of a story: a small world, and a list of actions and faults.

use strew_apiserver::Propagation;
use strew_model::time::Span;

use crate::fault::{Crash, Fault};
use crate::limits::MachineLimits;

/// A world and what befalls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Dice of the life; the story was made from it too.
    pub seed: u64,
    /// What the machines run with.
    pub limits: MachineLimits,
    /// What there is.
    pub world: World,
    /// What happens, in the order of time.
    pub events: Vec<Event>,
    /// When faults are over.
    pub calm: Span,
}

/// What there is at second 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct World {
    /// Nodes.
    pub nodes: Vec<NodePlan>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// A quota of their namespace.
    pub quota: Option<Quota>,
    /// A group of nodes that grows and shrinks.
    pub group: Option<Group>,
    /// Whether the scheduler's replicas elect a leader.
    pub elects: bool,
    /// WorkloadSpreads.
    pub spreads: Vec<SpreadPlan>,
    /// Replicas of the webhook; 0: as many as usual.
    pub n_webhooks: u8,
}

/// A WorkloadSpread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadPlan {
    /// The workload; the WorkloadSpread has its name.
    pub of: String,
    /// The subsets, each the zone of its number.
    pub subsets: Vec<SubsetPlan>,
    /// Critical seconds, and whether scheduling is simulated; `None`: Fixed.
    pub adaptive: Option<(u32, bool)>,
    /// Whether its limits hold over all revisions.
    pub is_whole: bool,
}

/// A subset of a WorkloadSpread: the zone of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubsetPlan {
    /// `maxReplicas`, a number.
    Count(u32),
    /// `maxReplicas`, in percent.
    Percent(u32),
    /// Without a limit.
    Unlimited,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlan {
    /// Its name, its hostname too.
    pub name: String,
    /// Its zone; `None`: it lacks the label.
    pub zone: Option<u8>,
    /// Thousandths of a CPU.
    pub cpu: u32,
    /// How many pods it takes.
    pub pods: u32,
    /// Whether it has the taint `dedicated`.
    pub is_tainted: bool,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
}

/// Nodes that a cluster autoscaler adds and takes away; there is none at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// At most this many.
    pub max: u32,
    /// Their zone.
    pub zone: u8,
    /// Thousandths of a CPU of each.
    pub cpu: u32,
}

/// How much there may be in the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Pods.
    pub pods: u32,
    /// Thousandths of a CPU that they ask for; 0: no limit.
    pub cpu: u32,
}

/// What makes a workload's pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worker {
    /// A Deployment; `true`: of strategy Recreate.
    Deployment(bool),
    /// A ReplicaSet that no Deployment has.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// A StatefulSet; `true`: its pods are started in parallel.
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

/// What a CronJob does while a Job of it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is Kubernetes' of its name")]
pub enum Concurrency {
    Allow,
    Forbid,
    Replace,
}

impl Concurrency {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Forbid => "Forbid",
            Self::Replace => "Replace",
        }
    }
}

/// The bounds of a HorizontalPodAutoscaler; it wants pods to use half of the CPU that they ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaling {
    /// `minReplicas`
    pub min: u32,
    /// `maxReplicas`
    pub max: u32,
}

/// A workload. Its pods bear the label `app: <name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What makes its pods.
    pub worker: Worker,
    /// How many.
    pub replicas: u32,
    /// Thousandths of a CPU that each asks for.
    pub cpu: u32,
    /// The number of its priority class; 0: none.
    pub priority: u8,
    /// Whether it tolerates the taint `dedicated`.
    pub tolerates: bool,
    /// A port of the host that each needs.
    pub has_port: bool,
    /// How its pods are spread.
    pub spread: Vec<Spread>,
    /// Which pods they keep away from.
    pub anti: Option<Anti>,
    /// A budget for its pods.
    pub budget: Option<Budgeting>,
    /// What scales it.
    pub scaling: Option<Scaling>,
    /// It is created by an event, not there at second 0.
    pub is_late: bool,
}

/// A spread constraint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// By zones, else by hosts.
    pub by_zone: bool,
    /// `maxSkew`
    pub max_skew: u8,
    /// `DoNotSchedule`
    pub is_hard: bool,
    /// `minDomains`; 0: none. Only where it is hard.
    pub min_domains: u8,
    /// `matchLabelKeys: [pod-template-hash]`
    pub by_revision: bool,
    /// Whether untolerated taints leave nodes out.
    pub honors_taints: bool,
    /// Pods of all workloads count.
    pub of_all: bool,
}

/// Required anti-affinity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anti {
    /// By zones, else by hosts.
    pub by_zone: bool,
    /// The workload whose pods are kept away from.
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

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, from the start.
    pub at: Span,
    /// What.
    pub action: Action,
}

/// What people do, and what goes wrong. Objects that are not there are left alone.
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
    /// The pods of a workload use so much of the CPU that they ask for, in percent.
    Use(String, u32),
    Delete(String, Propagation),
    /// Deletes the pod of this number among all, by their names.
    DeletePod(u32),
    /// Asks for the eviction of all pods of a node, once, after cordoning it.
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
    /// Gives a subset of a WorkloadSpread, by its number, another limit.
    Limit(String, u32, u32),
    Fault(Fault, Span),
    Crash(Crash),
    Jump(Span),
}

/// The effect of a taint that is set by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is Kubernetes' of its name")]
pub enum TaintEffect {
    NoSchedule,
    NoExecute,
}

impl TaintEffect {
    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl Action {
    /// The workload or node that it is about.
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
            Self::DeletePod(_) | Self::Fault(..) | Self::Crash(_) | Self::Jump(_) => None,
        }
    }

    /// What is counted as a fault, by its kind.
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
            Self::Jump(_) => Some("clock jumps"),
            Self::Lose(_) => Some("node lost"),
            Self::DeleteNode(_) => Some("node deleted"),
            _ => None,
        }
    }
}
