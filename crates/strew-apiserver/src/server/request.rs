//! Requests of the wire, carried out: what a real API server would do with the same bytes.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_api::patch::{Schema, strategic};
use strew_api::read::KubeObject;
use strew_api::request::{Answer, Request, Resource, Verb};
use strew_api::workloadspread::request::WORKLOAD_SPREADS;
use strew_model::time::Instant;

use super::write::{Part, pod_key};
use super::{Recorded, Server};
use crate::object::{Key, Kind, Meta, Name, Object, Pod, Truth};
use crate::{ApiError, DeleteOptions};

impl Server {
    /// Carries a request out.
    pub fn execute(&mut self, now: Instant, request: &Request) -> Answer {
        let done = match (request.resource, request.verb, request.subresource) {
            (Resource::PODS, Verb::Create, "binding") => self.binding(now, request),
            (Resource::PODS, Verb::Patch, "status") => self.patch_status(now, request),
            (Resource::PODS, Verb::Delete, "") => {
                let name = name_of(request);
                let options = DeleteOptions {
                    uid: request.precondition.uid.as_deref().map(Into::into),
                    ..DeleteOptions::default()
                };
                self.delete(now, &pod_key(&name), &options).map(|()| 200)
            }
            (Resource::EVENTS, Verb::Create, "") => {
                self.record(now, &request.body);
                Ok(201)
            }
            (Resource::LEASES, verb, "") => return self.lease(verb, request),
            (Resource::PLACEMENTS, ..) => return self.object(now, "Placement", request),
            (Resource::PLACEMENT_DECISIONS, ..) => {
                return self.object(now, "PlacementDecision", request);
            }
            (Resource::PODS, Verb::Patch, "") => self.patch_metadata(request),
            (WORKLOAD_SPREADS, Verb::Get, "") => return self.read_spread(request),
            (WORKLOAD_SPREADS, Verb::Update, "status") => return self.write_spread(request),
            _ => Err(ApiError::Internal(
                "the simulated server has no such resource".into(),
            )),
        };
        match done {
            Ok(code) => answer(code, json!({})),
            Err(error) => refusal(&error),
        }
    }

    /// A request that is answered with its object.
    fn object(&mut self, now: Instant, kind: &str, request: &Request) -> Answer {
        match self.custom(now, kind, request) {
            Ok((code, object)) => answer(code, object),
            Err(error) => refusal(&error),
        }
    }

    fn binding(&mut self, now: Instant, request: &Request) -> Result<u16, ApiError> {
        let uid = request.body["metadata"]["uid"].as_str().unwrap_or_default();
        let node = request.body["target"]["name"].as_str().unwrap_or_default();
        self.bind(now, &name_of(request), uid, node).map(|()| 201)
    }

    /// A strategic merge patch of a pod's status: conditions are merged by type.
    fn patch_status(&mut self, now: Instant, request: &Request) -> Result<u16, ApiError> {
        let name = name_of(request);
        let Some(pod) = self.tables.get::<Pod>(&name) else {
            return Err(ApiError::NotFound(pod_key(&name)));
        };
        let uid = request.body["metadata"]["uid"].as_str();
        if uid.is_some_and(|uid| *pod.meta.uid != *uid) {
            return Err(ApiError::Invalid(
                "metadata.uid: Invalid value: field is immutable".into(),
            ));
        }
        let mut pod = (**pod).clone();
        let status = &request.body["status"];
        for condition in status["conditions"].as_array().into_iter().flatten() {
            let text = |key: &str| condition[key].as_str().unwrap_or_default();
            let truth = Truth::of(text("status"));
            pod.status
                .set_condition(text("type"), truth, text("reason"), text("message"), now);
        }
        match &status["nominatedNodeName"] {
            Value::String(node) => pod.status.nominated = Some(node.as_str().into()),
            Value::Null if status.get("nominatedNodeName").is_some() => pod.status.nominated = None,
            _ => {}
        }
        pod.meta.version = 0;
        self.update(Part::Status, Object::from(pod)).map(|_| 200)
    }

