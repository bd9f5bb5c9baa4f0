//! Requests about Open Cluster Management's objects: custom resources with a status of their own.

use serde_json::Value;
use strew_api::patch::merge_patch;
use strew_api::read::KubeObject;
use strew_api::request::{Request, Verb};
use strew_model::time::Instant;

use super::Server;
use super::write::Part;
use crate::object::{Key, Kind, Meta, Name, Object};
use crate::{ApiError, DeleteOptions};

impl Server {
    /// Creates, patches or deletes an object of a kind; the object as it is then.
    pub(super) fn custom(
        &mut self,
        now: Instant,
        kind: &str,
        request: &Request,
    ) -> Result<(u16, Value), ApiError> {
        let key = Key {
            kind: Kind::of(kind),
            name: Name::new(request.namespace.as_str(), request.name.as_str()),
        };
        match (request.verb, request.subresource) {
            (Verb::Create, "") => {
                let object = decode(request.body.clone())?;
                let created = self.create(now, Object::of_wire(object))?;
                Ok((201, created.to_json()))
            }
            (Verb::MergePatch, "") => {
                let stored = self.expected(&key, request)?;
                self.patch(Part::Main, stored, request)
            }
            (Verb::MergePatch, "status") => {
                let stored = self.expected(&key, request)?;
                self.patch(Part::Status, stored, request)
            }
            (Verb::Delete, "") => {
                let stored = self.expected(&key, request)?;
                let options = DeleteOptions::of_uid(&stored.meta().uid);
                self.delete(now, &key, &options)?;
                // A Status, as of any object that is gone at once.
                Ok((
                    200,
                    serde_json::json!({"kind": "Status", "status": "Success"}),
                ))
            }
            _ => Err(ApiError::Internal(
                "nobody asks this of a custom resource".into(),
            )),
        }
    }

    /// The object that a request means, if it is the one and as it was.
    fn expected(&self, key: &Key, request: &Request) -> Result<Object, ApiError> {
        let Some(stored) = self.tables.find(key) else {
            return Err(ApiError::NotFound(key.clone()));
        };
        let expected = &request.precondition;
        let meta = stored.meta();
        if let Some(uid) = &expected.uid
            && *meta.uid != **uid
        {
            return Err(match request.verb {
                Verb::Delete => ApiError::Conflict(
                    format!(
                        "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                        meta.uid
                    )
                    .into(),
                ),
                _ => ApiError::Invalid("metadata.uid: Invalid value: field is immutable".into()),
            });
        }
        match &expected.resource_version {
            Some(version) if *version != meta.version.to_string() => Err(ApiError::stale(key)),
            _ => Ok(stored),
        }
    }

    /// A merge patch of one part. What changes nothing is not written.
    fn patch(
        &mut self,
        part: Part,
        stored: Object,
        request: &Request,
    ) -> Result<(u16, Value), ApiError> {
        let before = stored.to_json();
        let mut after = merge_patch(&before, &request.body);
        match part {
            Part::Status => after["metadata"] = before["metadata"].clone(),
            Part::Main => {
                for field in ["uid", "resourceVersion", "generation"] {
                    after["metadata"][field] = before["metadata"][field].clone();
                }
                match before.get("status") {
                    Some(status) => after["status"] = status.clone(),
                    None => drop(after.as_object_mut().map(|o| o.shift_remove("status"))),
                }
            }
        }
        let mut new = Object::of_wire(decode(after)?);
        let patched = new.meta().clone();
        *new.meta_mut() = Meta {
            labels: patched.labels,
            annotations: patched.annotations,
            ..stored.meta().clone()
        };
        if new.to_json() == before {
            return Ok((200, before));
        }
        Ok((200, self.put(new).to_json()))
    }
}

fn decode(value: Value) -> Result<KubeObject, ApiError> {
    KubeObject::of_json(value).map_err(|error| ApiError::Invalid(error.to_string().into()))
}
