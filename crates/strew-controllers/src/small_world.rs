//! A test world: a store without admission, kubelets that end pods, one [`Manager`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::object::{Deletion, Key, Kind, Name, Object, Pod, Stored, moment};
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_manifest::read::KubeObject;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::api::{Api, Event};
use crate::controller::Controller;
use crate::manager::Manager;

/// The start time of every world.
pub(crate) const START: Instant = Instant::from_secs(1_000_000);

/// The server and the kubelets.
#[derive(Default)]
pub(crate) struct Server {
    pub(crate) store: Tables,
    pub(crate) now: Instant,
    /// Nodes without a kubelet, and when each last renewed its Lease.
    pub(crate) dead: BTreeMap<Arc<str>, Instant>,
    /// `time source reason note`, in order.
    pub(crate) events: Vec<String>,
    /// True if the server does not know silent nodes, so that the pass must ask for every heartbeat.
    pub(crate) counts_silence: bool,
    /// The number of following writes that are refused as conflicts.
    pub(crate) n_conflicts: usize,
    n_versions: u64,
    changed: Vec<Key>,
}

impl Server {
    fn put(&mut self, mut object: Object) -> Object {
        self.n_versions += 1;
        object.meta_mut().version = self.n_versions;
        self.changed.push(object.key());
        let meta = object.meta();
        let is_done = meta.deletion.is_some_and(|d| d.grace == Span(0));
        if is_done && meta.finalizers.is_empty() {
            self.store.remove(&object.key());
        } else {
            self.store.set(object.clone());
        }
        object
    }

    fn write(&mut self, object: Object) -> Result<Object, ApiError> {
        let key = object.key();
        let Some(stored) = self.store.find(&key) else {
            return Err(ApiError::NotFound(key));
        };
        if self.n_conflicts > 0 {
            self.n_conflicts -= 1;
            return Err(ApiError::stale(&key));
        }
        if stored.meta().version != object.meta().version {
            return Err(ApiError::stale(&key));
        }
        Ok(self.put(object))
    }
}

impl Api for Server {
    fn create(&mut self, mut object: Object) -> Result<Object, ApiError> {
        if self.store.find(&object.key()).is_some() {
            return Err(ApiError::AlreadyExists(object.key()));
        }
        let created = moment::whole_seconds(self.now);
        let uid = format!("uid-{}", object.meta().name.name);
        let meta = object.meta_mut();
        if meta.uid.is_empty() {
            meta.uid = uid.into();
        }
        meta.generation = 1;
        if meta.created == Instant::default() {
            meta.created = created;
        }
        Ok(self.put(object))
    }

    fn update(&mut self, object: Object) -> Result<Object, ApiError> {
        self.write(object)
    }

    fn update_status(&mut self, object: Object) -> Result<Object, ApiError> {
        self.write(object)
    }

    fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        let Some(mut object) = self.store.find(key) else {
            return Err(ApiError::NotFound(key.clone()));
        };
        if options
            .uid
            .as_ref()
            .is_some_and(|uid| *uid != object.meta().uid)
        {
            return Err(ApiError::Conflict("another uid".into()));
        }
        let runs = matches!(&object, Object::Pod(pod) if pod.node.is_some() && !pod.is_finished());
        let grace = match options.grace {
            _ if !runs => Span(0),
            Some(grace) => grace,
            None => Span::from_secs(30),
        };
        let now = self.now;
        let meta = object.meta_mut();
        let at = now + grace;
        let at = meta.deletion.map_or(at, |d| d.at.min(at));
        meta.deletion = Some(Deletion { at, grace });
        options.set_finalizer(meta);
        self.put(object);
        Ok(())
    }

    fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        self.delete(key, options)
    }

    fn get(&self, key: &Key) -> Option<Object> {
        self.store.find(key)
    }

    fn utilisation(&self, _: &strew_apiserver::object::Name) -> Option<u32> {
        None
    }

    fn heartbeat(&self, node: &str) -> Option<Instant> {
        match self.dead.get(node) {
            Some(last) => Some(*last),
            None => Some(Instant::from_secs(self.now.secs() / 10 * 10)),
        }
    }

    fn silent_nodes(&self) -> Option<Vec<Arc<str>>> {
        self.counts_silence
            .then(|| self.dead.keys().cloned().collect())
    }

    fn record(&mut self, event: Event) {
        let at = self.now.since(START);
        self.events.push(format!(
            "{at} {} {} {}: {}",
            event.regarding,
            if event.is_warning {
                "Warning"
            } else {
                "Normal"
            },
            event.reason,
            event.note
        ));
    }
}

/// Server and controllers.
pub(crate) struct SmallCluster {
    pub(crate) server: Server,
    pub(crate) manager: Manager,
    dice: Prng,
}

impl SmallCluster {
    pub(crate) fn new(seed: u64, controllers: Vec<Box<dyn Controller>>) -> Self {
        let mut dice = Prng::new(seed);
        let server = Server {
            now: START,
            counts_silence: true,
            ..Server::default()
        };
        Self {
            server,
            manager: Manager::new(controllers, START, &mut dice),
            dice,
        }
    }

