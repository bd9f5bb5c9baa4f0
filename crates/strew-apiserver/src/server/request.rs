//! Carries out requests of the wire as a real API server carries out the same bytes.
//!
//! A table (`resource`) lists the served resources; verbs act the same for every row. Requests have
//! `fieldValidation=Strict` ([`Request::path`]), so a body with an unknown field is refused and counted
//! ([`Server::unknown_fields`]). No body is changed silently.
//!
//! Source: `k8s.io/apiserver/pkg/endpoints/handlers`, v1.36.

use k8s_openapi::api::core::v1::Binding;
use k8s_openapi::api::policy::v1::Eviction;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_manifest::read::KubeObject;
use strew_model::time::{Instant, Span};
use strew_wire::request::{Answer, Request, Verb};

use super::Server;
use super::answer::{answer, failure, success};
use super::body::Body;
use super::resource::{Served, Storage, served};
use crate::object::{Key, Kind, Name, Object, Part};
use crate::{ApiError, DeleteOptions, Propagation};

impl Server {
    /// Carries out a request. The answer to a write has the resulting object.
    pub fn execute(&mut self, now: Instant, request: &Request) -> Answer {
        let done = match served(request.resource) {
            None => Err(no_such_resource()),
            Some(row) => match row.storage.clone() {
                Storage::Objects(kind) => self.object(now, &row, kind, request),
                Storage::Events => self.event(now, request),
                Storage::Documents => self.of_document(request),
            },
        };
        done.unwrap_or_else(|refused| refused)
    }

    fn object(
        &mut self,
        now: Instant,
        row: &Served,
        kind: Kind,
        request: &Request,
    ) -> Result<Answer, Answer> {
        let namespace = if row.is_namespaced {
            request.namespace.as_str()
        } else {
            ""
        };
        let key = Key {
            kind,
            name: Name::new(namespace, request.name.as_str()),
        };
        let is_pod = key.kind == Kind::Pod;
        let part = match request.subresource {
            "" => Part::Main,
            "status" => Part::Status,
            "binding" if is_pod && request.verb == Verb::Create => {
                return self.binding(now, &key, request);
            }
            "eviction" if is_pod && request.verb == Verb::Create => {
                return self.eviction(now, &key, request);
            }
            "binding" | "eviction" if is_pod => return Err(no_such_method()),
            _ => return Err(no_such_resource()),
        };
        match (request.verb, part) {
            (Verb::Get, _) => Ok(answer(200, self.stored(&key)?.to_json())),
            (Verb::Create, Part::Main) => self.post(now, row, request),
            (Verb::Update, _) => self.put_part(now, row, part, &key, request),
            (Verb::Patch | Verb::MergePatch | Verb::JsonPatch, _) => {
                self.patch_part(now, row, part, &key, request)
            }
            (Verb::Delete, Part::Main) => self.remove(now, &key, request),
            (Verb::Create | Verb::Delete, Part::Status) => Err(no_such_method()),
        }
    }

    pub(super) fn stored(&self, key: &Key) -> Result<Object, ApiError> {
        let found = self.tables.find(key);
        found.ok_or_else(|| ApiError::NotFound(key.clone()))
    }

    fn post(&mut self, now: Instant, row: &Served, request: &Request) -> Result<Answer, Answer> {
        let mut body = Body::of_object(row, request.body.clone())?;
        if row.is_namespaced {
            body.put_into_namespace(&request.namespace)?;
        }
        self.refuse_unknown(request, &body)?;
        let object: KubeObject = body.decode()?;
        let created = self.create(now, Object::of_wire(object))?;
        Ok(answer(201, created.to_json()))
    }

    fn remove(&mut self, now: Instant, key: &Key, request: &Request) -> Result<Answer, Answer> {
        let options: meta::DeleteOptions = self.read_as(request, &request.body)?;
        let stored = self.stored(key)?;
        let wanted = options.preconditions.as_ref();
        let wanted = wanted.and_then(|only| only.resource_version.as_deref());
        let found = stored.meta().version.to_string();
        if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
            let message = format!(
                "Precondition failed: ResourceVersion in precondition: {wanted}, ResourceVersion in object meta: \
                 {found}"
            );
            return Err(ApiError::Conflict(message.into()).into());
        }
        self.delete(now, key, &delete_options(options)?)?;
        Ok(match self.tables.find(key) {
            Some(terminating) => answer(200, terminating.to_json()),
            None => success(200),
        })
    }

    fn binding(&mut self, now: Instant, key: &Key, request: &Request) -> Result<Answer, Answer> {
        self.check_strictly::<Binding>(request)?;
        let uid = request.body["metadata"]["uid"].as_str();
        let node = request.body["target"]["name"].as_str();
        let (uid, node) = (uid.unwrap_or_default(), node.unwrap_or_default());
        self.bind(now, &key.name, uid, node)?;
        Ok(success(201))
    }

    fn eviction(&mut self, now: Instant, key: &Key, request: &Request) -> Result<Answer, Answer> {
        let eviction: Eviction = self.read_as(request, &request.body)?;
        let options = eviction.delete_options.unwrap_or_default();
        self.evict(now, key, &delete_options(options)?)?;
        Ok(success(201))
    }

    /// Decodes a body of which a few texts are used, to refuse what a real API server refuses: in builds with
    /// assertions, in which all tests and lives under faults are played. These bodies are strew's own, two a pod, and
    /// decoding them was a tenth of a simulation.
    pub(super) fn check_strictly<T>(&mut self, request: &Request) -> Result<(), Answer>
    where
        T: Json,
    {
        if cfg!(debug_assertions) {
            let _: T = self.read_as(request, &request.body)?;
        }
        Ok(())
    }

    /// Decodes a body of a type that is not stored.
    pub(super) fn read_as<T>(&mut self, request: &Request, body: &Value) -> Result<T, Answer>
    where
        T: Json,
    {
        let (value, refused) = Body::of_type(body)?;
        refused.map_or(Ok(()), |body| self.refuse_unknown(request, &body))?;
        Ok(value)
    }

    /// Refuses and counts a body with unknown fields, as `fieldValidation=Strict` demands.
    pub(super) fn refuse_unknown(&mut self, request: &Request, body: &Body) -> Result<(), Answer> {
        for field in body.unknown() {
            let name = format!("{}: {field}", request.resource.plural);
            *self.unknown_fields.entry(name).or_default() += 1;
        }
        body.refusal(request.verb).map_or(Ok(()), Err)
    }
}

fn delete_options(wire: meta::DeleteOptions) -> Result<DeleteOptions, Answer> {
    let propagation = match wire.propagation_policy.as_deref() {
        None => None,
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some("Orphan") => Some(Propagation::Orphan),
        Some(other) => {
            let message = format!("invalid propagationPolicy: {other:?}");
            return Err(failure(422, "Invalid", &message));
        }
    };
    let uid = wire.preconditions.and_then(|only| only.uid);
    let grace = wire.grace_period_seconds;
    Ok(DeleteOptions {
        uid: uid.map(Into::into),
        grace: grace.map(|seconds| Span::from_secs(u64::try_from(seconds).unwrap_or(0))),
        propagation,
    })
}

pub(super) fn no_such_resource() -> Answer {
    let message = "the server could not find the requested resource";
    failure(404, "NotFound", message)
}

pub(super) fn no_such_method() -> Answer {
    let message = "the server does not allow this method on the requested resource";
    failure(405, "MethodNotAllowed", message)
}
