//! Objects into facts. The conversion is strew-api's; here it is remembered for templates that many pods share.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use rustc_hash::FxHashMap;
use strew_api::facts::Named;
use strew_api::facts::{self, Watched};
use strew_api::read::KubeObject;
use strew_apiserver::Tables;
use strew_apiserver::object::pod::{DISRUPTION_TARGET, POD_SCHEDULED};
use strew_apiserver::object::{Key, Kind, Object, Pairs, Pod, Truth};
use strew_apiserver::server::Change;
use strew_cluster::{OwnerRef, PodFact, PodHistory, PodSpec};
use strew_model::time::Instant;
use strew_model::{Interner, Labels};
use strew_scheduler::machine::{Condition, ConditionReason, Input, Scheduler};

/// Beyond so many templates all are forgotten.
const KNOWN_MAX: usize = 10_000;

/// What was converted before, with the symbols of one interner. The originals are held, so that their addresses stay
/// theirs.
#[derive(Default)]
pub struct Facts {
    specs: FxHashMap<usize, (Arc<core::PodSpec>, PodSpec)>,
    labels: FxHashMap<usize, (Arc<Pairs>, Labels)>,
}

impl Facts {
    /// Tells the machine what a watch has told, if it is anything that decisions look at.
    pub(super) fn take_in(
        &mut self,
        machine: &mut Scheduler,
        seen: &mut Tables,
        now: Instant,
        change: Change,
    ) {
        let Change {
            key, new: object, ..
        } = change;
        match object {
            Some(object) => {
                let old = seen.set(object.clone());
                if old
                    .as_ref()
                    .is_some_and(|old| old.meta().uid != object.meta().uid)
                {
                    // Another object of this name: the old one went unseen.
                    if let Some(old) = old {
                        gone(machine, now, &key, &old);
                    }
                    self.set(machine, now, None, &object);
                } else {
                    self.set(machine, now, old.as_ref(), &object);
                }
            }
            None => {
                if let Some(old) = seen.remove(&key) {
                    gone(machine, now, &key, &old);
                }
            }
        }
    }

    fn set(&mut self, machine: &mut Scheduler, now: Instant, old: Option<&Object>, new: &Object) {
        if let Object::Pod(pod) = new {
            let old = match old {
                Some(Object::Pod(old)) => Some(&**old),
                _ => None,
            };
            if old.is_none_or(|old| concerns_decisions(old, pod)) {
                self.set_pod(machine, now, pod);
            }
            return;
        }
        let input = wire_of(new).map(|wire| facts::input(&wire, machine.names_mut()));
        if let Some(Ok(Some(input))) = input {
            machine.handle(now, input);
        }
    }

    fn set_pod(&mut self, machine: &mut Scheduler, now: Instant, pod: &Pod) {
        if pod.is_finished() {
            machine.handle(now, Input::PodGone(Arc::clone(&pod.meta.uid)));
            return;
        }
        let Some(fact) = self.pod(pod, machine.names_mut()) else {
            return;
        };
        let condition = pod.status.condition(POD_SCHEDULED).and_then(condition_of);
        let fact = Box::new(fact);
        machine.handle(now, Input::PodSet { fact, condition });
    }

    /// A pod as decisions see it; `None`: no decision could be made from it, which validation would have refused.
    pub fn pod(&mut self, pod: &Pod, names: &mut Interner) -> Option<PodFact> {
        let history = PodHistory {
            nominated: pod
                .status
                .nominated
                .as_deref()
                .map(|node| names.intern(node)),
            started_s: pod
                .status
                .started
                .and_then(|at| i64::try_from(at.secs()).ok()),
            preempted: pod
                .status
                .condition(DISRUPTION_TARGET)
                .is_some_and(|c| c.status == Truth::True && &*c.reason == "PreemptionByScheduler"),
        };
        Some(PodFact {
            uid: Arc::clone(&pod.meta.uid),
            name: Arc::clone(&pod.meta.name.name),
            namespace: names.intern(&pod.meta.name.namespace),
            labels: self.labels(&pod.meta.labels, names),
            owner: pod.meta.controller().map(|owner| OwnerRef {
                kind: facts::owner_kind(&owner.api_version, &owner.kind),
                name: names.intern(&owner.name),
            }),
            terminating: pod.meta.is_terminating(),
            node: pod.node.as_deref().map(|node| names.intern(node)),
            spec: self.spec(&pod.spec, names)?,
            history,
        })
    }

    fn spec(&mut self, spec: &Arc<core::PodSpec>, names: &mut Interner) -> Option<PodSpec> {
        let address = Arc::as_ptr(spec) as usize;
        if let Some((_, known)) = self.specs.get(&address) {
            return Some(known.clone());
        }
        let fact = facts::template_spec(spec, names).ok()?;
        if self.specs.len() >= KNOWN_MAX {
            self.specs.clear();
        }
        self.specs.insert(address, (Arc::clone(spec), fact.clone()));
        Some(fact)
    }

    fn labels(&mut self, labels: &Arc<Pairs>, names: &mut Interner) -> Labels {
        let address = Arc::as_ptr(labels) as usize;
        if let Some((_, known)) = self.labels.get(&address) {
            return known.clone();
        }
        let fact = facts::labels(Some(labels), names);
        if self.labels.len() >= KNOWN_MAX {
            self.labels.clear();
        }
        self.labels
            .insert(address, (Arc::clone(labels), fact.clone()));
        fact
    }
}

fn gone(machine: &mut Scheduler, now: Instant, key: &Key, old: &Object) {
    let kind = match old {
        Object::Pod(_) => Some(Watched::Pod),
        Object::Node(_) => Some(Watched::Node),
        old => wire_of(old).and_then(|wire| Watched::of(&wire)),
    };
    let Some(kind) = kind else { return };
    let named = Named {
        namespace: (&*key.name.namespace).into(),
        name: (&*key.name.name).into(),
        uid: (&*old.meta().uid).into(),
    };
    let input = kind.gone(&named, machine.names_mut());
    machine.handle(now, input);
}

/// Whether a pod changed in anything that a decision or a queue looks at.
fn concerns_decisions(old: &Pod, new: &Pod) -> bool {
    let is_same = Arc::ptr_eq(&old.spec, &new.spec)
        && Arc::ptr_eq(&old.meta.labels, &new.meta.labels)
        && old.node == new.node
        && old.meta.is_terminating() == new.meta.is_terminating()
        && old.is_finished() == new.is_finished()
        && old.status.nominated == new.status.nominated
        && old.status.started == new.status.started
        && old.status.condition(POD_SCHEDULED) == new.status.condition(POD_SCHEDULED)
        && old.status.condition(DISRUPTION_TARGET) == new.status.condition(DISRUPTION_TARGET);
    !is_same
}

fn condition_of(condition: &strew_apiserver::object::Condition) -> Option<Condition> {
    Some(Condition {
        reason: ConditionReason::of(condition.status.name(), &condition.reason)?,
        message: Arc::clone(&condition.message),
    })
}

/// The wire's form of an object of the kinds that a scheduler looks at, but for pods.
pub fn wire_of(object: &Object) -> Option<KubeObject> {
    match object.kind() {
        Kind::Node
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::StatefulSet
        | Kind::PodDisruptionBudget => object.to_kube(),
        Kind::Other(_) => match object {
            Object::Plain(plain) => match &plain.object {
                KubeObject::Service(_)
                | KubeObject::Namespace(_)
                | KubeObject::PersistentVolumeClaim(_)
                | KubeObject::PersistentVolume(_)
                | KubeObject::StorageClass(_)
                | KubeObject::CSINode(_) => object.to_kube(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
