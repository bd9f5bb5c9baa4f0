//! Effects of both machines as requests to an API server, and answers as outcomes.
//!
//! Source: spec/workloadspread §4.5, §5.4, §5.5, §5.7, §5.8, §5.11.

use serde_json::{Value, json};
use strew_manifest::json::Json;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_workloadspread::controller::{Event, EventKind, PodName, Removal};
use strew_workloadspread::{
    COST_ANNOTATION, MARKER_ANNOTATION, Marker, Status, WsKey, admission, controller,
};

use super::facts::Translator;
use super::validation::patch::of_stored_pod;
use super::{marker, status};
use crate::request::event::{Record, Reference};
use crate::request::{Answer, Precondition, Request, Resource, Verb};

/// The WorkloadSpreads of the stored version.
pub const WORKLOAD_SPREADS: Resource = Resource::of::<super::v1beta1::WorkloadSpread>();

const API_VERSION: &str = "apps.kruise.io/v1beta1";
const KIND: &str = "WorkloadSpread";

/// The inputs of a request beside its effect.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The interner of the effect's machine.
    pub names: &'a Interner,
    /// The wall clock's time.
    pub now: Instant,
    /// The name of this host or instance, part of `reportingInstance`.
    pub hostname: &'a str,
}

/// The reporting controller of events.
pub const REPORTER: &str = "workloadspread-controller";

// === admission ===

/// The request of an effect of admission, and the id for its outcome; `None` for an answer, which goes to the
/// [`PendingReviews`](super::pending_reviews::PendingReviews).
pub fn of_admission(
    effect: &admission::Effect,
    cx: &Context<'_>,
) -> Option<(admission::EffectId, Request)> {
    match effect {
        admission::Effect::WriteStatus {
            id,
            key,
            uid,
            version,
            status,
        } => Some((*id, write_status(key, uid, *version, status, cx))),
        admission::Effect::ReadSpread { id, key } => {
            let body = Value::Null;
            let request = of_spread(Verb::Get, key, "", body, Precondition::default(), cx);
            Some((*id, request))
        }
        admission::Effect::Answer(_) => None,
    }
}

/// The outcome of an answer: for a written status the version, for a read object the object.
pub fn admission_outcome(
    request: &Request,
    answer: &Answer,
    translator: &mut Translator,
    names: &mut Interner,
) -> admission::Outcome {
    use admission::Outcome;
    match (answer.code(), answer.object()) {
        (_, Some(object)) if request.verb == Verb::Get => {
            match strew_manifest::kruise::read_back(object.clone()) {
                Some((wire, _)) => Outcome::Read(Box::new(translator.spread(&wire, names))),
                None => Outcome::Failed,
            }
        }
        (_, Some(object)) => {
            let version = object.pointer("/metadata/resourceVersion");
            let version = version.and_then(|v| v.as_str()?.parse().ok());
            // It was written, but without a version no later write can be based on it.
            version.map_or(Outcome::Lost, Outcome::Written)
        }
        (Some(404), _) => Outcome::Gone,
        (Some(409), _) => Outcome::Conflict,
        _ if request.verb == Verb::Get => Outcome::Failed,
        // An API server whose storage did not answer in time may have written it.
        (Some(500..=599), _) => Outcome::Lost,
        _ if matches!(answer, Answer::Lost(_)) => Outcome::Lost,
        _ if matches!(answer, Answer::Refused(_)) => Outcome::Unsent,
        _ => Outcome::Failed,
    }
}

// === controller ===

/// The request of an effect of the controller, and the id for its outcome; `None` as id for an event.
pub fn of_controller(
    effect: &controller::Effect,
    translator: &Translator,
    cx: &Context<'_>,
) -> (Option<controller::EffectId>, Request) {
    use controller::Effect;
    match effect {
        Effect::Adopt {
            id,
            pod,
            marker,
            metadata_of,
        } => {
            let patch = metadata_of.and_then(|patch| translator.contents.patch(patch));
            (Some(*id), adopt(pod, marker, patch.map(|p| &**p), cx))
        }
        Effect::SetCost { id, pod, cost } => {
            let annotations = json!({ COST_ANNOTATION: cost.to_string() });
            let metadata = json!({"uid": &*pod.uid, "annotations": annotations});
            let body = json!({ "metadata": metadata });
            (Some(*id), of_pod(Verb::Patch, pod, body, cx))
        }
        Effect::WriteStatus {
            id,
            key,
            uid,
            version,
            status,
        } => (Some(*id), write_status(key, uid, *version, status, cx)),
        Effect::DeletePod {
            id,
            pod,
            how: Removal::Delete,
        } => {
            let body = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": &*pod.uid},
            });
            (Some(*id), of_pod(Verb::Delete, pod, body, cx))
        }
        Effect::DeletePod {
            id,
            pod,
            how: Removal::Evict,
        } => {
            let body = json!({
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": &*pod.name, "namespace": cx.names.text(pod.namespace)},
                "deleteOptions": {"preconditions": {"uid": &*pod.uid}},
            });
            let mut request = of_pod(Verb::Create, pod, body, cx);
            request.subresource = "eviction";
            (Some(*id), request)
        }
        Effect::Event(event) => (None, create_event(event, cx)),
    }
}

