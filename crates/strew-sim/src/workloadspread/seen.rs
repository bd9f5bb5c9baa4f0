//! What a component of WorkloadSpread was told by its watch.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;
use strew_api::read::KubeObject;
use strew_api::workloadspread::Translator;
use strew_api::workloadspread::desk::PodSource;
use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Object, Pod};
use strew_apiserver::server::{Change, Server};
use strew_model::Prng;
use strew_model::time::Instant;

use crate::feed::{Feed, WatchFault};

/// A watch, and what it has brought.
pub(crate) struct Seen {
    feed: Feed,
    tables: Tables,
    /// Pods by uid: patches are asked about by it.
    names: FxHashMap<Arc<str>, Name>,
}

/// A machine that is told of objects, through what makes inputs of them.
pub(crate) trait Listener {
    /// An object is there, and like this.
    fn set(&mut self, now: Instant, object: &KubeObject, translator: &mut Translator);

    /// It is gone; it was like this.
    fn gone(&mut self, now: Instant, object: &KubeObject, translator: &mut Translator);
}

/// What a change comes to.
enum News {
    /// It is there, and like this.
    Set(KubeObject),
    /// It is gone; it was like this.
    Gone(KubeObject),
}

impl Seen {
    /// A watch that begins by listing what there is.
    pub(crate) fn new(server: &Server) -> Self {
        Self {
            feed: Feed::new(server),
            tables: Tables::default(),
            names: FxHashMap::default(),
        }
    }

    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.feed.next_wake()
    }

    /// Tells a machine all that the watch brings; whether that was anything.
    pub(crate) fn listen(
        &mut self,
        now: Instant,
        (server, fault): (&Server, Option<&WatchFault>),
        dice: &mut Prng,
        translator: &mut Translator,
        machine: &mut impl Listener,
    ) -> bool {
        let mut told = false;
        while let Some(change) = self.feed.next(now, server, &self.tables, fault, dice) {
            told = true;
            for news in self.take_in(change) {
                match &news {
                    News::Set(object) => machine.set(now, object, translator),
                    News::Gone(object) => machine.gone(now, object, translator),
                }
            }
            for target in translator.look_again() {
                if let Some(object) = self.again(&target) {
                    machine.set(now, &object, translator);
                }
            }
        }
        told
    }

    fn take_in(&mut self, change: Change) -> Vec<News> {
        let Change {
            key, new: object, ..
        } = change;
        let mut news = Vec::new();
        let old = match &object {
            Some(new) => self.tables.set(new.clone()),
            None => self.tables.remove(&key),
        };
        // Another object of this name: that the old one went was not seen.
        let is_other = |new: &Object| old.as_ref().is_some_and(|o| o.meta().uid != new.meta().uid);
        if object.as_ref().is_none_or(is_other)
            && let Some(old) = &old
        {
            self.names.remove(&old.meta().uid);
            news.extend(wire(old).map(News::Gone));
        }
        if let Some(new) = &object {
            if let Object::Pod(pod) = new {
                let uid = Arc::clone(&pod.meta.uid);
                self.names.insert(uid, pod.meta.name.clone());
            }
            news.extend(wire(new).map(News::Set));
        }
        news
    }

    /// A workload as it was told: namespace, group, kind and name.
    fn again(&self, [namespace, group, kind, name]: &[String; 4]) -> Option<KubeObject> {
        let key = Key {
            kind: Kind::of_group(&format!("{group}/v1"), kind),
            name: Name::new(namespace.as_str(), name.as_str()),
        };
        wire(&self.tables.find(&key)?)
    }
}

impl PodSource for Seen {
    fn by_uid(&self, uid: &str) -> Option<Value> {
        let name = self.names.get(uid)?;
        let pod = self.tables.get::<Pod>(name)?;
        Some(Object::Pod(Arc::clone(pod)).to_json())
    }

    fn by_name(&self, namespace: &str, name: &str) -> Option<Value> {
        let pod = self.tables.get::<Pod>(&Name::new(namespace, name))?;
        Some(Object::Pod(Arc::clone(pod)).to_json())
    }
}

/// The wire's form of what the machines look at; no other object is written out for them.
fn wire(object: &Object) -> Option<KubeObject> {
    match object {
        Object::Pod(_)
        | Object::Node(_)
        | Object::Deployment(_)
        | Object::ReplicaSet(_)
        | Object::ReplicationController(_)
        | Object::StatefulSet(_)
        | Object::Job(_)
        | Object::CloneSet(_)
        | Object::WorkloadSpread(_) => object.to_kube(),
        Object::Plain(plain) => match &plain.object {
            KubeObject::Service(_)
            | KubeObject::Namespace(_)
            | KubeObject::AdvancedStatefulSet(_) => object.to_kube(),
            _ => None,
        },
        _ => None,
    }
}
