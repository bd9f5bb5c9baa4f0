//! Counts pods that enter a queue, by the event that caused it. Source: spec/scheduler §5.7,
//! `queue_incoming_pods_total`.

use super::event::{Actions, Event, Resource};

/// A part of the queue that pods enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueName {
    Active,
    Backoff,
    Unschedulable,
}

const QUEUES: [&str; 3] = ["active", "backoff", "unschedulable"];

/// The event that brings a pod into a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cause(u8);

const RESOURCES: [&str; 7] = [
    "Node",
    "AssignedPod",
    "UnschedulablePod",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "storage.k8s.io/StorageClass",
    "storage.k8s.io/CSINode",
];

/// By bit of [`Actions`]; the last one is any update. Source: kube-scheduler, `ActionType.String`.
const ACTIONS: [&str; 14] = [
    "Add",
    "Delete",
    "UpdateNodeAllocatable",
    "UpdateNodeLabel",
    "UpdateNodeTaint",
    "UpdateNodeCondition",
    "UpdateNodeAnnotation",
    "UpdateNodeDeclaredFeature",
    "UpdatePodLabel",
    "UpdatePodScaleDown",
    "UpdatePodToleration",
    "UpdatePodSchedulingGatesEliminated",
    "UpdatePodGeneratedResourceClaim",
    "Update",
];

const OTHERS: [&str; 5] = [
    "ScheduleAttemptFailure",
    "BackoffComplete",
    "PopFromBackoffQ",
    "ForceActivate",
    "UnschedulableTimeout",
];

const EVENTS: u8 = (RESOURCES.len() * ACTIONS.len()) as u8;

impl Cause {
    pub(crate) const ATTEMPT_FAILED: Self = Self(EVENTS);
    pub(crate) const BACKOFF_COMPLETE: Self = Self(EVENTS + 1);
    pub(crate) const POPPED_EARLY: Self = Self(EVENTS + 2);
    pub(crate) const PREEMPTION_OVER: Self = Self(EVENTS + 3);
    pub(crate) const TIMEOUT: Self = Self(EVENTS + 4);
    const COUNT: usize = EVENTS as usize + OTHERS.len();

    /// The pod is new.
    pub(crate) fn pod_added() -> Self {
        Self::of(Resource::WaitingPod, Actions::ADD)
    }

    pub(crate) fn event(event: &Event) -> Self {
        Self::of(event.resource, event.actions)
    }

    fn of(resource: Resource, actions: Actions) -> Self {
        let resource = match resource {
            Resource::Node => 0,
            Resource::AssignedPod => 1,
            Resource::WaitingPod => 2,
            Resource::Claim => 3,
            Resource::Volume => 4,
            Resource::StorageClass => 5,
            Resource::AttachLimits => 6,
        };
        let action = actions.single().unwrap_or(ACTIONS.len() - 1);
        Self((resource * ACTIONS.len() + action.min(ACTIONS.len() - 1)) as u8)
    }

    /// kube-scheduler's label.
    pub(crate) fn label(self) -> String {
        let place = usize::from(self.0);
        match place.checked_sub(EVENTS.into()) {
            Some(other) => OTHERS[other].to_owned(),
            None => {
                let resource = RESOURCES[place / ACTIONS.len()];
                format!("{resource}{}", ACTIONS[place % ACTIONS.len()])
            }
        }
    }
}

/// The number of pods that entered each queue, by cause.
#[derive(Debug, Clone)]
pub(crate) struct Incoming([[u64; Cause::COUNT]; QUEUES.len()]);

impl Default for Incoming {
    fn default() -> Self {
        Self([[0; Cause::COUNT]; QUEUES.len()])
    }
}

impl Incoming {
    pub(crate) fn count(&mut self, into: QueueName, cause: Cause) {
        self.0[into as usize][usize::from(cause.0)] += 1;
    }

    /// Queue, event and number of pods, without zeros.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (&'static str, String, u64)> {
        QUEUES.into_iter().zip(&self.0).flat_map(|(queue, counts)| {
            let counts = counts.iter().enumerate().filter(|(_, n)| **n > 0);
            counts.map(move |(cause, &n)| (queue, Cause(cause as u8).label(), n))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_labelled_as_kube_scheduler_does() {
        let cases = [
            (Cause::of(Resource::Node, Actions::ADD), "NodeAdd"),
            (
                Cause::of(Resource::Node, Actions::NODE_LABEL),
                "NodeUpdateNodeLabel",
            ),
            (
                Cause::of(Resource::AssignedPod, Actions::DELETE),
                "AssignedPodDelete",
            ),
            (
                Cause::of(Resource::AssignedPod, Actions::POD_LABEL),
                "AssignedPodUpdatePodLabel",
            ),
            (
                Cause::of(Resource::WaitingPod, Actions::UPDATE),
                "UnschedulablePodUpdate",
            ),
            (Cause::pod_added(), "UnschedulablePodAdd"),
            (Cause::ATTEMPT_FAILED, "ScheduleAttemptFailure"),
            (Cause::TIMEOUT, "UnschedulableTimeout"),
        ];
        for (cause, label) in cases {
            assert_eq!(cause.label(), label);
        }
    }

    #[test]
    fn what_came_is_counted_by_queue_and_cause() {
        let mut incoming = Incoming::default();
        incoming.count(QueueName::Active, Cause::pod_added());
        incoming.count(QueueName::Active, Cause::pod_added());
        incoming.count(QueueName::Unschedulable, Cause::ATTEMPT_FAILED);
        let counted: Vec<_> = incoming.counted().collect();
        let expected = [
            ("active", "UnschedulablePodAdd".to_owned(), 2),
            ("unschedulable", "ScheduleAttemptFailure".to_owned(), 1),
        ];
        assert_eq!(counted, expected);
    }
}
