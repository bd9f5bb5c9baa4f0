//! Admits the objects of files as the API server would, and reports all that it would refuse.
//!
//! All files pass one set of checks: admission, validation, the conversion to facts, and the pods that a workload's
//! template would make. Objects of a dump have passed admission before.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, Pod, PodTemplateSpec,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_apiserver::admission::{
    AdmissionContext, PriorityClasses, RuntimeClasses, admit_object, admit_pod, errors_of_stored,
    read_back,
};
use strew_apiserver::object::{Object, is_ending_namespace};
use strew_apiserver::validation::storage::validate_claim;
use strew_apiserver::workloads::{NameSource, set_claim_volumes};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::kinds::{self, Pods};
use strew_manifest::read::{Broken, KubeObject, Located};
use strew_model::Interner;
use strew_view::workload::Workloads;
use strew_wire::config::AdmissionOptions;
use strew_wire::facts;
use strew_wire::workloadspread::lint;

use super::configuration::is_scheduler_configuration;
use super::{missing, namespaces, owners};

/// The admitted objects of a stream.
#[derive(Debug, Clone, Default)]
pub struct Admitted {
    /// In the order of the stream.
    pub objects: Vec<Object>,
    /// The workloads, in that order; a bare pod is a workload of one pod.
    pub workloads: Workloads,
    /// Notes for the user: sentences without a full stop.
    pub notes: Vec<String>,
    /// The API server's warnings, each with the index of its object in the stream.
    pub warnings: Vec<(usize, String)>,
}

/// Errors of objects, by their index in the stream.
pub type Refusals = Vec<(usize, Vec<FieldError>)>;

/// Admits a stream; skips the scheduler's configuration in it. The objects are moved from the stream into the store's
/// form one by one, since a dump of a large cluster is too large to be kept twice.
///
/// # Errors
/// All errors of each object; two errors may report one field in different words.
pub fn admit(stream: Vec<Located>, options: &AdmissionOptions) -> Result<Admitted, Refusals> {
    let (priority_classes, runtime_classes) = classes(stream.iter());
    let context = AdmissionContext {
        priority_classes: &priority_classes,
        runtime_classes: &runtime_classes,
        options,
    };
    let mut notes = without_effect(&stream);
    notes.extend(namespaces::missing(&stream));
    let of_others = refused_beside_others(&stream);
    let mut objects = Vec::with_capacity(stream.len());
    let mut judged = admit_all(stream.into_iter(), &context, &mut |_, object| {
        objects.push(Object::of_wire(object));
    });
    judged.refused.extend(of_others);
    if !judged.refused.is_empty() {
        return Err(judged.refused);
    }
    let mut admitted = Admitted {
        objects,
        warnings: judged.warnings,
        notes,
        ..Admitted::default()
    };
    admitted
        .notes
        .extend(missing::complete(&mut admitted.objects).notes());
    let released = owners::release(&mut admitted.objects);
    admitted.notes.extend(released.note());
    admitted.workloads = Workloads::of_objects(&admitted.objects);
    admitted
        .workloads
        .add_pods(&admitted.objects, &released.pods);
    Ok(admitted)
}

/// What the API server says about a stream of which some objects could not be read.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// The errors of the objects of the stream.
    pub refused: Refusals,
    /// The errors of the broken objects, by their index among these; without those that only follow from the broken
    /// parts.
    pub also_broken: Refusals,
    /// The warnings about objects of the stream, by their index.
    pub warnings: Vec<(usize, String)>,
}

/// Judges a stream with objects that could not be read. `admitted` takes the objects that the API server accepts, as it
/// stores them, with their index.
pub fn judge(
    stream: &[Located],
    broken: &[Broken],
    options: &AdmissionOptions,
    admitted: &mut dyn FnMut(usize, KubeObject),
) -> Judged {
    let all = broken.iter().map(|broken| &broken.located);
    // Broken classes count, so that a pod that names one gets no second error.
    let (priority_classes, runtime_classes) = classes(stream.iter().chain(all));
    let context = AdmissionContext {
        priority_classes: &priority_classes,
        runtime_classes: &runtime_classes,
        options,
    };
    // One copy at a time.
    let mut judged = admit_all(stream.iter().cloned(), &context, admitted);
    judged.refused.extend(refused_beside_others(stream));
    let mut names = NameSource::new(0);
    let each = broken.iter().enumerate().filter_map(|(number, broken)| {
        let mut errors = one(broken.located.clone(), &context, &mut names).err()?;
        errors.retain(|error| !broken.follows(error));
        Some((number, errors))
    });
    judged.also_broken = each.collect();
    judged
}

