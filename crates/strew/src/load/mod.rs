//! Files into objects as an API server would hold them.

mod judge;
mod owners;
mod skipped;

use std::collections::{BTreeMap, HashMap};

use strew_api::config::AdmissionOptions;
use strew_api::config::is_configuration;
use strew_api::facts;
use strew_api::field::{FieldError, FieldPath};
use strew_api::read::{self, Diagnostic, KubeObject, Locator, Origin, Severity, Sources};
use strew_apiserver::admission::{AdmissionContext, PriorityClasses, admit_object, read_back};
use strew_apiserver::object::Object;
use strew_apiserver::workloads::NameSource;
use strew_model::Interner;

use judge::template_errors;

use crate::failure::Failure;
use crate::nodes::NodeArgs;
use strew_view::workload::Workloads;

/// Everything of the files, admitted.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// In the order of the files; nodes that were made come last.
    pub(crate) objects: Vec<Object>,
    pub(crate) workloads: Workloads,
    /// What a reader should know; sentences without full stop.
    pub(crate) notes: Vec<String>,
}

/// What a load gives: the objects, unless something is wrong; and all that is to be said.
pub(crate) struct Load {
    pub(crate) loaded: Option<Loaded>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Documents that tell a scheduler how to decide.
    pub(crate) configurations: Vec<Origin>,
}

/// Loads all files and makes the nodes that they lack.
pub(crate) fn load(
    sources: &Sources,
    node_args: &NodeArgs,
    options: &AdmissionOptions,
) -> Result<Load, Failure> {
    let reading = read::read(sources);
    let mut loader = Loader {
        locator: Locator::new(sources),
        diagnostics: reading.diagnostics,
        loaded: Loaded::default(),
        objects: Vec::new(),
        skipped: BTreeMap::new(),
        n_refused: 0,
        leaves_out: false,
        configurations: Vec::new(),
    };
    // A pod that names a broken class names one that is there.
    let broken = reading.broken.iter().map(|broken| &broken.located);
    let all = reading.objects.iter().chain(broken);
    let classes = all.filter_map(|located| match &located.object {
        KubeObject::PriorityClass(class) => Some(class.as_ref()),
        _ => None,
    });
    let classes = PriorityClasses::new(classes);
    let context = AdmissionContext {
        priority_classes: &classes,
        options,
    };
    let mut names = NameSource::new(0);
    for located in reading.objects {
        loader.object(located, &context, &mut names);
    }
    loader.say_skipped();
    loader.make_nodes(node_args)?;
    if loader.has_errors() {
        loader.judge(sources, &context);
        loader.say_left_out();
    }
    let loaded = (!loader.has_errors()).then(|| loader.finish());
    Ok(Load {
        loaded,
        diagnostics: loader.diagnostics,
        configurations: loader.configurations,
    })
}

struct Loader<'a> {
    locator: Locator<'a>,
    diagnostics: Vec<Diagnostic>,
    loaded: Loaded,
    /// Those of the files.
    objects: Vec<(KubeObject, Origin)>,
    /// Kinds that strew does not model, counted.
    skipped: BTreeMap<String, usize>,
    /// Broken rules of the API server that were told.
    n_refused: usize,
    /// Not every problem is in the list.
    leaves_out: bool,
    configurations: Vec<Origin>,
}

/// Broken rules told in one run; each costs its place, and nobody reads so many.
const REFUSED_MAX: usize = 1000;

