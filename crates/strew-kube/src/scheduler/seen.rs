//! What the watches have told: into the machine, and a few words beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use rustc_hash::FxHashMap;
use strew_api::facts::{self, Named, Watched};
use strew_api::field::FieldError;
use strew_api::read::KubeObject;
use strew_model::time::Instant;
use strew_runtime::watch::{Object, Update, full_name};
use strew_scheduler::machine::{Input, Scheduler};

/// What is known beside the machine.
#[derive(Default)]
pub(super) struct Seen {
    /// Pods on no node, by uid.
    waiting: FxHashMap<Arc<str>, Waiting>,
    /// Objects that no decision can be made from, and why.
    aside: BTreeMap<(Watched, String), String>,
}

/// Of a pod on no node: what a patch of its status says beside the condition.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waiting {
    pub(super) generation: Option<i64>,
    /// Since when its condition `PodScheduled` has been False.
    pub(super) unscheduled_since: Option<Instant>,
}

impl Seen {
    /// What is known of a pod on no node.
    pub(super) fn waiting(&self, uid: &str) -> Waiting {
        self.waiting.get(uid).copied().unwrap_or_default()
    }

    /// The kind of each object that was set aside.
    pub(super) fn aside(&self) -> impl Iterator<Item = Watched> {
        self.aside.keys().map(|(kind, _)| *kind)
    }

    /// Tells the machine what a watch has told.
    pub(super) fn take_in(&mut self, machine: &mut Scheduler, now: Instant, update: Update) {
        match update {
            Update::Set(_, named, object) => {
                if let Object::Known(object) = &*object
                    && let Some(kind) = Watched::of(object)
                {
                    self.set(machine, now, (kind, &named), object);
                }
            }
            Update::Gone(kind, named) => {
                let kind = kind.known_remains(&named);
                if let Some(kind) = kind.as_ref().and_then(Watched::of) {
                    self.gone(machine, now, kind, &named);
                }
            }
            Update::Listed(_) | Update::Again(..) => {}
        }
    }

    fn set(
        &mut self,
        machine: &mut Scheduler,
        now: Instant,
        (kind, named): (Watched, &Named),
        object: &KubeObject,
    ) {
        if let KubeObject::Pod(pod) = object {
            self.note_pod(named, pod);
        }
        match facts::input(object, machine.names_mut()) {
            Ok(Some(input)) => {
                self.put_back(kind, named);
                machine.handle(now, input);
            }
            Ok(None) => {}
            Err(errors) => self.put_aside(kind, named, &errors),
        }
    }

    fn gone(&mut self, machine: &mut Scheduler, now: Instant, kind: Watched, named: &Named) {
        self.put_back(kind, named);
        if kind == Watched::Pod {
            self.waiting.remove(&*named.uid);
        }
        let input: Input = kind.gone(named, machine.names_mut());
        machine.handle(now, input);
    }

    fn note_pod(&mut self, named: &Named, pod: &Pod) {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        if node.is_some_and(|node| !node.is_empty()) {
            self.waiting.remove(&*named.uid);
            return;
        }
        let conditions = pod
            .status
            .iter()
            .flat_map(|s| s.conditions.iter().flatten());
        let since = conditions
            .filter(|c| c.type_ == "PodScheduled" && c.status == "False")
            .find_map(|c| c.last_transition_time.as_ref());
        let waiting = Waiting {
            generation: pod.metadata.generation,
            unscheduled_since: since.and_then(|time| {
                let secs = u64::try_from(time.0.as_second()).ok()?;
                Some(Instant::from_secs(secs))
            }),
        };
        self.waiting.insert((&*named.uid).into(), waiting);
    }

    /// One object is left out, with a warning; the others go on.
    fn put_aside(&mut self, kind: Watched, named: &Named, errors: &[FieldError]) {
        let each: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = each.join("; ");
        let key = (kind, full_name(named));
        if self.aside.get(&key) != Some(&text) {
            tracing::warn!("{kind:?} {} is set aside: {text}", key.1);
            self.aside.insert(key, text);
        }
    }

    fn put_back(&mut self, kind: Watched, named: &Named) {
        // Nearly always empty: no name is made for nothing.
        if !self.aside.is_empty() {
            self.aside.remove(&(kind, full_name(named)));
        }
    }
}
