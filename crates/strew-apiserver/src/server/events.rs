//! Recorded events.

use std::sync::Arc;

use k8s_openapi::api::events::v1::{Event, EventSeries};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use strew_manifest::json::Json;
use strew_model::time::Instant;
use strew_wire::request::{Answer, Request, Verb};

use super::Server;
use super::answer::{failure, success};
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
    by_name: FxHashMap<Name, usize>,
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
        self.check_strictly::<Event>(request)?;
        if self.events.by_name.contains_key(&name) {
            let message = format!("events.events.k8s.io {:?} already exists", &*name.name);
            return Err(failure(409, "AlreadyExists", &message));
        }
        let body = &request.body;
        let text = |value: &Value| -> Arc<str> { value.as_str().unwrap_or_default().into() };
        let regarding = &body["regarding"];
        let recorded = Recorded {
            at: now,
            regarding: Key {
                kind: Kind::of(regarding["kind"].as_str().unwrap_or_default()),
                name: Name::new(text(&regarding["namespace"]), text(&regarding["name"])),
            },
            uid: text(&regarding["uid"]),
            is_warning: body["type"] == "Warning",
            reason: text(&body["reason"]),
            note: text(&body["note"]),
            source: text(&body["reportingController"]),
            count: count(&body["series"]),
        };
        self.events.push_named(name, recorded);
        Ok(success(201))
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
        self.check_strictly::<Repetition>(request)?;
        event.at = now;
        event.count = count(&request.body["series"]);
        self.events.push_named(name, event);
        Ok(success(200))
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

/// 1, or how often a series says.
fn count(series: &Value) -> u32 {
    let count = series["count"].as_u64();
    count.and_then(|n| u32::try_from(n).ok()).unwrap_or(1)
}
