//! What the API server does to an object that is created.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, Taint};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use rustc_hash::FxHashMap;
use strew_api::admission::{AdmissionContext, AdmissionOptions, PriorityClasses, admit_pod};
use strew_api::field::FieldError;
use strew_api::read::KubeObject;
use strew_controllers::object::{Key, Kind, Node, Object, Pairs, Pod};
use strew_controllers::{ApiError, Tables};

/// Pods of one template are admitted once.
pub(super) struct Admission {
    options: AdmissionOptions,
    classes: Option<PriorityClasses>,
    known: FxHashMap<(usize, usize), Known>,
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
        }
    }

    pub(super) fn set_options(&mut self, options: AdmissionOptions) {
        self.options = options;
        self.known.clear();
    }

    /// Something was written: priority classes may have changed.
    pub(super) fn observe(&mut self, key: &Key) {
        if matches!(&key.kind, Kind::Other(kind) if &**kind == "PriorityClass") {
            self.classes = None;
            self.known.clear();
        }
    }

    /// Defaults, plug-ins, validation.
    pub(super) fn admit(&mut self, object: Object, tables: &Tables) -> Result<Object, ApiError> {
        match object {
            Object::Pod(pod) => self.pod(&pod, tables).map(Into::into),
            Object::Node(node) => Ok(not_ready(&node).into()),
            object => Ok(object),
        }
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
        let admitted = admit_pod(pod.to_wire(), &context);
        let admitted = admitted.map_err(|errors| refusal(pod, &errors))?.object;
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
        Ok(pod)
    }
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

fn refusal(pod: &Pod, errors: &[FieldError]) -> ApiError {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let text = match texts.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let name = &pod.meta.name.name;
    ApiError::Invalid(format!("Pod {name:?} is invalid: {text}").into())
}

/// Source: spec/controllers §7.2: admission taints a new node, until it is ready.
fn not_ready(node: &Node) -> Node {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let mut node = node.clone();
    let spec = Arc::make_mut(&mut node.spec);
    let taints = spec.taints.get_or_insert_default();
    if !taints
        .iter()
        .any(|t| t.key == KEY && t.effect == "NoSchedule")
    {
        taints.push(Taint {
            key: KEY.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    node
}