    /// A strategic merge patch of a pod's metadata.
    fn patch_metadata(&mut self, request: &Request) -> Result<u16, ApiError> {
        let name = name_of(request);
        let Some(pod) = self.tables.get::<Pod>(&name) else {
            return Err(ApiError::NotFound(pod_key(&name)));
        };
        let uid = request.body["metadata"]["uid"].as_str();
        if uid.is_some_and(|uid| *pod.meta.uid != *uid) {
            return Err(ApiError::Invalid(
                "metadata.uid: Invalid value: field is immutable".into(),
            ));
        }
        let mut pod = (**pod).clone();
        let before = json!({"metadata": pod.meta.to_wire()});
        let wrong = |text: String| ApiError::Invalid(text.into());
        let mut patched = strategic::patch(Schema::Pod, &before, &request.body)
            .map_err(|error| wrong(error.to_string()))?;
        let metadata = serde_json::from_value(patched["metadata"].take());
        let metadata = metadata.map_err(|error| wrong(error.to_string()))?;
        pod.meta = Meta {
            version: 0,
            ..Meta::of_wire(metadata, true)
        };
        self.update(Part::Main, Object::from(pod)).map(|_| 200)
    }

    fn read_spread(&self, request: &Request) -> Answer {
        let key = spread_key(request);
        match self.tables.find(&key) {
            Some(found) => answer(200, found.to_json()),
            None => refusal(&ApiError::NotFound(key)),
        }
    }

    fn write_spread(&mut self, request: &Request) -> Answer {
        let Ok(spread) = KubeObject::of_json(request.body.clone()) else {
            return status(422, "Invalid", "the body is no WorkloadSpread");
        };
        match self.update(Part::Status, Object::of_wire(spread)) {
            Ok(stored) => answer(200, stored.to_json()),
            Err(error) => refusal(&error),
        }
    }

    fn record(&mut self, now: Instant, body: &Value) {
        let text = |value: &Value| -> Arc<str> { value.as_str().unwrap_or_default().into() };
        let regarding = &body["regarding"];
        let kind = Kind::of(regarding["kind"].as_str().unwrap_or_default());
        self.events.push(Recorded {
            at: now,
            regarding: Key {
                kind,
                name: Name::new(text(&regarding["namespace"]), text(&regarding["name"])),
            },
            uid: text(&regarding["uid"]),
            is_warning: body["type"] == "Warning",
            reason: text(&body["reason"]),
            note: text(&body["note"]),
            source: text(&body["reportingController"]),
        });
    }

    fn lease(&mut self, verb: Verb, request: &Request) -> Answer {
        let Request {
            namespace,
            name,
            body,
            ..
        } = request;
        let stored = self.leases.get(namespace, name);
        match (verb, stored) {
            (Verb::Get, None) | (Verb::Update, None) => status(404, "NotFound", "leases not found"),
            (Verb::Get, Some(lease)) => answer(200, lease.clone()),
            (Verb::Create, Some(_)) => status(409, "AlreadyExists", "leases already exists"),
            (Verb::Update, Some(lease))
                if lease["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] =>
            {
                status(409, "Conflict", "the object has been modified")
            }
            (Verb::Create, None) | (Verb::Update, Some(_)) => {
                self.version += 1;
                let lease = self.leases.set(namespace, name, self.version, body.clone());
                answer(if verb == Verb::Create { 201 } else { 200 }, lease)
            }
            _ => status(
                405,
                "MethodNotAllowed",
                "leases are read, created and updated",
            ),
        }
    }
}

fn spread_key(request: &Request) -> Key {
    Key {
        kind: Kind::WorkloadSpread,
        name: name_of(request),
    }
}

fn name_of(request: &Request) -> Name {
    Name::new(request.namespace.as_str(), request.name.as_str())
}

fn answer(code: u16, body: Value) -> Answer {
    Answer::Status {
        code,
        retry_after: None,
        body,
    }
}

fn status(code: u16, reason: &str, message: &str) -> Answer {
    let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
    answer(code, body)
}

/// The answer that tells of an error.
fn refusal(error: &ApiError) -> Answer {
    let message = error.to_string();
    match error {
        ApiError::NotFound(_) => status(404, "NotFound", &message),
        ApiError::AlreadyExists(_) => status(409, "AlreadyExists", &message),
        ApiError::Conflict(_) => status(409, "Conflict", &message),
        ApiError::Invalid(_) => {
            let mut answer = status(422, "Invalid", &message);
            if let Answer::Status { body, .. } = &mut answer {
                body["details"] = json!({"causes": [{"field": message.split(':').next()}]});
            }
            answer
        }
        ApiError::Forbidden(_) => status(403, "Forbidden", &message),
        ApiError::TooManyRequests { .. } => status(429, "TooManyRequests", &message),
        ApiError::Internal(_) => status(500, "InternalError", &message),
        ApiError::Lost | ApiError::Later => Answer::Lost(message.into()),
    }
}
