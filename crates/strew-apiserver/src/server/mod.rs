//! The API server and its store: objects with resourceVersions, admission, graceful deletion, watches.
//!
//! Reading order: this file (the store), `log` (changes, and cursors that read them), `write` (create, update, delete),
//! `admission`, `webhook`; then the interface for requests: `request`, `resource` (served resources), `body`
//! (decoding), `part` (patches and updates), `binding`, `eviction`, [`events`], `document` (objects beside the tables);
//! `registration` (a hub's webhooks).

mod admission;
mod answer;
mod binding;
mod body;
mod document;
pub mod events;
mod eviction;
mod log;
mod part;
mod quota;
pub mod registration;
mod request;
mod resource;
#[cfg(test)]
mod tests;
mod webhook;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_manifest::read::KubeObject;
use strew_model::Prng;
use strew_model::time::Instant;
use strew_wire::config::AdmissionOptions;

use admission::Admission;
use document::Documents;

use crate::object::{Key, Object, is_ending_namespace};
use crate::{ApiError, Tables};
pub use events::{EventLog, Recorded};
use log::Log;
pub use log::{Change, Cursor};
pub use webhook::{AdmissionRequest, AdmissionWebhooks, Called, Creation, LateAnswer};
pub use write::pod_key;

/// The API server.
pub struct Server {
    tables: Tables,
    /// The resourceVersion of the last write.
    version: u64,
    log: Log,
    admission: Admission,
    events: EventLog,
    documents: Documents,
    /// True once there was a ResourceQuota.
    has_quotas: bool,
    /// True once a Namespace was being deleted.
    has_ending_namespaces: bool,
    /// True once there was a Placement.
    is_hub: bool,
    /// True unless Open Cluster Management's registration component is left out.
    registers: bool,
    /// Generates uids and names.
    dice: Prng,
    /// `None` if none are installed, or while they act on the server.
    webhooks: Option<Box<dyn AdmissionWebhooks>>,
    /// Unknown fields in bodies of requests, with their number: `pods: status.nodeNmae`.
    unknown_fields: BTreeMap<String, u64>,
    /// Results of creations that waited for webhooks.
    answers: Vec<(u64, Result<Object, ApiError>)>,
}

impl Server {
    /// A server without any object.
    pub fn new(options: AdmissionOptions, dice: Prng) -> Self {
        Self {
            tables: Tables::default(),
            version: 0,
            log: Log::default(),
            admission: Admission::new(options),
            events: EventLog::default(),
            documents: Documents::default(),
            has_quotas: false,
            has_ending_namespaces: false,
            is_hub: false,
            registers: true,
            dice,
            webhooks: None,
            unknown_fields: BTreeMap::new(),
            answers: Vec::new(),
        }
    }

    /// The stored objects.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Unknown fields in bodies of requests, with their number: `pods: status.nodeNmae`. These requests were refused.
    pub fn unknown_fields(&self) -> &BTreeMap<String, u64> {
        &self.unknown_fields
    }

    /// The recorded events.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// The recorded events, to add to them.
    pub fn events_mut(&mut self) -> &mut EventLog {
        &mut self.events
    }

    /// Sets the gates of the API server from now on.
    pub fn set_options(&mut self, options: AdmissionOptions) {
        self.admission.set_options(options);
    }

    /// The last changes that are still in the log, as text.
    pub fn last_written(&self) -> String {
        let newest = self
            .tables
            .all()
            .into_iter()
            .max_by_key(|o| o.meta().version);
        newest.map_or_else(|| "nothing".to_owned(), |object| object.key().to_string())
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Stores an object with a new version, and adds the change to the log.
    fn put(&mut self, mut object: Object) -> Object {
        object.meta_mut().version = self.next_version();
        if let Object::Plain(plain) = &object {
            self.has_quotas |= matches!(plain.object, KubeObject::ResourceQuota(_));
            self.has_ending_namespaces |= is_ending_namespace(&object);
            self.is_hub |= matches!(plain.object, KubeObject::Placement(_));
        }
        let old = self.tables.set(object.clone());
        self.log.push(Change {
            key: object.key(),
            old,
            new: Some(object.clone()),
        });
        object
    }

    fn take(&mut self, key: &Key) {
        if let Some(old) = self.tables.remove(key) {
            self.next_version();
            self.log.push(Change {
                key: key.clone(),
                old: Some(old),
                new: None,
            });
        }
    }

    /// The latest time in the objects.
    pub fn newest_moment(objects: &[Object]) -> Instant {
        let created = objects.iter().map(|object| object.meta().created);
        created.max().unwrap_or_default()
    }
}

/// A random UUID of version 4.
pub fn uuid(dice: &mut Prng) -> Arc<str> {
    let (a, b) = (dice.next_u64(), dice.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        0x8000 | (b >> 48 & 0x3fff),
        b & 0xffff_ffff_ffff
    )
    .into()
}
