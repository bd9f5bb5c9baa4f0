//! The effects of facts on the state, and the events that they cause for waiting pods. Source: spec/scheduler §4.3,
//! §4.5.

use std::rc::Rc;
use std::sync::Arc;

use strew_cluster::{NodeFact, PodFact, PodIdx};
use strew_model::Symbol;

use super::aside::{self, InvalidFact};
use super::effect::{Condition, ConditionReason};
use super::scheduler::{Assumed, Scheduler, Told, hash_of};
use crate::queue::queue::view;
use crate::queue::{Context, Event, PodView};

// === nodes ===

impl Scheduler {
    pub(super) fn set_node(&mut self, fact: NodeFact) {
        let name = fact.name;
        if let Err(why) = aside::check_node(&fact) {
            self.node_gone(name);
            self.nodes_aside.insert(name, why);
            return;
        }
        self.nodes_aside.shift_remove(&name);
        let old = self.node_fact(name);
        let new = Rc::new(fact.clone());
        self.cluster.set_node(fact);
        match old {
            None => self.on_event(&Event::node_added(new)),
            Some(old) => {
                for event in Event::of_node_update(&old, &new) {
                    self.on_event(&event);
                }
            }
        }
    }

    pub(super) fn node_gone(&mut self, name: Symbol) {
        self.nodes_aside.shift_remove(&name);
        if let Some(old) = self.node_fact(name) {
            self.cluster.remove_node(name);
            self.on_event(&Event::node_deleted(old));
        }
    }

    fn node_fact(&self, name: Symbol) -> Option<Rc<NodeFact>> {
        let node = self.cluster.find_node(name)?;
        self.cluster.node(node).fact().cloned().map(Rc::new)
    }

    pub(super) fn on_event(&mut self, event: &Event) {
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        self.queue.on_event(cx, event);
    }
}

// === pods ===

impl Scheduler {
    /// `unreadable`: why no decision can be based on it, if that is so.
    pub(super) fn set_pod(
        &mut self,
        mut fact: PodFact,
        condition: Option<Condition>,
        unreadable: Option<Arc<str>>,
    ) {
        let absurd = match unreadable {
            Some(why) => Some(InvalidFact::Unreadable(why)),
            None => aside::check_pod(&fact).err(),
        };
        self.pods_aside.shift_remove(&fact.uid);
        if let Some(why) = &absurd {
            self.pods_aside.insert(Arc::clone(&fact.uid), why.clone());
            aside::clean(&mut fact.spec);
        }
        let Some(pod) = self.cluster.find_pod(&fact.uid) else {
            let bound = fact.node.is_some();
            let pod = self.cluster.set_pod(fact);
            self.note_nomination(pod);
            match bound {
                true => self.pod_arrived(pod),
                false => self.enqueue(pod, condition),
            }
            return;
        };
        let old = view(&self.cluster, pod);
        if fact.node.is_none() {
            fact.history.nominated = self.making.believe(pod, fact.history.nominated);
        }
        match (self.assumed.get(&pod).copied(), fact.node) {
            (Some(assumed), None) => {
                // The fact is older than the bind, or the bind is in progress: the pod stays counted on the chosen
                // node.
                fact.node = Some(self.cluster.node(assumed.node).name());
                self.cluster.set_pod(fact);
            }
            (Some(assumed), Some(_)) => self.confirm(pod, fact, assumed, old),
            (None, Some(_)) if !old.bound => {
                self.queue.remove(pod);
                self.told.remove(&pod);
                self.stop_making_room(pod);
                self.cluster.set_pod(fact);
                self.nomination_changed(pod, old, true);
                self.pod_arrived(pod);
            }
            (None, Some(_)) => {
                let before = self.cluster.pod(pod).node;
                self.cluster.set_pod(fact);
                let new = view(&self.cluster, pod);
                if self.cluster.pod(pod).node == before {
                    self.bound_pod_changed(old, new);
                } else {
                    self.on_event(&Event::pod_deleted(old));
                    self.on_event(&Event::pod_added(new));
                }
            }
            (None, None) if old.bound => {
                self.cluster.set_pod(fact);
                self.note_nomination(pod);
                self.on_event(&Event::pod_deleted(old));
                self.enqueue(pod, condition);
            }
            (None, None) => {
                let nominated = self.cluster.pod(pod).history.nominated;
                self.cluster.set_pod(fact);
                self.note_nomination(pod);
                self.waiting_pod_changed(pod, old, condition);
                let moved = self.cluster.pod(pod).history.nominated != nominated;
                self.nomination_changed(pod, old, moved);
            }
        }
    }

