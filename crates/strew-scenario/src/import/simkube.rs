//! Reads SimKube's traces: `events` of whole objects, applied or deleted, with times in seconds.
//!
//! Source: the crate sk-store 2.6, `ExportedTrace` and `TraceEvent` (format version 2). Its tracer applies a whole
//! object when its spec has changed, and again when it sees the object anew.

use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::read::KubeObject;
use strew_model::Span;

use super::diagnostics;
use super::history::{History, Making};
use super::input::Input;
use super::key::Key;
use crate::format::problems::Problems;
use crate::format::value::At;
use crate::format::vocabulary::{Form, Shape, fields, shape};

const VERSION: u32 = 2;

static TRACE: Shape = shape(
    "Trace",
    "An exported trace.",
    fields! {
        "version" must: &Form::Count, "The version of the format.";
        "config": &Form::Object, "What was tracked.";
        "events" must: &Form::List(&Form::Object), "What happened.";
        "index": &Form::Object, "Hashes of the objects.";
        "pod_lifecycles": &Form::Object, "How long pods lived.";
    },
);

static EVENT: Shape = shape(
    "TraceEvent",
    "What happened in a second.",
    fields! {
        "ts" must: &Form::Number, "Seconds since 1970.";
        "applied_objs": &Form::List(&Form::Object), "Whole objects.";
        "deleted_objs": &Form::List(&Form::Object), "Whole objects.";
    },
);

/// A second and its changes.
#[derive(Debug, Default)]
struct Event {
    ts: i64,
    applied: Vec<KubeObject>,
    deleted: Vec<KubeObject>,
}

/// Reads the trace; returns the number of events.
pub(super) fn read(input: &mut Input<'_>, history: &mut History) -> usize {
    let mut documents = std::mem::take(&mut input.documents).into_iter();
    let Some(document) = documents.next() else {
        input.nothing("trace");
        return 0;
    };
    for other in documents {
        let mut problems = Problems::default();
        problems.add(&FieldPath::root(), diagnostics::surplus());
        input.place(problems, &other.origin);
    }
    let mut problems = Problems::default();
    let mut events = trace(&document.value, input, history, &mut problems);
    events.sort_by_key(|(event, _)| event.ts);
    let n_events = events.len();
    let begin = events.first().map_or(0, |(event, _)| event.ts);
    let mut is_sealed = false;
    for (event, path) in events {
        let seconds = event.ts.abs_diff(begin);
        let at = seconds.checked_mul(1_000_000_000);
        let Some(at) = at.filter(|nanos| *nanos <= LATEST) else {
            problems.add(&path.child("ts"), diagnostics::out_of_range("the time"));
            continue;
        };
        if at > 0 && !std::mem::replace(&mut is_sealed, true) {
            history.seal();
        }
        tell(history, Span(at), &event);
    }
    if !is_sealed {
        history.seal();
    }
    input.place(problems, &document.origin);
    n_events
}

/// The latest event in nanoseconds: nine years, since a scenario may last ten.
pub(super) const LATEST: u64 = 9 * 365 * 24 * 3600 * 1_000_000_000;

fn tell(history: &mut History, at: Span, event: &Event) {
    for object in &event.applied {
        match at {
            Span(0) => history.begin(object),
            at => history.set(at, object, Making::Apply),
        }
    }
    for object in &event.deleted {
        match (Key::of(object), at) {
            (None, _) => history.left_out.unmodelled(object.kind()),
            (Some(key), Span(0)) => history.end_at_once(&key),
            (Some(key), at) => history.delete(at, &key),
        }
    }
}

fn trace(
    value: &Value,
    input: &mut Input<'_>,
    history: &mut History,
    problems: &mut Problems,
) -> Vec<(Event, FieldPath)> {
    let Some(fields) = At::root(value).fields(&TRACE, problems) else {
        return Vec::new();
    };
    if let Some(at) = fields.required("version", problems)
        && let Some(version) = at.count(problems)
        && version != VERSION
    {
        problems.add(&at.path, diagnostics::trace_version(version));
    }
    let lifetimes = fields.get("pod_lifecycles");
    let lifetimes = lifetimes.and_then(|at| at.value.as_object().map(serde_json::Map::len));
    history.left_out.n_lifetimes = lifetimes.unwrap_or(0);
    let Some(events) = fields.required("events", problems) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for at in events.list(problems) {
        if let Some(event) = event(&at, input, problems) {
            found.push((event, at.path));
        }
    }
    found
}

fn event(at: &At<'_>, input: &mut Input<'_>, problems: &mut Problems) -> Option<Event> {
    let fields = at.fields(&EVENT, problems)?;
    let mut objects = |name, problems: &mut Problems| {
        let mut found = Vec::new();
        let list = fields.get(name);
        for at in list
            .iter()
            .flat_map(|at| at.list(problems))
            .collect::<Vec<_>>()
        {
            found.extend(input.object(at.value, &at.path, problems));
        }
        found
    };
    let applied = objects("applied_objs", problems);
    let deleted = objects("deleted_objs", problems);
    let ts = fields.required("ts", problems)?;
    let Some(seconds) = ts.value.as_i64() else {
        problems.add(&ts.path, diagnostics::not_whole("seconds since 1970"));
        return None;
    };
    Some(Event {
        ts: seconds,
        applied,
        deleted,
    })
}
