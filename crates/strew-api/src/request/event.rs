//! Events of `events.k8s.io/v1`.

use serde_json::{Value, json};
use strew_model::time::Instant;
use strew_scheduler::machine::effect::cut_note;
use strew_scheduler::machine::{Event, PodName};

use super::{Context, Precondition, Request, Resource, Verb, micro_time};
use crate::fnv::Fnv;

/// How long a name may be, in bytes.
const NAME_MAX: usize = 253;

/// Source: spec/scheduler §5.9.
pub(super) fn create(event: &Event, cx: &Context<'_>) -> Request {
    let (kind, reason, action) = event.kind.names();
    let scheduler = cx.names.text(event.scheduler);
    let namespace = match cx.names.text(event.regarding.namespace) {
        "" => "default",
        namespace => namespace,
    };
    let name = name(event, cx);
    let mut body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_time(cx.now),
        "type": kind,
        "reason": reason,
        "action": action,
        "note": &*cut_note(&event.note),
        "reportingController": scheduler,
        "reportingInstance": format!("{scheduler}-{}", cx.hostname),
        "regarding": reference(&event.regarding, cx),
    });
    if let Some(related) = &event.related {
        body["related"] = reference(related, cx);
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

fn reference(pod: &PodName, cx: &Context<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": cx.names.text(pod.namespace),
        "name": &*pod.name,
        "uid": &*pod.uid,
    })
}

/// The pod's name, and a hash of the moment and the series key: created again, the event is already there.
fn name(event: &Event, cx: &Context<'_>) -> String {
    name_of(&event.regarding.name, cx.now, series_key(event, cx))
}

/// The name of an event about the object `about`, which happened `now`, in a series with this key.
pub(crate) fn name_of(about: &str, now: Instant, series_key: u64) -> String {
    let mut hash = Fnv::default();
    hash.add(&now.0.to_be_bytes());
    hash.add(&series_key.to_be_bytes());
    let suffix = format!(".{:016x}", hash.value());
    let end = about.floor_char_boundary(about.len().min(NAME_MAX - suffix.len()));
    format!("{}{suffix}", about[..end].trim_end_matches(['-', '.']))
}

/// Events that are equal in it are one event that came again. The note is part of it: kube-scheduler leaves it out, so
/// that a new reason hides behind an old text. Equal in every run and release.
pub fn series_key(event: &Event, cx: &Context<'_>) -> u64 {
    let (kind, reason, action) = event.kind.names();
    let related = event.related.as_ref().map_or("", |pod| &*pod.uid);
    key_of(&[
        kind,
        reason,
        action,
        cx.names.text(event.scheduler),
        cx.hostname,
        &event.regarding.uid,
        related,
        &event.note,
    ])
}

/// The key of a series whose events are equal in these texts.
pub(crate) fn key_of(texts: &[&str]) -> u64 {
    let mut hash = Fnv::default();
    for text in texts {
        hash.add(text.as_bytes());
        // Between two texts stands what is in none.
        hash.add(&[0xff]);
    }
    hash.value()
}
