//! A fleet: the objects of files or of a hub that placement reads, as the API server stores them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use strew_apiserver::server::registration::{DEFAULT_SETS, GLOBAL_SET, join_default_set};
use strew_manifest::field::FieldError;
use strew_manifest::ocm::{ManagedCluster, ManagedClusterSetBinding, Placement, PlacementDecision};
use strew_manifest::read::{
    self, Diagnostic, KubeObject, Located, Locator, NO_CONTROLLER, Reading, Severity, Sources,
    render,
};
use strew_model::{Instant, Interner};
use strew_scenario::run::admission;
use strew_sim::Hub;
use strew_suite::suite::{Named, inspect};
use strew_view::placement::{PlacementKey, PlacementView};
use strew_wire::config::AdmissionOptions;
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::facts;

use super::decide::Held;
use crate::failure::Failure;
use crate::text::count;
use crate::{inputs, terminal};

/// The fleet.
#[derive(Debug, Clone, Default)]
pub(super) struct Fleet {
    /// By name.
    pub(super) clusters: BTreeMap<String, ManagedCluster>,
    pub(super) placements: BTreeMap<PlacementKey, Placement>,
    /// Sets, bindings, scores and PlacementDecisions.
    pub(super) others: Vec<KubeObject>,
    /// True if the sets that OCM's registration makes are taken for granted, and its labels with them.
    pub(super) registers: bool,
    /// True if manifests have neither a set nor a binding.
    is_unbound: bool,
    /// Placements that the API server accepts and that cannot be decided.
    pub(super) misconfigured: BTreeSet<PlacementKey>,
}

/// The result of loading.
pub(super) struct Load {
    /// `None` if there is an error.
    pub(super) fleet: Option<Fleet>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// Errors that prevent any decision.
    pub(super) n_errors: usize,
}

/// Loads all files, or what a hub has.
pub(super) fn load(sources: &Sources, is_hub: bool) -> Load {
    let mut loader = Loader::new(sources, read::read(sources));
    let n_errors = loader.n_errors();
    loader.misconfigured();
    let mut notes = Vec::new();
    let fleet = (n_errors == 0).then(|| loader.fleet(is_hub, &mut notes));
    loader
        .diagnostics
        .sort_by_key(|d| (d.place.is_none(), d.place));
    Load {
        fleet,
        diagnostics: loader.diagnostics,
        notes,
        n_errors,
    }
}

/// The objects of files.
pub(super) struct Loader<'a> {
    pub(super) locator: Locator<'a>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The objects that placement reads, as the API server stores them.
    pub(super) objects: Vec<Located>,
    /// The kinds that placement does not read, with their numbers.
    skipped: BTreeMap<String, usize>,
    misconfigured: BTreeSet<PlacementKey>,
}

impl<'a> Loader<'a> {
    /// Admits what was read.
    pub(super) fn new(sources: &'a Sources, reading: Reading) -> Self {
        let mut loader = Self {
            locator: Locator::new(sources),
            diagnostics: reading.diagnostics,
            objects: Vec::new(),
            skipped: BTreeMap::new(),
            misconfigured: BTreeSet::new(),
        };
        // No pods are placed here.
        loader.diagnostics.retain(|d| d.code != NO_CONTROLLER);
        let (stream, skipped): (Vec<Located>, Vec<Located>) = reading
            .objects
            .into_iter()
            .partition(|located| is_looked_at(&located.object));
        for located in skipped {
            let kind = located.object.kind_in_group().into_owned();
            *loader.skipped.entry(kind).or_default() += 1;
        }
        let options = AdmissionOptions::KUBERNETES_1_36;
        let mut admitted = Vec::new();
        let judged = admission::judge(&stream, &reading.broken, &options, &mut |number, object| {
            admitted.push((number, object));
        });
        for (number, errors) in judged.refused {
            loader.refuse(&errors, &stream[number]);
        }
        for (number, warning) in judged.warnings {
            let warning =
                inspect::warning(&warning, Named::of(&stream[number]), &mut loader.locator);
            loader.diagnostics.push(warning);
        }
        for (number, errors) in judged.also_broken {
            loader.refuse(&errors, &reading.broken[number].located);
        }
        let admitted = admitted.into_iter().map(|(number, object)| Located {
            object,
            ..stream[number].clone()
        });
        loader.objects = admitted.collect();
        loader
    }

    fn n_errors(&self) -> usize {
        let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
        self.diagnostics.iter().filter(is_error).count()
    }

