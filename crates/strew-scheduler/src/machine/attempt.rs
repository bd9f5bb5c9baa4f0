//! One scheduling attempt: from a pod of the queue to an effect. Source: spec/scheduler §2.4, §2.7, §2.8.

use std::rc::Rc;
use std::sync::Arc;

use strew_cluster::{NodeIdx, PodIdx};

use super::effect::{Condition, ConditionReason, Effect, EventKind};
use super::scheduler::{Assumed, PendingKind, Scheduler};
use crate::engine::Decision;
use crate::metrics::counters::Attempt;
use crate::queue::{Context, PluginSet};
use crate::status::{Code, Unfit};

impl Scheduler {
    /// Tries the next pod; `None` if none is ready.
    pub(super) fn attempt(&mut self) -> Option<()> {
        let pod = self.queue.pop()?;
        let class = self.cluster.pod(pod).class;
        if self.cluster.class_of(pod).key.terminating {
            self.skip(pod);
            return Some(());
        }
        let Some(place) = self.profiles.place(&self.cluster, class) else {
            self.queue.remove(pod);
            return Some(());
        };
        let begun = self.counters.read();
        let engine = self.profiles.engine_mut(place);
        match engine.decide_with(&mut self.cluster, pod, self.making.nominations()) {
            Decision::Place { node, .. } => {
                self.counters.decided(begun);
                self.assume(pod, node, begun);
            }
            Decision::Unfit(why) => self.fail(pod, place, &why, begun),
        }
        Some(())
    }

    /// Skips a pod that is being deleted.
    fn skip(&mut self, pod: PodIdx) {
        let name = self.pod_name(pod);
        let namespace = self.cluster.names.text(name.namespace);
        let note = format!("skip schedule deleting pod: {namespace}/{}", name.name);
        self.record(EventKind::FailedScheduling, pod, &note.into());
        self.queue.remove(pod);
    }

    fn assume(&mut self, pod: PodIdx, node: NodeIdx, begun: Option<u64>) {
        self.cluster.bind(pod, node);
        self.queue.decided(pod);
        let id = self.expect(PendingKind::Bind(pod));
        let bind = Some(id);
        self.assumed.insert(pod, Assumed { node, bind, begun });
        self.note_nomination(pod);
        let pod = self.pod_name(pod);
        let node = self.cluster.node(node).name();
        self.effects.push_back(Effect::Bind { id, pod, node });
    }

    fn fail(&mut self, pod: PodIdx, place: usize, why: &Rc<Unfit>, begun: Option<u64>) {
        let filtered = self.counters.read();
        let post_filter = self.post_filter(pod, place, why);
        self.note_post_filter(&post_filter, place, filtered);
        self.counters.decided(begun);
        self.hold_for(pod, &post_filter);
        let message = Arc::clone(&post_filter.message);
        let reason = match why.is_error() {
            true => ConditionReason::SchedulerError,
            false => ConditionReason::Unschedulable,
        };
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        self.queue.requeue(cx, pod, why.rejecting_plugins());
        self.record(EventKind::FailedScheduling, pod, &message);
        self.tell(pod, Condition { reason, message });
        self.make_room(pod, post_filter);
        let result = match reason {
            ConditionReason::SchedulerError => Attempt::Error,
            ConditionReason::Unschedulable => Attempt::Unschedulable,
        };
        self.counters.attempt(result, place, begun);
    }
}

impl Unfit {
    /// True if the attempt failed with an error; false if plugins rejected the pod.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::PreFilter(refusal) if refusal.code == Code::Error)
    }

    /// The plugins that rejected the pod: only an event that concerns one of them makes a retry useful.
    pub fn rejecting_plugins(&self) -> PluginSet {
        match self {
            Self::NoNodes => PluginSet::default(),
            Self::PreFilter(refusal) if self.is_error() || refusal.reasons.is_empty() => {
                PluginSet::default()
            }
            Self::PreFilter(refusal) => [refusal.plugin].into_iter().collect(),
            Self::EveryNode(refusals) => refusals.counted().map(|(r, _)| r.plugin).collect(),
        }
    }
}
