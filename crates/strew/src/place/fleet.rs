//! Files into a fleet: clusters, sets, scores, decisions and Placements, as the API server would hold them.

use std::collections::BTreeMap;

use strew_api::config::AdmissionOptions;
use strew_api::field::FieldPath;
use strew_api::placement::cel::CelSelectors;
use strew_api::placement::facts;
use strew_api::placement::wire::{
    ClusterSetSelector, ManagedCluster, ManagedClusterSet, ManagedClusterSetSpec, Placement,
};
use strew_api::read::{self, Diagnostic, KubeObject, Located, Locator, Severity, Sources};
use strew_apiserver::admission::{AdmissionContext, PriorityClasses, admit_object};
use strew_apiserver::workloads::NameSource;
use strew_model::{Interner, Symbol};
use strew_placement::facts::cluster_set::CLUSTER_SET_LABEL;
use strew_placement::facts::placement::PlacementFact;
use strew_placement::machine::Input;

use crate::text::count;

/// What there is.
#[derive(Debug)]
pub(super) struct Fleet {
    /// The strings of all facts.
    pub(super) names: Interner,
    /// CEL selectors and the clusters that they look at.
    pub(super) cel: CelSelectors,
    /// Everything but Placements.
    pub(super) facts: Vec<Input>,
    /// By namespace and name.
    pub(super) placements: Vec<PlacementFact>,
    /// The same as they were written.
    pub(super) written: BTreeMap<(Symbol, Symbol), Placement>,
    /// Whether the answer may be another at another moment.
    pub(super) time_matters: bool,
}

/// What a load gives.
pub(super) struct Load {
    /// Unless something is wrong.
    pub(super) fleet: Option<Fleet>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What a reader should know.
    pub(super) notes: Vec<String>,
    /// Errors that leave nothing to decide.
    pub(super) n_errors: usize,
    /// Placements that no decision can be made from.
    pub(super) n_misconfigured: usize,
}

/// The set that holds every cluster, and the one for clusters in no other. OCM keeps both alive.
const GLOBAL_SET: &str = "global";
const DEFAULT_SET: &str = "default";

/// Loads all files.
pub(super) fn load(sources: &Sources) -> Load {
    let reading = read::read(sources);
    let mut loader = Loader {
        locator: Locator::new(sources),
        diagnostics: reading.diagnostics,
        objects: Vec::new(),
        skipped: BTreeMap::new(),
        n_misconfigured: 0,
    };
    for located in reading.objects {
        loader.object(located);
    }
    // Of what is broken the rest is told, too.
    for broken in &reading.broken {
        let located = &broken.located;
        let mut errors = admitted(located).err().unwrap_or_default();
        errors.retain(|error| !broken.follows(error));
        loader.refuse(&errors, located);
    }
    let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
    let n_errors = loader.diagnostics.iter().filter(is_error).count();
    loader.misconfigured();
    let mut notes = Vec::new();
    let fleet = (n_errors == 0).then(|| loader.fleet(&mut notes));
    loader
        .diagnostics
        .sort_by_key(|d| (d.place.is_none(), d.place));
    Load {
        fleet,
        diagnostics: loader.diagnostics,
        notes,
        n_errors,
        n_misconfigured: loader.n_misconfigured,
    }
}

/// The object as the API server would hold it, and its warnings.
fn admitted(
    located: &Located,
) -> Result<(KubeObject, Vec<String>), Vec<strew_api::field::FieldError>> {
    let object = located.object.clone();
    if located.from_dump {
        // It has been through admission.
        return Ok((object, Vec::new()));
    }
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new([]),
        options: &AdmissionOptions::KUBERNETES_1_36,
    };
    admit_object(object, &context, &mut NameSource::new(0))
}

struct Loader<'a> {
    locator: Locator<'a>,
    diagnostics: Vec<Diagnostic>,
    objects: Vec<Located>,
    /// Kinds that placement does not look at, counted.
    skipped: BTreeMap<String, usize>,
    n_misconfigured: usize,
}

impl Loader<'_> {
    fn object(&mut self, located: Located) {
        if !is_looked_at(&located.object) {
            let kind = located.object.kind().to_owned();
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

    fn refuse(&mut self, errors: &[strew_api::field::FieldError], located: &Located) {
        for error in errors {
            let place = self.locator.place(&located.origin, &error.path);
            let label = located.object.label();
            let diagnostic = Diagnostic::from_field_error(error, label, place);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Tells what no decision can be made from, with its place.
    fn misconfigured(&mut self) {
        for located in std::mem::take(&mut self.objects) {
            if let KubeObject::Placement(placement) = &located.object {
                let errors = facts::misconfigured(placement);
                self.n_misconfigured += usize::from(!errors.is_empty());
                self.refuse(&errors, &located);
            }
            self.objects.push(located);
        }
    }

    fn fleet(&mut self, notes: &mut Vec<String>) -> Fleet {
        let mut fleet = Fleet {
            names: Interner::new(),
            cel: CelSelectors::new(),
            facts: Vec::new(),
            placements: Vec::new(),
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
        let is_unbound = !objects.iter().any(binds);
        built_in_sets(&mut objects);
        for object in &objects {
            fleet.add(object);
        }
        fleet.sort();
        if is_unbound {
            fleet.bind_all();
            notes.push(
                "no ManagedClusterSet and no binding in the files: every cluster may be chosen"
                    .to_owned(),
            );
        }
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

/// What OCM's registration sees to: two sets that are always there, and a label on clusters that are in no other.
fn built_in_sets(objects: &mut Vec<KubeObject>) {
    for object in &mut *objects {
        if let KubeObject::ManagedCluster(cluster) = object {
            join_default(cluster);
        }
    }
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
        objects.push(set.into());
    }
}

fn join_default(cluster: &mut ManagedCluster) {
    let labels = cluster.metadata.labels.get_or_insert_default();
    let set = labels.entry(CLUSTER_SET_LABEL.to_owned());
    set.or_insert_with(|| DEFAULT_SET.to_owned());
}

impl Fleet {
    fn add(&mut self, object: &KubeObject) {
        let input = facts::inputs(object, &mut self.names, &mut self.cel);
        match input {
            Some(Input::PlacementSet(fact)) => {
                self.time_matters |= fact.spec.tolerations.iter().any(|t| t.seconds.is_some());
                if let KubeObject::Placement(written) = object {
                    let key = (fact.namespace, fact.name);
                    self.written.insert(key, (**written).clone());
                }
                self.placements.push(*fact);
            }
            Some(input) => {
                let expires =
                    |s: &strew_placement::facts::scores::ScoresFact| s.valid_until.is_some();
                self.time_matters |= matches!(&input, Input::ScoresSet(s) if expires(s));
                self.facts.push(input);
            }
            None => {}
        }
    }

    fn sort(&mut self) {
        let names = &self.names;
        let text = |symbol: Symbol| names.text(symbol);
        self.placements.sort_by(|a, b| {
            (text(a.namespace), text(a.name)).cmp(&(text(b.namespace), text(b.name)))
        });
    }

    /// Binds the set of all clusters to every namespace with a Placement.
    fn bind_all(&mut self) {
        let name = self.names.intern(GLOBAL_SET);
        let bind = |placement: &PlacementFact| Input::BindingSet {
            namespace: placement.namespace,
            name,
        };
        self.facts.extend(self.placements.iter().map(bind));
    }
}