impl Loader<'_> {
    fn has_errors(&self) -> bool {
        let mut all = self.diagnostics.iter();
        all.any(|d| d.severity == Severity::Error)
    }

    fn object(
        &mut self,
        located: read::Located,
        context: &AdmissionContext<'_>,
        names: &mut NameSource,
    ) {
        let read::Located {
            object,
            origin,
            from_dump,
        } = located;
        let label = object.label();
        self.count_without_effect(&object);
        let admitted = match from_dump {
            // It has been through admission.
            true => Ok((read_back(object), Vec::new())),
            false => admit_object(object, context, names),
        };
        let (object, warnings) = match admitted {
            Ok(admitted) => admitted,
            Err(errors) => return self.refuse(errors, &label, &origin),
        };
        for warning in warnings {
            let place = self.locator.place(&origin, &FieldPath::root());
            let warning = Diagnostic::warning("api-server-warning", warning);
            self.diagnostics.push(warning.about(&label).at(place));
        }
        let mut errors = fact_errors(&object);
        if errors.is_empty() {
            errors = template_errors(&object, from_dump, context);
        }
        self.refuse(errors, &label, &origin);
        self.keep(object, origin);
    }

    fn keep(&mut self, object: KubeObject, origin: Origin) {
        match object {
            KubeObject::Other(other) if is_configuration(&other.api_version, &other.kind) => {
                self.configurations.push(origin);
            }
            KubeObject::Other(other) => *self.skipped.entry(other.kind).or_default() += 1,
            object => self.objects.push((object, origin)),
        }
    }

    fn is_full(&self) -> bool {
        self.n_refused >= REFUSED_MAX
    }

    /// Says that not all was said, unless the reader did.
    fn say_left_out(&mut self) {
        const TOO_MANY: &str = "too-many";
        let is_said = self.diagnostics.iter().any(|d| d.code == TOO_MANY);
        if self.leaves_out && !is_said {
            let message = "there are more problems, which are not listed";
            self.diagnostics.push(Diagnostic::error(TOO_MANY, message));
        }
    }

    fn refuse(&mut self, errors: Vec<FieldError>, label: &str, origin: &Origin) {
        for error in errors {
            if self.is_full() {
                self.leaves_out = true;
                return;
            }
            self.n_refused += 1;
            let place = self.locator.place(origin, &error.path);
            let diagnostic = Diagnostic::from_field_error(&error, label, place);
            self.diagnostics.push(diagnostic);
        }
    }

    fn make_nodes(&mut self, args: &NodeArgs) -> Result<(), Failure> {
        let nodes = self
            .objects
            .iter()
            .filter_map(|(object, origin)| match object {
                KubeObject::Node(node) => Some((node.metadata.name.as_deref()?, origin)),
                _ => None,
            });
        let taken: HashMap<&str, &Origin> = nodes.collect();
        let made = args.make(!taken.is_empty())?;
        for node in &made.nodes {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            if let Some(origin) = taken.get(name) {
                let message = format!("--nodes makes a node {name:?}, and so does this file");
                let place = self.locator.place(origin, &FieldPath::root());
                self.diagnostics
                    .push(Diagnostic::error("duplicate-object", message).at(place));
            }
        }
        self.loaded.notes.extend(made.note);
        let nodes = made.nodes.into_iter();
        self.loaded
            .objects
            .extend(nodes.map(|node| Object::of_wire(node.into())));
        Ok(())
    }

    /// Everything as the API server keeps it.
    fn finish(&mut self) -> Loaded {
        let mut loaded = std::mem::take(&mut self.loaded);
        let files = std::mem::take(&mut self.objects).into_iter();
        let mut objects: Vec<Object> = files.map(|(object, _)| Object::of_wire(object)).collect();
        let released = owners::release(&mut objects);
        loaded.notes.extend(released.note());
        loaded.workloads = Workloads::of_objects(&objects);
        loaded.workloads.add_pods(&objects, &released.pods);
        objects.append(&mut loaded.objects);
        loaded.objects = objects;
        loaded
    }
}

/// What no decision could be made from.
fn fact_errors(object: &KubeObject) -> Vec<FieldError> {
    let mut names = Interner::new();
    let errors = match object {
        KubeObject::Node(node) => facts::node(node, &mut names).err(),
        KubeObject::Pod(pod) => facts::pod(pod, &mut names).err(),
        KubeObject::PodDisruptionBudget(_) => None,
        object => facts::apply(object, &mut strew_cluster::Cluster::new()).err(),
    };
    errors.unwrap_or_default()
}