    /// Adds an object in its wire form.
    pub(crate) fn add(&mut self, kube: impl Into<KubeObject>) -> Object {
        self.server.create(Object::of_wire(kube.into())).unwrap()
    }

    /// A ready node with labels and a Lease.
    pub(crate) fn add_node(&mut self, name: &str, zone: &str) {
        let wire = serde_json::json!({
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let node: k8s_openapi::api::core::v1::Node = serde_json::from_value(wire).unwrap();
        self.add(node);
    }

    /// Adds a running, ready pod on a node; `fields` overrides its fields.
    pub(crate) fn add_pod(&mut self, name: &str, node: &str, fields: Value) {
        let mut wire = serde_json::json!({
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        merge(&mut wire, fields);
        let pod: k8s_openapi::api::core::v1::Pod = serde_json::from_value(wire).unwrap();
        self.add(pod);
    }

    /// Stops the kubelet of a node, which has just renewed the Lease.
    pub(crate) fn kill(&mut self, node: &str) {
        let last = self.server.heartbeat(node).unwrap();
        self.server.dead.insert(node.into(), last);
    }

    /// Starts the kubelet again, which reports its node ready.
    pub(crate) fn revive(&mut self, node: &str) {
        self.server.dead.remove(node);
        let now = self.server.now;
        self.change(Kind::Node, node, |object| {
            if let Object::Node(node) = object {
                for condition in Arc::make_mut(node).status.conditions.iter_mut().flatten() {
                    if condition.type_ == "Ready" {
                        condition.status = "True".to_owned();
                        condition.last_heartbeat_time = Some(moment::to_wire(now));
                    }
                }
            }
        });
    }

    /// Changes an object in the store.
    pub(crate) fn change(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut Object)) {
        let mut object = self.server.store.find(&key(kind, name)).unwrap();
        change(&mut object);
        self.server.put(object);
    }

    /// Lets time pass until this many seconds after the start.
    #[track_caller]
    pub(crate) fn run_until(&mut self, seconds: u64) {
        self.run_until_moment(START + Span::from_secs(seconds));
    }

    /// Lets time pass until a moment.
    #[track_caller]
    pub(crate) fn run_until_moment(&mut self, end: Instant) {
        loop {
            self.settle();
            let next = [self.manager.next_wake(), self.next_end()];
            match next.into_iter().flatten().min() {
                Some(next) if next <= end => {
                    assert!(next >= self.server.now);
                    self.server.now = next;
                }
                _ => break,
            }
        }
        self.server.now = end;
    }

    #[track_caller]
    fn settle(&mut self) {
        for _ in 0..100_000 {
            self.end_pods();
            let now = self.server.now;
            for key in std::mem::take(&mut self.server.changed) {
                match self.server.store.find(&key) {
                    Some(object) => self.manager.set(now, object),
                    None => self.manager.gone(now, &key),
                }
            }
            let is_ready = self.manager.is_ready(now);
            if !is_ready || !self.manager.step(now, &mut self.server, &mut self.dice) {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    fn ends(&self) -> Vec<(Instant, Key)> {
        let is_alive = |pod: &&Arc<Pod>| {
            let node = pod.node.as_ref();
            node.is_none_or(|node| {
                !self.server.dead.contains_key(node)
                    && self
                        .server
                        .store
                        .of::<strew_apiserver::object::Node>()
                        .get(&Name::new("", &**node))
                        .is_some()
            })
        };
        let pods = self.server.store.of::<Pod>().iter().filter(is_alive);
        pods.filter_map(|pod| {
            Some((
                pod.meta.deletion?.at,
                Pod::into_object(Arc::clone(pod)).key(),
            ))
        })
        .collect()
    }

    fn next_end(&self) -> Option<Instant> {
        self.ends()
            .into_iter()
            .map(|(at, _)| at)
            .filter(|at| *at > self.server.now)
            .min()
    }

    fn end_pods(&mut self) {
        for (at, key) in self.ends() {
            if at <= self.server.now {
                self.server.store.remove(&key);
                self.server.changed.push(key);
            }
        }
    }

    /// An object of a kind, as it is now.
    pub(crate) fn get<T: Stored>(&self, name: &str) -> Option<Arc<T>> {
        let name = key(T::KIND, name).name;
        self.server.store.of::<T>().get(&name).cloned()
    }

    /// Events that contain this text, without their times.
    pub(crate) fn events_of(&self, words: &str) -> Vec<String> {
        let texts = self.server.events.iter().filter(|e| e.contains(words));
        texts
            .map(|e| e.split_once(' ').unwrap().1.to_owned())
            .collect()
    }

    /// Names of the objects of a kind.
    pub(crate) fn names<T: Stored>(&self) -> BTreeSet<String> {
        let all = self.server.store.of::<T>().iter();
        all.map(|object| object.meta().name.name.to_string())
            .collect()
    }
}

/// A key in the namespace `default`, or without one for cluster-scoped kinds.
pub(crate) fn key(kind: Kind, name: &str) -> Key {
    let namespace = if kind == Kind::Node { "" } else { "default" };
    Key {
        kind,
        name: Name::new(namespace, name),
    }
}

/// Overrides fields of one value by those of another.
pub(crate) fn merge(into: &mut Value, fields: Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            for (name, value) in fields {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (into, value) => *into = value,
    }
}
