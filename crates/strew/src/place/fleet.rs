//! Turns files into a fleet: clusters, sets, scores, decisions and Placements, as the API server would store them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use strew_apiserver::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, admit_object};
use strew_apiserver::workloads::NameSource;
use strew_manifest::field::FieldPath;
use strew_manifest::ocm::{
    ClusterSetSelector, ManagedCluster, ManagedClusterSet, ManagedClusterSetSpec, Placement,
};
use strew_manifest::read::{
    self, Broken, Diagnostic, KubeObject, Located, Locator, NO_CONTROLLER, Severity, Sources,
    render,
};
use strew_model::{Instant, Interner, Symbol};
use strew_placement::facts::cluster_set::CLUSTER_SET_LABEL;
use strew_placement::facts::placement::PlacementFact;
use strew_placement::machine::Input;
use strew_wire::config::AdmissionOptions;
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::facts;

use super::decide::{Ground, Held};
use crate::failure::Failure;
use crate::text::count;
use crate::{inputs, terminal};

/// The fleet.
#[derive(Debug)]
pub(super) struct Fleet {
    /// The strings of all facts.
    pub(super) names: Interner,
    /// CEL selectors, and the clusters that they are evaluated on.
    pub(super) cel: CelSelectors,
    /// All facts except Placements.
    pub(super) facts: Vec<Input>,
    /// By namespace and name.
    pub(super) placements: Vec<PlacementFact>,
    /// The clusters as written.
    pub(super) clusters: BTreeMap<Symbol, ManagedCluster>,
    /// True if the sets that OCM's registration makes are taken for granted, and its labels with them.
    pub(super) assumes_sets: bool,
    /// True if manifests have neither a set nor a binding.
    is_unbound: bool,
    /// Placements that the API server accepts and that cannot be decided.
    pub(super) misconfigured: BTreeSet<(Symbol, Symbol)>,
    /// The Placements as written.
    pub(super) written: BTreeMap<(Symbol, Symbol), Placement>,
    /// True if the result depends on the time.
    pub(super) time_matters: bool,
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

/// The set of all clusters, and the set of clusters in no other set. OCM creates both.
const GLOBAL_SET: &str = "global";
const DEFAULT_SET: &str = "default";

/// Loads all files, or what a hub has.
pub(super) fn load(sources: &Sources, is_hub: bool) -> Load {
    let reading = read::read(sources);
    let mut loader = Loader::new(sources, reading.diagnostics);
    for located in reading.objects {
        loader.object(located);
    }
    loader.broken(&reading.broken);
    let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
    let n_errors = loader.diagnostics.iter().filter(is_error).count();
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

/// The object as the API server would store it, with warnings.
fn admitted(
    located: &Located,
) -> Result<(KubeObject, Vec<String>), Vec<strew_manifest::field::FieldError>> {
    let object = located.object.clone();
    if located.from_dump {
        // It has passed admission.
        return Ok((object, Vec::new()));
    }
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new([]),
        runtime_classes: &RuntimeClasses::default(),
        options: &AdmissionOptions::KUBERNETES_1_36,
    };
    admit_object(object, &context, &mut NameSource::new(0))
}

/// The objects so far.
pub(super) struct Loader<'a> {
    pub(super) locator: Locator<'a>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The objects that placement reads, as the API server would store them.
    pub(super) objects: Vec<Located>,
    /// The kinds that placement does not read, with their numbers.
    skipped: BTreeMap<String, usize>,
    /// By namespace and name.
    misconfigured: BTreeSet<(String, String)>,
}

impl<'a> Loader<'a> {
    pub(super) fn new(sources: &'a Sources, mut diagnostics: Vec<Diagnostic>) -> Self {
        // No pods are placed here.
        diagnostics.retain(|d| d.code != NO_CONTROLLER);
        Self {
            locator: Locator::new(sources),
            diagnostics,
            objects: Vec::new(),
            skipped: BTreeMap::new(),
            misconfigured: BTreeSet::new(),
        }
    }

