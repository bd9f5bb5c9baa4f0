//! Which kinds are watched, which objects are known, and what a watch event means for a machine.
//!
//! A broken watch resumes; one that is too old (410) starts again with a list, which does not name deleted objects;
//! [`KnownObjects`] finds them. So a machine gets one update for every object that is created, changed or deleted, and
//! no other.
//!
//! Reading order: [`WatchEvent`] (input), [`Update`] (what a machine gets), [`Watches`], [`kind`], [`known_objects`],
//! [`served`] (which kinds the API server serves).

pub mod kind;
pub mod known_objects;
pub mod served;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use strew_api::facts::{Named, PodView};
use strew_api::read::KubeObject;
use strew_api::request::Resource;

use crate::warning::Warning;

pub use kind::Kind;
pub use known_objects::KnownObjects;
pub use served::{Served, ServedKind};

/// Names a watch, or one reading of objects. A kind that is watched again is another watch: what the old one still
/// brings is not heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub u64);

/// Why a watch does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In words: of the API server, where it has answered.
    pub text: String,
    /// The status code, if it has.
    pub code: Option<u16>,
}

/// What a watch brings.
#[derive(Debug)]
pub enum WatchEvent {
    /// A list begins.
    ListBegins,
    /// An object is there, and like this.
    Set(Named, Box<Object>),
    /// An object is there and cannot be read, for this reason.
    Broken(Named, String),
    /// An object is gone.
    Gone(Named),
    /// A list ends: objects that it did not name are gone.
    ListEnds,
    /// The API server's answer is unusable; the request is repeated.
    Failed(Failure),
    /// The API server has forgotten what came after the last event: a list follows.
    Forgotten,
    /// The objects of a namespace, listed again. Events of the watch since then may be newer.
    Again(Box<str>, Vec<(Named, Object)>),
}

/// What a machine hears.
#[derive(Debug)]
pub enum Update {
    /// An object is there, and like this.
    Set(Kind, Named, Box<Object>),
    /// An object is gone.
    Gone(Kind, Named),
    /// All objects of a kind have been listed.
    Listed(Kind),
    /// The objects of a namespace as they were read again, those left out that are not known or gone. What was told since
    /// it was asked for may be newer.
    Again(Kind, Box<str>, Vec<Object>),
}

/// An object of a watch event.
#[derive(Debug)]
pub enum Object {
    /// Of a kind that strew knows.
    Known(KubeObject),
    /// A pod in the form in which a simulated store keeps it.
    Pod(Arc<dyn PodView>),
    /// Of another kind.
    Custom(Custom),
}

impl Object {
    /// The object as the wire has it; `None` if strew does not know its kind.
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
    /// Its subresource `scale`, where the kind has one.
    pub scale: Option<Value>,
}

/// Which objects of a kind are watched.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Those of a namespace alone.
    pub namespace: Option<String>,
    /// A field selector.
    pub fields: Option<String>,
}

/// How objects of a kind are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// As the type that strew has for it.
    Known,
    /// As JSON, each with its scale.
    Custom {
        /// Whether the kind has the subresource `scale`.
        has_scale: bool,
    },
}

/// What the caller has to do about watches.
#[derive(Debug)]
pub enum WatchAction {
    /// Lists and watches a kind.
    Begin {
        /// The id of its events.
        id: WatchId,
        /// Which objects.
        kind: Kind,
        /// How they are read.
        reading: Reading,
        /// Which of them.
        scope: Scope,
    },
    /// Ends a watch: its events are not heard any more.
    End(WatchId),
    /// List the objects of a kind in a namespace once, and return them with [`WatchEvent::Again`].
    ReadAgain {
        /// The id of the result.
        id: WatchId,
        /// Which objects.
        kind: Kind,
        /// Where.
        namespace: Box<str>,
    },
}

/// The watches of one machine.
#[derive(Debug, Default)]
pub struct Watches {
    running: BTreeMap<WatchId, Running>,
    /// Kinds of which objects are being read again.
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
    /// Objects that cannot be read, and why.
    broken: BTreeMap<String, String>,
    /// What went wrong last, unless it has gone well since.
    failure: Option<Failure>,
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
        });
    }

    /// Watches all objects of kinds that strew knows.
    pub fn start_all(&mut self, kinds: impl IntoIterator<Item = Kind>) {
        for kind in kinds {
            self.start(kind, Reading::Known, &Scope::default());
        }
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

    /// Restarts the watch of a kind: all its objects are reported again, and deleted ones too.
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

    /// What a machine hears next.
    pub fn next_update(&mut self) -> Option<Update> {
        self.updates.pop_front()
    }

    // === what there is to see ===

    /// Whether every kind has been listed once: decisions before would be made on half a cluster.
    pub fn is_whole(&self) -> bool {
        self.are_listed(|_| true)
    }

    /// Whether these kinds have been listed once, and all their events were taken.
    pub fn are_listed(&self, of: impl Fn(&Kind) -> bool) -> bool {
        let mut all = self.running.values().filter(|running| of(&running.kind));
        self.updates.is_empty() && all.all(|running| running.is_listed)
    }

    /// The kinds that are watched, and whether each has been listed once.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, bool)> {
        let all = self.running.values();
        all.map(|running| (&running.kind, running.is_listed))
    }

    /// The kind of this name that is watched, in the version in which it is.
    pub fn kind_of(&self, group: &str, kind: &str) -> Option<&Kind> {
        let mut all = self.kinds().map(|(kind, _)| kind);
        all.find(|watched| *watched.group == *group && *watched.kind == *kind)
    }

    /// What went wrong last with the watch of a kind, unless it has gone well since.
    pub fn failure(&self, kind: &Kind) -> Option<&Failure> {
        self.find(kind)?.1.failure.as_ref()
    }

    /// How many objects of a kind are known.
    pub fn len(&self, kind: &Kind) -> usize {
        let found = self.find(kind);
        found.map_or(0, |(_, running)| running.known.len())
    }

    /// Whether an object of a kind is known in this namespace.
    pub fn has_in(&self, kind: &Kind, namespace: &str) -> bool {
        let found = self.find(kind);
        found.is_some_and(|(_, running)| running.known.has_in(namespace))
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.running
            .values()
            .all(|running| running.known.is_empty())
    }

    /// How many objects cannot be read, by kind.
    pub fn unreadable(&self) -> impl Iterator<Item = (Arc<str>, usize)> {
        let all = self.running.values();
        all.map(|running| (Arc::clone(&running.kind.kind), running.broken.len()))
    }

    // === events ===

    /// Takes in what a watch brings, or what was read again.
    pub fn take_in(&mut self, id: WatchId, event: WatchEvent) {
        if let WatchEvent::Again(namespace, objects) = event {
            return self.take_in_again(id, namespace, objects);
        }
        let Some(running) = self.running.get_mut(&id) else {
            // Of a watch that has ended.
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
                // It is retried every few seconds; only a new error is logged.
                if running.failure.as_ref() != Some(&failure) {
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
                    running.failure = Some(failure);
                }
            }
        }
    }
}

impl Watches {
    /// This replica has created an object: the machine knows it before its watch shows it.
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
        // By kind: its watch may have been restarted meanwhile.
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
    /// One object stays as it was known before, with a warning; the others go on.
    fn is_broken(&mut self, named: &Named, text: String) {
        // It is there, whatever it is like: what it was before is not gone.
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
