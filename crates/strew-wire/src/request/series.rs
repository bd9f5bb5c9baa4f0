//! Repeated events: one object with a count, instead of one object per event.
//!
//! An API server keeps events for an hour, and the events of a thousand Pending pods tried every ten seconds would fill
//! it. Source: spec/scheduler §5.9; a difference: the note is part of the key of a series.

use rustc_hash::FxHashMap;
use serde_json::json;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Event;

use super::event::{create, place, series_key};
use super::{Context, Request, Verb, micro_time};

/// After a longer gap, an event starts a new series. Source: spec/scheduler §5.9.
const GAP: Span = Span::from_secs(6 * 60);

/// How often a growing count is written at least.
const TOLD_EVERY: Span = Span::from_secs(5 * 60);

/// The number of series kept; each takes about 50 bytes. A cluster has at most 150,000 pods, and a table that is too
/// small for those that are Pending would create an event for every try.
const RUNNING_MAX: usize = 200_000;

/// The recent events with their counts.
#[derive(Debug, Default)]
pub struct Series {
    running: FxHashMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    /// When its event was created, of which the event's name is made.
    created: Instant,
    count: u32,
    last: Instant,
    told: Instant,
}

impl Series {
    /// The request for an event: a creation, or for a repeated event a new count. `None`: the count will be written
    /// with a later event. It is written at 2, 4, 8, … and every five minutes.
    pub fn request(&mut self, event: &Event, cx: &Context<'_>) -> Option<Request> {
        let key = series_key(event, cx);
        if let Some(running) = self.running.get_mut(&key)
            && cx.now < running.last + GAP
        {
            running.count = running.count.saturating_add(1);
            running.last = cx.now;
            let is_due = running.count.is_power_of_two() || cx.now >= running.told + TOLD_EVERY;
            return is_due.then(|| {
                running.told = cx.now;
                patch(event, cx, running)
            });
        }
        self.make_room(cx.now);
        let running = Running {
            created: cx.now,
            count: 1,
            last: cx.now,
            told: cx.now,
        };
        self.running.insert(key, running);
        Some(create(event, cx))
    }

    fn make_room(&mut self, now: Instant) {
        if self.running.len() < RUNNING_MAX {
            return;
        }
        self.running.retain(|_, running| now < running.last + GAP);
        if self.running.len() >= RUNNING_MAX {
            // Each series restarts when its event repeats: more objects, but bounded memory.
            self.running.clear();
        }
    }
}

/// Raises the count of the event that the series began with.
fn patch(event: &Event, cx: &Context<'_>, running: &Running) -> Request {
    let (namespace, name) = place(event, cx, running.created);
    Request {
        verb: Verb::MergePatch,
        resource: super::Resource::EVENTS,
        namespace,
        name,
        subresource: "",
        body: json!({
            "series": {"count": running.count, "lastObservedTime": micro_time(running.last)},
        }),
        precondition: super::Precondition::default(),
    }
}

#[cfg(test)]
mod tests {
    use strew_model::Interner;
    use strew_scheduler::machine::{EventKind, PodName};

    use super::*;

    struct PodSeries {
        names: Interner,
        series: Series,
        /// The name of the event that was asked for last.
        name: String,
    }

    impl PodSeries {
        fn new() -> Self {
            Self {
                names: Interner::new(),
                series: Series::default(),
                name: String::new(),
            }
        }

        /// What is asked for: the verb, and the count.
        fn record(&mut self, at_s: u64, pod: usize, note: &str) -> Option<(Verb, u64)> {
            let event = Event {
                kind: EventKind::FailedScheduling,
                scheduler: self.names.intern("default-scheduler"),
                regarding: PodName {
                    uid: format!("uid-{pod}").into(),
                    namespace: self.names.intern("shop"),
                    name: format!("web-{pod}").into(),
                },
                related: None,
                note: note.into(),
            };
            let cx = Context {
                names: &self.names,
                now: Instant::from_secs(at_s),
                hostname: "host-1",
                generation: None,
                unscheduled_since: None,
            };
            let request = self.series.request(&event, &cx)?;
            assert_eq!(request.namespace, "shop");
            self.name = request.name;
            let count = request.body["series"]["count"].as_u64().unwrap_or(1);
            Some((request.verb, count))
        }
    }

    #[test]
    fn an_event_that_comes_again_raises_a_count_which_is_written_ever_more_rarely() {
        let mut world = PodSeries::new();
        let asked: Vec<_> = (0..20).map(|i| world.record(i, 1, "no room")).collect();
        let written: Vec<_> = asked.into_iter().flatten().collect();
        let patch = Verb::MergePatch;
        let wanted = [
            (Verb::Create, 1),
            (patch, 2),
            (patch, 4),
            (patch, 8),
            (patch, 16),
        ];
        assert_eq!(written, wanted);
        assert_eq!(world.record(16 + 300, 1, "no room"), Some((patch, 21)));
        assert_eq!(world.record(17 + 300, 1, "no room"), None);
    }

    #[test]
    fn another_note_another_pod_and_a_long_silence_begin_a_series() {
        let mut world = PodSeries::new();
        let create = Some((Verb::Create, 1));
        assert_eq!(world.record(0, 1, "no room"), create);
        assert_eq!(world.record(1, 1, "no room on n2"), create);
        assert_eq!(world.record(1, 2, "no room"), create);
        assert_eq!(world.record(359, 1, "no room"), Some((Verb::MergePatch, 2)));
        assert_eq!(world.record(359 + 360, 1, "no room"), create);
    }

    #[test]
    fn the_pods_of_a_lost_zone_have_one_event_each_however_many_they_are() {
        let mut world = PodSeries::new();
        let n = 30_000;
        for pod in 0..n {
            assert_eq!(world.record(0, pod, "no room"), Some((Verb::Create, 1)));
        }
        let created = world.name.clone();
        for pod in 0..n {
            let asked = world.record(10, pod, "no room");
            assert_eq!(asked, Some((Verb::MergePatch, 2)));
        }
        assert_eq!(world.name, created);
    }

    #[test]
    fn a_flood_of_pods_is_not_remembered_for_ever() {
        let mut world = PodSeries::new();
        for pod in 0..RUNNING_MAX + 10_000 {
            assert_eq!(world.record(0, pod, "no room"), Some((Verb::Create, 1)));
            assert!(world.series.running.len() <= RUNNING_MAX);
        }
    }
}
