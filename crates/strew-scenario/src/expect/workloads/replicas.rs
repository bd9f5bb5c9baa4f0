//! The numbers of one workload: what its spec asks for, and what its status reports.

use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use strew_apiserver::object::{Object, Pod};

use super::{DEPLOYMENT, Waiting, left_to_text};
use crate::expect::pods::message;

/// What a workload asks for, and what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::expect) struct Replicas {
    /// `spec.replicas`; for a DaemonSet, the number of its nodes.
    pub(in crate::expect) wanted: i32,
    /// Its pods, those of old revisions included.
    pub(super) pods: i32,
    /// Pods of the newest template, and how many there should be; `None` if nothing is rolled out.
    pub(super) updated: Option<(i32, i32)>,
    /// Pods that are available.
    pub(super) available: i32,
    /// The condition `ProgressDeadlineExceeded`.
    pub(super) is_late: bool,
    /// Why its pods are refused at creation, if a condition says so.
    pub(super) refused: Option<String>,
    /// True if a controller has ever written its status.
    pub(super) is_observed: bool,
    /// True if its rollout is paused.
    pub(super) is_paused: bool,
    /// True if pods of the newest template are made only when old ones are deleted (`OnDelete`).
    pub(super) waits_for_deletion: bool,
    /// Why it failed for good, for a Job: `DeadlineExceeded`.
    pub(super) failed: Option<String>,
}

/// A workload that asks for nothing and has nothing.
const NONE: Replicas = Replicas {
    wanted: 0,
    pods: 0,
    updated: None,
    available: 0,
    is_late: false,
    refused: None,
    is_observed: false,
    is_paused: false,
    waits_for_deletion: false,
    failed: None,
};

/// Why the pods of a ReplicaSet are refused at creation, if a condition says so.
pub(super) fn creation_refused(status: &ReplicaSetStatus) -> Option<String> {
    let mut conditions = status.conditions.iter().flatten();
    let refused = conditions.find(|c| c.type_ == "ReplicaFailure" && c.status == "True");
    refused.and_then(|c| c.message.clone())
}

impl Replicas {
    /// The numbers of a workload; `None` if the object has none, or belongs to another workload.
    pub(in crate::expect) fn of(object: &Object) -> Option<Self> {
        match object {
            Object::Deployment(deployment) => {
                let status = &deployment.status;
                let conditions = || status.conditions.iter().flatten();
                let reason = |type_: &str| conditions().find(|c| c.type_ == type_);
                let wanted = deployment.spec.replicas.unwrap_or(1);
                let updated = status.updated_replicas.unwrap_or(0);
                let late = reason("Progressing").and_then(|c| c.reason.as_deref());
                let refused = reason("ReplicaFailure").filter(|c| c.status == "True");
                Some(Self {
                    wanted,
                    pods: status.replicas.unwrap_or(0),
                    updated: (deployment.spec.paused != Some(true)).then_some((updated, wanted)),
                    available: status.available_replicas.unwrap_or(0),
                    is_late: late == Some("ProgressDeadlineExceeded"),
                    refused: refused.and_then(|c| c.message.clone()),
                    is_observed: status.observed_generation.is_some(),
                    is_paused: deployment.spec.paused == Some(true),
                    ..NONE
                })
            }
            Object::StatefulSet(set) => {
                let status = &set.status;
                let wanted = set.spec.replicas.unwrap_or(1);
                let strategy = set.spec.update_strategy.as_ref();
                let is_by_hand = strategy.and_then(|s| s.type_.as_deref()) == Some("OnDelete");
                let partition = strategy.and_then(|s| s.rolling_update.as_ref()?.partition);
                let updated = status.updated_replicas.unwrap_or(0);
                let to_be = wanted.saturating_sub(partition.unwrap_or(0)).max(0);
                Some(Self {
                    wanted,
                    pods: status.replicas,
                    updated: Some((updated, to_be)),
                    waits_for_deletion: is_by_hand,
                    available: status.available_replicas.unwrap_or(0),
                    is_observed: status.observed_generation.is_some(),
                    ..NONE
                })
            }
            Object::DaemonSet(set) => {
                let status = &set.status;
                let wanted = status.desired_number_scheduled;
                let strategy = set.spec.update_strategy.as_ref();
                let is_by_hand = strategy.and_then(|s| s.type_.as_deref()) == Some("OnDelete");
                let updated = status.updated_number_scheduled.unwrap_or(0);
                Some(Self {
                    wanted,
                    pods: status.current_number_scheduled,
                    updated: Some((updated, wanted)),
                    waits_for_deletion: is_by_hand,
                    available: status.number_available.unwrap_or(0),
                    is_observed: status.observed_generation.is_some(),
                    ..NONE
                })
            }
            Object::CloneSet(set) => {
                let status = &set.status;
                let to_be = status.expected_updated_replicas;
                let updated = status.updated_replicas.unwrap_or(0);
                Some(Self {
                    wanted: set.spec.replicas.unwrap_or(1),
                    pods: status.replicas.unwrap_or(0),
                    updated: to_be.map(|to_be| (updated, to_be)),
                    available: status.available_replicas.unwrap_or(0),
                    is_observed: status.observed_generation.is_some(),
                    ..NONE
                })
            }
            Object::ReplicaSet(set) => {
                let status = &set.status;
                let owner = set.meta.controller();
                let is_its_own = owner.is_none_or(|owner| *owner.kind != *DEPLOYMENT);
                is_its_own.then(|| Self {
                    wanted: set.spec.replicas.unwrap_or(1),
                    pods: status.replicas,
                    updated: None,
                    available: status.available_replicas.unwrap_or(0),
                    refused: creation_refused(status),
                    is_observed: status.observed_generation.is_some(),
                    ..NONE
                })
            }
            Object::ReplicationController(controller) => {
                let status = &controller.status;
                Some(Self {
                    wanted: controller.spec.replicas.unwrap_or(1),
                    pods: status.replicas,
                    updated: None,
                    available: status.available_replicas.unwrap_or(0),
                    is_observed: status.observed_generation.is_some(),
                    ..NONE
                })
            }
            // Pods of a Job come and go: a Job is short only while no pod runs and none can be created.
            Object::Job(job) => {
                let status = &job.status;
                let mut conditions = status.conditions.iter().flatten();
                let failed = conditions.find(|c| c.type_ == "Failed" && c.status == "True");
                let failed = failed.map(|c| c.reason.clone().unwrap_or_default());
                let is_over = status.completion_time.is_some() || failed.is_some();
                let runs = !is_over && job.spec.suspend != Some(true);
                let at_once = job.spec.parallelism.unwrap_or(1);
                let left = job
                    .spec
                    .completions
                    .map(|all| all - status.succeeded.unwrap_or(0));
                let wanted = if runs {
                    at_once.min(left.unwrap_or(at_once)).max(0)
                } else {
                    0
                };
                let pods = if status.active.unwrap_or(0) > 0 {
                    wanted
                } else {
                    0
                };
                Some(Self {
                    wanted,
                    pods,
                    updated: None,
                    available: pods,
                    is_observed: status.start_time.is_some(),
                    failed,
                    ..NONE
                })
            }
            _ => None,
        }
    }

