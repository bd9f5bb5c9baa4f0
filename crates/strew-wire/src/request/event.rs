//! Events of `events.k8s.io/v1`, for every machine.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use strew_model::time::Instant;
use strew_scheduler::machine::effect::cut_note;
use strew_scheduler::machine::{Event, PodName};

use super::{Context, Precondition, Request, Resource, Verb, micro_time};
use crate::fnv::Fnv;

/// The longest name, in bytes.
const NAME_MAX: usize = 253;

/// An event to record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// `reportingController`.
    pub(crate) reporter: &'a str,
    /// The name of this host or instance, part of `reportingInstance`.
    pub(crate) hostname: &'a str,
    /// The wall clock's time.
    pub(crate) now: Instant,
    /// `type`, `reason`, `action`.
    pub(crate) names: (&'a str, &'a str, &'a str),
    /// The text; shortened if it is too long.
    pub(crate) note: &'a Arc<str>,
    /// The object of the event.
    pub(crate) regarding: Reference<'a>,
    /// A further object.
    pub(crate) related: Option<Reference<'a>>,
}

/// An object that an event names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reference<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// Its uid; empty if unknown.
    pub(crate) uid: &'a str,
}

impl Record<'_> {
    /// The request that creates it. Source: spec/scheduler §5.9.
    pub(crate) fn create(&self) -> Request {
        let (kind, reason, action) = self.names;
        let (namespace, name) = (self.namespace(), self.name());
        let mut body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time(self.now),
            "type": kind,
            "reason": reason,
            "action": action,
            "note": &*cut_note(self.note),
            "reportingController": self.reporter,
            "reportingInstance": format!("{}-{}", self.reporter, self.hostname),
            "regarding": self.regarding.wire(),
        });
        if let Some(related) = &self.related {
            body["related"] = related.wire();
        }
        Request {
            verb: Verb::Create,
            resource: Resource::EVENTS,
            namespace: namespace.to_owned(),
            name,
            subresource: "",
            body,
            precondition: Precondition::default(),
        }
    }

    fn namespace(&self) -> &str {
        match self.regarding.namespace {
            "" => "default",
            namespace => namespace,
        }
    }

    /// The object's name with a hash of the time and the series key: a repeated creation finds the event already there.
    fn name(&self) -> String {
        let mut hash = Fnv::default();
        hash.add(&self.now.0.to_be_bytes());
        hash.add(&self.series_key().to_be_bytes());
        let suffix = format!(".{:016x}", hash.value());
        let about = self.regarding.name;
        let end = about.floor_char_boundary(about.len().min(NAME_MAX - suffix.len()));
        format!("{}{suffix}", about[..end].trim_end_matches(['-', '.']))
    }

    /// Events with equal keys are one repeated event. The key contains the note. kube-scheduler leaves the note out, so
    /// a new reason is hidden by an old text. Equal in every run and release.
    fn series_key(&self) -> u64 {
        let (kind, reason, action) = self.names;
        let related = self.related.map_or("", |related| match related.uid {
            "" => related.name,
            uid => uid,
        });
        let mut hash = Fnv::default();
        for text in [
            kind,
            reason,
            action,
            self.reporter,
            self.hostname,
            self.regarding.uid,
            related,
            self.note,
        ] {
            hash.add(text.as_bytes());
            // A separator that occurs in no text.
            hash.add(&[0xff]);
        }
        hash.value()
    }
}

impl Reference<'_> {
    fn wire(&self) -> Value {
        let fields = [
            ("apiVersion", self.api_version),
            ("kind", self.kind),
            ("namespace", self.namespace),
            ("name", self.name),
        ];
        let uid = (!self.uid.is_empty()).then_some(("uid", self.uid));
        let fields = fields.into_iter().chain(uid);
        let fields: Map<String, Value> = fields
            .map(|(key, text)| (key.to_owned(), text.into()))
            .collect();
        Value::Object(fields)
    }
}

/// What a scheduler records.
fn record<'a>(event: &'a Event, cx: &'a Context<'_>) -> Record<'a> {
    let pod = |pod: &'a PodName| Reference {
        api_version: "v1",
        kind: "Pod",
        namespace: cx.names.text(pod.namespace),
        name: &pod.name,
        uid: &pod.uid,
    };
    Record {
        reporter: cx.names.text(event.scheduler),
        hostname: cx.hostname,
        now: cx.now,
        names: event.kind.names(),
        note: &event.note,
        regarding: pod(&event.regarding),
        related: event.related.as_ref().map(pod),
    }
}

/// The request that records an event of a scheduler.
pub(super) fn create(event: &Event, cx: &Context<'_>) -> Request {
    record(event, cx).create()
}

/// Namespace and name of the event that was created for this one at that time.
pub(super) fn place(event: &Event, cx: &Context<'_>, created: Instant) -> (String, String) {
    let record = Record {
        now: created,
        ..record(event, cx)
    };
    (record.namespace().to_owned(), record.name())
}

/// The key of the series that an event of a scheduler belongs to.
pub fn series_key(event: &Event, cx: &Context<'_>) -> u64 {
    record(event, cx).series_key()
}
