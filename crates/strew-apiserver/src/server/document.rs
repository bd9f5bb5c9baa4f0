//! Objects as JSON beside the tables, which only processes read and write: Leases, the registration of webhooks, Secrets.
//! Their writes trigger no watch.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;
use strew_manifest::patch::{json_patch, merge_patch};
use strew_wire::request::{Answer, Request, Resource, Verb};

use super::Server;
use super::answer::{answer, failure, success};
use super::request::{no_such_method, no_such_resource};

/// Plural, namespace and name.
type Key = (&'static str, String, String);

/// Objects by their keys.
#[derive(Debug, Default)]
pub(super) struct Documents(BTreeMap<Key, Value>);

fn key(request: &Request) -> Key {
    let plural = request.resource.plural;
    (plural, request.namespace.clone(), request.name.clone())
}

fn conflict(of: &str) -> Answer {
    let message = format!(
        "Operation cannot be fulfilled on {of}: the object has been modified; please apply your changes to the latest \
         version and try again"
    );
    failure(409, "Conflict", &message)
}

impl Server {
    /// An object beside the tables; `None` if it does not exist.
    pub fn document(&self, resource: Resource, namespace: &str, name: &str) -> Option<&Value> {
        let key = (resource.plural, namespace.to_owned(), name.to_owned());
        self.documents.0.get(&key)
    }

    /// Reads, creates, changes or deletes such an object.
    pub(super) fn of_document(&mut self, request: &Request) -> Result<Answer, Answer> {
        let Request {
            verb,
            resource,
            name,
            body,
            subresource,
            ..
        } = request;
        if !subresource.is_empty() {
            return Err(no_such_resource());
        }
        if matches!(verb, Verb::Create | Verb::Update) && *resource == Resource::LEASES {
            let _: Lease = self.read_as(request, body)?;
        }
        let of = match resource.group {
            "" => format!("{} {name:?}", resource.plural),
            group => format!("{}.{group} {name:?}", resource.plural),
        };
        let Some(stored) = self.documents.0.get(&key(request)) else {
            return match verb {
                Verb::Create => Ok(self.put_document(201, request, body.clone())),
                _ => Err(failure(404, "NotFound", &format!("{of} not found"))),
            };
        };
        match verb {
            Verb::Get => Ok(answer(200, stored.clone())),
            Verb::Create => {
                let message = format!("{of} already exists");
                Err(failure(409, "AlreadyExists", &message))
            }
            Verb::Update => {
                let (old, new) = (&stored["metadata"], &body["metadata"]);
                if old["resourceVersion"] != new["resourceVersion"] {
                    return Err(conflict(&of));
                }
                Ok(self.put_document(200, request, body.clone()))
            }
            Verb::MergePatch => {
                let patched = merge_patch(stored, body);
                Ok(self.put_document(200, request, patched))
            }
            Verb::JsonPatch => match json_patch(stored, body) {
                Ok(patched) => Ok(self.put_document(200, request, patched)),
                Err(error) => Err(failure(422, "Invalid", &error.to_string())),
            },
            Verb::Delete => {
                self.next_version();
                self.documents.0.remove(&key(request));
                Ok(success(200))
            }
            Verb::Patch => Err(no_such_method()),
        }
    }

    /// Stores an object. A patch that changes nothing writes nothing, as in a real API server.
    fn put_document(&mut self, code: u16, request: &Request, mut object: Value) -> Answer {
        let key = key(request);
        if self.documents.0.get(&key) == Some(&object) {
            return answer(code, object);
        }
        let version = self.next_version();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), version.to_string().into());
            if !request.namespace.is_empty() {
                metadata.insert("namespace".to_owned(), request.namespace.as_str().into());
            }
            metadata.insert("name".to_owned(), request.name.as_str().into());
        }
        self.documents.0.insert(key, object.clone());
        answer(code, object)
    }
}