    /// A fact shows the node of an assumed pod.
    fn confirm(&mut self, pod: PodIdx, fact: PodFact, assumed: Assumed, old: PodView) {
        self.assumed.remove(&pod);
        let progress = self.queue.progress(pod);
        self.queue.remove(pod);
        self.told.remove(&pod);
        self.stop_making_room(pod);
        self.cluster.set_pod(fact);
        let as_decided = self.cluster.pod(pod).node == Some(assumed.node);
        if let Some(bind) = assumed.bind {
            let pending = self.pending.remove(&bind);
            if as_decided {
                let since = pending.map_or(self.now, |pending| pending.since);
                self.note_progress(pod, progress, assumed.begun, since);
                self.record_scheduled(pod, assumed.node);
            }
        }
        self.pod_arrived(pod);
        if !as_decided {
            self.on_event(&Event::pod_deleted(old));
        }
    }

    fn pod_arrived(&mut self, pod: PodIdx) {
        let new = view(&self.cluster, pod);
        self.on_event(&Event::pod_added(new));
    }

    fn bound_pod_changed(&mut self, old: PodView, new: PodView) {
        if old.class != new.class {
            for event in Event::of_pod_update(&self.cluster, old, new) {
                self.on_event(&event);
            }
        }
    }

    /// Queues a pod without a node that is new, or has lost its node.
    fn enqueue(&mut self, pod: PodIdx, condition: Option<Condition>) {
        self.learn_condition(pod, condition);
        self.queue.remove(pod);
        if self.is_ours(pod) {
            let cx = Context {
                cluster: &self.cluster,
                profiles: &self.profiles,
            };
            self.queue.add(cx, pod);
        }
    }

    fn waiting_pod_changed(&mut self, pod: PodIdx, old: PodView, condition: Option<Condition>) {
        self.learn_condition(pod, condition);
        if !self.is_ours(pod) {
            self.queue.remove(pod);
            return;
        }
        let new = view(&self.cluster, pod);
        let skipped = self.cluster.class_of(pod).key.terminating && !self.queue.contains(pod);
        if skipped && old.class == new.class {
            return;
        }
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        let events = match old.class == new.class {
            true => Default::default(),
            false => Event::of_pod_update(&self.cluster, old, new),
        };
        self.queue.update(cx, pod, &events);
    }

    /// True if a profile of this scheduler is responsible for the pod. If its fact is invalid, reports that in its
    /// condition, and returns false.
    fn is_ours(&mut self, pod: PodIdx) -> bool {
        let row = self.cluster.pod(pod);
        if self.profiles.place(&self.cluster, row.class).is_none() {
            return false;
        }
        let Some(why) = self.pods_aside.get(&row.uid) else {
            return true;
        };
        let message = format!("strew sets this pod aside: {why}").into();
        let reason = ConditionReason::SchedulerError;
        self.tell(pod, Condition { reason, message });
        false
    }

    fn learn_condition(&mut self, pod: PodIdx, condition: Option<Condition>) {
        if self.told.get(&pod).is_some_and(|told| told.patch.is_some()) {
            return;
        }
        match condition {
            Some(condition) => {
                let hash = hash_of(&condition);
                self.told.insert(pod, Told { hash, patch: None });
            }
            None => {
                self.told.remove(&pod);
            }
        }
    }

    /// A pod lost its nomination: for pods that had to respect it, this frees as much as a deletion.
    pub(super) fn nomination_changed(&mut self, pod: PodIdx, old: PodView, changed: bool) {
        if old.nominated && changed {
            let priority = self.cluster.spec_of(pod).priority;
            let cx = Context {
                cluster: &self.cluster,
                profiles: &self.profiles,
            };
            let event = Event::pod_deleted(old);
            self.queue.on_event_for(cx, &event, priority);
        }
    }

    pub(super) fn pod_gone(&mut self, uid: &Arc<str>) {
        self.pods_aside.shift_remove(uid);
        let Some(pod) = self.cluster.find_pod(uid) else {
            return;
        };
        let old = view(&self.cluster, pod);
        self.victim_gone(pod);
        self.stop_making_room(pod);
        self.queue.remove(pod);
        self.told.remove(&pod);
        if let Some(bind) = self.assumed.remove(&pod).and_then(|a| a.bind) {
            self.pending.remove(&bind);
        }
        if old.bound {
            self.cluster.remove_pod(uid);
            self.on_event(&Event::pod_deleted(old));
        } else {
            self.nomination_changed(pod, old, true);
            self.cluster.remove_pod(uid);
        }
    }
}
