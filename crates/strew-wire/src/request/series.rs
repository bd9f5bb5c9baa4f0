//! Repeated events: one object with a count, instead of one object per event.
//!
//! An API server keeps events for an hour, and the events of a thousand Pending pods tried every ten seconds would fill
//! it. Source: spec/scheduler §5.9; a difference: the note is part of the key of a series.

use std::collections::BTreeMap;

use serde_json::json;
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Event;

use super::event::{create, series_key};
use super::{Context, Request, Verb, micro_time};

/// After a longer gap, an event starts a new series. Source: spec/scheduler §5.9.
const GAP: Span = Span::from_secs(6 * 60);

/// How often a growing count is written at least.
const TOLD_EVERY: Span = Span::from_secs(5 * 60);

/// The number of series kept; each takes about 200 bytes.
const RUNNING_MAX: usize = 10_000;

/// The recent events with their counts.
#[derive(Debug, Default)]
pub struct Series {
    running: BTreeMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    namespace: String,
    name: String,
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
                running.patch()
            });
        }
        let request = create(event, cx);
        self.make_room(cx.now);
        let running = Running {
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            count: 1,
            last: cx.now,
            told: cx.now,
        };
        self.running.insert(key, running);
        Some(request)
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

impl Running {
    fn patch(&self) -> Request {
        Request {
            verb: Verb::MergePatch,
            resource: super::Resource::EVENTS,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource: "",
            body: json!({
                "series": {"count": self.count, "lastObservedTime": micro_time(self.last)},
            }),
            precondition: super::Precondition::default(),
        }
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
    }

    impl PodSeries {
        fn new() -> Self {
            Self {
                names: Interner::new(),
                series: Series::default(),
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
    fn a_flood_of_pods_is_not_remembered_for_ever() {
        let mut world = PodSeries::new();
        for pod in 0..3 * RUNNING_MAX {
            assert_eq!(world.record(0, pod, "no room"), Some((Verb::Create, 1)));
            assert!(world.series.running.len() <= RUNNING_MAX);
        }
    }
}