    /// An object of a file.
    pub(super) fn object(&mut self, located: Located) {
        if !is_looked_at(&located.object) {
            let kind = located.object.kind_in_group().into_owned();
            *self.skipped.entry(kind).or_default() += 1;
            return;
        }
        match admitted(&located) {
            Ok((object, warnings)) => {
                let label = object.label();
                for warning in warnings {
                    let place = self.locator.place(&located.origin, &FieldPath::root());
                    let warning = Diagnostic::warning("without-effect", warning);
                    self.diagnostics.push(warning.about(&label).at(place));
                }
                self.objects.push(Located { object, ..located });
            }
            Err(errors) => self.refuse(&errors, &located),
        }
    }

    /// The other errors of a broken object are reported, too.
    pub(super) fn broken(&mut self, all: &[Broken]) {
        for broken in all {
            let located = &broken.located;
            let mut errors = admitted(located).err().unwrap_or_default();
            errors.retain(|error| !broken.follows(error));
            self.refuse(&errors, located);
        }
    }

    fn refuse(&mut self, errors: &[strew_manifest::field::FieldError], located: &Located) {
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
                    let namespace = located.object.namespace().unwrap_or("default");
                    let key = (namespace.to_owned(), located.object.name().to_owned());
                    self.misconfigured.insert(key);
                }
                self.refuse(&errors, &located);
            }
            self.objects.push(located);
        }
    }

    fn fleet(&mut self, is_hub: bool, notes: &mut Vec<String>) -> Fleet {
        let is_recorded_set = |located: &Located| {
            located.from_dump && matches!(located.object, KubeObject::ManagedClusterSet(_))
        };
        let mut fleet = Fleet {
            names: Interner::new(),
            cel: CelSelectors::new(),
            facts: Vec::new(),
            placements: Vec::new(),
            clusters: BTreeMap::new(),
            // A hub has the sets that it has: `strew controller` decides by those.
            assumes_sets: !is_hub && !self.objects.iter().any(is_recorded_set),
            is_unbound: false,
            misconfigured: BTreeSet::new(),
            written: BTreeMap::new(),
            time_matters: false,
        };
        let mut objects: Vec<KubeObject> = std::mem::take(&mut self.objects)
            .into_iter()
            .map(|located| located.object)
            .collect();
        let binds = |o: &KubeObject| {
            matches!(
                o,
                KubeObject::ManagedClusterSet(_) | KubeObject::ManagedClusterSetBinding(_)
            )
        };
        fleet.is_unbound = !is_hub && !objects.iter().any(binds);
        if fleet.assumes_sets {
            let assumed = built_in_sets(&mut objects);
            if !fleet.is_unbound && !assumed.is_empty() {
                notes.push(format!(
                    "assumed: the ManagedClusterSet {}, which OCM's registration makes",
                    assumed.join(" and ")
                ));
            }
        }
        for object in objects {
            fleet.add(object);
        }
        sort(&mut fleet.placements, &fleet.names);
        let misconfigured = std::mem::take(&mut self.misconfigured);
        for (namespace, name) in misconfigured {
            let key = (fleet.names.intern(&namespace), fleet.names.intern(&name));
            fleet.misconfigured.insert(key);
        }
        if fleet.is_unbound {
            fleet.names.intern(GLOBAL_SET);
            let bindings = fleet.placements.iter();
            let bindings: Vec<Input> = bindings.filter_map(|p| fleet.binding_of(p)).collect();
            fleet.facts.extend(bindings);
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
            let n: usize = self.skipped.values().sum();
            let objects = count(n, "object");
            notes.push(format!(
                "skipped {objects} of kinds that placement does not look at: {}",
                each.join(", ")
            ));
        }
        fleet
    }
}

fn is_looked_at(object: &KubeObject) -> bool {
    matches!(
        object,
        KubeObject::ManagedCluster(_)
            | KubeObject::ManagedClusterSet(_)
            | KubeObject::ManagedClusterSetBinding(_)
            | KubeObject::AddOnPlacementScore(_)
            | KubeObject::Placement(_)
            | KubeObject::PlacementDecision(_)
    )
}

