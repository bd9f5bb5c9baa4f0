//! Files into objects as an API server would hold them, and the pods that their workloads miss.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::{Node, Pod};
use strew_api::admission::{
    self, AdmissionContext, AdmissionOptions, Admitted, PriorityClasses, SetDefaults,
};
use strew_api::field::{FieldError, FieldPath, Step};
use strew_api::read::{self, Diagnostic, KubeObject, Locator, Origin, Severity, Sources};
use strew_api::validation::Validate;
use strew_api::workloads::{self, NameSource, PodOf, Workload as Expandable, WorkloadRef};

use crate::failure::Failure;
use crate::nodes::NodeArgs;
use crate::workload::{WorkloadName, Workloads};

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
}

/// Loads all files and makes the nodes that they lack.
pub(crate) fn load(sources: &Sources, node_args: &NodeArgs) -> Result<Load, Failure> {
    let reading = read::read(sources);
    let mut loader = Loader {
        locator: Locator::new(sources),
        diagnostics: reading.diagnostics.into_iter().map(tolerated).collect(),
        loaded: Loaded::default(),
        file_pods: Vec::new(),
        expandable: Vec::new(),
        skipped: BTreeMap::new(),
    };
    let classes = reading
        .objects
        .iter()
        .filter_map(|located| match &located.object {
            KubeObject::PriorityClass(class) => Some(class.as_ref()),
            _ => None,
        });
    let classes = PriorityClasses::new(classes);
    let context = AdmissionContext {
        priority_classes: &classes,
        options: &AdmissionOptions::KUBERNETES_1_36,
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
    let loaded = (!loader.has_errors()).then_some(loader.loaded);
    Ok(Load {
        loaded,
        diagnostics: loader.diagnostics,
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
}

/// Kinds that strew is made for, and does not read yet; and what happens instead.
const NOT_READ_YET: [(&str, &str); 2] = [
    ("KubeSchedulerConfiguration", "the default profile decides"),
    (
        "Scenario",
        "only its objects are there, and only the step `deploy` runs",
    ),
];

/// Kinds that are read and change nothing yet, though they do in a cluster.
const WITHOUT_EFFECT: [&str; 2] = ["LimitRange", "RuntimeClass"];

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
        if WITHOUT_EFFECT.contains(&object.kind()) {
            *self.skipped.entry(object.kind().to_owned()).or_default() += 1;
        }
        let admitted = match from_dump {
            // It has been through admission.
            true => Ok((object, Vec::new())),
            false => admit(object, context, names),
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

    fn refuse(&mut self, errors: Vec<FieldError>, label: &str, origin: &Origin) {
        for error in errors {
            let place = self.locator.place(origin, &error.path);
            let diagnostic = Diagnostic::from_field_error(&error, label, place);
            self.diagnostics.push(diagnostic);
        }
    }

    fn say_skipped(&mut self) {
        let mut skipped = std::mem::take(&mut self.skipped);
        for (kind, instead) in NOT_READ_YET {
            if skipped.remove(kind).is_some() {
                let note = format!("{kind} is not read yet: {instead}");
                self.loaded.notes.push(note);
            }
        }
        for kind in WITHOUT_EFFECT {
            if let Some(count) = skipped.remove(kind) {
                self.loaded
                    .notes
                    .push(format!("{count} {kind} have no effect yet"));
            }
        }
        let count: usize = skipped.values().sum();
        if count > 0 {
            let each: Vec<String> = skipped
                .iter()
                .map(|(kind, n)| format!("{n} {kind}"))
                .collect();
            let objects = if count == 1 { "object" } else { "objects" };
            self.loaded.notes.push(format!(
                "skipped {count} {objects} of kinds that strew does not model: {}",
                each.join(", ")
            ));
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

    /// Makes the pods that workloads miss, and puts all in order of arrival.
    fn expand(&mut self, context: &AdmissionContext<'_>, names: &mut NameSource) {
        let (places, pods): (Vec<_>, Vec<Pod>) = std::mem::take(&mut self.file_pods)
            .into_iter()
            .map(|(index, pod, origin)| ((index, origin), pod))
            .unzip();
        let objects = std::mem::take(&mut self.expandable);
        let nodes: Vec<Node> = self
            .loaded
            .nodes
            .iter()
            .map(|(node, _)| node.clone())
            .collect();
        let each: Vec<Expandable<'_>> = objects
            .iter()
            .filter_map(|(_, o, _)| expandable(o))
            .collect();
        let expansion = match workloads::expand(&each, &pods, &nodes, names) {
            Ok(expansion) => expansion,
            Err(error) => {
                return self
                    .diagnostics
                    .push(Diagnostic::error("workloads", error.to_string()));
            }
        };
        let notes = expansion
            .notes
            .iter()
            .map(|note| format!("{}: {}", note.workload, note.text));
        self.loaded.notes.extend(notes);
        let mut arrivals: Vec<(usize, LoadedPod)> = Vec::new();
        for ((index, origin), pod) in places.into_iter().zip(pods) {
            let workload = self.loaded.workloads.of_pod(&pod);
            arrivals.push((
                index,
                LoadedPod {
                    pod,
                    workload,
                    origin,
                },
            ));
        }
        let made = self.admit_made(expansion.pods, &objects, context);
        arrivals.extend(made);
        arrivals.sort_by_key(|(index, _)| *index);
        self.loaded.pods = arrivals.into_iter().map(|(_, pod)| pod).collect();
        let sets = expansion.replica_sets.into_iter();
        self.loaded
            .others
            .extend(sets.map(|set| (KubeObject::from(set), None)));
        let objects = objects.into_iter();
        self.loaded
            .others
            .extend(objects.map(|(_, object, origin)| (object, Some(origin))));
    }

    fn admit_made(
        &mut self,
        made: Vec<PodOf>,
        objects: &[(usize, KubeObject, Origin)],
        context: &AdmissionContext<'_>,
    ) -> Vec<(usize, LoadedPod)> {
        let by_name: HashMap<WorkloadName, (usize, &Origin)> = objects
            .iter()
            .filter_map(|(index, object, origin)| {
                let name = expandable(object)?.reference();
                Some((workload_name(&name), (*index, origin)))
            })
            .collect();
        let mut arrivals = Vec::with_capacity(made.len());
        let mut refused: Option<WorkloadRef> = None;
        for PodOf { pod, workload } in made {
            let name = workload_name(&workload);
            let (Some(&(index, origin)), Some(of)) =
                (by_name.get(&name), self.loaded.workloads.find(&name))
            else {
                continue;
            };
            match admission::admit_pod(pod, context) {
                Ok(Admitted { object: pod, .. }) => {
                    let origin = origin.clone();
                    arrivals.push((
                        index,
                        LoadedPod {
                            pod,
                            workload: of,
                            origin,
                        },
                    ));
                }
                // Each pod of a template is refused for the same.
                Err(_) if refused.as_ref() == Some(&workload) => {}
                Err(mut errors) => {
                    errors
                        .iter_mut()
                        .for_each(|error| error.path = in_template(&error.path));
                    self.refuse(errors, &workload.to_string(), origin);
                    refused = Some(workload);
                }
            }
        }
        arrivals
    }
}

fn workload_name(reference: &WorkloadRef) -> WorkloadName {
    WorkloadName {
        kind: reference.kind.as_str().to_owned(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
    }
}

/// A path of a pod, in the template that it was made from.
fn in_template(path: &FieldPath) -> FieldPath {
    let template = FieldPath::root().child("spec.template");
    path.steps().iter().fold(template, |path, step| match step {
        Step::Name(name) => path.child_owned(name.to_string()),
        Step::Index(index) => path.index(*index),
        Step::Key(key) => path.key(key.as_str()),
    })
}

fn expandable(object: &KubeObject) -> Option<Expandable<'_>> {
    Some(match object {
        KubeObject::Deployment(object) => Expandable::Deployment(object),
        KubeObject::ReplicaSet(object) => Expandable::ReplicaSet(object),
        KubeObject::ReplicationController(object) => Expandable::ReplicationController(object),
        KubeObject::StatefulSet(object) => Expandable::StatefulSet(object),
        KubeObject::DaemonSet(object) => Expandable::DaemonSet(object),
        KubeObject::Job(object) => Expandable::Job(object),
        KubeObject::CronJob(object) => Expandable::CronJob(object),
        _ => return None,
    })
}

/// A PodDisruptionBudget of before Kubernetes 1.25 is no reason to refuse a file: nothing here asks for one, and
/// kubectl, too, goes on with the other objects.
fn tolerated(diagnostic: Diagnostic) -> Diagnostic {
    let object = diagnostic.object.as_deref().unwrap_or_default();
    match diagnostic.code == "unknown-version" && object.starts_with("PodDisruptionBudget") {
        true => Diagnostic {
            severity: Severity::Warning,
            message: format!("{}: it was passed over", diagnostic.message),
            ..diagnostic
        },
        false => diagnostic,
    }
}

type AdmittedObject = (KubeObject, Vec<String>);

/// What the API server makes of an object that somebody creates.
fn admit(
    object: KubeObject,
    context: &AdmissionContext<'_>,
    names: &mut NameSource,
) -> Result<AdmittedObject, Vec<FieldError>> {
    fn plain<T: SetDefaults + Validate>(object: T) -> Result<AdmittedObject, Vec<FieldError>>
    where
        KubeObject: From<T>,
    {
        let Admitted { object, warnings } = admission::admit(object)?;
        Ok((object.into(), warnings))
    }
    match object {
        KubeObject::Pod(mut pod) => {
            name_pod(&mut pod, names);
            let Admitted { object, warnings } = admission::admit_pod(*pod, context)?;
            Ok((object.into(), warnings))
        }
        KubeObject::Node(object) => plain(*object),
        KubeObject::Namespace(object) => plain(*object),
        KubeObject::Service(object) => plain(*object),
        KubeObject::ReplicationController(object) => plain(*object),
        KubeObject::Deployment(object) => plain(*object),
        KubeObject::ReplicaSet(object) => plain(*object),
        KubeObject::StatefulSet(object) => plain(*object),
        KubeObject::DaemonSet(object) => plain(*object),
        KubeObject::Job(object) => plain(*object),
        KubeObject::CronJob(object) => plain(*object),
        KubeObject::PriorityClass(object) => plain(*object),
        KubeObject::PodDisruptionBudget(object) => plain(*object),
        object => Ok((object, Vec::new())),
    }
}

fn name_pod(pod: &mut Pod, names: &mut NameSource) {
    let metadata = &mut pod.metadata;
    if metadata.name.as_deref().unwrap_or_default().is_empty()
        && let Some(base) = metadata
            .generate_name
            .as_deref()
            .filter(|base| !base.is_empty())
    {
        metadata.name = Some(names.generate(base));
    }
}
