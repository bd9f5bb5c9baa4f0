//! The machine's metrics. Source: spec/scheduler §5.7.

use std::borrow::Cow;

use strew_cluster::PodIdx;
use strew_model::Instant;

use super::input::Input;
use super::preempting::PostFilter;
use super::scheduler::Scheduler;
use crate::metrics::counters::Attempt;
use crate::metrics::meter::Measured;
use crate::metrics::{Family, Point, SUCCESS, Stopwatch, Value, catalogue, spread};
use crate::queue::Context;
use crate::queue::queue::Progress;

impl Scheduler {
    /// Measures durations from now on, with this clock. No decision depends on it.
    pub fn measure_with(&mut self, clock: Stopwatch) {
        self.counters.measure_with(clock);
        self.profiles
            .engines_mut()
            .for_each(|engine| engine.measure_with(clock));
    }

    /// All counters and measurements, and the present gauges: a family for each metric of [`catalogue`], in its order.
    ///
    /// Cost: a walk over the waiting pods and over the classes with pods. New tallies may be counted; nothing else
    /// changes.
    pub fn metrics(&mut self) -> Vec<Family> {
        let mut measured = Measured::new();
        for (name, meter) in self.profiles.meters() {
            let names = &self.cluster.names;
            let text = |symbol| names.text(symbol).to_owned();
            measured.add(meter, names.text(name), text);
        }
        let name = |place| {
            Cow::Owned(
                self.cluster
                    .names
                    .text(self.profiles.name(place))
                    .to_owned(),
            )
        };
        let mut families = self.counters.families(name, &mut measured.points);
        families.extend(measured.families());
        families.extend(self.gauges());
        families.extend(spread::families(&mut self.cluster, &self.profiles));
        let place = |family: &Family| {
            let name = family.info.name;
            catalogue::ALL.iter().position(|info| info.name == name)
        };
        families.sort_by_key(place);
        families
    }

    /// The present gauges.
    fn gauges(&self) -> [Family; 7] {
        let counts = self.queue.counts();
        let mut pending = Family::new(&catalogue::PENDING_PODS);
        for (queue, pods) in [
            ("active", counts.active),
            ("backoff", counts.backoff + counts.error_backoff),
            ("gated", counts.gated),
            ("unschedulable", counts.unschedulable),
        ] {
            pending.push([queue.into()], Value::number(pods));
        }
        let mut incoming = Family::new(&catalogue::QUEUE_INCOMING_PODS);
        for (queue, event, pods) in self.queue.incoming() {
            incoming.push([queue.into(), event.into()], Value::Count(pods));
        }
        let cx = Context {
            cluster: &self.cluster,
            profiles: &self.profiles,
        };
        let mut unschedulable = Family::new(&catalogue::UNSCHEDULABLE_PODS);
        for ((plugin, place), pods) in self.queue.unschedulable_by(cx) {
            let profile = self.cluster.names.text(self.profiles.name(place));
            let labels = [plugin.name().into(), profile.to_owned().into()];
            unschedulable.push(labels, Value::number(pods));
        }
        let classes = self.cluster.tables().populated();
        let on_nodes = classes.map(|(_, class)| class.members.len()).sum();
        let mut cache = Family::new(&catalogue::CACHE_SIZE);
        for (what, size) in [
            ("assumed_pods", self.assumed.len()),
            ("nodes", self.cluster.nodes_present()),
            ("pods", on_nodes),
        ] {
            cache.push([what.into()], Value::number(size));
        }
        let (events, popped) = self.queue.in_flight();
        let mut in_flight = Family::new(&catalogue::INFLIGHT_EVENTS);
        for (event, number) in events {
            in_flight.push([event.into()], Value::number(number));
        }
        in_flight.push(["PodPopped".into()], Value::number(popped));
        let mut aside = Family::new(&catalogue::OBJECTS_SET_ASIDE);
        aside.push(["nodes".into()], Value::number(self.nodes_aside.len()));
        aside.push(["pods".into()], Value::number(self.pods_aside.len()));
        let effects = Value::number(self.pending.len());
        let effects = Family::of(&catalogue::EFFECTS_PENDING, effects);
        [
            pending,
            incoming,
            unschedulable,
            cache,
            in_flight,
            aside,
            effects,
        ]
    }
}

// === what is noted on the way ===

impl Scheduler {
    /// kube-scheduler's name for the event of an input. Call it before the input is handled. `None` if it is not timed.
    pub(super) fn event_of(&self, input: &Input) -> Option<&'static str> {
        let bound = |uid: &str| {
            let pod = self.cluster.find_pod(uid)?;
            Some(self.cluster.pod(pod).node.is_some())
        };
        Some(match input {
            Input::NodeSet(fact) => {
                let node = self.cluster.find_node(fact.name);
                match node.and_then(|node| self.cluster.node(node).fact()) {
                    Some(_) => "NodeUpdate",
                    None => "NodeAdd",
                }
            }
            Input::NodeGone(_) => "NodeDelete",
            Input::PodSet { fact, .. } | Input::PodUnreadable { fact, .. } => {
                match (fact.node.is_some(), bound(&fact.uid)) {
                    (true, Some(true)) => "AssignedPodUpdate",
                    (true, _) => "AssignedPodAdd",
                    (false, None) => "UnschedulablePodAdd",
                    (false, Some(_)) => "UnschedulablePodUpdate",
                }
            }
            Input::PodGone(uid) => match bound(uid) {
                Some(true) => "AssignedPodDelete",
                _ => "UnschedulablePodDelete",
            },
            _ => return None,
        })
    }

    fn place_of(&self, pod: PodIdx) -> usize {
        let class = self.cluster.pod(pod).class;
        self.profiles.place(&self.cluster, class).unwrap_or(0)
    }

    /// Records that a bind, requested at `since`, succeeded; the queue still knows the pod.
    pub(super) fn note_bound(&mut self, pod: PodIdx, begun: Option<u64>, since: Instant) {
        let progress = self.queue.progress(pod);
        self.note_progress(pod, progress, begun, since);
    }

    pub(super) fn note_progress(
        &mut self,
        pod: PodIdx,
        progress: Option<Progress>,
        begun: Option<u64>,
        since: Instant,
    ) {
        let (place, now) = (self.place_of(pod), self.now);
        self.counters.attempt(Attempt::Scheduled, place, begun);
        self.counters
            .took(Point::Bind, SUCCESS, place, now.since(since));
        if let Some(progress) = progress {
            let waited = now.since(progress.ready_since);
            self.counters.bound(progress.attempts, waited);
            self.counters.after_flush += u64::from(progress.flushed);
        }
    }

    /// Records that a bind, requested at `since`, failed.
    pub(super) fn note_not_bound(&mut self, pod: PodIdx, begun: Option<u64>, since: Instant) {
        let (place, now) = (self.place_of(pod), self.now);
        self.counters.attempt(Attempt::Error, place, begun);
        self.counters
            .took(Point::Bind, "Error", place, now.since(since));
    }

    /// Records the result of PostFilter for a pod that fits nowhere; it began at `begun`.
    pub(super) fn note_post_filter(
        &mut self,
        post_filter: &PostFilter,
        place: usize,
        begun: Option<u64>,
    ) {
        let victims = post_filter.victims();
        self.counters.preemptions += 1;
        let status = match victims {
            Some(victims) => {
                self.counters.victims(victims);
                SUCCESS
            }
            None => "Unschedulable",
        };
        self.counters
            .passed(Point::PostFilter, status, place, begun);
    }
}
