//! A cluster from its objects alone: files, a dump, or what a live API server lists. Nothing is simulated.

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Object, is_applied, moment};
use strew_model::{Instant, Interner};
use strew_scheduler::Profile;

use crate::moment::Moment;

/// The objects of a cluster, and the profiles that decide about its pods.
pub struct Facts {
    tables: Tables,
    names: Interner,
    profiles: Vec<Profile>,
}

impl Facts {
    /// Of admitted objects. Workloads that are to be applied are left out: they come after second 0. Objects without a
    /// uid get one that no other object has.
    ///
    /// `names` is the interner of the profiles, of which there is at least one; objects without a time of creation get
    /// `start`.
    pub fn of_objects(
        objects: &[Object],
        start: Instant,
        names: &Interner,
        profiles: &[Profile],
    ) -> Self {
        let mut tables = Tables::default();
        for object in objects.iter().filter(|object| !is_applied(object)) {
            let mut object = object.clone();
            if object.meta().uid.is_empty() {
                let uid = object.key().to_string().into();
                object.meta_mut().uid = uid;
            }
            if object.meta().created == Instant::default() {
                object.meta_mut().created = moment::whole_seconds(start);
            }
            tables.set(object);
        }
        Self {
            tables,
            names: names.clone(),
            profiles: profiles.to_vec(),
        }
    }

    /// Of no object yet. [`set`](Self::set) and [`remove`](Self::remove) follow a cluster.
    pub fn empty(names: &Interner, profiles: &[Profile]) -> Self {
        Self::of_objects(&[], Instant::default(), names, profiles)
    }

    /// The present state of an object of a cluster.
    pub fn set(&mut self, object: Object) {
        self.tables.set(object);
    }

    /// An object was deleted.
    pub fn remove(&mut self, key: &Key) {
        self.tables.remove(key);
    }

    /// The moment that the objects show.
    pub fn moment(&self) -> Moment<'_> {
        Moment {
            tables: &self.tables,
            scheduler: None,
            names: &self.names,
            profiles: &self.profiles,
        }
    }
}
