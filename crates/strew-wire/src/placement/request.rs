//! Effects of placement as requests to an API server.
//!
//! An effect can need two requests, where the second names the object that the first created: [`Carrying::begin`]
//! returns the first, [`Carrying::answered`] the next one or the end. Source: spec/placement §2.9.

use serde_json::{Map, Value, json};
use strew_manifest::json::Json;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_placement::decisions::writes::{Write, WriteKind};
use strew_placement::facts::decision::{Decision, GroupLabels, Replicas};
use strew_placement::machine::{Effect, EffectId, Event, Outcome, PlacementName};

use super::facts::replicas::annotation;
use super::facts::status::to_wire;
use super::wire::{GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL, REPLICAS_ANNOTATION};
use crate::request::event::{Record, Reference};
use crate::request::{Answer, Precondition, Request, Resource, Verb};

/// `reportingController` of events.
pub const CONTROLLER: &str = "placement-controller";

const API_VERSION: &str = "cluster.open-cluster-management.io/v1beta1";

/// The inputs of a request beside its effect.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The interner of the hub.
    pub names: &'a Interner,
    /// The wall clock's time.
    pub now: Instant,
    /// The name of this host or instance, part of `reportingInstance`.
    pub hostname: &'a str,
}

/// An effect in progress.
#[derive(Debug, Clone)]
pub struct Carrying {
    effect: Effect,
    /// The remaining patches, in order.
    left: Vec<Patch>,
}

/// A part of a PlacementDecision that needs a request of its own.
#[derive(Debug, Clone)]
enum Patch {
    Decisions(Box<[Decision]>),
    Metadata(Option<GroupLabels>, Option<Replicas>),
}

/// The step after an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Send this request.
    Send(Box<Request>),
    /// Done; the outcome goes to the machine if it waits for one.
    Done(Option<(EffectId, Outcome)>),
}

impl Carrying {
    /// The first request of an effect.
    pub fn begin(effect: Effect, cx: &Context<'_>) -> (Self, Request) {
        let mut left = Vec::new();
        let request = match &effect {
            Effect::Event(event) => create_event(event, cx),
            Effect::WriteStatus {
                placement,
                status,
                revision,
                ..
            } => {
                let status = to_wire(status, cx.names).to_json();
                write_status(placement, status, *revision, cx)
            }
            Effect::WriteDecision {
                placement,
                write,
                revision,
                ..
            } => first(placement, write, *revision, &mut left, cx),
        };
        (Self { effect, left }, request)
    }

    /// The step after the answer to the last request.
    pub fn answered(&mut self, answer: &Answer, cx: &Context<'_>) -> Next {
        let id = match &self.effect {
            Effect::Event(_) => return Next::Done(None),
            Effect::WriteStatus { id, .. } | Effect::WriteDecision { id, .. } => *id,
        };
        let Some(object) = answer.object() else {
            return Next::Done(Some((id, failure(answer))));
        };
        if let Effect::WriteDecision {
            placement, write, ..
        } = &self.effect
            && !self.left.is_empty()
        {
            let patch = self.left.remove(0);
            let metadata = identity(&object["metadata"]);
            let request = patch_decision(placement, write, patch, metadata, cx);
            return Next::Send(Box::new(request));
        }
        let version = object["metadata"]["resourceVersion"].as_str();
        let revision = version.and_then(|v| v.parse().ok()).unwrap_or(0);
        Next::Done(Some((id, Outcome::Ok { revision })))
    }
}

fn failure(answer: &Answer) -> Outcome {
    match answer.code() {
        Some(404) => Outcome::Gone,
        Some(409 | 422) if answer.is_of_another_uid() => Outcome::Gone,
        Some(409) => Outcome::Conflict(answer.words()),
        _ => Outcome::Failed(answer.words()),
    }
}

fn first(
    placement: &PlacementName,
    write: &Write,
    revision: Option<u64>,
    left: &mut Vec<Patch>,
    cx: &Context<'_>,
) -> Request {
    let decisions = write.decisions.clone();
    let labels = write.group;
    match write.kind {
        WriteKind::Delete => delete(placement, write, revision, cx),
        WriteKind::Create => {
            // A PlacementDecision without clusters has no status.
            let filled = decisions.filter(|decisions| !decisions.is_empty());
            left.extend(filled.map(Patch::Decisions));
            create(placement, write, cx)
        }
        WriteKind::Update => {
            left.extend(decisions.map(Patch::Decisions));
            if labels.is_some() || write.replicas.is_some() {
                left.push(Patch::Metadata(labels, write.replicas.clone()));
            }
            let patch = match left.is_empty() {
                true => Patch::Decisions(Box::default()),
                false => left.remove(0),
            };
            let version = revision.map(|revision| revision.to_string().into());
            let metadata = named([("resourceVersion", version)]);
            patch_decision(placement, write, patch, metadata, cx)
        }
    }
}

/// The identity of the current object.
fn identity(metadata: &Value) -> Value {
    let field = |key| {
        (
            key,
            metadata.get(key).filter(|value| value.is_string()).cloned(),
        )
    };
    named([field("uid"), field("resourceVersion")])
}

/// Only the known fields: a `null` would delete the field.
fn named<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let known = fields.into_iter();
    let known = known.filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(known.collect())
}

