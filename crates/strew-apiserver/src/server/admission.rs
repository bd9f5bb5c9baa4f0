//! Admission of objects that a request creates or changes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{self as core, LimitRange, PodSpec};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use rustc_hash::FxHashMap;
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;
use strew_wire::config::AdmissionOptions;

use crate::admission::{
    AdmissionContext, PriorityClasses, Refusal, RuntimeClasses, admit_object, admit_object_update,
    limit_range, mutate_pod, node, prepare_pod,
};
use crate::object::{Key, Kind, Meta, Object, Pairs, Pod};
use crate::workloads::NameSource;
use crate::{ApiError, Tables};

/// Admits objects; pods of one template are admitted once.
pub(super) struct Admission {
    options: AdmissionOptions,
    classes: Option<(PriorityClasses, RuntimeClasses)>,
    mutated: Known,
    prepared: Known,
    /// Results by the address of the spec before the webhook's change.
    changed: FxHashMap<usize, Changed>,
}

/// The specs that the webhook has made of one template's.
struct Changed {
    /// Kept alive, so that its address is not reused.
    _template: Arc<PodSpec>,
    /// Each different result once.
    specs: Vec<Arc<PodSpec>>,
    labels: Vec<Arc<Pairs>>,
}

/// Results for pods with equal spec and labels, by the addresses of both.
#[derive(Default)]
struct Known(FxHashMap<(usize, usize), Step>);

/// The result of a step. Its inputs are kept alive, so that their addresses are not reused.
struct Step {
    _spec: Arc<PodSpec>,
    _labels: Arc<Pairs>,
    spec: Arc<PodSpec>,
    labels: Arc<Pairs>,
}

impl Known {
    fn address(pod: &Pod) -> (usize, usize) {
        let spec = Arc::as_ptr(&pod.spec) as usize;
        (spec, Arc::as_ptr(&pod.meta.labels) as usize)
    }

    /// The pod after the step, if another pod of its template had the same inputs.
    fn find(&self, pod: &Pod) -> Option<Pod> {
        let step = self.0.get(&Self::address(pod))?;
        let mut pod = pod.clone();
        pod.spec = Arc::clone(&step.spec);
        pod.meta.labels = Arc::clone(&step.labels);
        Some(pod)
    }

    /// Keeps the result, and returns the pod with it.
    fn keep(&mut self, mut pod: Pod, made: Pod) -> Pod {
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        let step = Step {
            _spec: Arc::clone(&pod.spec),
            _labels: Arc::clone(&pod.meta.labels),
            spec: Arc::clone(&made.spec),
            labels: Arc::clone(&made.meta.labels),
        };
        self.0.insert(Self::address(&pod), step);
        pod.spec = made.spec;
        pod.meta.labels = made.meta.labels;
        pod.meta.annotations = made.meta.annotations;
        pod
    }
}

/// The number of templates at which all results are forgotten.
const KNOWN_MAX: usize = 10_000;

impl Admission {
    pub(super) fn new(options: AdmissionOptions) -> Self {
        Self {
            options,
            classes: None,
            mutated: Known::default(),
            prepared: Known::default(),
            changed: FxHashMap::default(),
        }
    }

    pub(super) fn set_options(&mut self, options: AdmissionOptions) {
        self.options = options;
        self.forget();
    }

    fn forget(&mut self) {
        self.mutated = Known::default();
        self.prepared = Known::default();
    }

    /// Takes in a write: the inputs of admission may have changed.
    pub(super) fn observe(&mut self, key: &Key) {
        if matches!(&key.kind, Kind::Other(kind) if matches!(&**kind, "PriorityClass" | "RuntimeClass" | "LimitRange"))
        {
            self.classes = None;
            self.forget();
        }
    }

    /// Defaults and plug-ins; validation too, except for pods, which [`prepare`](Self::prepare) validates.
    pub(super) fn admit(&mut self, object: Object, tables: &Tables) -> Result<Object, ApiError> {
        let kube = match &object {
            Object::Pod(pod) => return self.mutate(pod, tables).map(Into::into),
            other => other.to_kube(),
        };
        let (priority_classes, runtime_classes) =
            self.classes.get_or_insert_with(|| classes(tables));
        let context = AdmissionContext {
            priority_classes,
            runtime_classes,
            options: &self.options,
        };
        let admitted = admit_object(kube, &context, &mut NameSource::new(0));
        let (mut kube, _) = admitted.map_err(|errors| refusal(&object, &errors))?;
        if let KubeObject::Node(new) = &mut kube {
            node::taint_new(new);
        }
        Ok(with_meta(kube, object.meta()))
    }

    /// Defaults, plug-ins and validation of an update.
    pub(super) fn admit_update(&self, new: KubeObject, old: &Object) -> Result<Object, ApiError> {
        let admitted = admit_object_update(new, old.to_kube(), &self.options);
        let admitted = admitted.map_err(|errors| refusal(old, &errors))?;
        Ok(Object::of_wire(admitted))
    }

