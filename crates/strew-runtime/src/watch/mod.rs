//! Watched kinds, known objects, and the meaning of watch events for a machine.
//!
//! A broken watch resumes; one that is too old (410) starts again with a list, which does not contain deleted objects;
//! [`KnownObjects`] finds them. So a machine gets exactly one update for every object that is created, changed or
//! deleted.
//!
//! Reading order: [`WatchEvent`] (input), [`Update`] (what a machine gets), [`Watches`], [`kind`], [`known_objects`],
//! [`served`] (which kinds the API server serves).

pub mod kind;
pub mod known_objects;
pub mod served;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use strew_manifest::read::KubeObject;
use strew_wire::facts::{Named, PodView};
use strew_wire::request::Resource;

use crate::reads::{Begins, Reads};
use crate::warning::Warning;

pub use kind::Kind;
pub use known_objects::KnownObjects;
pub use served::{Served, ServedKind};

/// The id of a watch, or of one read. A kind that is watched again gets a new id, and late events of the old watch are
/// ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub u64);

/// Why a watch fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The error, in the API server's words if it has answered.
    pub text: String,
    /// The status code, if it has answered.
    pub code: Option<u16>,
}

impl Failure {
    /// The times that an API server may say that it prepares a storage before that is news.
    const STARTS: u32 = 5;

    /// True if it is that the API server still prepares the storage of a kind, as after each start and for each new
    /// definition.
    fn is_start(&self) -> bool {
        self.code == Some(429) && self.text.contains("(re)initializing")
    }

    /// True if it is worth a warning when it comes for the `n`-th time in a row.
    fn is_news(&self, n: u32) -> bool {
        let after = if self.is_start() { Self::STARTS } else { 1 };
        n == after
    }
}

/// An event of a watch.
#[derive(Debug)]
pub enum WatchEvent {
    /// A list begins.
    ListBegins,
    /// The current state of an object.
    Set(Named, Box<Object>),
    /// An object that cannot be decoded, with the reason.
    Broken(Named, String),
    /// An object was deleted.
    Gone(Named),
    /// A list ends: objects that are missing from it were deleted.
    ListEnds,
    /// The API server's answer is unusable; the request is repeated.
    Failed(Failure),
    /// The API server no longer has the events after the last one: a list follows.
    Forgotten,
    /// The objects of a namespace, listed again. Events of the watch since then may be newer.
    Again(Box<str>, Vec<(Named, Object)>),
}

/// An update for a machine.
#[derive(Debug)]
pub enum Update {
    /// The current state of an object.
    Set(Kind, Named, Box<Object>),
    /// An object was deleted.
    Gone(Kind, Named),
    /// All objects of a kind have been listed.
    Listed(Kind),
    /// The objects of a namespace, read again, without those that are unknown or deleted. Updates since the request may
    /// be newer.
    Again(Kind, Box<str>, Vec<Object>),
}

/// An object in a watch event.
#[derive(Debug)]
pub enum Object {
    /// An object of a kind that strew knows.
    Known(KubeObject),
    /// A pod in the form of a simulated store.
    Pod(Arc<dyn PodView>),
    /// An object of another kind.
    Custom(Custom),
}

impl Object {
    /// The object in its wire form; `None` if strew does not know its kind.
    pub fn into_known(self) -> Option<KubeObject> {
        match self {
            Self::Known(object) => Some(object),
            Self::Pod(pod) => Some(pod.to_wire().into()),
            Self::Custom(_) => None,
        }
    }
}

/// An object of a kind that strew does not know.
#[derive(Debug)]
pub struct Custom {
    /// The object, without its managed fields.
    pub object: Value,
    /// Its subresource `scale`, if the kind has one.
    pub scale: Option<Value>,
}

/// The watched objects of a kind.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
}

impl Scope {
    /// Pods that have not finished: finished ones hold no places, and the API server leaves them out.
    pub fn unfinished_pods() -> Self {
        Self {
            fields: Some("status.phase!=Succeeded,status.phase!=Failed".to_owned()),
            ..Self::default()
        }
    }
}

/// How objects of a kind are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As strew's type.
    Known,
    /// As JSON, each with its scale.
    Custom {
        /// True if the kind has the subresource `scale`.
        has_scale: bool,
    },
}

/// An action on watches for the caller.
#[derive(Debug)]
pub enum WatchAction {
    /// Lists and watches a kind.
    Begin {
        /// The id of its events.
        id: WatchId,
        /// The kind.
        kind: Kind,
        /// How its objects are decoded.
        reading: Reading,
        /// The watched objects.
        scope: Scope,
    },
    /// Ends a watch: its later events are ignored.
    End(WatchId),
    /// List the objects of a kind in a namespace once, and return them with [`WatchEvent::Again`].
    ReadAgain {
        /// The id of the result.
        id: WatchId,
        /// The kind.
        kind: Kind,
        /// The namespace.
        namespace: Box<str>,
    },
}

/// The watches of one machine.
#[derive(Debug, Default)]
pub struct Watches {
    running: BTreeMap<WatchId, Running>,
    /// Kinds with a read in progress.
    reading: BTreeMap<WatchId, Kind>,
    n_made: u64,
    updates: VecDeque<Update>,
    actions: VecDeque<WatchAction>,
}

