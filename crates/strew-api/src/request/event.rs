//! Events of `events.k8s.io/v1`.

use serde_json::{Value, json};
use strew_scheduler::machine::effect::cut_note;
use strew_scheduler::machine::{Event, PodName};

use super::{Context, Precondition, Request, Resource, Verb, micro_time};

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
    let mut hash = Fnv::default();
    hash.add(&cx.now.0.to_be_bytes());
    hash.add(&series_key(event, cx).to_be_bytes());
    let suffix = format!(".{:016x}", hash.0);
    let pod = &event.regarding.name;
    let end = pod.floor_char_boundary(pod.len().min(NAME_MAX - suffix.len()));
    format!("{}{suffix}", pod[..end].trim_end_matches(['-', '.']))
}

/// Events that are equal in it are one event that came again. The note is part of it: kube-scheduler leaves it out, so
/// that a new reason hides behind an old text. Equal in every run and release.
pub fn series_key(event: &Event, cx: &Context<'_>) -> u64 {
    let (kind, reason, action) = event.kind.names();
    let related = event.related.as_ref().map_or("", |pod| &*pod.uid);
    let mut hash = Fnv::default();
    for text in [
        kind,
        reason,
        action,
        cx.names.text(event.scheduler),
        cx.hostname,
        &*event.regarding.uid,
        related,
        &*event.note,
    ] {
        hash.add(text.as_bytes());
        // Between two texts stands what is in none.
        hash.add(&[0xff]);
    }
    hash.0
}

/// FNV-1a, 64 bits. Source: draft-eastlake-fnv.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn value(&self) -> u64 {
        self.0
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
