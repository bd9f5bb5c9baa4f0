//! Files into objects as an API server would hold them, and the pods that their workloads miss.

mod expand;
mod judge;
mod skipped;

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{Node, Pod};
use strew_api::admission::{AdmissionContext, AdmissionOptions, PriorityClasses, admit_object};
use strew_api::config::is_configuration;
use strew_api::field::{FieldError, FieldPath};
use strew_api::read::{self, Diagnostic, KubeObject, Locator, Origin, Severity, Sources};
use strew_api::workloads::NameSource;

use crate::failure::Failure;
use crate::nodes::NodeArgs;
use crate::workload::Workloads;
use expand::expandable;

/// Everything of the files, admitted, and what was made of it.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) nodes: Vec<(Node, Option<Origin>)>,
    /// In order of arrival: where their object, or their workload, stands in the files.
    pub(crate) pods: Vec<LoadedPod>,
    /// Services, namespaces, controllers and whatever else.
    pub(crate) others: Vec<(KubeObject, Option<Origin>)>,
    pub(crate) workloads: Workloads,
    /// What a reader should know; sentences without full stop.
    pub(crate) notes: Vec<String>,
}

/// A pod of the files, or one that its workload missed.
#[derive(Debug)]
pub(crate) struct LoadedPod {
    pub(crate) pod: Pod,
    pub(crate) workload: usize,
    /// Where it, or its workload, stands.
    pub(crate) origin: Origin,
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
        file_pods: Vec::new(),
        expandable: Vec::new(),
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
    for (index, located) in reading.objects.into_iter().enumerate() {
        loader.object(index, located, &context, &mut names);
    }
    loader.say_skipped();
    let files_hold_nodes = !loader.loaded.nodes.is_empty();
    loader.make_nodes(node_args, files_hold_nodes)?;
    if !loader.has_errors() {
        loader.expand(&context, &mut names);
    }
    if loader.has_errors() {
        loader.judge(sources, &context);
        loader.say_left_out();
    }
    let loaded = (!loader.has_errors()).then_some(loader.loaded);
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
    /// Pods of the files, with the places of their objects.
    file_pods: Vec<(usize, Pod, Origin)>,
    /// Objects that make pods, with their places.
    expandable: Vec<(usize, KubeObject, Origin)>,
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
        index: usize,
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
            true => Ok((object, Vec::new())),
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
        self.keep(index, object, origin);
    }

    fn keep(&mut self, index: usize, object: KubeObject, origin: Origin) {
        match object {
            KubeObject::Node(node) => self.loaded.nodes.push((*node, Some(origin))),
            KubeObject::Pod(pod) => self.file_pods.push((index, *pod, origin)),
            KubeObject::Other(other) if is_configuration(&other.api_version, &other.kind) => {
                self.configurations.push(origin);
            }
            KubeObject::Other(other) => *self.skipped.entry(other.kind).or_default() += 1,
            object if expandable(&object).is_some() => {
                if let Some(metadata) = object.metadata() {
                    self.loaded.workloads.add(object.kind(), metadata);
                }
                self.expandable.push((index, object, origin));
            }
            object => self.loaded.others.push((object, Some(origin))),
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

    fn make_nodes(&mut self, args: &NodeArgs, files_hold_nodes: bool) -> Result<(), Failure> {
        let made = args.make(files_hold_nodes)?;
        let taken: HashMap<&str, &Option<Origin>> = self
            .loaded
            .nodes
            .iter()
            .filter_map(|(node, origin)| Some((node.metadata.name.as_deref()?, origin)))
            .collect();
        for node in &made.nodes {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            if let Some(Some(origin)) = taken.get(name) {
                let message = format!("--nodes makes a node {name:?}, and so does this file");
                let place = self.locator.place(origin, &FieldPath::root());
                self.diagnostics
                    .push(Diagnostic::error("duplicate-object", message).at(place));
            }
        }
        self.loaded.notes.extend(made.note);
        self.loaded
            .nodes
            .extend(made.nodes.into_iter().map(|node| (node, None)));
        Ok(())
    }
}
