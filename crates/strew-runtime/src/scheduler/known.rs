//! Passes watch events to the machine, and keeps a few facts about known objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;
use strew_scheduler::machine::{Input, Scheduler};
use strew_wire::facts::{self, Named, PodFacts, PodView};

use crate::warning::Warning;
use crate::watch::{Kind, Object, Update, full_name};

/// Facts that are kept outside of the machine.
#[derive(Debug, Default)]
pub(super) struct Known {
    facts: PodFacts,
    /// Pods on no node, by uid.
    waiting: FxHashMap<Arc<str>, Waiting>,
    /// Objects on which no decision can be based, with the reasons.
    aside: BTreeMap<(Arc<str>, String), String>,
}

/// Facts about a pod on no node that a patch of its status needs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waiting {
    pub(super) generation: Option<i64>,
    /// Since when its condition `PodScheduled` has been False.
    pub(super) unscheduled_since: Option<Instant>,
}

impl Known {
    /// The facts about a pod on no node.
    pub(super) fn waiting(&self, uid: &str) -> Waiting {
        self.waiting.get(uid).copied().unwrap_or_default()
    }

    /// The kind of each ignored object.
    pub(super) fn aside(&self) -> impl Iterator<Item = Arc<str>> {
        self.aside.keys().map(|(kind, _)| Arc::clone(kind))
    }

    /// Passes a watch event to the machine.
    pub(super) fn take_in(&mut self, machine: &mut Scheduler, now: Instant, update: Update) {
        match update {
            Update::Set(kind, named, object) => {
                let input = match &*object {
                    Object::Known(KubeObject::Pod(pod)) => self.pod(now, &**pod, machine),
                    Object::Pod(pod) => self.pod(now, &**pod, machine),
                    Object::Known(object) => facts::input(object, machine.names_mut()),
                    Object::Custom(_) => return,
                };
                match input {
                    Ok(Some(input)) => {
                        self.put_back(&kind, &named);
                        machine.handle(now, input);
                    }
                    Ok(None) => {}
                    Err(errors) => self.put_aside(&kind, &named, &errors),
                }
            }
            Update::Gone(kind, named) => {
                self.put_back(&kind, &named);
                self.waiting.remove(&*named.uid);
                let object = kind.known_remains(&named);
                if let Some(input) = object.and_then(|o| facts::gone(&o, machine.names_mut())) {
                    machine.handle(now, input);
                }
            }
            Update::Listed(_) | Update::Again(..) => {}
        }
    }

    fn pod(
        &mut self,
        now: Instant,
        pod: &dyn PodView,
        machine: &mut Scheduler,
    ) -> Result<Option<Input>, Vec<FieldError>> {
        self.note_pod(pod);
        let input = self.facts.input(pod, machine.names_mut());
        // A pod on a node keeps counting with its previous fact. A pod without a node waits, and its condition says
        // why.
        if let Err(errors) = &input
            && pod.node().is_none()
        {
            let unreadable = PodFacts::unreadable(pod, errors, machine.names_mut());
            machine.handle(now, unreadable);
        }
        input.map(Some)
    }

    fn note_pod(&mut self, pod: &dyn PodView) {
        if pod.node().is_some() {
            self.waiting.remove(pod.uid());
            return;
        }
        let scheduled = pod.condition("PodScheduled");
        let waiting = Waiting {
            generation: pod.generation(),
            unscheduled_since: scheduled
                .filter(|condition| condition.status == "False")
                .and_then(|condition| condition.since),
        };
        self.waiting.insert(pod.uid().into(), waiting);
    }

    /// Ignores an object, with a warning; others are not affected.
    fn put_aside(&mut self, kind: &Kind, named: &Named, errors: &[FieldError]) {
        let each: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = each.join("; ");
        let key = (Arc::clone(&kind.kind), full_name(named));
        if self.aside.get(&key) != Some(&text) {
            let take_in = Warning {
                kind: &kind.kind,
                namespace: &named.namespace,
                name: &named.name,
                node: None,
                action: "read",
                error: &text,
                next: "when it changes; until then it takes no part",
            };
            take_in.log();
            self.aside.insert(key, text);
        }
    }

    fn put_back(&mut self, kind: &Kind, named: &Named) {
        // Nearly always empty, so that no name is built.
        if !self.aside.is_empty() {
            self.aside
                .remove(&(Arc::clone(&kind.kind), full_name(named)));
        }
    }
}