fn admit_all(
    stream: impl Iterator<Item = Located>,
    context: &AdmissionContext<'_>,
    admitted: &mut dyn FnMut(usize, KubeObject),
) -> Judged {
    let mut names = NameSource::new(0);
    let mut judged = Judged::default();
    for (number, located) in stream.enumerate() {
        if is_scheduler_configuration(&located.object) {
            continue;
        }
        match one(located, context, &mut names) {
            Ok((object, warnings)) => {
                admitted(number, object);
                let warnings = warnings.into_iter();
                let warnings = warnings.map(|warning| (number, warning));
                judged.warnings.extend(warnings);
            }
            Err(errors) => judged.refused.push((number, errors)),
        }
    }
    judged
}

/// The classes of a stream. A class of a file that is a global default beside an earlier one is refused, so that its value
/// is that of no other pod.
fn classes<'a>(
    stream: impl Iterator<Item = &'a Located> + Clone,
) -> (PriorityClasses, RuntimeClasses) {
    let is_default = |located: &&Located| matches!(&located.object, KubeObject::PriorityClass(class) if class.global_default == Some(true));
    // Those of a dump were there before.
    let mut defaults = stream.clone().filter(is_default);
    let first = defaults.clone().find(|located| located.from_dump);
    let first = first.or_else(|| defaults.next());
    let is_second_default = |located: &Located| {
        let is_another = first.is_some_and(|first| first.object.name() != located.object.name());
        !located.from_dump && is_default(&located) && is_another
    };
    let mut priority: Vec<Cow<'_, PriorityClass>> = Vec::new();
    let mut runtime: Vec<&RuntimeClass> = Vec::new();
    for located in stream {
        match &located.object {
            KubeObject::PriorityClass(class) if is_second_default(located) => {
                let class = PriorityClass {
                    global_default: None,
                    ..(**class).clone()
                };
                priority.push(Cow::Owned(class));
            }
            KubeObject::PriorityClass(class) => priority.push(Cow::Borrowed(&**class)),
            KubeObject::RuntimeClass(class) => runtime.push(class),
            _ => {}
        }
    }
    let priority = priority.iter().map(|class| &**class);
    (PriorityClasses::new(priority), RuntimeClasses::new(runtime))
}

/// An object as the API server stores it, with the warnings.
fn one(
    located: Located,
    context: &AdmissionContext<'_>,
    names: &mut NameSource,
) -> Result<(KubeObject, Vec<String>), Vec<FieldError>> {
    let Located {
        object, from_dump, ..
    } = located;
    // What is refused is judged as it was written.
    let written = (!from_dump).then(|| object.clone());
    let admitted = match from_dump {
        true => {
            let object = read_back(object);
            let edited = errors_of_stored(&object).into_iter();
            let edited = edited.map(|error| format!("{error} (no API server stores this)"));
            let edited = edited.collect();
            Ok((object, edited))
        }
        false => admit_object(object, context, names),
    };
    let judge = |object: &KubeObject, errors: &mut Vec<FieldError>| {
        add_others(errors, facts::errors(object));
        add_others(errors, template_errors(object, from_dump, context));
    };
    let mut errors = Vec::new();
    match admitted {
        Ok((object, warnings)) => {
            judge(&object, &mut errors);
            match errors.is_empty() {
                true => Ok((object, warnings)),
                false => Err(errors),
            }
        }
        // All errors are gathered, so that one run of strew shows them all.
        Err(refused) => {
            errors = refused;
            if let Some(written) = &written {
                judge(written, &mut errors);
            }
            Err(errors)
        }
    }
}

/// Adds the errors of a later check, except for fields that already have an error: it mostly repeats the earlier one.
fn add_others(errors: &mut Vec<FieldError>, more: Vec<FieldError>) {
    let n = errors.len();
    for error in more {
        if errors[..n].iter().all(|known| known.path != error.path) {
            errors.push(error);
        }
    }
}

/// The errors of a pod made from the object's template.
fn template_errors(
    object: &KubeObject,
    from_dump: bool,
    context: &AdmissionContext<'_>,
) -> Vec<FieldError> {
    // A CronJob makes its Jobs later.
    let makes_pods = kinds::of_kind(object.kind()).is_some_and(|row| row.pods == Pods::Make)
        && !matches!(object, KubeObject::CronJob(_))
        && object.replicas() != Some(0);
    let Some((template, path)) = object.pod_template().filter(|_| makes_pods) else {
        return Vec::new();
    };
    let claims = object.claim_templates();
    let pod = pod_of(template, claims);
    let mut errors = facts::pod(&pod, &mut Interner::new())
        .err()
        .unwrap_or_default();
    if !from_dump {
        errors.extend(admit_pod(pod, context).err().into_iter().flatten());
    }
    for error in &mut errors {
        error.path = path.join(&error.path);
    }
    if !from_dump {
        errors.extend(claim_errors(claims));
    }
    errors
}