    /// True for a Job that failed because its time was over.
    pub(super) fn is_past_deadline(&self) -> bool {
        self.failed.as_deref() == Some("DeadlineExceeded")
    }

    /// Why the last pod was refused at creation; `None` if no pod is missing, of the newest template or at all, or none
    /// was refused. `recorded` looks for the reason in the events.
    pub(super) fn refusal(&self, recorded: impl FnOnce() -> Option<String>) -> Option<String> {
        let is_old = self.updated.is_some_and(|(n, to_be)| n < to_be) && !self.waits_for_deletion;
        let is_missing = self.pods < self.wanted || is_old;
        is_missing.then(|| self.refused.clone().or_else(recorded))?
    }

    /// What is missing, as text; `None` if nothing is.
    pub(super) fn why(&self, waiting: &Waiting<'_>, refusal: Option<&str>) -> Option<String> {
        let Self {
            wanted,
            pods,
            updated,
            available,
            ..
        } = *self;
        if let Some(reason) = &self.failed {
            return Some(format!("failed: {reason}"));
        }
        let mut parts = Vec::new();
        let is_awaited = !self.waits_for_deletion;
        if let Some((updated, to_be)) = updated.filter(|(n, to_be)| is_awaited && n < to_be) {
            parts.push(format!("{updated} of {to_be} updated"));
        }
        if pods < wanted {
            parts.push(format!("{pods} of {wanted} pods made"));
        }
        if pods > wanted {
            parts.push(format!("{pods} pods for {wanted} replicas"));
        }
        if available < wanted {
            parts.push(format!("{available} of {wanted} ready"));
        }
        if parts.is_empty() && waiting.pending.is_empty() && waiting.left.is_empty() {
            return None;
        }
        if self.is_paused {
            parts.push("its rollout is paused".to_owned());
        }
        if self.is_late {
            parts.push("progress deadline exceeded".to_owned());
        }
        if let Some(first) = waiting.pending.first() {
            parts.push(format!("{} {}", waiting.pending.len(), pending_text(first)));
        }
        for (why, n) in waiting.evicted.iter().filter(|_| available < wanted) {
            parts.push(format!("{n} on nodes whose {why}"));
        }
        for (node, n) in &waiting.astray {
            parts.push(format!("{n} on node {node}, which is not there"));
        }
        for (scheduler, n) in &waiting.left {
            parts.push(left_to_text(*n, scheduler));
        }
        if let Some(refusal) = refusal {
            parts.push(format!("creation refused: {refusal}"));
        }
        Some(parts.join(", "))
    }
}

/// `Pending`, with the reason if there is one.
pub(super) fn pending_text(pod: &Pod) -> String {
    let gates = pod.spec.scheduling_gates.iter().flatten();
    let gates: Vec<&str> = gates.map(|gate| gate.name.as_str()).collect();
    match (reason(message(pod)), gates.is_empty()) {
        (_, false) => format!("Pending (scheduling gates: {})", gates.join(", ")),
        ("", _) => "Pending".to_owned(),
        (reason, _) => format!("Pending ({reason})"),
    }
}

/// The first sentence of the scheduler's message, which has the reasons of all nodes, without its full stop.
pub(super) fn reason(message: &str) -> &str {
    let end = message.find(". ").unwrap_or(message.len());
    message[..end].trim_end_matches('.')
}
