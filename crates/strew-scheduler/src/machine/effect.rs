//! The effects of a scheduler.

use std::sync::Arc;

use strew_model::{Holds, Marks, Symbol};

/// The id of an effect with an outcome. Ids only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// The identity of a pod in an effect. The uid is a precondition of every effect, since another pod may have the same
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodName {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Arc<str>,
}

/// A change to make in the cluster. It is safe to carry out twice, and refused if it is out of date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Bind a pod to a node. Precondition: the pod with this uid exists, on no node, not terminating, not gated.
    Bind {
        /// The id of the outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// The node.
        node: Symbol,
    },
    /// Patch the condition `PodScheduled` to False. Precondition: the pod with this uid exists.
    PodCondition {
        /// The id of the outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// The condition.
        condition: Condition,
    },
    /// Patch `status.nominatedNodeName`. Precondition: the pod with this uid exists.
    Nominate {
        /// The id of the outcome.
        id: EffectId,
        /// The pod.
        pod: PodName,
        /// The node; `None` clears the nomination.
        node: Option<Symbol>,
    },
    /// Patch the condition `DisruptionTarget` to True with reason `PreemptionByScheduler`, then delete the pod with its
    /// own grace period. Precondition: the pod with this uid exists.
    DeleteVictim {
        /// The id of the outcome.
        id: EffectId,
        /// The pod.
        victim: PodName,
        /// The condition's message.
        message: String,
    },
    /// Record an event. It has no outcome.
    Event(Box<Event>),
}

impl Effect {
    /// The id of its outcome; `None` if it has none.
    pub fn id(&self) -> Option<EffectId> {
        match self {
            Self::Bind { id, .. }
            | Self::PodCondition { id, .. }
            | Self::Nominate { id, .. }
            | Self::DeleteVictim { id, .. } => Some(*id),
            Self::Event(_) => None,
        }
    }
}

/// The condition `PodScheduled`, False.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Condition {
    /// The reason.
    pub reason: ConditionReason,
    /// The full text, without a limit.
    pub message: Arc<str>,
}

/// Why a pod is on no node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionReason {
    /// Plugins rejected it.
    Unschedulable,
    /// An attempt failed with an error.
    SchedulerError,
}

impl ConditionReason {
    /// The reason in a condition with this status, if it is one that schedulers write.
    pub fn of(status: &str, reason: &str) -> Option<Self> {
        let all = [Self::Unschedulable, Self::SchedulerError];
        let found = all.into_iter().find(|known| known.name() == reason);
        found.filter(|_| status == "False")
    }

    /// Its name in the condition.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::SchedulerError => "SchedulerError",
        }
    }
}

/// The kind of an event. Source: spec/scheduler §5.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A pod was bound.
    Scheduled,
    /// An attempt failed.
    FailedScheduling,
    /// A pod was preempted.
    Preempted,
}

impl EventKind {
    /// Its type, reason and action.
    pub fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Scheduled => ("Normal", "Scheduled", "Binding"),
            Self::FailedScheduling => ("Warning", "FailedScheduling", "Scheduling"),
            Self::Preempted => ("Normal", "Preempted", "Preempting"),
        }
    }
}

/// An event of `events.k8s.io/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Type, reason and action.
    pub kind: EventKind,
    /// `reportingController`: the name of the profile.
    pub scheduler: Symbol,
    /// The pod that it is about.
    pub regarding: PodName,
    /// A further pod.
    pub related: Option<PodName>,
    /// The text, at most [`NOTE_MAX`] bytes.
    pub note: Arc<str>,
}

/// The longest text of an event, in bytes.
pub const NOTE_MAX: usize = 1024;

/// Shortens a text to the length of an event's note: its beginning and ` ...`. Source: spec/scheduler §5.9.
pub fn cut_note(text: &Arc<str>) -> Arc<str> {
    if text.len() <= NOTE_MAX {
        return Arc::clone(text);
    }
    let end = text.floor_char_boundary(NOTE_MAX - 4);
    format!("{} ...", &text[..end]).into()
}

// === the symbols in it ===

impl Holds for Effect {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Bind { id: _, pod, node } => {
                pod.mark(marks);
                node.mark(marks);
            }
            Self::PodCondition {
                id: _,
                pod,
                condition: _,
            } => pod.mark(marks),
            Self::Nominate { id: _, pod, node } => {
                pod.mark(marks);
                node.mark(marks);
            }
            Self::DeleteVictim {
                id: _,
                victim,
                message: _,
            } => victim.mark(marks),
            Self::Event(event) => {
                let Event {
                    kind: _,
                    scheduler,
                    regarding,
                    related,
                    note: _,
                } = &**event;
                scheduler.mark(marks);
                regarding.mark(marks);
                related.mark(marks);
            }
        }
    }
}

impl Holds for PodName {
    fn mark(&self, marks: &mut Marks) {
        self.namespace.mark(marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_between_characters() {
        let short: Arc<str> = "x".repeat(NOTE_MAX).into();
        assert_eq!(cut_note(&short), short);
        let long: Arc<str> = "x".repeat(NOTE_MAX + 1).into();
        assert_eq!(cut_note(&long).len(), NOTE_MAX);
        assert!(cut_note(&long).ends_with("x ..."));
        let wide: Arc<str> = "\u{e4}".repeat(NOTE_MAX).into();
        assert!(cut_note(&format!("x{wide}").into()).len() <= NOTE_MAX);
    }
}