/// One watch.
#[derive(Debug)]
struct Running {
    kind: Kind,
    reading: Reading,
    scope: Scope,
    known: KnownObjects,
    is_listed: bool,
    /// Objects that cannot be decoded, with the reasons.
    broken: BTreeMap<String, String>,
    /// The last failure, if there was no success since.
    failure: Option<Failure>,
    /// The number of failures in a row that equal the last one.
    n_equal: u32,
}

impl Watches {
    /// Watches a kind.
    pub fn start(&mut self, kind: Kind, reading: Reading, scope: &Scope) {
        self.run(Running {
            kind,
            reading,
            scope: scope.clone(),
            known: KnownObjects::default(),
            is_listed: false,
            broken: BTreeMap::new(),
            failure: None,
            n_equal: 0,
        });
    }

    /// The watches that begin at the start.
    pub fn of(reads: &[Reads]) -> Self {
        let mut watches = Self::default();
        let scopes = [
            (Begins::First, Scope::default()),
            (Begins::Unfinished, Scope::unfinished_pods()),
        ];
        for (begins, scope) in scopes {
            for read in reads.iter().filter(|read| read.begins == begins) {
                watches.start(read.kind(), Reading::Known, &scope);
            }
        }
        watches
    }

    fn run(&mut self, running: Running) {
        let id = self.next_id();
        self.actions.push_back(WatchAction::Begin {
            id,
            kind: running.kind.clone(),
            reading: running.reading,
            scope: running.scope.clone(),
        });
        self.running.insert(id, running);
    }

    /// Restarts the watch of a kind: all its objects are reported again, deletions included.
    pub fn restart(&mut self, kind: &Kind) {
        if let Some(running) = self.take(kind) {
            self.run(running);
        }
    }

    /// Ends the watch of a kind: all its objects are reported as deleted.
    pub fn stop(&mut self, kind: &Kind) {
        if let Some(mut running) = self.take(kind) {
            running.known.list_begins();
            let gone = running.known.list_ends().into_iter();
            let gone = gone.map(|named| Update::Gone(kind.clone(), named));
            self.updates.extend(gone);
        }
    }

    fn take(&mut self, kind: &Kind) -> Option<Running> {
        let id = self.find(kind)?.0;
        self.actions.push_back(WatchAction::End(id));
        self.running.remove(&id)
    }

    fn find(&self, kind: &Kind) -> Option<(WatchId, &Running)> {
        let mut all = self.running.iter();
        let found = all.find(|(_, running)| running.kind == *kind);
        found.map(|(&id, running)| (id, running))
    }

    /// Reads all objects of a namespace once more, beside the watch of their kind.
    pub fn read_again(&mut self, kind: &Kind, namespace: &str) {
        let id = self.next_id();
        self.actions.push_back(WatchAction::ReadAgain {
            id,
            kind: kind.clone(),
            namespace: namespace.into(),
        });
        self.reading.insert(id, kind.clone());
    }

    fn next_id(&mut self) -> WatchId {
        self.n_made += 1;
        WatchId(self.n_made)
    }

    /// The next action for the caller.
    pub fn poll(&mut self) -> Option<WatchAction> {
        self.actions.pop_front()
    }

    /// The next update for the machine.
    pub fn next_update(&mut self) -> Option<Update> {
        self.updates.pop_front()
    }

    // === state for metrics and pages ===

    /// True if every kind has been listed once: earlier decisions would be based on half a cluster.
    pub fn is_whole(&self) -> bool {
        self.are_listed(|_| true)
    }

    /// True if these kinds have been listed once, and all their events were handled.
    pub fn are_listed(&self, of: impl Fn(&Kind) -> bool) -> bool {
        let mut all = self.running.values().filter(|running| of(&running.kind));
        self.updates.is_empty() && all.all(|running| running.is_listed)
    }

