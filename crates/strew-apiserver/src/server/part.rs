//! Requests that write a part of a stored object: updates, and patches of every type.
//!
//! The patch code of strew-manifest patches the stored object's JSON, and the result is read as an update.

use serde_json::{Map, Value};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::json::Json;
use strew_manifest::patch::{PatchError, json_patch, merge_patch, strategic};
use strew_manifest::validation::metadata;
use strew_model::time::Instant;
use strew_wire::request::{Answer, Request, Verb};

use super::Server;
use super::answer::{answer, failure, invalid};
use super::body::Body;
use super::resource::Served;
use crate::ApiError;
use crate::object::{Key, Meta, Object, Part};

impl Server {
    /// PUT
    pub(super) fn put_part(
        &mut self,
        now: Instant,
        row: &Served,
        part: Part,
        key: &Key,
        request: &Request,
    ) -> Result<Answer, Answer> {
        let mut body = Body::of_object(row, request.body.clone())?;
        if row.is_namespaced {
            body.put_into_namespace(&request.namespace)?;
        }
        self.refuse_unknown(request, &body)?;
        let stored = self.stored(key)?;
        let version = &body.value["metadata"]["resourceVersion"];
        if row.schema.is_none() && version.as_str().is_none_or(str::is_empty) {
            let message =
                "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
            return Err(invalid("metadata.resourceVersion", message));
        }
        self.write_part(now, row, part, stored, body, false)
    }

    /// PATCH
    pub(super) fn patch_part(
        &mut self,
        now: Instant,
        row: &Served,
        part: Part,
        key: &Key,
        request: &Request,
    ) -> Result<Answer, Answer> {
        let stored = self.stored(key)?;
        // A pod's spec is shared with others of its template: parts that a patch does not touch stay shared.
        let only_metadata = part == Part::Main
            && matches!(stored, Object::Pod(_))
            && request.verb != Verb::JsonPatch
            && is_about_metadata(&request.body);
        let before = match part {
            Part::Main if !only_metadata => stored.to_json(),
            _ => beginning(row, &stored, part),
        };
        let patched = match request.verb {
            Verb::JsonPatch => {
                json_patch(&before, &request.body).map_err(|error| bad_patch(&error))?
            }
            Verb::MergePatch => merge_patch(&before, &request.body),
            _ => match row.schema {
                Some(schema) => strategic::patch(schema, &before, &request.body)
                    .map_err(|error| bad_patch(&error))?,
                None => return Err(unsupported()),
            },
        };
        let body = Body::of_part(row, patched);
        self.refuse_unknown(request, &body)?;
        self.write_part(now, row, part, stored, body, only_metadata)
    }

    fn write_part(
        &mut self,
        now: Instant,
        row: &Served,
        part: Part,
        stored: Object,
        mut body: Body,
        only_metadata: bool,
    ) -> Result<Answer, Answer> {
        let meta = meta_of(row, &body)?;
        if meta.name != stored.meta().name {
            let message = format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                meta.name,
                stored.meta().name
            );
            return Err(failure(400, "BadRequest", &message));
        }
        if !meta.uid.is_empty() && meta.uid != stored.meta().uid {
            let message = format!(
                "metadata.uid: Invalid value: {:?}: field is immutable",
                &*meta.uid
            );
            return Err(invalid("metadata.uid", &message));
        }
        if meta.version != 0 && meta.version != stored.meta().version {
            return Err(ApiError::stale(&stored.key()).into());
        }
        let written = match part {
            Part::Status => {
                let status = body.value["status"].take();
                let new = stored.with_status(status).map_err(|error| {
                    invalid("status", &format!("status: Invalid value: {error}"))
                })?;
                self.update(Part::Status, new)?
            }
            Part::Main if only_metadata => {
                check_pairs(&meta)?;
                let mut new = stored;
                *new.meta_mut() = meta;
                self.update(Part::Main, new)?
            }
            Part::Main => self.replace(now, &stored, body.decode()?)?,
        };
        Ok(answer(200, written.to_json()))
    }
}

/// True if a patch has only metadata.
fn is_about_metadata(patch: &Value) -> bool {
    let fields = patch.as_object().into_iter().flat_map(Map::keys);
    let mut others =
        fields.filter(|name| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    others.next().is_none()
}

/// Type and metadata of an object, with its status if that is the part.
fn beginning(row: &Served, stored: &Object, part: Part) -> Value {
    let mut value = serde_json::json!({
        "apiVersion": row.api_version,
        "kind": row.kind,
        "metadata": stored.meta().to_wire().to_json(),
    });
    if part == Part::Status {
        value["status"] = stored.status_to_json();
    }
    value
}

fn meta_of(row: &Served, body: &Body) -> Result<Meta, Answer> {
    let wire = match &body.value["metadata"] {
        Value::Null => Value::Object(Map::new()),
        metadata => metadata.clone(),
    };
    let wire = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta::of_json(wire)
        .map_err(|error| invalid("metadata", &format!("metadata: Invalid value: {error}")))?;
    Ok(Meta::of_wire(wire, row.is_namespaced))
}

/// Checks labels and annotations.
fn check_pairs(meta: &Meta) -> Result<(), Answer> {
    let path = FieldPath::root().child("metadata");
    let mut errors = Vec::new();
    metadata::labels(Some(&meta.labels), &path.child("labels"), &mut errors);
    metadata::annotations(
        Some(&meta.annotations),
        &path.child("annotations"),
        &mut errors,
    );
    let texts: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    match texts.is_empty() {
        true => Ok(()),
        false => Err(invalid("metadata", &texts.join(", "))),
    }
}

/// The answer to an invalid patch, or one that cannot be applied to this object.
fn bad_patch(error: &PatchError) -> Answer {
    match error {
        PatchError::Operation { .. } => failure(422, "Invalid", &error.to_string()),
        PatchError::NotOperations { .. } | PatchError::Strategic { .. } => {
            failure(400, "BadRequest", &error.to_string())
        }
    }
}

fn unsupported() -> Answer {
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json-patch+json, application/merge-patch+json";
    failure(415, "UnsupportedMediaType", message)
}
