//! The syncs that each fact triggers.
//!
//! Source: spec/workloadspread §5.1.

use std::sync::Arc;

use super::assign;
use super::effect::EventKind;
use super::machine::SpreadController;
use super::owners;
use super::rows::CREATING_FOR;
use crate::facts::kinds::Kind;
use crate::facts::pod::Pod;
use crate::facts::spec::{LimitScope, WorkloadSpread, WsKey};
use crate::facts::status::Webhook;
use crate::facts::workload::{WorkloadFact, WorkloadKey};
use crate::revision;

/// The number of owners above a pod that are followed: two are usual (ReplicaSet, Deployment).
const OWNERS_MAX: usize = 4;

impl SpreadController {
    /// Any change of a WorkloadSpread, also of its status.
    pub(super) fn set_spread(&mut self, ws: WorkloadSpread) {
        let key = ws.key.clone();
        let deleting = ws.deleting;
        let before = self.spreads.set(ws);
        let now = self.spreads.get(&key);
        self.kinds.follow(before.as_deref(), now.map(|ws| &**ws));
        if deleting {
            if let Some(ws) = self.spreads.get(&key).cloned() {
                self.enqueue_relatives(&ws);
            }
            return self.forget(&key);
        }
        let now = self.spreads.get(&key).cloned();
        let spec = |ws: &Arc<WorkloadSpread>| Arc::clone(&ws.spec);
        if let Some(now) = now
            .as_ref()
            .filter(|_| before.as_ref().map(spec) != now.as_ref().map(spec))
        {
            self.enqueue_relatives(now);
        }
        if before != now {
            self.enqueue(&key);
        }
    }

    /// For a pod: that it was added, stopped counting, or changed its revision; also that a scheduler found a node for
    /// it or none, which Kruise misses (F5). A pod without a marker is less urgent: [`enqueue_of`](Self::enqueue_of).
    ///
    /// Phase, readiness and restarts count if they decide which pods are surplus, or belong to the minimum of a subset:
    /// otherwise costs would stay as they were when the limit was exceeded, and a restarted controller would write
    /// others.
    pub(super) fn set_pod(&mut self, pod: Pod) {
        let uid = Arc::clone(&pod.uid);
        let before = self.facts.pods.set(pod);
        let Some(now) = self.facts.pods.get(&uid) else {
            return;
        };
        let value = |pod: &Pod| (pod.phase, pod.ready_since, pod.restarts);
        let is_valued_anew = before.as_ref().is_some_and(|b| value(b) != value(now));
        let changed = before.as_ref().is_none_or(|before| {
            (before.is_active() && !now.is_active())
                || before.marker != now.marker
                || before.node != now.node
                || before.unschedulable != now.unschedulable
                || self.revision(before) != self.revision(now)
        });
        if changed {
            let now = now.clone();
            self.enqueue_of(before.as_ref(), &now);
        } else if is_valued_anew && now.marked_for().is_some() && !self.by_value.is_empty() {
            let mut keys = self.keys_of(now);
            keys.retain(|key| self.by_value.contains(key));
            keys.iter().for_each(|key| self.enqueue_known(key));
        }
    }

    /// Begins a sync for a pod with a marker. A pod without one is in no row, so it is urgent only if its adoption takes
    /// a free place: another pod would get that place. Otherwise its adoption and its deletion cost wait for the next
    /// sync, which comes no later than for an admitted pod that stays unseen. Kruise never begins one.
    fn enqueue_of(&mut self, before: Option<&Pod>, pod: &Pod) {
        let is_marked = |pod: &Pod| pod.marked_for().is_some();
        let is_counted = is_marked(pod) || before.is_some_and(is_marked);
        for key in self.keys_of(pod) {
            let Some(ws) = self.spreads.get(&key).filter(|ws| !ws.deleting) else {
                continue;
            };
            if is_counted || self.takes_free_place(ws, pod) {
                self.enqueue(&key);
            } else if pod.node.is_some() {
                self.sync_by(&key, Some(self.now + CREATING_FOR));
            }
        }
    }

    /// True if adopting a pod may take a free place of a limited subset.
    fn takes_free_place(&self, ws: &WorkloadSpread, pod: &Pod) -> bool {
        let node = pod.node.filter(|_| pod.is_active());
        let Some((name, node)) = node.and_then(|n| Some((n, self.facts.nodes.get(&n)?))) else {
            return false;
        };
        let (scope, controller) = (ws.spec.limit_scope, pod.controller.as_ref());
        let revision = revision::of_pod(scope, &pod.labels, controller, &self.kinds, &self.names);
        let rows = ws.status.rows(&revision);
        ws.spec.subsets.iter().any(|subset| {
            let row = rows.iter().find(|row| row.name == subset.name);
            subset.max_replicas.is_some()
                && row.is_none_or(|row| row.missing > 0)
                && assign::fits(pod, (name, node), subset, &self.names)
        })
    }