/// The outcome of an answer to an effect of the controller.
pub fn controller_outcome(answer: &Answer) -> controller::Outcome {
    use controller::Outcome;
    match answer.code() {
        Some(200..=299) => Outcome::Ok,
        Some(404) => Outcome::Gone,
        Some(409 | 422) if answer.is_of_another_uid() => Outcome::Gone,
        Some(409) => Outcome::Conflict,
        _ => Outcome::Failed,
    }
}

// === requests ===

/// A PUT of the status only: the API server ignores the rest of the body.
fn write_status(key: &WsKey, uid: &str, version: u64, fact: &Status, cx: &Context<'_>) -> Request {
    let version = version.to_string();
    let status = status::wire(fact).to_json();
    let body = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": &*key.name,
            "namespace": cx.names.text(key.namespace),
            "uid": uid,
            "resourceVersion": version,
        },
        "status": status,
    });
    let precondition = Precondition {
        uid: Some(uid.to_owned()),
        resource_version: Some(version),
    };
    of_spread(Verb::Update, key, "status", body, precondition, cx)
}

/// The marker, and labels and annotations of the subset's patch.
fn adopt(pod: &PodName, to: &Marker, patch: Option<&Value>, cx: &Context<'_>) -> Request {
    let mut metadata = patch.map(of_stored_pod).unwrap_or_default();
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    annotations[MARKER_ANNOTATION] = marker::write(to).into();
    metadata.insert("uid".to_owned(), (&*pod.uid).into());
    of_pod(Verb::Patch, pod, json!({ "metadata": metadata }), cx)
}

fn of_pod(verb: Verb, pod: &PodName, body: Value, cx: &Context<'_>) -> Request {
    Request {
        verb,
        resource: Resource::PODS,
        namespace: cx.names.text(pod.namespace).to_owned(),
        name: pod.name.to_string(),
        subresource: "",
        body,
        precondition: Precondition::uid(&pod.uid),
    }
}

fn of_spread(
    verb: Verb,
    key: &WsKey,
    subresource: &'static str,
    body: Value,
    precondition: Precondition,
    cx: &Context<'_>,
) -> Request {
    Request {
        verb,
        resource: WORKLOAD_SPREADS,
        namespace: cx.names.text(key.namespace).to_owned(),
        name: key.name.to_string(),
        subresource,
        body,
        precondition,
    }
}

// === events ===

/// Source: spec/workloadspread §5.11.
fn create_event(event: &Event, cx: &Context<'_>) -> Request {
    let (kind, reason) = event.kind.names();
    let record = Record {
        reporter: REPORTER,
        hostname: cx.hostname,
        now: cx.now,
        names: (kind, reason, action(event.kind)),
        note: &note(event).into(),
        regarding: Reference {
            api_version: API_VERSION,
            kind: KIND,
            namespace: cx.names.text(event.key.namespace),
            name: &event.key.name,
            uid: "",
        },
        related: None,
    };
    record.create()
}

fn action(kind: EventKind) -> &'static str {
    match kind {
        EventKind::CreatePodFailed => "Create",
        EventKind::DeletePodFailed => "Delete",
        EventKind::PatchPodDeletionCostFailed => "PatchDeletionCost",
        EventKind::RecoverSchedulable => "Reschedule",
        EventKind::PatchNotApplied => "Patch",
        EventKind::PodsOfAnother => "Assign",
        EventKind::RolloutStuck | EventKind::RolloutShort => "Rollout",
        EventKind::WebhookNotRegistered | EventKind::WebhookNotReady | EventKind::WebhookReady => {
            "Admit"
        }
    }
}

fn note(event: &Event) -> String {
    let subject = &event.subject;
    match event.kind {
        EventKind::CreatePodFailed => {
            format!("pod {subject} was admitted and did not appear in time")
        }
        EventKind::DeletePodFailed => format!("pod {subject} was to be deleted and is still there"),
        EventKind::PatchPodDeletionCostFailed => {
            format!("the deletion cost of pod {subject} could not be written")
        }
        EventKind::RecoverSchedulable => format!("subset {subject} takes pods again"),
        EventKind::PatchNotApplied => status::not_applied(subject),
        EventKind::PodsOfAnother => status::outranked(subject),
        EventKind::RolloutStuck => format!(
            "subset {subject}: a rollout does not go on, since old pods hold what new ones wait for"
        ),
        EventKind::RolloutShort => format!(
            "subset {subject} may have fewer pods after a rollout: as many more surge than later subsets have"
        ),
        EventKind::WebhookNotRegistered => status::NOT_REGISTERED.1.to_owned(),
        EventKind::WebhookNotReady => status::NOT_READY.1.to_owned(),
        EventKind::WebhookReady => {
            "the webhook answers again: new pods get their subsets".to_owned()
        }
    }
}
