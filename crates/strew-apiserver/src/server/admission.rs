//! Admission of objects that a request creates or changes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{self as core, LimitRange, PodSpec};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use rustc_hash::FxHashMap;
use strew_api::config::AdmissionOptions;
use strew_api::field::FieldError;
use strew_api::read::KubeObject;

use crate::admission::{
    AdmissionContext, PriorityClasses, admit_object, admit_object_update, admit_pod, limit_range,
    node,
};
use crate::object::{Key, Kind, Meta, Object, Pairs, Pod};
use crate::workloads::NameSource;
use crate::{ApiError, Tables};

/// Pods of one template are admitted once.
pub(super) struct Admission {
    options: AdmissionOptions,
    classes: Option<PriorityClasses>,
    known: FxHashMap<(usize, usize), Known>,
    /// By the address of what they were before.
    changed: FxHashMap<usize, Changed>,
}

/// Pods of one template that the webhook has changed alike.
struct Changed {
    /// Held, so that its address stays its own.
    _template: Arc<PodSpec>,
    /// Each result once.
    specs: Vec<Arc<PodSpec>>,
    labels: Vec<Arc<Pairs>>,
}

/// A template's pods, admitted. The keys are held, so that their addresses stay theirs.
struct Known {
    _spec: Arc<PodSpec>,
    _labels: Arc<Pairs>,
    spec: Arc<PodSpec>,
    labels: Arc<Pairs>,
}

/// Beyond so many templates all are forgotten.
const KNOWN_MAX: usize = 10_000;

impl Admission {
    pub(super) fn new(options: AdmissionOptions) -> Self {
        Self {
            options,
            classes: None,
            known: FxHashMap::default(),
            changed: FxHashMap::default(),
        }
    }

    pub(super) fn set_options(&mut self, options: AdmissionOptions) {
        self.options = options;
        self.known.clear();
    }

    /// Something was written: what admission looks at may have changed.
    pub(super) fn observe(&mut self, key: &Key) {
        if matches!(&key.kind, Kind::Other(kind) if matches!(&**kind, "PriorityClass" | "LimitRange"))
        {
            self.classes = None;
            self.known.clear();
        }
    }

    /// Defaults, plug-ins, validation.
    pub(super) fn admit(&mut self, object: Object, tables: &Tables) -> Result<Object, ApiError> {
        let kube = match &object {
            Object::Pod(pod) => return self.pod(pod, tables).map(Into::into),
            other => other.to_kube(),
        };
        let Some(kube) = kube else {
            return Ok(object);
        };
        let classes = self.classes.get_or_insert_with(|| classes(tables));
        let context = AdmissionContext {
            priority_classes: classes,
            options: &self.options,
        };
        let admitted = admit_object(kube, &context, &mut NameSource::new(0));
        let (mut kube, _) = admitted.map_err(|errors| refusal(&object, &errors))?;
        if let KubeObject::Node(new) = &mut kube {
            node::taint_new(new);
        }
        Ok(with_meta(kube, object.meta()))
    }

    /// Defaults, plug-ins, validation of a change.
    pub(super) fn admit_update(&self, new: KubeObject, old: &Object) -> Result<Object, ApiError> {
        let Some(stored) = old.to_kube() else {
            return Err(ApiError::Invalid(
                "nobody writes objects of this kind".into(),
            ));
        };
        let admitted = admit_object_update(new, stored, &self.options);
        let admitted = admitted.map_err(|errors| refusal(old, &errors))?;
        Ok(Object::of_wire(admitted))
    }

    fn pod(&mut self, pod: &Pod, tables: &Tables) -> Result<Pod, ApiError> {
        let key = (
            Arc::as_ptr(&pod.spec) as usize,
            Arc::as_ptr(&pod.meta.labels) as usize,
        );
        if let Some(known) = self.known.get(&key) {
            let mut pod = pod.clone();
            pod.spec = Arc::clone(&known.spec);
            pod.meta.labels = Arc::clone(&known.labels);
            return Ok(pod);
        }
        let classes = self.classes.get_or_insert_with(|| classes(tables));
        let context = AdmissionContext {
            priority_classes: classes,
            options: &self.options,
        };
        let ranges = limit_ranges(tables, &pod.meta.name.namespace);
        let mut wire = pod.to_wire();
        limit_range::apply_defaults(&mut wire, &ranges);
        let invalid = |errors: Vec<FieldError>| refusal(&Object::from(pod.clone()), &errors);
        let admitted = admit_pod(wire, &context).map_err(invalid)?.object;
        let forbidden =
            |refusal: crate::admission::Refusal| ApiError::Forbidden(refusal.to_string().into());
        limit_range::check(&admitted, &ranges).map_err(forbidden)?;
        let admitted = Pod::of_wire(admitted);
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(
            key,
            Known {
                _spec: Arc::clone(&pod.spec),
                _labels: Arc::clone(&pod.meta.labels),
                spec: Arc::clone(&admitted.spec),
                labels: Arc::clone(&admitted.meta.labels),
            },
        );
        let mut pod = pod.clone();
        pod.spec = admitted.spec;
        pod.meta.labels = admitted.meta.labels;
        pod.meta.annotations = admitted.meta.annotations;
        Ok(pod)
    }

    /// Once more, of a pod that the webhook has changed: plug-ins are invoked again.
    pub(super) fn admit_patched(
        &mut self,
        before: &Pod,
        mut patched: core::Pod,
        tables: &Tables,
    ) -> Result<Pod, ApiError> {
        let classes = self.classes.get_or_insert_with(|| classes(tables));
        let context = AdmissionContext {
            priority_classes: classes,
            options: &self.options,
        };
        let ranges = limit_ranges(tables, &before.meta.name.namespace);
        limit_range::apply_defaults(&mut patched, &ranges);
        let invalid = |errors: Vec<FieldError>| refusal(&Object::from(before.clone()), &errors);
        let admitted = admit_pod(patched, &context).map_err(invalid)?.object;
        limit_range::check(&admitted, &ranges)
            .map_err(|refusal| ApiError::Forbidden(refusal.to_string().into()))?;
        let mut pod = Pod::of_wire(admitted);
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

/// The same value that was there before, if there was one.
fn shared<T: PartialEq>(known: &mut Vec<Arc<T>>, new: Arc<T>) -> Arc<T> {
    /// Beyond so many nothing is alike.
    const ALIKE_MAX: usize = 64;
    if let Some(found) = known.iter().find(|known| **known == new) {
        return Arc::clone(found);
    }
    if known.len() < ALIKE_MAX {
        known.push(Arc::clone(&new));
    }
    new
}

/// The admitted object with what the wire does not tell: `generate_name` and owners are there already.
fn with_meta(kube: KubeObject, meta: &Meta) -> Object {
    let mut object = Object::of_wire(kube);
    object
        .meta_mut()
        .generate_name
        .clone_from(&meta.generate_name);
    object
}

fn classes(tables: &Tables) -> PriorityClasses {
    let all: Vec<&PriorityClass> = tables
        .all_plain()
        .filter_map(|plain| match &plain.object {
            KubeObject::PriorityClass(class) => Some(&**class),
            _ => None,
        })
        .collect();
    PriorityClasses::new(all)
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
    let (kind, name) = (object.kind(), &object.meta().name.name);
    ApiError::Invalid(format!("{kind} {name:?} is invalid: {text}").into())
}