    fn mutate(&mut self, pod: &Pod, tables: &Tables) -> Result<Pod, ApiError> {
        if let Some(mutated) = self.mutated.find(pod) {
            return Ok(mutated);
        }
        let mutated = self.mutate_wire(pod, pod.to_wire(), tables)?;
        Ok(self.mutated.keep(pod.clone(), Pod::of_wire(mutated)))
    }

    /// Runs the mutating plug-ins; `pod` is the pod being created, for errors.
    fn mutate_wire(
        &mut self,
        pod: &Pod,
        mut wire: core::Pod,
        tables: &Tables,
    ) -> Result<core::Pod, ApiError> {
        let (priority_classes, runtime_classes) =
            self.classes.get_or_insert_with(|| classes(tables));
        let context = AdmissionContext {
            priority_classes,
            runtime_classes,
            options: &self.options,
        };
        let ranges = limit_ranges(tables, &pod.meta.name.namespace);
        limit_range::apply_defaults(&mut wire, &ranges);
        // A plug-in refuses in words of its own, without the field.
        mutate_pod(&mut wire, &context).map_err(|error| {
            let refusal = Refusal::new("pods", &wire.metadata, error.detail);
            ApiError::Forbidden(refusal.to_string().into())
        })?;
        Ok(wire)
    }

    /// Prepares a pod for storage after all mutating admission, with its final name.
    pub(super) fn prepare(&mut self, pod: &Pod, tables: &Tables) -> Result<Pod, ApiError> {
        if let Some(prepared) = self.prepared.find(pod) {
            return Ok(prepared);
        }
        let invalid = |errors: Vec<FieldError>| refusal(&Object::from(pod.clone()), &errors);
        let prepared = prepare_pod(pod.to_wire(), &self.options).map_err(invalid)?;
        let ranges = limit_ranges(tables, &pod.meta.name.namespace);
        limit_range::check(&prepared.object, &ranges)
            .map_err(|refusal| ApiError::Forbidden(refusal.to_string().into()))?;
        Ok(self
            .prepared
            .keep(pod.clone(), Pod::of_wire(prepared.object)))
    }

    /// Runs the plug-ins again on a pod that the webhook has changed.
    pub(super) fn admit_patched(
        &mut self,
        before: &Pod,
        patched: core::Pod,
        tables: &Tables,
    ) -> Result<Pod, ApiError> {
        let mutated = self.mutate_wire(before, patched, tables)?;
        let mut pod = Pod::of_wire(mutated);
        if self.changed.len() >= KNOWN_MAX {
            self.changed.clear();
        }
        let address = Arc::as_ptr(&before.spec) as usize;
        let changed = self.changed.entry(address).or_insert_with(|| Changed {
            _template: Arc::clone(&before.spec),
            specs: Vec::new(),
            labels: Vec::new(),
        });
        pod.spec = shared(&mut changed.specs, pod.spec);
        pod.meta.labels = shared(&mut changed.labels, pod.meta.labels);
        Ok(pod)
    }
}

/// The equal value from before, if there is one.
fn shared<T: PartialEq>(known: &mut Vec<Arc<T>>, new: Arc<T>) -> Arc<T> {
    /// Beyond this many different values, no further one is shared.
    const ALIKE_MAX: usize = 64;
    if let Some(found) = known.iter().find(|known| **known == new) {
        return Arc::clone(found);
    }
    if known.len() < ALIKE_MAX {
        known.push(Arc::clone(&new));
    }
    new
}

/// The admitted object with metadata that the wire form lacks: `generate_name` and owners.
fn with_meta(kube: KubeObject, meta: &Meta) -> Object {
    let mut object = Object::of_wire(kube);
    object
        .meta_mut()
        .generate_name
        .clone_from(&meta.generate_name);
    object
}

fn classes(tables: &Tables) -> (PriorityClasses, RuntimeClasses) {
    let mut priority: Vec<&PriorityClass> = Vec::new();
    let mut runtime: Vec<&RuntimeClass> = Vec::new();
    for plain in tables.all_plain() {
        match &plain.object {
            KubeObject::PriorityClass(class) => priority.push(class),
            KubeObject::RuntimeClass(class) => runtime.push(class),
            _ => {}
        }
    }
    (PriorityClasses::new(priority), RuntimeClasses::new(runtime))
}

fn limit_ranges(tables: &Tables, namespace: &Arc<str>) -> Vec<LimitRange> {
    let in_namespace = tables
        .all_plain()
        .filter(|plain| plain.meta.name.namespace == *namespace);
    in_namespace
        .filter_map(|plain| match &plain.object {
            KubeObject::LimitRange(range) => Some((**range).clone()),
            _ => None,
        })
        .collect()
}

fn refusal(object: &Object, errors: &[FieldError]) -> ApiError {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let text = match texts.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let (kind, meta) = (object.kind(), object.meta());
    // Before the name is generated, only its prefix is known (`extractResourceName` of
    // `k8s.io/apiserver/pkg/admission/errors.go`).
    let name = match &*meta.name.name {
        "" => meta.generate_name.as_deref().unwrap_or_default(),
        name => name,
    };
    ApiError::Invalid(format!("{kind} {name:?} is invalid: {text}").into())
}
