//! The API server and its store: objects with resourceVersions, admission, graceful deletion, watches.
//!
//! Reading order: this file (the store and its log), `admission` (what it does to an object that is created),
//! `write` (create, update, delete), `binding`, `request` (requests of the wire; `custom` for those of a hub),
//! `registration` (a hub's webhooks), [`events`].

mod admission;
mod binding;
mod custom;
pub mod events;
mod eviction;
mod lease;
mod quota;
mod registration;
mod request;
mod webhook;
mod write;

use std::collections::VecDeque;
use std::sync::Arc;

use strew_api::config::AdmissionOptions;
use strew_model::Prng;
use strew_model::time::Instant;

use admission::Admission;

use crate::object::{Key, Kind, Object};
use crate::{ApiError, Tables};
pub use events::{EventLog, Recorded};
use lease::Leases;
pub use webhook::{AdmissionRequest, AdmissionWebhooks, Called, Creation, LateAnswer};
pub use write::Part;
pub use write::pod_key;

/// Something that was written: watches tell of it.
#[derive(Debug, Clone)]
pub struct Change {
    /// Which object.
    pub key: Key,
    /// As it is now; `None`: gone.
    pub object: Option<Object>,
}

impl Change {
    /// Whether it is about an object of this kind.
    pub fn is_of(&self, kind: &Kind) -> bool {
        self.key.kind == *kind
    }

    /// Which object.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

/// A write that the store took.
#[derive(Debug, Clone)]
pub struct Written {
    /// Which object.
    pub key: Key,
    /// What it was; `None`: it was not there.
    pub old: Option<Object>,
    /// What it is; `None`: gone.
    pub new: Option<Object>,
}

/// The API server.
pub struct Server {
    tables: Tables,
    /// The resourceVersion of the last write.
    version: u64,
    /// Writes that some watch has not seen yet; the first has number `log_start`.
    log: VecDeque<Change>,
    log_start: u64,
    /// Writes that somebody outside wants to hear of, and has not heard of yet.
    kept: Option<Vec<Change>>,
    admission: Admission,
    events: EventLog,
    leases: Leases,
    /// Whether there ever was a ResourceQuota.
    has_quotas: bool,
    /// Whether there ever was a Placement.
    is_hub: bool,
    /// Uids and names are drawn from it.
    dice: Prng,
    /// Writes that a witness has not seen yet; `None`: there is no witness.
    journal: Option<Vec<Written>>,
    /// `None`: none are installed, or they are acting on the server.
    webhooks: Option<Box<dyn AdmissionWebhooks>>,
    /// What became of creations that were under way.
    answers: Vec<(u64, Result<Object, ApiError>)>,
}

impl Server {
    /// A server without any object.
    pub fn new(options: AdmissionOptions, dice: Prng) -> Self {
        Self {
            tables: Tables::default(),
            version: 0,
            log: VecDeque::new(),
            log_start: 0,
            kept: None,
            admission: Admission::new(options),
            events: EventLog::default(),
            leases: Leases::default(),
            has_quotas: false,
            is_hub: false,
            dice,
            journal: None,
            webhooks: None,
            answers: Vec::new(),
        }
    }

    /// What is stored.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// What was recorded.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// What was recorded, to add to it.
    pub fn events_mut(&mut self) -> &mut EventLog {
        &mut self.events
    }

    /// The resourceVersion of the last write: as long as it stays, nothing has changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// From now on the API server runs with these gates.
    pub fn set_options(&mut self, options: AdmissionOptions) {
        self.admission.set_options(options);
    }

    /// What was written last, of what is still known; for people.
    pub fn last_written(&self) -> String {
        let newest = self
            .tables
            .all()
            .into_iter()
            .max_by_key(|o| o.meta().version);
        newest.map_or_else(|| "nothing".to_owned(), |object| object.key().to_string())
    }

    /// The number of the next write.
    pub fn log_end(&self) -> u64 {
        self.log_start + self.log.len() as u64
    }

    /// The write of this number, if it has happened.
    pub fn logged(&self, number: u64) -> Option<&Change> {
        let index = number.checked_sub(self.log_start)?;
        self.log.get(usize::try_from(index).ok()?)
    }

    /// Forgets writes that every watch has seen.
    pub fn trim_log(&mut self, seen: u64) {
        while self.log_start < seen && self.log.pop_front().is_some() {
            self.log_start += 1;
        }
    }

    /// From now on every write is kept for a witness.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// The writes since the last call.
    pub fn take_journal(&mut self) -> Vec<Written> {
        self.journal
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Stores an object under a new version, and tells the watches.
    fn put(&mut self, mut object: Object) -> Object {
        object.meta_mut().version = self.next_version();
        if let Object::Plain(plain) = &object {
            self.has_quotas |= plain.kind.name() == "ResourceQuota";
            self.is_hub |= plain.kind.name() == "Placement";
        }
        let old = self.tables.set(object.clone());
        if let Some(journal) = &mut self.journal {
            journal.push(Written {
                key: object.key(),
                old,
                new: Some(object.clone()),
            });
        }
        self.tell(Change {
            key: object.key(),
            object: Some(object.clone()),
        });
        object
    }

    fn tell(&mut self, change: Change) {
        if let Some(kept) = &mut self.kept {
            kept.push(change.clone());
        }
        self.log.push_back(change);
    }

    /// From now on every write is kept for [`take_changes`](Self::take_changes).
    pub fn keep_changes(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// The writes since the last call; none unless they are kept.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn take(&mut self, key: &Key) {
        if let Some(old) = self.tables.remove(key) {
            self.next_version();
            if let Some(journal) = &mut self.journal {
                journal.push(Written {
                    key: key.clone(),
                    old: Some(old),
                    new: None,
                });
            }
            self.tell(Change {
                key: key.clone(),
                object: None,
            });
        }
    }

    /// The first moment that no time in the stored objects is later than.
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
