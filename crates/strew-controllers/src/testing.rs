//! A small API server and a controller manager over it, for the tests of controllers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::object::{
    Deletion, Key, Kind, Meta, Name, Object, Owner, Phase, Pod, PodStatus, Stored, Truth, moment,
};
use strew_apiserver::{ApiError, DeleteOptions, Propagation, Tables};
use strew_manifest::read::{KubeObject, Sources};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::api::{Api, Event};
use crate::controller::Controller;
use crate::manager::Manager;

/// The start time of tests: a whole second.
pub(crate) const START: Instant = Instant::from_secs(1_000_000);

/// More syncs than this in one instant are an endless loop.
const N_STEPS_MAX: usize = 2_000_000;

/// A store with watches, without admission.
pub(crate) struct Server {
    pub(crate) tables: Tables,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    /// The most pods that may exist, as with a quota.
    pub(crate) n_pods_max: usize,
    /// The answers of the next writes, which are then not carried out; `None`: the write is carried out.
    pub(crate) answers: VecDeque<Option<ApiError>>,
    pub(crate) heartbeats: BTreeMap<String, Instant>,
    /// `Some`: pods are created only by [`TestCluster::answer`]; those that wait, by number.
    pub(crate) waits: Option<BTreeMap<u64, Object>>,
    /// Numbers of delayed creations that `under_way` has not returned yet.
    asked: Vec<u64>,
    /// The number of writes, refused ones included.
    pub(crate) n_writes: usize,
    changes: VecDeque<(Key, Option<Object>)>,
    version: u64,
    n_objects: u64,
}

impl Server {
    fn store(&mut self, mut object: Object) -> Object {
        self.version += 1;
        object.meta_mut().version = self.version;
        self.tables.set(object.clone());
        self.changes.push_back((object.key(), Some(object.clone())));
        object
    }

    fn remove(&mut self, key: &Key) {
        if let Some(gone) = self.tables.remove(key) {
            self.changes.push_back((key.clone(), None));
            self.collect(&gone);
        }
    }

    /// Deletes objects that only this one owned.
    fn collect(&mut self, gone: &Object) {
        for dependent in self.tables.dependents(&gone.meta().uid) {
            let options = DeleteOptions::default();
            let _ = self.delete(&dependent.key(), &options);
        }
    }

    /// The stored object that a write replaces.
    fn current(&mut self, object: &Object) -> Result<Object, ApiError> {
        self.n_writes += 1;
        if let Some(Some(refusal)) = self.answers.pop_front() {
            return Err(refusal);
        }
        let key = object.key();
        let current = self.tables.find(&key);
        let current = current.ok_or_else(|| ApiError::NotFound(key.clone()))?;
        let (is, was) = (current.meta(), object.meta());
        if is.version != was.version || is.uid != was.uid {
            return Err(ApiError::stale(&key));
        }
        Ok(current)
    }
}

impl Server {
    /// Creates an object.
    fn make(&mut self, mut object: Object) -> Result<Object, ApiError> {
        self.n_objects += 1;
        let n = self.n_objects;
        let meta = object.meta_mut();
        if meta.name.name.is_empty() {
            let base = meta.generate_name.as_deref().unwrap_or_default();
            meta.name.name = format!("{base}{n:05}").into();
        }
        // An order that is neither that of creation nor that of names.
        let scrambled = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        meta.uid = format!("{scrambled:016x}").into();
        meta.created = moment::whole_seconds(self.now);
        meta.generation = 1;
        let key = object.key();
        if self.tables.find(&key).is_some() {
            return Err(ApiError::AlreadyExists(key));
        }
        if key.kind == Kind::Pod && self.tables.of::<Pod>().len() >= self.n_pods_max {
            return Err(ApiError::Forbidden("exceeded quota".into()));
        }
        Ok(self.store(object))
    }
}

/// Spec and metadata of one object, with the status of the other.
fn with_status(spec: Object, status: Object) -> Object {
    macro_rules! with_status {
        ($($variant:ident)*) => {
            match (spec, status) {
                $((Object::$variant(mut spec), Object::$variant(status)) => {
                    Arc::make_mut(&mut spec).status = status.status.clone();
                    Object::$variant(spec)
                })*
                (Object::Plain(mut spec), Object::Plain(status)) => {
                    let mut json = spec.object.to_json();
                    json["status"] = status.object.to_json()["status"].take();
                    Arc::make_mut(&mut spec).object = KubeObject::of_json(json).unwrap();
                    Object::Plain(spec)
                }
                (spec, _) => spec,
            }
        };
    }
    with_status!(
        Pod Node Deployment ReplicaSet ReplicationController StatefulSet DaemonSet
        Job CronJob Autoscaler Budget CloneSet
    )
}

/// True if the specs of two objects of one kind are equal.
fn same_spec(one: &Object, other: &Object) -> bool {
    macro_rules! same_spec {
        ($($variant:ident)*) => {
            match (one, other) {
                $((Object::$variant(one), Object::$variant(other)) => one.spec == other.spec,)*
                _ => true,
            }
        };
    }
    same_spec!(
        Pod Node Deployment ReplicaSet ReplicationController StatefulSet DaemonSet
        ControllerRevision Job CronJob Autoscaler Budget CloneSet
    )
}

