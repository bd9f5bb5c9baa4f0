//! The profiles with their engines, by `schedulerName`.

use rustc_hash::FxHashMap;
use strew_cluster::{ClassId, Cluster};
use strew_model::{Interner, Symbol, well_known};

use crate::engine::Engine;
use crate::metrics::meter::Meter;
use crate::profile::Profile;

/// The scheduler name of pods without one.
const DEFAULT_NAME: &str = "default-scheduler";

/// One engine per profile, over one cluster.
pub struct Profiles {
    engines: Vec<(Symbol, Engine)>,
    by_name: FxHashMap<Symbol, usize>,
}

impl Profiles {
    /// If several profiles have the same name, the last one counts; configurations with such profiles are refused
    /// earlier.
    pub fn new(names: &mut Interner, profiles: Vec<Profile>) -> Self {
        let mut all = Self {
            engines: Vec::new(),
            by_name: FxHashMap::default(),
        };
        for profile in profiles {
            let name = names.intern(&profile.scheduler_name);
            let place = all.engines.len();
            if profile.scheduler_name == DEFAULT_NAME {
                all.by_name.insert(well_known::EMPTY, place);
            }
            all.by_name.insert(name, place);
            all.engines.push((name, Engine::new(profile)));
        }
        all
    }

    /// The index of the profile for a class; `None` if another scheduler is responsible.
    pub(crate) fn place(&self, cluster: &Cluster, class: ClassId) -> Option<usize> {
        let tables = cluster.tables();
        let name = tables.spec(tables.class(class).key.spec).scheduler_name;
        self.by_name.get(&name).copied()
    }

    /// The profile for a class.
    pub fn of_class(&self, cluster: &Cluster, class: ClassId) -> Option<&Profile> {
        let place = self.place(cluster, class)?;
        Some(self.engines[place].1.profile())
    }

    /// The engine for a class; `None` if another scheduler is responsible.
    pub fn engine_of(&mut self, cluster: &Cluster, class: ClassId) -> Option<&mut Engine> {
        let place = self.place(cluster, class)?;
        Some(self.engine_mut(place))
    }

    /// The next decision of each engine is that of a new one.
    pub fn rewind(&mut self) {
        self.engines_mut().for_each(Engine::rewind);
    }

    /// Its name.
    pub(crate) fn name(&self, place: usize) -> Symbol {
        self.engines[place].0
    }

    pub(crate) fn engines(&self) -> impl Iterator<Item = &Engine> {
        self.engines.iter().map(|(_, engine)| engine)
    }

    pub(crate) fn engines_mut(&mut self) -> impl Iterator<Item = &mut Engine> {
        self.engines.iter_mut().map(|(_, engine)| engine)
    }

    /// The measurements of each engine, with its profile's name.
    pub(crate) fn meters(&self) -> impl Iterator<Item = (Symbol, &Meter)> {
        let engines = self.engines.iter();
        engines.filter_map(|(name, engine)| Some((*name, engine.meter()?)))
    }

    pub(crate) fn engine_mut(&mut self, place: usize) -> &mut Engine {
        &mut self.engines[place].1
    }
}
