//! Recorded events.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::events::v1::{Event, EventSeries};
use serde_json::{Value, json};
use strew_manifest::json::Json;
use strew_model::time::Instant;
use strew_wire::request::{Answer, Request, Verb};

use super::Server;
use super::answer::{answer, failure};
use super::request::{no_such_method, no_such_resource};

use crate::object::{Key, Kind, Name};

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its time.
    pub at: Instant,
    /// The object that it is about.
    pub regarding: Key,
    /// The object's uid.
    pub uid: Arc<str>,
    /// True if it is of type Warning.
    pub is_warning: bool,
    /// `reason`
    pub reason: Arc<str>,
    /// The text.
    pub note: Arc<str>,
    /// The reporting controller.
    pub source: Arc<str>,
    /// How often it occurred: 1, or more for a series.
    pub count: u32,
}

/// All events, in the order of their recording.
#[derive(Debug, Default)]
pub struct EventLog {
    all: Vec<Recorded>,
    /// The events that a request created: the last one of each name.
    by_name: BTreeMap<Name, usize>,
}

impl EventLog {
    /// Adds an event.
    pub fn push(&mut self, event: Recorded) {
        self.all.push(event);
    }

    /// All events, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Recorded> {
        self.all.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The events from this index on.
    pub fn from(&self, first: usize) -> &[Recorded] {
        self.all.get(first..).unwrap_or_default()
    }

    fn push_named(&mut self, name: Name, event: Recorded) {
        self.by_name.insert(name, self.all.len());
        self.all.push(event);
    }
}

impl Server {
    /// Creates events, and raises the count of a series with a merge patch.
    ///
    /// Only a part of an event is kept ([`Recorded`]), so events cannot be read back.
    pub(super) fn event(&mut self, now: Instant, request: &Request) -> Result<Answer, Answer> {
        let name = Name::new(request.namespace.as_str(), request.name.as_str());
        match (request.verb, request.subresource) {
            (Verb::Create, "") => self.record(now, name, request),
            (Verb::MergePatch, "") => self.repeat(now, name, request),
            (_, "") => Err(no_such_method()),
            _ => Err(no_such_resource()),
        }
    }

    fn record(&mut self, now: Instant, name: Name, request: &Request) -> Result<Answer, Answer> {
        let event: Event = self.read_as(request, &request.body)?;
        if self.events.by_name.contains_key(&name) {
            let message = format!("events.events.k8s.io {:?} already exists", &*name.name);
            return Err(failure(409, "AlreadyExists", &message));
        }
        let text = |text: Option<String>| -> Arc<str> { text.unwrap_or_default().into() };
        let regarding = event.regarding.unwrap_or_default();
        let kind = Kind::of(regarding.kind.as_deref().unwrap_or_default());
        let recorded = Recorded {
            at: now,
            regarding: Key {
                kind,
                name: Name::new(text(regarding.namespace), text(regarding.name)),
            },
            uid: text(regarding.uid),
            is_warning: event.type_.as_deref() == Some("Warning"),
            reason: text(event.reason),
            note: text(event.note),
            source: text(event.reporting_controller),
            count: event.series.map_or(1, |series| count(series.count)),
        };
        self.events.push_named(name, recorded);
        Ok(answer(201, request.body.clone()))
    }

    fn repeat(&mut self, now: Instant, name: Name, request: &Request) -> Result<Answer, Answer> {
        let Some(known) = self
            .events
            .by_name
            .get(&name)
            .and_then(|&n| self.events.all.get(n))
        else {
            let message = format!("events.events.k8s.io {:?} not found", &*name.name);
            return Err(failure(404, "NotFound", &message));
        };
        let mut event = known.clone();
        let patch: Repetition = self.read_as(request, &request.body)?;
        event.at = now;
        event.count = count(patch.series.count);
        self.events.push_named(name, event);
        Ok(answer(200, request.body.clone()))
    }
}

/// A patch of a repeated event.
#[derive(Debug)]
struct Repetition {
    series: EventSeries,
}

impl Json for Repetition {
    fn of_json(mut value: Value) -> serde_json::Result<Self> {
        let series = EventSeries::of_json(value["series"].take())?;
        Ok(Self { series })
    }

    fn to_json(&self) -> Value {
        json!({"series": self.series.to_json()})
    }
}

fn count(wire: i32) -> u32 {
    u32::try_from(wire).unwrap_or(1)
}