impl Api for Server {
    fn create(&mut self, object: Object) -> Result<Object, ApiError> {
        self.n_writes += 1;
        if let Some(Some(refusal)) = self.answers.pop_front() {
            return Err(refusal);
        }
        if let Some(waits) = &mut self.waits
            && object.kind() == Kind::Pod
        {
            let number = self.n_writes as u64;
            waits.insert(number, object);
            self.asked.push(number);
            return Err(ApiError::Later);
        }
        self.make(object)
    }

    fn under_way(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.asked)
    }

    fn update(&mut self, object: Object) -> Result<Object, ApiError> {
        let current = self.current(&object)?;
        let mut new = with_status(object, current.clone());
        let is_new_spec = !same_spec(&new, &current);
        let meta = new.meta_mut();
        meta.generation = current.meta().generation + i64::from(is_new_spec);
        Ok(self.store(new))
    }

    fn update_status(&mut self, object: Object) -> Result<Object, ApiError> {
        let mut current = self.current(&object)?;
        if let Object::Deployment(_) = &current {
            current.meta_mut().annotations = Arc::clone(&object.meta().annotations);
        }
        Ok(self.store(with_status(current, object)))
    }

    fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        self.n_writes += 1;
        if let Some(Some(refusal)) = self.answers.pop_front() {
            return Err(refusal);
        }
        let found = self.tables.find(key);
        let mut found = found.ok_or_else(|| ApiError::NotFound(key.clone()))?;
        let is_other = |uid: &Arc<str>| *uid != found.meta().uid;
        if options.uid.as_ref().is_some_and(is_other) {
            return Err(ApiError::stale(key));
        }
        let stays = match &found {
            Object::Pod(pod) => pod.node.is_some() && !pod.is_finished(),
            _ => !matches!(options.propagation, None | Some(Propagation::Background)),
        };
        if !stays {
            self.remove(key);
        } else if !found.meta().is_terminating() {
            let grace = options.grace.unwrap_or(Span::from_secs(30));
            let at = moment::whole_seconds(self.now + grace);
            found.meta_mut().deletion = Some(Deletion { at, grace });
            self.store(found);
        }
        Ok(())
    }

    fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        self.delete(key, options)
    }

    fn get(&self, key: &Key) -> Option<Object> {
        self.tables.find(key)
    }

    fn utilisation(&self, _: &strew_apiserver::object::Name) -> Option<u32> {
        None
    }

    fn heartbeat(&self, node: &str) -> Option<Instant> {
        self.heartbeats.get(node).copied()
    }

    fn record(&mut self, event: Event) {
        self.events.push(event);
    }
}

/// Server, controllers, and the actions of tests.
pub(crate) struct TestCluster {
    pub(crate) server: Server,
    pub(crate) manager: Manager,
    pub(crate) dice: Prng,
    /// The number of events that the test has read.
    n_read: usize,
}