    fn refuse(&mut self, errors: &[FieldError], located: &Located) {
        for error in errors {
            let place = self.locator.place(&located.origin, &error.path);
            let label = located.object.label();
            let diagnostic = Diagnostic::from_field_error(error, label, place);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports objects that prevent a decision, with their places.
    pub(super) fn misconfigured(&mut self) {
        for located in std::mem::take(&mut self.objects) {
            if let KubeObject::Placement(placement) = &located.object {
                let errors = facts::misconfigured(placement);
                if !errors.is_empty() {
                    self.misconfigured.insert(key(&located.object));
                }
                self.refuse(&errors, &located);
            }
            self.objects.push(located);
        }
    }

    fn fleet(&mut self, is_hub: bool, notes: &mut Vec<String>) -> Fleet {
        let has = |is: &dyn Fn(&Located) -> bool| self.objects.iter().any(is);
        let is_set = |o: &KubeObject| matches!(o, KubeObject::ManagedClusterSet(_));
        let binds = |o: &KubeObject| matches!(o, KubeObject::ManagedClusterSetBinding(_));
        let mut fleet = Fleet {
            // A hub has the sets that it has: `strew controller` decides by those.
            registers: !is_hub && !has(&|located| located.from_dump && is_set(&located.object)),
            is_unbound: !is_hub && !has(&|l| is_set(&l.object) || binds(&l.object)),
            misconfigured: std::mem::take(&mut self.misconfigured),
            ..Fleet::default()
        };
        let objects = std::mem::take(&mut self.objects).into_iter();
        objects.for_each(|located| fleet.put(located.object));
        let assumed = fleet.assumed_sets();
        if !assumed.is_empty() {
            notes.push(format!(
                "assumed: the ManagedClusterSet {}, which OCM's registration makes",
                assumed.join(" and ")
            ));
        }
        let note = match (fleet.clusters.is_empty(), fleet.is_unbound, is_hub) {
            (true, _, true) => Some("no ManagedCluster on the hub: nothing can be chosen"),
            (true, _, false) => Some("no ManagedCluster in the files: nothing can be chosen"),
            (false, true, _) => Some(
                "no ManagedClusterSet and no binding in the files: every cluster may be chosen",
            ),
            (false, false, _) => None,
        };
        notes.extend(note.map(str::to_owned));
        if !self.skipped.is_empty() {
            let each = self.skipped.iter().map(|(kind, n)| format!("{n} {kind}"));
            let each: Vec<String> = each.collect();
            let objects = count(self.skipped.values().sum(), "object");
            notes.push(format!(
                "skipped {objects} of kinds that placement does not look at: {}",
                each.join(", ")
            ));
        }
        fleet
    }
}

/// True if placement reads objects of this kind.
pub(super) fn is_looked_at(object: &KubeObject) -> bool {
    strew_runtime::placement::READS
        .iter()
        .any(|read| *read.row.kind == *object.kind())
        && !matches!(object, KubeObject::Other(_))
}

/// The key of an object.
pub(super) fn key(object: &KubeObject) -> PlacementKey {
    let namespace = object.namespace().unwrap_or_default();
    (namespace.to_owned(), object.name().to_owned())
}

/// The objects of a file that placement reads, as the API server would store them.
///
/// # Errors
/// The file cannot be read, or has errors.
pub(super) fn objects_of(name: &str) -> Result<Vec<KubeObject>, Failure> {
    let sources = inputs::sources(inputs::read_one(name)?);
    let mut loader = Loader::new(&sources, read::read(&sources));
    loader.misconfigured();
    if loader.n_errors() > 0 {
        let text = render(&loader.diagnostics, &sources, true);
        terminal::say(&format!("{text}\n"));
        return Err(Failure::input(anyhow!("{name} cannot be used")));
    }
    let objects = loader.objects.into_iter().map(|located| located.object);
    let objects: Vec<KubeObject> = objects.collect();
    match objects.is_empty() {
        true => Err(Failure::input(anyhow!(
            "nothing in {name} is for placement"
        ))),
        false => Ok(objects),
    }
}

impl Fleet {
    /// Adds an object, or replaces the one of its name.
    pub(super) fn put(&mut self, object: KubeObject) {
        let key = key(&object);
        match object {
            KubeObject::ManagedCluster(mut cluster) => {
                if self.registers {
                    join_default_set(cluster.metadata.labels.get_or_insert_default());
                }
                self.clusters.insert(key.1, *cluster);
            }
            KubeObject::Placement(placement) => {
                self.placements.insert(key, *placement);
            }
            // The later of two counts.
            other => self.others.push(other),
        }
    }

    /// True if the result depends on the time.
    pub(super) fn time_matters(&self) -> bool {
        let specs = self.placements.values().filter_map(|p| p.spec.as_ref());
        let mut tolerations = specs.flat_map(|spec| spec.tolerations.iter().flatten());
        let expires = |object: &KubeObject| match object {
            KubeObject::AddOnPlacementScore(scores) => {
                let status = scores.status.as_ref();
                status.is_some_and(|status| status.valid_until.is_some())
            }
            _ => false,
        };
        tolerations.any(|toleration| toleration.toleration_seconds.is_some())
            || self.others.iter().any(expires)
    }

    /// The sets that bindings name, by namespace; without any set and binding, that of all clusters.
    pub(super) fn bound(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut bound = BTreeMap::<&str, BTreeSet<&str>>::new();
        for object in &self.others {
            if let KubeObject::ManagedClusterSetBinding(_) = object {
                let sets = bound.entry(object.namespace().unwrap_or_default());
                sets.or_default().insert(object.name());
            }
        }
        for (namespace, _) in self.placements.keys().filter(|_| self.is_unbound) {
            bound.entry(namespace).or_default().insert(GLOBAL_SET);
        }
        bound
    }

    /// The sets, with those that registration makes.
    pub(super) fn sets(&self) -> BTreeSet<&str> {
        let made = DEFAULT_SETS.iter().filter(|_| self.registers);
        let is_set = |o: &&KubeObject| matches!(o, KubeObject::ManagedClusterSet(_));
        let written = self.others.iter().filter(is_set).map(KubeObject::name);
        written.chain(made.map(|(name, _)| *name)).collect()
    }

    /// The sets that bindings name and only registration makes.
    fn assumed_sets(&self) -> Vec<&'static str> {
        let bound: BTreeSet<&str> = self.bound().into_values().flatten().collect();
        let is_written = |name: &str| {
            let is_set = |o: &KubeObject| matches!(o, KubeObject::ManagedClusterSet(_));
            self.others.iter().any(|o| is_set(o) && o.name() == name)
        };
        let made = DEFAULT_SETS.iter();
        let made = made.filter(|_| self.registers && !self.is_unbound);
        let made = made.map(|(name, _)| *name);
        made.filter(|name| bound.contains(name) && !is_written(name))
            .collect()
    }

    /// Its CEL selectors, with the clusters that they are evaluated on.
    pub(super) fn selectors(&self) -> CelSelectors {
        let (mut names, mut cel) = (Interner::new(), CelSelectors::new());
        for cluster in self.clusters.values() {
            facts::cluster(cluster, &mut names, &mut cel);
        }
        for object in &self.others {
            facts::inputs(object, &mut names, &mut cel);
        }
        cel
    }

    /// The hub without its Placements; `held` replaces the PlacementDecisions of theirs.
    pub(super) fn hub(&self, held: &Held, now: Instant) -> Hub {
        let clusters = self.clusters.values().cloned().map(KubeObject::from);
        let others = self.others.iter().filter(|object| match object {
            KubeObject::PlacementDecision(decision) => {
                PlacementView::owner(decision).is_none_or(|owner| !held.contains_key(&owner))
            }
            _ => true,
        });
        let held = held.values().flatten().cloned().map(KubeObject::from);
        let namespaces: BTreeSet<&String> = self.placements.keys().map(|(ns, _)| ns).collect();
        let unbound = namespaces.into_iter().filter(|_| self.is_unbound);
        let bindings = unbound.map(|namespace| {
            let mut binding = ManagedClusterSetBinding::default();
            binding.metadata.namespace = Some(namespace.clone());
            binding.metadata.name = Some(GLOBAL_SET.to_owned());
            KubeObject::from(binding)
        });
        let objects = clusters.chain(others.cloned()).chain(held).chain(bindings);
        Hub::new(objects, self.registers, now)
    }

    /// The PlacementDecisions of its Placements.
    pub(super) fn stored(&self) -> Held {
        let mut stored = Held::new();
        for object in &self.others {
            if let KubeObject::PlacementDecision(decision) = object
                && let Some(owner) = PlacementView::owner(decision)
                && self.placements.contains_key(&owner)
            {
                let decision = PlacementDecision::clone(decision);
                stored.entry(owner).or_default().push(decision);
            }
        }
        stored
    }
}