    /// The watched kinds, and whether each has been listed once.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, bool)> {
        let all = self.running.values();
        all.map(|running| (&running.kind, running.is_listed))
    }

    /// The watched kind with this name, in its watched version.
    pub fn kind_of(&self, group: &str, kind: &str) -> Option<&Kind> {
        let mut all = self.kinds().map(|(kind, _)| kind);
        all.find(|watched| *watched.group == *group && *watched.kind == *kind)
    }

    /// The last failure of a kind's watch, if there was no success since.
    pub fn failure(&self, kind: &Kind) -> Option<&Failure> {
        self.find(kind)?.1.failure.as_ref()
    }

    /// The number of known objects of a kind.
    pub fn len(&self, kind: &Kind) -> usize {
        let found = self.find(kind);
        found.map_or(0, |(_, running)| running.known.len())
    }

    /// True if an object of a kind is known in this namespace.
    pub fn has_in(&self, kind: &Kind, namespace: &str) -> bool {
        let found = self.find(kind);
        found.is_some_and(|(_, running)| running.known.has_in(namespace))
    }

    /// True if no object is known.
    pub fn is_empty(&self) -> bool {
        self.running
            .values()
            .all(|running| running.known.is_empty())
    }

    /// The number of objects that cannot be decoded, by kind.
    pub fn unreadable(&self) -> impl Iterator<Item = (Arc<str>, usize)> {
        let all = self.running.values();
        all.map(|running| (Arc::clone(&running.kind.kind), running.broken.len()))
    }

    // === events ===

    /// Handles an event of a watch, or the result of a read.
    pub fn take_in(&mut self, id: WatchId, event: WatchEvent) {
        if let WatchEvent::Again(namespace, objects) = event {
            return self.take_in_again(id, namespace, objects);
        }
        let Some(running) = self.running.get_mut(&id) else {
            // An event of a watch that has ended.
            return;
        };
        let kind = running.kind.clone();
        match event {
            WatchEvent::ListBegins => running.known.list_begins(),
            WatchEvent::Set(named, object) => {
                running.failure = None;
                if !running.broken.is_empty() {
                    running.broken.remove(&full_name(&named));
                }
                let Named {
                    namespace,
                    name,
                    uid,
                } = &named;
                if let Some(old) = running.known.set(namespace, name, uid) {
                    self.updates.push_back(Update::Gone(kind.clone(), old));
                }
                self.updates.push_back(Update::Set(kind, named, object));
            }
            WatchEvent::Broken(named, text) => running.is_broken(&named, text),
            WatchEvent::Gone(named) => {
                running.known.gone(&named.namespace, &named.name);
                running.broken.remove(&full_name(&named));
                self.updates.push_back(Update::Gone(kind, named));
            }
            WatchEvent::ListEnds => {
                let gone = running.known.list_ends().into_iter();
                let gone = gone.map(|named| Update::Gone(kind.clone(), named));
                self.updates.extend(gone);
                running.is_listed = true;
                running.failure = None;
                self.updates.push_back(Update::Listed(kind));
            }
            WatchEvent::Forgotten => tracing::debug!("watch of {kind}: begins anew"),
            WatchEvent::Again(..) => {}
            WatchEvent::Failed(failure) => {
                // The watch is retried every few seconds; only a new error is logged.
                running.n_equal = match running.failure.as_ref() == Some(&failure) {
                    true => running.n_equal.saturating_add(1),
                    false => 1,
                };
                if failure.is_news(running.n_equal) {
                    let watch = Warning {
                        kind: &kind.kind,
                        namespace: "",
                        name: "",
                        node: None,
                        action: "watch",
                        error: &failure.text,
                        next: "again and again, after waits that grow; told once until it is something else",
                    };
                    watch.log();
                }
                running.failure = Some(failure);
            }
        }
    }
}

impl Watches {
    /// Adds an object that this replica created, so that it is known before its watch reports it.
    pub(crate) fn made(&mut self, resource: &Resource, object: &Value) {
        let mut all = self.running.values_mut();
        let of = |kind: &Kind| *kind.group == *resource.group && *kind.plural == *resource.plural;
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        if let Some(running) = all.find(|running| of(&running.kind)) {
            running
                .known
                .made(text("namespace"), text("name"), text("uid"));
        }
    }

    fn take_in_again(&mut self, id: WatchId, namespace: Box<str>, objects: Vec<(Named, Object)>) {
        let Some(kind) = self.reading.remove(&id) else {
            return;
        };
        // By kind, since its watch may have been restarted meanwhile.
        let Some((_, running)) = self.find(&kind) else {
            return;
        };
        let there = objects.into_iter();
        let there = there.filter(|(named, _)| running.known.has(named));
        let objects = there.map(|(_, object)| object).collect();
        self.updates
            .push_back(Update::Again(kind, namespace, objects));
    }
}

impl Running {
    /// Keeps the previous state of an object that cannot be decoded, with a warning; others are not affected.
    fn is_broken(&mut self, named: &Named, text: String) {
        // The object exists, so its previous state is not deleted.
        (self.known).set(&named.namespace, &named.name, &named.uid);
        let name = full_name(named);
        if self.broken.get(&name) != Some(&text) {
            let read = Warning {
                kind: &self.kind.kind,
                namespace: &named.namespace,
                name: &named.name,
                node: None,
                action: "read",
                error: &text,
                next: "when it changes; until then it counts as it was before, or not at all",
            };
            read.log();
            self.broken.insert(name, text);
        }
    }
}

/// An object's name, with its namespace if it has one.
pub fn full_name(named: &Named) -> String {
    match &*named.namespace {
        "" => named.name.to_string(),
        namespace => format!("{namespace}/{}", named.name),
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn a_storage_that_is_prepared_is_no_news_until_it_lasts() {
        let failure = |code, text: &str| Failure {
            text: text.to_owned(),
            code: Some(code),
        };
        let news = |failure: &Failure| (1..=10).filter(|n| failure.is_news(*n)).collect::<Vec<_>>();
        assert_eq!(news(&failure(429, "storage is (re)initializing")), [5]);
        assert_eq!(news(&failure(429, "too many requests")), [1]);
        assert_eq!(news(&failure(403, "pods is forbidden")), [1]);
    }
}
