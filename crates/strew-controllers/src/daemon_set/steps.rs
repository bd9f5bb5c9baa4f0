//! One sync of a DaemonSet: creates missing pods, deletes surplus ones, then updates.
//!
//! Source: spec/controllers §4.2, §4.3; upstream `manage`, `syncNodes`.

use std::sync::Arc;

use strew_apiserver::object::{DaemonSet, Name, Object, Pod, Stored};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_model::Prng;

use super::SOURCE;
use super::ledger::Ledger;
use super::on_node::{GENERATION_LABEL, Rules};
use super::rollout::{self, Limits, RolloutStep};
use crate::api::Event;
use crate::controller::Context;
use crate::pod_control::slow_start;
use crate::sets::unseen::Unseen;
use crate::sets::{REVISION_LABEL, is_namespace_terminating, owner_of, pod_of};

/// The most creations, and the most deletions, of a sync. Source: spec/controllers §4.2.
const BURST: usize = 250;

/// A sync of a set.
pub(super) struct Sync<'a> {
    pub(super) set: &'a Arc<DaemonSet>,
    pub(super) rules: &'a Rules,
    pub(super) ledger: &'a mut Ledger,
    pub(super) unseen: &'a mut Unseen,
}

/// The creations and deletions of a sync.
#[derive(Debug, Default)]
struct Orders {
    creates: Vec<Arc<str>>,
    deletes: Vec<Arc<Pod>>,
}

impl Sync<'_> {
    /// Does the pending work.
    ///
    /// # Errors
    /// The first refusal; the other requests are sent nevertheless.
    pub(super) fn run(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let orders = self.manage(cx);
        let is_settled = orders.creates.is_empty() && orders.deletes.is_empty();
        self.give(orders, cx)?;
        if is_settled && rollout::is_rolling(&self.set.spec) && self.ledger.counts.outdated > 0 {
            let orders = self.roll(cx.dice);
            self.give(orders, cx)?;
        }
        Ok(())
    }

    fn manage(&mut self, cx: &mut Context<'_>) -> Orders {
        let mut orders = Orders::default();
        let needy = self.ledger.needy.iter();
        // Work beyond the limit is left to the next sync, with its events.
        let needy: Vec<Arc<str>> = needy.cloned().collect();
        for node in needy {
            if orders.creates.len() >= BURST && orders.deletes.len() >= BURST {
                break;
            }
            let plan = self.ledger.plan(&node, cx.now);
            orders.deletes.extend(plan.deletes);
            for pod in plan.succeeded {
                let text = format!(
                    "Found succeeded daemon pod {} on node {node}, will try to delete it",
                    pod.meta.name
                );
                let event = Event::normal(SOURCE, &self.object(), "SucceededDaemonPod", text);
                cx.api.record(event);
                orders.deletes.push(pod);
            }
            for pod in plan.failed {
                orders.deletes.extend(self.failed(pod, &node, cx));
            }
            if plan.creates {
                orders.creates.push(node);
            }
        }
        orders
    }

    /// Returns the pod if it must be deleted now.
    fn failed(&mut self, pod: Arc<Pod>, node: &Arc<str>, cx: &mut Context<'_>) -> Option<Arc<Pod>> {
        let generation = self.set.status.observed_generation.unwrap_or(0);
        if let Some(until) = self.ledger.wait_for_failed(node, generation, cx.now) {
            cx.queue.add_at(&self.set.meta.name, until);
            return None;
        }
        let text = format!(
            "Found failed daemon pod {} on node {node}, will try to kill it",
            pod.meta.name
        );
        let event = Event::warning(SOURCE, &self.object(), "FailedDaemonPod", text);
        cx.api.record(event);
        Some(pod)
    }

    fn roll(&self, dice: &mut Prng) -> Orders {
        let desired = usize::try_from(self.ledger.counts.desired).unwrap_or(0);
        let limits = Limits::of(&self.set.spec, desired);
        let nodes = self.ledger.candidates();
        let step = match limits.surge {
            0 => rollout::replace(nodes, limits),
            _ => rollout::surge(nodes, desired, limits),
        };
        orders_of(step, dice)
    }

    fn give(&mut self, orders: Orders, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let created = self.create_all(&orders.creates, cx);
        if created.as_ref().is_err_and(ApiError::is_no_answer) {
            return created;
        }
        let mut refused = created;
        for pod in orders.deletes.iter().take(BURST) {
            match self.delete(pod, cx) {
                Ok(()) => {}
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                Err(error) => refused = refused.and(Err(error)),
            }
        }
        let is_over = orders.deletes.len() > BURST || orders.creates.len() > BURST;
        if is_over {
            cx.queue.add(&self.set.meta.name);
        }
        refused
    }

    fn create_all(&mut self, nodes: &[Arc<str>], cx: &mut Context<'_>) -> Result<(), ApiError> {
        if nodes.is_empty() {
            return Ok(());
        }
        let resumed = cx.queue.resume(&self.set.meta.name);
        let mut left = nodes.iter();
        slow_start(nodes.len().min(BURST), resumed, || match left.next() {
            Some(node) => self.create(node, cx),
            None => Ok(()),
        })
    }

    fn create(&mut self, node: &str, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let set = self.set;
        let mut labels = vec![(REVISION_LABEL, &*self.rules.hash)];
        let generation = self.rules.generation.as_deref();
        labels.extend(generation.map(|number| (GENERATION_LABEL, number)));
        let mut pod = pod_of(
            &set.spec.template,
            self.ledger.template.pod_spec(node),
            owner_of(&**set),
            Name::new(Arc::clone(&set.meta.name.namespace), ""),
            &labels,
        );
        pod.meta.generate_name = Some(format!("{}-", set.meta.name.name).into());
        let made = cx.api.create(pod.into());
        tell_created(set, &made, self.unseen, cx);
        made.map(|_| ())
    }

    fn delete(&mut self, pod: &Arc<Pod>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let key = Object::Pod(Arc::clone(pod)).key();
        let uid = &pod.meta.uid;
        let gone = cx.api.delete(&key, &DeleteOptions::of_uid(uid));
        match &gone {
            Ok(()) => {
                self.unseen.deleted(&self.set.meta.name, key, uid, cx.now);
                let text = format!("Deleted pod: {}", pod.meta.name.name);
                let event = Event::normal(SOURCE, &self.object(), "SuccessfulDelete", text);
                cx.api.record(event);
            }
            Err(ApiError::NotFound(_)) => return Ok(()),
            Err(ApiError::Lost) => {}
            Err(error) => {
                let text = format!("Error deleting: {error}");
                let event = Event::warning(SOURCE, &self.object(), "FailedDelete", text);
                cx.api.record(event);
            }
        }
        gone
    }

    fn object(&self) -> Object {
        DaemonSet::into_object(Arc::clone(self.set))
    }
}

