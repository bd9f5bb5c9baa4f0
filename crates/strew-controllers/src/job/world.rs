//! A store for tests of Jobs and autoscalers: with finalizers, and with metrics.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::object::{
    Deletion, Exit, Key, Meta, Name, Object, Phase, Pod, Resource, Stored, moment,
};
use strew_apiserver::{ApiError, DeleteOptions, Propagation, Tables};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::api::{Api, Event};
use crate::controller::Controller;
use crate::manager::Manager;

/// 2026-11-21T20:00:00Z
pub(crate) const START: Instant = Instant::from_secs(1_795_291_200);

pub(crate) struct Store {
    pub(crate) tables: Tables,
    pub(crate) now: Instant,
    pub(crate) utilisation: Option<u32>,
    events: Vec<String>,
    changes: VecDeque<(Key, Option<Object>)>,
    n_writes: u64,
}

impl Store {
    fn store(&mut self, mut object: Object) -> Object {
        self.n_writes += 1;
        let meta = object.meta_mut();
        meta.version = self.n_writes;
        let is_over = meta.is_terminating() && meta.finalizers.is_empty();
        let is_pod =
            matches!(&object, Object::Pod(pod) if pod.node.is_some() && !pod.is_finished());
        if is_over && !is_pod {
            self.tables.remove(&object.key());
            self.changes.push_back((object.key(), None));
        } else {
            self.tables.set(object.clone());
            self.changes.push_back((object.key(), Some(object.clone())));
        }
        object
    }

    fn current(&self, object: &Object) -> Result<(), ApiError> {
        let key = object.key();
        let found = self.tables.find(&key);
        let found = found.ok_or_else(|| ApiError::NotFound(key.clone()))?;
        match found.meta().version == object.meta().version {
            true => Ok(()),
            false => Err(ApiError::stale(&key)),
        }
    }
}

impl Api for Store {
    fn create(&mut self, mut object: Object) -> Result<Object, ApiError> {
        let n = self.n_writes;
        let meta = object.meta_mut();
        if meta.name.name.is_empty() {
            let base = meta.generate_name.as_deref().unwrap_or_default();
            meta.name.name = format!("{base}{n:05}").into();
        }
        meta.uid = format!("uid-{n}").into();
        meta.created = moment::whole_seconds(self.now);
        if self.tables.find(&object.key()).is_some() {
            return Err(ApiError::AlreadyExists(object.key()));
        }
        Ok(self.store(object))
    }

    fn update(&mut self, object: Object) -> Result<Object, ApiError> {
        self.current(&object)?;
        Ok(self.store(object))
    }

    fn update_status(&mut self, object: Object) -> Result<Object, ApiError> {
        self.update(object)
    }

    fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        let found = self.tables.find(key);
        let mut found = found.ok_or_else(|| ApiError::NotFound(key.clone()))?;
        if matches!(options.propagation, None | Some(Propagation::Background)) {
            for dependent in self.tables.dependents(&found.meta().uid) {
                self.delete(&dependent.key(), &DeleteOptions::default())?;
            }
        }
        if !found.meta().is_terminating() {
            let grace = Span::from_secs(30);
            let at = self.now + grace;
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

    fn heartbeat(&self, _: &str) -> Option<Instant> {
        None
    }

    fn utilisation(&self, _: &Name) -> Option<u32> {
        self.utilisation
    }

    fn record(&mut self, event: Event) {
        self.events.push(format!("{} {}", event.reason, event.note));
    }
}

/// The store, the controllers, and the actions of tests.
pub(crate) struct JobCluster {
    pub(crate) store: Store,
    manager: Manager,
    dice: Prng,
}

impl JobCluster {
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        let mut dice = Prng::new(1);
        Self {
            manager: Manager::new(controllers, START, &mut dice),
            dice,
            store: Store {
                tables: Tables::default(),
                now: START,
                utilisation: None,
                events: Vec::new(),
                changes: VecDeque::new(),
                n_writes: 0,
            },
        }
    }

    /// Creates an object of a spec.
    #[track_caller]
    pub(crate) fn create<S, T>(&mut self, name: &str, spec: Value)
    where
        S: k8s_openapi::serde::de::DeserializeOwned,
        T: Default,
        Resource<S, T>: Into<Object>,
    {
        let object = Resource {
            meta: Meta::new(Name::new("ns", name)),
            spec: Arc::new(serde_json::from_value::<S>(spec).unwrap()),
            status: T::default(),
        };
        self.store.create(object.into()).unwrap();
        self.settle();
    }

    pub(crate) fn get<T: Stored>(&self, name: &str) -> Option<Arc<T>> {
        self.store.tables.get(&Name::new("ns", name)).cloned()
    }

    #[track_caller]
    pub(crate) fn edit<T: Stored + Into<Object>>(&mut self, name: &str, edit: impl FnOnce(&mut T)) {
        let mut object = T::clone(&self.get::<T>(name).unwrap());
        edit(&mut object);
        self.store.update(object.into()).unwrap();
        self.settle();
    }

    pub(crate) fn delete<T: Stored>(&mut self, name: &str) {
        let key = Key {
            kind: T::KIND,
            name: Name::new("ns", name),
        };
        self.store.delete(&key, &DeleteOptions::default()).unwrap();
        self.settle();
    }

    fn settle(&mut self) {
        for _ in 0..10_000 {
            let now = self.store.now;
            while let Some((key, object)) = self.store.changes.pop_front() {
                match object {
                    Some(object) => self.manager.set(now, object),
                    None => self.manager.gone(now, &key),
                }
            }
            self.manager.is_ready(now);
            if !self.manager.step(now, &mut self.store, &mut self.dice) {
                return;
            }
        }
        panic!("the controllers do not come to rest");
    }

    /// Lets time pass, in seconds.
    pub(crate) fn pass(&mut self, seconds: u64) {
        let end = self.store.now + Span::from_secs(seconds);
        while let Some(at) = self.manager.next_wake().filter(|at| *at <= end) {
            self.store.now = at.max(self.store.now);
            self.settle();
        }
        self.store.now = end;
    }

    pub(crate) fn pods(&self) -> Vec<Arc<Pod>> {
        self.store.tables.of::<Pod>().iter().cloned().collect()
    }

    /// Binds pods without a node, and makes them running and ready.
    pub(crate) fn run_pods(&mut self) {
        for pod in self
            .pods()
            .iter()
            .filter(|pod| pod.node.is_none() && pod.is_active())
        {
            let mut pod = Pod::clone(pod);
            pod.node = Some("node".into());
            pod.status.phase = Phase::Running;
            pod.status.started = Some(moment::whole_seconds(self.store.now));
            let ready = strew_apiserver::object::Truth::True;
            pod.status
                .set_condition("Ready", ready, "", "", self.store.now);
            self.store.store(pod.into());
        }
        self.settle();
    }

    /// Ends the selected pods with this exit code.
    pub(crate) fn end_pods(&mut self, code: i32, is_meant: impl Fn(&Pod) -> bool) {
        for pod in self
            .pods()
            .iter()
            .filter(|p| !p.is_finished() && is_meant(p))
        {
            let mut pod = Pod::clone(pod);
            pod.status.phase = if code == 0 {
                Phase::Succeeded
            } else {
                Phase::Failed
            };
            pod.status.exits = [Exit {
                container: "c".into(),
                code,
                at: moment::whole_seconds(self.store.now),
                is_init: false,
            }]
            .into();
            self.store.store(pod.into());
        }
        self.settle();
    }

    /// The events since the last call.
    pub(crate) fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.store.events)
    }
}