impl TestCluster {
    /// Controllers over an empty server.
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        let mut dice = Prng::new(1);
        Self {
            manager: Manager::new(controllers, START, &mut dice),
            server: Server {
                tables: Tables::default(),
                now: START,
                events: Vec::new(),
                n_pods_max: usize::MAX,
                answers: VecDeque::new(),
                heartbeats: BTreeMap::new(),
                waits: None,
                asked: Vec::new(),
                n_writes: 0,
                changes: VecDeque::new(),
                version: 0,
                n_objects: 0,
            },
            dice,
            n_read: 0,
        }
    }

    /// The controllers crash; new ones start with the stored objects only.
    pub(crate) fn restart(&mut self, controllers: Vec<Box<dyn Controller>>) {
        let now = self.server.now;
        self.manager = Manager::new(controllers, now, &mut self.dice);
        self.server.changes.clear();
        for object in self.server.tables.all() {
            self.manager.set(now, object);
        }
    }

    /// Creates the object of a manifest.
    #[track_caller]
    pub(crate) fn create(&mut self, manifest: Value) -> Object {
        let mut sources = Sources::new();
        sources.add("test.yaml", manifest.to_string());
        let mut reading = strew_manifest::read::read(&sources);
        assert!(!reading.has_errors(), "{:?}", reading.diagnostics);
        let wire = reading.objects.remove(0).object;
        self.server.create(Object::of_wire(wire)).unwrap()
    }

    /// The stored object of a kind in the namespace `default`.
    #[track_caller]
    pub(crate) fn get<T: Stored>(&self, name: &str) -> Arc<T> {
        let found = self.server.tables.get(&Name::new("default", name));
        Arc::clone(found.unwrap_or_else(|| panic!("no {} {name}", T::KIND)))
    }

    /// Changes a stored object as a user does.
    #[track_caller]
    pub(crate) fn edit<T: Stored + Into<Object>>(&mut self, name: &str, edit: impl FnOnce(&mut T)) {
        let mut object = T::clone(&self.get::<T>(name));
        edit(&mut object);
        self.server.update(object.into()).unwrap();
    }

    /// Deletes a stored object.
    #[track_caller]
    pub(crate) fn delete<T: Stored>(&mut self, name: &str) {
        let key = Key {
            kind: T::KIND,
            name: Name::new("default", name),
        };
        self.server.delete(&key, &DeleteOptions::default()).unwrap();
    }

    /// Delivers this many changes to the controllers. Returns false if there were fewer.
    pub(crate) fn deliver(&mut self, n_changes: usize) -> bool {
        let now = self.server.now;
        for _ in 0..n_changes {
            let Some((key, object)) = self.server.changes.pop_front() else {
                return false;
            };
            match object {
                Some(object) => self.manager.set(now, object),
                None => self.manager.gone(now, &key),
            }
        }
        true
    }

    /// Lets the controllers sync, without delivering changes.
    pub(crate) fn sync(&mut self) {
        for _ in 0..N_STEPS_MAX {
            if !self.sync_once() {
                return;
            }
        }
        panic!("the controllers do not come to rest");
    }

    /// Lets one controller sync one object.
    pub(crate) fn sync_once(&mut self) -> bool {
        let now = self.server.now;
        self.manager.is_ready(now);
        let (server, dice) = (&mut self.server, &mut self.dice);
        self.manager.step(now, server, dice)
    }

    /// Carries out all delayed creations and passes on the answers. Returns their number.
    pub(crate) fn answer(&mut self) -> usize {
        let waits = self.server.waits.as_mut().map(std::mem::take);
        let waits = waits.unwrap_or_default();
        let (n, now) = (waits.len(), self.server.now);
        for (number, object) in waits {
            let made = self.server.make(object);
            let (server, dice) = (&mut self.server, &mut self.dice);
            self.manager.answered(now, (number, made), server, dice);
        }
        n
    }

    /// Delivers changes and lets controllers sync, until nothing happens at this instant any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..N_STEPS_MAX {
            self.deliver(usize::MAX);
            self.sync();
            if self.server.changes.is_empty() {
                return;
            }
        }
        panic!("the controllers do not come to rest");
    }

    /// Lets time pass, and lets controllers sync what is due on the way.
    pub(crate) fn pass(&mut self, span: Span) {
        let end = self.server.now + span;
        self.settle();
        while let Some(at) = self.manager.next_wake().filter(|at| *at <= end) {
            self.server.now = at.max(self.server.now);
            self.settle();
        }
        self.server.now = end;
        self.settle();
    }

    /// The stored pods that satisfy a condition, by name.
    pub(crate) fn pods(&self, is_meant: impl Fn(&Pod) -> bool) -> Vec<Arc<Pod>> {
        let pods = self.server.tables.of::<Pod>().iter();
        pods.filter(|pod| is_meant(pod)).cloned().collect()
    }

    /// Binds pods without a node, each to a node of its own, and makes them running and ready; at most `n_pods_max`.
    pub(crate) fn start_pods(&mut self, n_pods_max: usize, is_meant: impl Fn(&Pod) -> bool) {
        let waiting = self.pods(|pod| pod.node.is_none() && pod.is_active() && is_meant(pod));
        for pod in waiting.into_iter().take(n_pods_max) {
            self.start_pod(&pod, "node");
        }
    }

    /// Binds this pod to a node, and makes it running and ready.
    pub(crate) fn start_pod(&mut self, pod: &Pod, node: &str) {
        let mut pod = pod.clone();
        pod.node = Some(node.into());
        pod.status.phase = Phase::Running;
        let now = self.server.now;
        pod.status.set_condition("Ready", Truth::True, "", "", now);
        self.server.store(pod.into());
    }

    /// This pod changes.
    pub(crate) fn edit_pod(&mut self, name: &str, edit: impl FnOnce(&mut Pod)) {
        let mut pod = Pod::clone(&self.get::<Pod>(name));
        edit(&mut pod);
        self.server.store(pod.into());
    }

    /// Ends the terminating pods, as kubelets do.
    pub(crate) fn end_pods(&mut self) {
        for pod in self.pods(Pod::is_terminating) {
            self.server.remove(&Object::Pod(pod).key());
        }
    }

    /// The events since the last call: `Reason text`.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let new = &self.server.events[self.n_read..];
        let news = new.iter().map(|e| format!("{} {}", e.reason, e.note));
        let news = news.collect();
        self.n_read = self.server.events.len();
        news
    }
}

/// A pod that an owner with this uid controls.
pub(crate) fn pod_of(owner_uid: &str, name: &str) -> Pod {
    let mut meta = Meta::new(Name::new("default", name));
    meta.uid = format!("uid-of-{name}").into();
    meta.owners = Arc::new([Owner {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: owner_uid.into(),
        uid: owner_uid.into(),
        is_controller: true,
        blocks_deletion: true,
    }]);
    Pod {
        meta,
        spec: Arc::default(),
        node: None,
        status: PodStatus::default(),
    }
}