/// What OCM's registration does: it creates two sets, and labels clusters that are in no other. Returns the sets that
/// were not there and that a binding names.
fn built_in_sets(objects: &mut Vec<KubeObject>) -> Vec<&'static str> {
    for object in &mut *objects {
        if let KubeObject::ManagedCluster(cluster) = object {
            join_default(cluster);
        }
    }
    let mut assumed = Vec::new();
    let of_labels = ClusterSetSelector {
        selector_type: Some("LabelSelector".to_owned()),
        label_selector: Some(Default::default()),
    };
    for (name, selector) in [
        (DEFAULT_SET, ClusterSetSelector::default()),
        (GLOBAL_SET, of_labels),
    ] {
        let is_this =
            |o: &KubeObject| matches!(o, KubeObject::ManagedClusterSet(_)) && o.name() == name;
        if objects.iter().any(is_this) {
            continue;
        }
        let mut set = ManagedClusterSet {
            spec: Some(ManagedClusterSetSpec {
                cluster_selector: Some(selector),
                managed_namespaces: None,
            }),
            ..ManagedClusterSet::default()
        };
        set.metadata.name = Some(name.to_owned());
        let binds = |o: &KubeObject| {
            matches!(o, KubeObject::ManagedClusterSetBinding(_)) && o.name() == name
        };
        if objects.iter().any(binds) {
            assumed.push(name);
        }
        objects.push(set.into());
    }
    assumed
}

/// A cluster in no other set is in the default one.
pub(super) fn join_default(cluster: &mut ManagedCluster) {
    let labels = cluster.metadata.labels.get_or_insert_default();
    let set = labels.entry(CLUSTER_SET_LABEL.to_owned());
    set.or_insert_with(|| DEFAULT_SET.to_owned());
}

/// Sorts Placements by namespace and name.
pub(super) fn sort(placements: &mut [PlacementFact], names: &Interner) {
    let text = |symbol: Symbol| names.text(symbol);
    placements
        .sort_by(|a, b| (text(a.namespace), text(a.name)).cmp(&(text(b.namespace), text(b.name))));
}

/// The objects of a file that placement reads, as the API server would store them.
///
/// # Errors
/// The file cannot be read, or has errors.
pub(super) fn objects_of(name: &str) -> Result<Vec<KubeObject>, Failure> {
    let sources = inputs::sources(inputs::read_one(name)?);
    let reading = read::read(&sources);
    let mut loader = Loader::new(&sources, reading.diagnostics);
    for located in reading.objects {
        loader.object(located);
    }
    loader.misconfigured();
    let is_error = |d: &Diagnostic| d.severity == Severity::Error;
    if loader.diagnostics.iter().any(is_error) {
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
    fn add(&mut self, object: KubeObject) {
        let input = facts::inputs(&object, &mut self.names, &mut self.cel);
        match (input, object) {
            (Some(Input::PlacementSet(fact)), KubeObject::Placement(written)) => {
                self.time_matters |= fact.spec.tolerations.iter().any(|t| t.seconds.is_some());
                self.written.insert((fact.namespace, fact.name), *written);
                self.placements.push(*fact);
            }
            (Some(Input::ClusterSet(fact)), KubeObject::ManagedCluster(written)) => {
                self.clusters.insert(fact.name, *written);
                self.facts.push(Input::ClusterSet(fact));
            }
            (Some(input), _) => {
                let expires =
                    |s: &strew_placement::facts::scores::ScoresFact| s.valid_until.is_some();
                self.time_matters |= matches!(&input, Input::ScoresSet(s) if expires(s));
                self.facts.push(input);
            }
            (None, _) => {}
        }
    }

    /// The binding of the set of all clusters to a Placement's namespace, if the files have no binding.
    pub(super) fn binding_of(&self, placement: &PlacementFact) -> Option<Input> {
        let name = self.names.get(GLOBAL_SET)?;
        self.is_unbound.then_some(Input::BindingSet {
            namespace: placement.namespace,
            name,
        })
    }

    /// All of it, as the input of decisions.
    pub(super) fn ground(&self, now: Instant) -> Ground<'_> {
        Ground {
            names: &self.names,
            cel: &self.cel,
            facts: &self.facts,
            placements: &self.placements,
            now,
        }
    }

    /// The clusters that its Placements hold, in its own PlacementDecisions.
    pub(super) fn stored(&self) -> Held {
        let mut stored = Held::new();
        let known = |key: &(Symbol, Symbol)| self.written.contains_key(key);
        for input in &self.facts {
            let Input::DecisionSet(decision) = input else {
                continue;
            };
            let key = decision.placement.map(|name| (decision.namespace, name));
            if let Some(key) = key.filter(known) {
                stored.entry(key).or_default().push(decision.clone());
            }
        }
        stored
    }
}