    /// The WorkloadSpread that a pod's marker names, and those of its owner and of that owner's owner: several may name
    /// the pod.
    fn keys_of(&self, pod: &Pod) -> Vec<WsKey> {
        let mut keys = Vec::from_iter(pod.marked_for());
        let namespace = pod.namespace;
        let mut owner = pod.controller.as_ref().map(|c| c.target);
        for _ in 0..OWNERS_MAX {
            let Some(target) = owner else {
                break;
            };
            let fact = self.facts.workloads.get(WorkloadKey { namespace, target });
            let named = self.spreads.of_target(namespace, target);
            let selecting = self.spreads.selecting(namespace, fact);
            keys.extend(named.chain(selecting).cloned());
            owner = fact.and_then(|f| f.controller.as_ref()).map(|c| c.target);
        }
        keys
    }

    fn revision(&self, pod: &Pod) -> Arc<str> {
        revision::of_template(
            LimitScope::Revision,
            &pod.labels,
            pod.controller.as_ref(),
            &self.kinds,
            &self.names,
        )
    }

    pub(super) fn pod_gone(&mut self, uid: &str) {
        if let Some(pod) = self.facts.pods.remove(uid) {
            let gone = Pod {
                deleting: true,
                ..pod
            };
            self.enqueue_of(None, &gone);
        }
    }

    /// The WorkloadSpreads that may match the same pods: the oldest of them may be another one now.
    pub(super) fn enqueue_relatives(&mut self, ws: &WorkloadSpread) {
        for key in owners::relatives(ws, &self.facts.workloads, &self.spreads) {
            self.enqueue_known(&key);
        }
    }

    /// Every WorkloadSpread reports it, by a condition and an event.
    pub(super) fn set_webhook(&mut self, webhook: Webhook) {
        let before = std::mem::replace(&mut self.webhook, webhook);
        let kind = match (before, webhook) {
            (before, webhook) if before == webhook => return,
            (_, Webhook::Unknown) => return,
            (_, Webhook::NotRegistered) => Some(EventKind::WebhookNotRegistered),
            (_, Webhook::NotReady) => Some(EventKind::WebhookNotReady),
            (Webhook::Unknown, Webhook::Answers) => None,
            (_, Webhook::Answers) => Some(EventKind::WebhookReady),
        };
        let all = self.spreads.iter().filter(|ws| !ws.deleting);
        let keys: Vec<WsKey> = all.map(|ws| ws.key.clone()).collect();
        for key in keys {
            if let Some(kind) = kind {
                self.record(&key, kind, "".into());
            }
            self.enqueue(&key);
        }
    }

    fn enqueue_known(&mut self, key: &WsKey) {
        if self.spreads.get(key).is_some_and(|ws| !ws.deleting) {
            self.enqueue(key);
        }
    }

    /// For workloads: that they were added or deleted, and their replicas; for a Deployment its revision, too; for a
    /// CloneSet every change while its newest revision differs from the previous one. For custom kinds only the
    /// replicas. For StatefulSets nothing.
    pub(super) fn set_workload(&mut self, fact: WorkloadFact) {
        let key = fact.key;
        let before = self.facts.workloads.set(fact);
        let Some(now) = self.facts.workloads.get(key) else {
            return;
        };
        let changed = match &before {
            None => self.kinds.is_builtin(&key.target),
            Some(before) => {
                before.replicas != now.replicas
                    || before.numbers != now.numbers
                    || before.revision != now.revision
                    || before.template != now.template
                    || before.deleting != now.deleting
                    || before.rolling != now.rolling
                    || before.pod_labels != now.pod_labels
                    || is_updated(before, now)
            }
        };
        if changed {
            let now = now.clone();
            // Another label may exclude it.
            let before = before.filter(|before| before.pod_labels != now.pod_labels);
            before
                .iter()
                .for_each(|before| self.workload_changed(before));
            self.workload_changed(&now);
        }
    }

    pub(super) fn workload_gone(&mut self, key: WorkloadKey) {
        if let Some(fact) = self.facts.workloads.remove(key)
            && self.kinds.is_builtin(&key.target)
        {
            self.workload_changed(&fact);
        }
    }

    fn workload_changed(&mut self, fact: &WorkloadFact) {
        let WorkloadKey { namespace, target } = fact.key;
        if self.kinds.of(target.kind) == Kind::StatefulSet {
            return;
        }
        let above = fact.controller.as_ref().map(|c| c.target);
        let targets = [Some(target), above].into_iter().flatten();
        let named = targets.flat_map(|t| self.spreads.of_target(namespace, t));
        let selecting = self.spreads.selecting(namespace, Some(fact));
        let keys: Vec<WsKey> = named.chain(selecting).cloned().collect();
        for key in keys {
            self.enqueue_known(&key);
        }
    }
}

/// True if a CloneSet's newest revision differs from its previous one.
fn is_updated(before: &WorkloadFact, now: &WorkloadFact) -> bool {
    let current = before.revisions.map(|[current, _]| current);
    let update = now.revisions.map(|[_, update]| update);
    update.is_some() && update != current
}