/// Records the event of a created or refused pod.
pub(super) fn tell_created(
    set: &Arc<DaemonSet>,
    made: &Result<Object, ApiError>,
    unseen: &mut Unseen,
    cx: &mut Context<'_>,
) {
    let object = DaemonSet::into_object(Arc::clone(set));
    match made {
        Ok(stored) => {
            unseen.wrote(&set.meta.name, stored, cx.now);
            let text = format!("Created pod: {}", stored.meta().name.name);
            let event = Event::normal(SOURCE, &object, "SuccessfulCreate", text);
            cx.api.record(event);
        }
        Err(error) if error.is_no_answer() || is_namespace_terminating(error) => {}
        Err(error) => {
            let text = format!("Error creating: {error}");
            let event = Event::warning(SOURCE, &object, "FailedCreate", text);
            cx.api.record(event);
        }
    }
}

/// Upstream does not determine which nodes come first: the generator decides.
fn orders_of(step: RolloutStep, dice: &mut Prng) -> Orders {
    fn drawn<T>(mut all: Vec<T>, n: usize, dice: &mut Prng) -> Vec<T> {
        if n < all.len() && n > 0 {
            dice.shuffle(&mut all);
        }
        all.truncate(n);
        all
    }
    let RolloutStep {
        mut deletes_now,
        deletes,
        mut creates_now,
        creates,
        n_more,
    } = step;
    deletes_now.extend(drawn(deletes, n_more, dice));
    creates_now.extend(drawn(creates, n_more, dice));
    Orders {
        creates: creates_now,
        deletes: deletes_now,
    }
}
