//! Leases, as JSON: only elections read and write them.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use serde_json::Value;
use strew_wire::request::{Answer, Request, Verb};

use super::Server;
use super::answer::{answer, failure};
use super::request::{no_such_method, no_such_resource};

/// Leases by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<(String, String), Value>);

impl Leases {
    fn get(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.0.get(&(namespace.to_owned(), name.to_owned()))
    }

    fn set(&mut self, namespace: &str, name: &str, version: u64, mut lease: Value) -> Value {
        if let Some(metadata) = lease["metadata"].as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), version.to_string().into());
            metadata.insert("namespace".to_owned(), namespace.into());
            metadata.insert("name".to_owned(), name.into());
        }
        self.0
            .insert((namespace.to_owned(), name.to_owned()), lease.clone());
        lease
    }
}

impl Server {
    /// Reads, creates or updates a lease.
    pub(super) fn lease(&mut self, request: &Request) -> Result<Answer, Answer> {
        let Request {
            verb,
            namespace,
            name,
            body,
            subresource,
            ..
        } = request;
        if !subresource.is_empty() {
            return Err(no_such_resource());
        }
        if matches!(verb, Verb::Create | Verb::Update) {
            let _: Lease = self.read_as(request, body)?;
        }
        match (verb, self.leases.get(namespace, name)) {
            (Verb::Get, Some(lease)) => Ok(answer(200, lease.clone())),
            (Verb::Get | Verb::Update, None) => {
                let message = format!("leases.coordination.k8s.io {name:?} not found");
                Err(failure(404, "NotFound", &message))
            }
            (Verb::Create, Some(_)) => {
                let message = format!("leases.coordination.k8s.io {name:?} already exists");
                Err(failure(409, "AlreadyExists", &message))
            }
            (Verb::Update, Some(lease)) => {
                let (old, new) = (&lease["metadata"], &body["metadata"]);
                if old["resourceVersion"] != new["resourceVersion"] {
                    let message = format!(
                        "Operation cannot be fulfilled on leases.coordination.k8s.io {name:?}: the object has been \
                         modified; please apply your changes to the latest version and try again"
                    );
                    return Err(failure(409, "Conflict", &message));
                }
                Ok(self.put_lease(200, request))
            }
            (Verb::Create, None) => Ok(self.put_lease(201, request)),
            _ => Err(no_such_method()),
        }
    }

    fn put_lease(&mut self, code: u16, request: &Request) -> Answer {
        let version = self.next_version();
        let Request {
            namespace,
            name,
            body,
            ..
        } = request;
        answer(
            code,
            self.leases.set(namespace, name, version, body.clone()),
        )
    }
}
