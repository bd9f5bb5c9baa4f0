//! The API server's client of a controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::object::{Key, Kind, Name, Object, Part, Pod};
use strew_apiserver::server::{Creation, Recorded, Server};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_controllers::{Api, Event};
use strew_model::Prng;
use strew_model::time::Instant;

use crate::kubelet::Kubelets;
use crate::requests::Requests;

/// A fault of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteFault {
    /// Of a million writes, the number that are refused with a conflict.
    pub conflict_ppm: u32,
    /// Of a million requests of strew's own controller, the number that get no answer; half of these are carried out.
    pub lost_ppm: u32,
}

/// The connection of one component; every write goes through [`Client::allows`].
pub(crate) struct Client<'a> {
    pub(crate) now: Instant,
    pub(crate) server: &'a mut Server,
    pub(crate) kubelets: &'a Kubelets,
    pub(crate) utilisation: &'a BTreeMap<Name, u32>,
    pub(crate) fault: Option<&'a WriteFault>,
    pub(crate) dice: &'a mut Prng,
    /// The number of further writes until the component crashes; `None`: it does not.
    pub(crate) writes_left: Option<&'a mut u32>,
    pub(crate) requests: &'a mut Requests,
    /// The generator for the durations of requests.
    pub(crate) pace: &'a mut Prng,
    /// The numbers of creations in progress, since the last query.
    pub(crate) under_way: Vec<u64>,
}

impl Client<'_> {
    /// Decides whether a write reaches the server.
    fn allows(&mut self, key: &Key) -> Result<(), ApiError> {
        if let Some(left) = &mut self.writes_left {
            if **left == 0 {
                return Err(ApiError::Lost);
            }
            **left -= 1;
        }
        let ppm = self.fault.map_or(0, |fault| fault.conflict_ppm);
        match ppm > 0 && self.dice.chance(u64::from(ppm), 1_000_000) {
            true => Err(ApiError::stale(key)),
            false => Ok(()),
        }
    }
}

impl Api for Client<'_> {
    fn create(&mut self, object: Object) -> Result<Object, ApiError> {
        self.allows(&object.key())?;
        // Only pods with generated names are created concurrently: a StatefulSet's pod has a fixed name, and its
        // controller retries a refused one at once.
        if object.kind() == Kind::Pod && object.meta().name.name.is_empty() {
            self.under_way.push(self.requests.create(object, self.pace));
            return Err(ApiError::Later);
        }
        match self.server.begin_create(self.now, object)? {
            Creation::Done(object) => Ok(object),
            Creation::UnderWay(review) => {
                self.under_way.push(self.requests.reviewed(review));
                Err(ApiError::Later)
            }
        }
    }

    fn under_way(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.under_way)
    }

    fn update(&mut self, object: Object) -> Result<Object, ApiError> {
        self.allows(&object.key())?;
        if let Object::Pod(pod) = &object {
            let stored = self.server.tables().get::<Pod>(&pod.meta.name);
            if stored.is_some_and(|stored| stored.meta.owners != pod.meta.owners) {
                self.requests.adopt(self.pace);
            }
        }
        self.server.update(Part::Main, object)
    }

    fn update_status(&mut self, object: Object) -> Result<Object, ApiError> {
        self.allows(&object.key())?;
        self.server.update(Part::Status, object)
    }

    fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        self.allows(key)?;
        self.server.delete(self.now, key, options)
    }

    fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError> {
        self.allows(key)?;
        self.server.evict(self.now, key, options)
    }

    fn get(&self, key: &Key) -> Option<Object> {
        self.server.tables().find(key)
    }

    fn utilisation(&self, autoscaler: &Name) -> Option<u32> {
        self.utilisation.get(autoscaler).copied()
    }

    fn heartbeat(&self, node: &str) -> Option<Instant> {
        self.kubelets.heartbeat(node, self.now)
    }

    fn silent_nodes(&self) -> Option<Vec<Arc<str>>> {
        Some(self.kubelets.silent().cloned().collect())
    }

    fn record(&mut self, event: Event) {
        let Event {
            regarding,
            uid,
            is_warning,
            reason,
            note,
            source,
        } = event;
        let (at, reason, source) = (self.now, Arc::from(reason), Arc::from(source));
        self.server.events_mut().push(Recorded {
            at,
            regarding,
            uid,
            is_warning,
            reason,
            note,
            source,
            count: 1,
        });
    }
}
