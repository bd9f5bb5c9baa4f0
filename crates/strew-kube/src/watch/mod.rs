//! Watches: one a kind of objects, and what they tell, in order.
//!
//! A watch that ends goes on where it stopped; one that the API server has forgotten (410) begins anew with a list.
//! Both is kube's `watcher`; what a list does not tell any more is found by [`strew_api::watch::Stock`], so that whoever
//! asks [`Watches`] hears of every object that comes, changes or goes, and of nothing else.
//!
//! Kinds of Kubernetes itself are read as their types. Kinds of custom resources are read as JSON first, and object by
//! object: what somebody's schema let through must not stop the watch.
//!
//! Reading order: [`Told`], [`Watches`], [`kind`], `stream` (one watch).

pub mod kind;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

use kube::core::NamespaceResourceScope;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use strew_api::read::KubeObject;
use strew_api::watch::{Named, Stock};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

pub use kind::Kind;
use stream::News;
pub(crate) use stream::backoff;

/// So many tellings wait for the loop; more make the watches wait.
const TOLD_MAX: usize = 256;

/// What the watches tell.
#[derive(Debug)]
pub enum Told {
    /// An object is there, and like this.
    Set(Kind, Named, Box<Object>),
    /// An object is gone.
    Gone(Kind, Named),
    /// All objects of a kind have been told.
    Listed(Kind),
    /// The objects of a namespace as they were read again; such as are not known, or are gone, are left out. What was
    /// told since it was asked for may be newer.
    Again(Kind, Box<str>, Vec<Object>),
}

/// An object as a watch tells it.
#[derive(Debug)]
pub enum Object {
    /// Of a kind that strew knows.
    Known(KubeObject),
    /// Of another kind.
    Custom(Custom),
}

/// An object of a kind that strew does not know.
#[derive(Debug)]
pub struct Custom {
    /// The object, without who wrote which field.
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

/// How objects of a kind are read that is known by its name alone.
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

/// The watches of one loop. They end with it.
pub struct Watches {
    client: Client,
    to: mpsc::Sender<(u64, News)>,
    from: mpsc::Receiver<(u64, News)>,
    /// By number: a kind that is watched again is another watch.
    running: BTreeMap<u64, Running>,
    next: u64,
    ready: VecDeque<Told>,
    /// What reads something again.
    reading: JoinSet<()>,
}

/// Makes the stream of a watch.
type Begin = Box<dyn Fn() -> stream::Events + Send>;

/// The number of no watch.
const NOBODY: u64 = u64::MAX;

/// One watch.
struct Running {
    kind: Kind,
    stock: Stock,
    is_listed: bool,
    /// Objects that cannot be read, and why.
    broken: BTreeMap<String, String>,
    /// What went wrong last, unless it has gone well since.
    failure: Option<String>,
    /// Begins it anew.
    begin: Begin,
    task: AbortHandle,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Watches {
    /// None yet.
    pub fn new(client: Client) -> Self {
        let (to, from) = mpsc::channel(TOLD_MAX);
        Self {
            client,
            to,
            from,
            running: BTreeMap::new(),
            next: 0,
            ready: VecDeque::new(),
            reading: JoinSet::new(),
        }
    }

    /// Watches a kind of Kubernetes itself.
    pub fn start<K>(&mut self, scope: &Scope)
    where
        K: Resource<DynamicType = ()>
            + k8s_openapi::Resource
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
        KubeObject: From<K>,
    {
        let (client, scope) = (self.client.clone(), scope.clone());
        let begin = move || stream::typed::<K>(client.clone(), &scope);
        self.spawn(Kind::of::<K>(), Box::new(begin));
    }

    /// Watches a kind by its name.
    pub fn start_named(&mut self, kind: Kind, reading: Reading, scope: &Scope) {
        let (client, scope, of_kind) = (self.client.clone(), scope.clone(), kind.clone());
        let begin = move || stream::named(client.clone(), &of_kind, reading, &scope);
        self.spawn(kind, Box::new(begin));
    }

    fn spawn(&mut self, kind: Kind, begin: Begin) {
        let (number, task) = self.run(begin());
        let running = Running {
            kind,
            stock: Stock::default(),
            is_listed: false,
            broken: BTreeMap::new(),
            failure: None,
            begin,
            task,
        };
        self.running.insert(number, running);
    }

    fn run(&mut self, events: stream::Events) -> (u64, AbortHandle) {
        let number = self.next;
        self.next += 1;
        let task = tokio::spawn(stream::run(events, number, self.to.clone()));
        (number, task.abort_handle())
    }

    /// Begins the watch of a kind anew: all its objects are told once more, and which of them are gone.
    pub fn restart(&mut self, kind: &Kind) {
        let Some(mut running) = self.take(kind) else {
            return;
        };
        running.task.abort();
        // What the old one has sent and nobody has heard has its number, and is passed over.
        let (number, task) = self.run((running.begin)());
        running.task = task;
        self.running.insert(number, running);
    }

    fn take(&mut self, kind: &Kind) -> Option<Running> {
        let mut all = self.running.iter();
        let found = all.find(|(_, running)| running.kind == *kind);
        let number = found.map(|(&number, _)| number)?;
        self.running.remove(&number)
    }

    /// Reads all objects of a namespace once more, beside the watch of their kind.
    pub fn read_again<K>(&mut self, namespace: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + k8s_openapi::Resource
            + Clone
            + DeserializeOwned
            + Debug
            + Send
            + 'static,
        KubeObject: From<K>,
    {
        while self.reading.try_join_next().is_some() {}
        let (client, to, namespace) = (self.client.clone(), self.to.clone(), namespace.to_owned());
        self.reading.spawn(async move {
            let objects = stream::list::<K>(client, &namespace).await;
            let news = News::Again(Kind::of::<K>(), namespace.into(), objects);
            // Nobody waits any more: the process ends.
            let _ = to.send((NOBODY, news)).await;
        });
    }

    /// Ends the watch of a kind: all its objects are told to be gone.
    pub fn stop(&mut self, kind: &Kind) {
        if let Some(mut running) = self.take(kind) {
            running.stock.list_begins();
            let gone = running.stock.list_ends().into_iter();
            self.ready
                .extend(gone.map(|named| Told::Gone(kind.clone(), named)));
        }
    }

    /// The next telling. May be dropped while it waits, and asked again.
    pub async fn next(&mut self) -> Told {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return told;
            }
            // Never closed: this end holds a sender.
            if let Some((number, news)) = self.from.recv().await {
                self.take_in(number, news);
            }
        }
    }

