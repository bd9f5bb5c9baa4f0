//! Handles the outcome of an effect. Source: spec/scheduler §2.7, §2.8.

use std::sync::Arc;

use strew_cluster::{NodeIdx, PodIdx};
use strew_model::Instant;

use super::effect::{Condition, ConditionReason, EffectId, EventKind};
use super::input::Outcome;
use super::scheduler::{Assumed, PendingKind, Scheduler};
use crate::queue::queue::view;
use crate::queue::{Context, Event, PluginSet};

impl Scheduler {
    pub(super) fn outcome(&mut self, effect: EffectId, outcome: &Outcome) {
        // A fact may have arrived earlier; then the outcome is no longer needed.
        let Some(pending) = self.pending.remove(&effect) else {
            return;
        };
        match pending.kind {
            PendingKind::Bind(pod) => match outcome.error() {
                None => self.bound(effect, pod, pending.since),
                Some(error) => self.bind_failed(effect, pod, pending.since, error),
            },
            PendingKind::Condition(pod) => {
                let Some(told) = self.told.get_mut(&pod) else {
                    return;
                };
                if told.patch == Some(effect) {
                    told.patch = None;
                    if *outcome != Outcome::Ok {
                        self.told.remove(&pod);
                    }
                }
            }
            PendingKind::Nominate(pod) => self.nominate_outcome(effect, pod, outcome),
            PendingKind::Victim { victim, preemptor } => {
                self.victim_outcome(effect, victim, preemptor, outcome);
            }
        }
    }

    /// The API server accepted the bind; the fact follows.
    fn bound(&mut self, effect: EffectId, pod: PodIdx, since: Instant) {
        if let Some(assumed) = self.assumed.get_mut(&pod)
            && assumed.bind == Some(effect)
        {
            assumed.bind = None;
            let (node, begun) = (assumed.node, assumed.begun);
            self.note_bound(pod, begun, since);
            self.queue.remove(pod);
            self.told.remove(&pod);
            self.record_scheduled(pod, node);
        }
    }

    pub(super) fn record_scheduled(&mut self, pod: PodIdx, node: NodeIdx) {
        let name = self.pod_name(pod);
        let names = &self.cluster.names;
        let (namespace, node) = (
            names.text(name.namespace),
            names.text(self.cluster.node(node).name()),
        );
        let note = format!("Successfully assigned {namespace}/{} to {node}", name.name);
        self.record(EventKind::Scheduled, pod, &note.into());
    }

    /// The bind failed: removes the pod from the node, which may help other pods, and queues it again.
    fn bind_failed(&mut self, effect: EffectId, pod: PodIdx, since: Instant, error: &str) {
        // The row may belong to another pod by now, which knows nothing of this bind.
        let assumed = self.assumed.get(&pod).filter(|a| a.bind == Some(effect));
        let Some(&Assumed { begun, .. }) = assumed else {
            return;
        };
        self.note_not_bound(pod, begun, since);
        self.assumed.remove(&pod);
        let old = view(&self.cluster, pod);
        self.cluster.unbind(pod);
        // Not for the pod itself, which is in no queue where an event could find it.
        self.on_event(&Event::pod_deleted(old));
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        self.queue.requeue(cx, pod, PluginSet::default());
        self.clear_nomination(pod);
        let message: Arc<str> =
            format!("binding rejected: running Bind plugin \"DefaultBinder\": {error}").into();
        self.record(EventKind::FailedScheduling, pod, &message);
        let reason = ConditionReason::SchedulerError;
        self.tell(pod, Condition { reason, message });
    }
}