fn create(placement: &PlacementName, write: &Write, cx: &Context<'_>) -> Request {
    let (namespace, name) = (
        cx.names.text(placement.namespace),
        cx.names.text(write.name),
    );
    let owner = json!({
        "apiVersion": API_VERSION,
        "kind": "Placement",
        "name": cx.names.text(placement.name),
        "uid": &*placement.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    let group = write.group.unwrap_or(GroupLabels {
        index: None,
        name: None,
    });
    let mut body = json!({
        "apiVersion": API_VERSION,
        "kind": "PlacementDecision",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels(placement, &group, cx),
            "ownerReferences": [owner],
        },
    });
    let replicas = write.replicas.as_ref();
    if let Some(text) = replicas.and_then(|replicas| annotation(replicas, cx.names)) {
        body["metadata"]["annotations"] = json!({ REPLICAS_ANNOTATION: text });
    }
    of_decision(Verb::Create, placement, write, "", body, cx)
}

/// The three labels, always all of them.
fn labels(placement: &PlacementName, group: &GroupLabels, cx: &Context<'_>) -> Value {
    json!({
        PLACEMENT_LABEL: cx.names.text(placement.name),
        GROUP_INDEX_LABEL: group.index.unwrap_or(0).to_string(),
        GROUP_NAME_LABEL: group.name.map_or("", |name| cx.names.text(name)),
    })
}

fn patch_decision(
    placement: &PlacementName,
    write: &Write,
    patch: Patch,
    mut metadata: Value,
    cx: &Context<'_>,
) -> Request {
    let precondition = precondition(&metadata);
    match patch {
        Patch::Metadata(group, replicas) => {
            if let Some(group) = group {
                metadata["labels"] = labels(placement, &group, cx);
            }
            if let Some(replicas) = replicas {
                // A `null` takes the annotation away.
                let text = annotation(&replicas, cx.names);
                metadata["annotations"] = json!({ REPLICAS_ANNOTATION: text });
            }
            let body = json!({ "metadata": metadata });
            let request = of_decision(Verb::MergePatch, placement, write, "", body, cx);
            Request {
                precondition,
                ..request
            }
        }
        Patch::Decisions(decisions) => {
            let decisions: Vec<Value> = decisions.iter().map(|d| decision(d, cx)).collect();
            let body = json!({"metadata": metadata, "status": {"decisions": decisions}});
            let request = of_decision(Verb::MergePatch, placement, write, "status", body, cx);
            Request {
                precondition,
                ..request
            }
        }
    }
}

fn decision(decision: &Decision, cx: &Context<'_>) -> Value {
    let mut wire = Map::new();
    wire.insert(
        "clusterName".to_owned(),
        cx.names.text(decision.cluster).into(),
    );
    wire.insert("reason".to_owned(), "".into());
    if let Some(score) = decision.score {
        wire.insert("score".to_owned(), score.into());
    }
    Value::Object(wire)
}

fn delete(
    placement: &PlacementName,
    write: &Write,
    revision: Option<u64>,
    cx: &Context<'_>,
) -> Request {
    let version = revision.map(|revision| revision.to_string());
    let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    if let Some(version) = &version {
        body["preconditions"] = json!({"resourceVersion": version});
    }
    Request {
        precondition: Precondition {
            uid: None,
            resource_version: version,
        },
        ..of_decision(Verb::Delete, placement, write, "", body, cx)
    }
}

fn of_decision(
    verb: Verb,
    placement: &PlacementName,
    write: &Write,
    subresource: &'static str,
    body: Value,
    cx: &Context<'_>,
) -> Request {
    Request {
        verb,
        resource: Resource::PLACEMENT_DECISIONS,
        namespace: cx.names.text(placement.namespace).to_owned(),
        name: cx.names.text(write.name).to_owned(),
        subresource,
        body,
        precondition: Precondition::default(),
    }
}

fn precondition(metadata: &Value) -> Precondition {
    let text = |key: &str| metadata[key].as_str().map(str::to_owned);
    Precondition {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
    }
}

fn write_status(
    placement: &PlacementName,
    status: Value,
    revision: u64,
    cx: &Context<'_>,
) -> Request {
    let metadata = json!({"uid": &*placement.uid, "resourceVersion": revision.to_string()});
    Request {
        verb: Verb::MergePatch,
        resource: Resource::PLACEMENTS,
        namespace: cx.names.text(placement.namespace).to_owned(),
        name: cx.names.text(placement.name).to_owned(),
        subresource: "status",
        precondition: precondition(&metadata),
        body: json!({"metadata": metadata, "status": status}),
    }
}

fn create_event(event: &Event, cx: &Context<'_>) -> Request {
    let (reason, action) = event.kind.names();
    let kind = if event.warning { "Warning" } else { "Normal" };
    let namespace = cx.names.text(event.placement.namespace);
    let reference = |kind, name, uid| Reference {
        api_version: API_VERSION,
        kind,
        namespace,
        name,
        uid,
    };
    let about = cx.names.text(event.placement.name);
    let decision = event.decision.map(|name| cx.names.text(name));
    let event = Record {
        reporter: CONTROLLER,
        hostname: cx.hostname,
        now: cx.now,
        names: (kind, reason, action),
        note: &event.note,
        regarding: reference("Placement", about, &event.placement.uid),
        related: decision.map(|name| reference("PlacementDecision", name, "")),
    };
    event.create()
}