/// The errors of the claims that the pods of a workload get. The API server stores the workload and refuses each claim,
/// so that no pod is made.
fn claim_errors(claims: &[PersistentVolumeClaim]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = FieldPath::root().child("spec.volumeClaimTemplates");
    let empty = PersistentVolumeClaimSpec::default();
    for (i, claim) in claims.iter().enumerate() {
        let spec = claim.spec.as_ref().unwrap_or(&empty);
        validate_claim(spec, &path.index(i).child("spec"), &mut errors);
    }
    let help = "the API server refuses each claim of this template, so that no pod is made";
    errors
        .into_iter()
        .map(|error| error.with_help(help))
        .collect()
}

/// A pod from a template, with a valid name and a volume for each claim template.
fn pod_of(template: &PodTemplateSpec, claims: &[PersistentVolumeClaim]) -> Pod {
    let metadata = template.metadata.clone().unwrap_or_default();
    let mut spec = template.spec.clone();
    if let Some(spec) = &mut spec {
        set_claim_volumes(spec, claims, "pod");
    }
    Pod {
        metadata: ObjectMeta {
            name: Some("pod".to_owned()),
            namespace: Some("default".to_owned()),
            ..metadata
        },
        spec,
        ..Pod::default()
    }
}

/// Objects that are refused because of others of the stream.
fn refused_beside_others(stream: &[Located]) -> Refusals {
    let mut refused = refused_spreads(stream);
    refused.extend(refused_in_ending_namespaces(stream));
    refused
}

/// New objects in a namespace that is being deleted.
///
/// Source: `NamespaceLifecycle` of `k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`.
fn refused_in_ending_namespaces(stream: &[Located]) -> Refusals {
    let objects = stream.iter().map(|located| &located.object);
    let namespaces = objects.filter(|object| matches!(object, KubeObject::Namespace(_)));
    let ending =
        namespaces.filter(|object| is_ending_namespace(&Object::of_wire((*object).clone())));
    let ending: BTreeSet<&str> = ending.map(KubeObject::name).collect();
    if ending.is_empty() {
        return Refusals::new();
    }
    let new = stream.iter().enumerate();
    let new = new.filter(|(_, located)| !located.from_dump);
    new.filter_map(|(number, located)| {
        let namespace = located
            .object
            .namespace()
            .filter(|of| ending.contains(of))?;
        let path = FieldPath::root().child("metadata").child("namespace");
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        Some((number, vec![FieldError::forbidden(path, why)]))
    })
    .collect()
}

/// WorkloadSpreads that the webhook would refuse. A spread from a dump may be older than the webhook.
fn refused_spreads(stream: &[Located]) -> Refusals {
    let all: Vec<&KubeObject> = stream.iter().map(|located| &located.object).collect();
    let is_spread = |object: &&KubeObject| matches!(object, KubeObject::WorkloadSpread(_));
    if !all.iter().any(is_spread) {
        return Refusals::new();
    }
    let refused = lint::refused(&all).into_iter();
    refused
        .filter(|(number, _)| !stream[*number].from_dump)
        .collect()
}

/// Notes about kinds that are ignored, with their counts. Of kinds that make pods, reading warns.
fn without_effect(stream: &[Located]) -> Vec<String> {
    let mut unknown = BTreeMap::<Cow<'_, str>, usize>::new();
    for located in stream {
        match &located.object {
            object if is_scheduler_configuration(object) => {}
            // Explanations show those of their pod.
            KubeObject::Other(other) if other.kind == "Event" => {}
            KubeObject::Other(other) if !other.makes_pods => {
                *unknown.entry(located.object.kind_in_group()).or_default() += 1;
            }
            _ => {}
        }
    }
    let mut notes = Vec::new();
    let n: usize = unknown.values().sum();
    if n > 0 {
        let objects = if n == 1 { "object" } else { "objects" };
        let each = unknown.iter().map(|(kind, n)| format!("{n} {kind}"));
        let each: Vec<String> = each.collect();
        let each = each.join(", ");
        notes.push(format!(
            "skipped {n} {objects} of kinds that strew does not model: {each}"
        ));
    }
    notes
}