    /// The next telling, if there is one.
    pub fn try_next(&mut self) -> Option<Told> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            let (number, news) = self.from.try_recv().ok()?;
            self.take_in(number, news);
        }
    }

    /// Whether every kind has been listed once: decisions before would be made on half a cluster.
    pub fn is_whole(&self) -> bool {
        self.are_listed(|_| true)
    }

    /// Whether these kinds have been listed once, and all that they told was heard.
    pub fn are_listed(&self, of: impl Fn(&Kind) -> bool) -> bool {
        let mut all = self.running.values().filter(|running| of(&running.kind));
        self.ready.is_empty() && all.all(|running| running.is_listed)
    }

    /// The kinds that are watched, and whether each has been listed once.
    pub fn kinds(&self) -> impl Iterator<Item = (&Kind, bool)> {
        let all = self.running.values();
        all.map(|running| (&running.kind, running.is_listed))
    }

    /// What went wrong last with the watch of a kind, unless it has gone well since.
    pub fn failure(&self, kind: &Kind) -> Option<&str> {
        let mut all = self.running.values();
        let found = all.find(|running| running.kind == *kind);
        found.and_then(|running| running.failure.as_deref())
    }

    /// How many objects of a kind there are.
    pub fn len(&self, kind: &Kind) -> usize {
        let mut all = self.running.values();
        let found = all.find(|running| running.kind == *kind);
        found.map_or(0, |running| running.stock.len())
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.running
            .values()
            .all(|running| running.stock.is_empty())
    }

    /// How many objects cannot be read, by kind.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = (Arc<str>, usize)> {
        let all = self.running.values();
        all.map(|running| (Arc::clone(&running.kind.kind), running.broken.len()))
    }

    fn take_in(&mut self, number: u64, news: News) {
        if let News::Again(kind, namespace, objects) = news {
            return self.read(kind, namespace, objects);
        }
        let Some(running) = self.running.get_mut(&number) else {
            // Of a watch that was stopped.
            return;
        };
        let kind = running.kind.clone();
        match news {
            News::ListBegins => running.stock.list_begins(),
            News::Set(named, object) => {
                running.failure = None;
                if !running.broken.is_empty() {
                    running.broken.remove(&full_name(&named));
                }
                if let Some(old) = running.stock.set(&named.namespace, &named.name, &named.uid) {
                    self.ready.push_back(Told::Gone(kind.clone(), old));
                }
                self.ready.push_back(Told::Set(kind, named, object));
            }
            News::Broken(named, text) => running.is_broken(&named, text),
            News::Gone(named) => {
                running.stock.gone(&named.namespace, &named.name);
                running.broken.remove(&full_name(&named));
                self.ready.push_back(Told::Gone(kind, named));
            }
            News::ListEnds => {
                let gone = running.stock.list_ends().into_iter();
                let gone = gone.map(|named| Told::Gone(kind.clone(), named));
                self.ready.extend(gone);
                running.is_listed = true;
                running.failure = None;
                self.ready.push_back(Told::Listed(kind));
            }
            News::Forgotten => tracing::debug!("watch of {kind}: begins anew"),
            News::Again(..) => {}
            News::Failed(text) => {
                // It is tried again every few seconds: told is what is new.
                if running.failure.as_ref() != Some(&text) {
                    tracing::warn!("watch of {kind}: {text}");
                    running.failure = Some(text);
                }
            }
        }
    }
}

impl Watches {
    /// Objects were read again.
    fn read(&mut self, kind: Kind, namespace: Box<str>, objects: Vec<(Named, Object)>) {
        let mut all = self.running.values();
        let Some(running) = all.find(|running| running.kind == kind) else {
            return;
        };
        let objects = objects.into_iter();
        let there = objects.filter(|(named, _)| running.stock.has(named));
        let objects = there.map(|(_, object)| object).collect();
        self.ready.push_back(Told::Again(kind, namespace, objects));
    }
}

impl Running {
    /// One object is left as it was known before, with a warning; the others go on.
    fn is_broken(&mut self, named: &Named, text: String) {
        // It is there, whatever it is like: what it was before is not gone.
        self.stock.set(&named.namespace, &named.name, &named.uid);
        let name = full_name(named);
        if self.broken.get(&name) != Some(&text) {
            tracing::warn!("{} {name} cannot be read: {text}", self.kind.kind);
            self.broken.insert(name, text);
        }
    }
}

/// An object's name, with its namespace if it has one.
pub(crate) fn full_name(named: &Named) -> String {
    match &*named.namespace {
        "" => named.name.to_string(),
        namespace => format!("{namespace}/{}", named.name),
    }
}
