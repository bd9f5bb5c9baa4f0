//! PodDisruptionBudgets: how many disruptions are allowed, and the decision of the eviction API.
//!
//! Source: spec/controllers §8.1, §8.2; upstream `pkg/controller/disruption`, v1.36.

mod members;
mod scale;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use strew_apiserver::eviction::condition;
use strew_apiserver::object::pod::DISRUPTION_TARGET;
use strew_apiserver::object::{Budget, Condition, Name, Pod, Stored, Truth, moment};
use strew_apiserver::{ApiError, Selections, Tables};
use strew_manifest::json::Json;
use strew_model::time::{Instant, Span};

use members::{Members, is_healthy};
use scale::Wanted;

use crate::api::Event;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;
use crate::write::{self, Part};

/// The source of its events.
const SOURCE: &str = "controllermanager";

/// How long a pod in `disruptedPods` is expected to be deleted.
const DELETION_TIMEOUT: Span = Span::from_secs(120);

/// How long a running pod keeps the condition DisruptionTarget.
const STALE_TARGET: Span = Span::from_secs(120);

/// The disruption controller.
#[derive(Debug, Default)]
pub struct Disruption {
    budgets: BTreeMap<Name, Members>,
    /// The budgets of each namespace by what they select; missing where budgets have changed since.
    selecting: HashMap<Arc<str>, Selections<Name>>,
}

impl Disruption {
    /// A controller that has seen no budget.
    pub fn new() -> Self {
        Self::default()
    }

    fn observe_budget(
        &mut self,
        old: Option<&Budget>,
        new: Option<&Budget>,
        cache: &Tables,
        queue: &mut Queue,
    ) {
        let Some(budget) = new else {
            if let Some(old) = old {
                self.budgets.remove(&old.meta.name);
                self.selecting.remove(&old.meta.name.namespace);
            }
            return;
        };
        let name = &budget.meta.name;
        if old.is_none_or(|old| old.spec.selector != budget.spec.selector) {
            let members = Members::of(budget, cache);
            self.budgets.insert(name.clone(), members);
            self.selecting.remove(&name.namespace);
        }
        queue.add(name);
    }

    fn observe_pod(&mut self, old: Option<&Pod>, new: Option<&Pod>, queue: &mut Queue) {
        let Some(namespace) = new.or(old).map(|pod| &pod.meta.name.namespace) else {
            return;
        };
        let budgets = &self.budgets;
        let selecting = { self.selecting.entry(Arc::clone(namespace)) }
            .or_insert_with(|| selecting(budgets, namespace));
        let selected = [old, new].into_iter().flatten();
        let selected = selected.flat_map(|pod| selecting.of(&pod.meta.labels));
        let selected: BTreeSet<&Name> = selected.collect();
        for name in selected {
            if let Some(members) = self.budgets.get_mut(name)
                && members.change(old, new)
            {
                queue.add(name);
            }
        }
        if let Some(pod) = new
            && let Some(target) = target(pod)
        {
            queue.add_at(&pod_key(&pod.meta.name), target.since + STALE_TARGET);
        }
    }

    fn sync_budget(
        &self,
        budget: &Arc<Budget>,
        members: &Members,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let object = Budget::into_object(Arc::clone(budget));
        if members.n_pods == 0 {
            cx.api.record(Event::normal(
                SOURCE,
                &object,
                "NoPods",
                "No matching pods found",
            ));
        }
        let namespace = &budget.meta.name.namespace;
        let mut is_scale_asked = false;
        let wanted = scale::wanted(&budget.spec, members.n_pods, || {
            is_scale_asked = true;
            scale::scale(members, namespace, cx.cache)
        });
        match wanted {
            Ok(wanted) => {
                if is_scale_asked && members.n_unmanaged > 0 {
                    cx.api.record(Event::warning(
                        SOURCE,
                        &object,
                        "UnmanagedPods",
                        unmanaged(budget),
                    ));
                }
                self.write(budget, members, wanted, cx)
            }
            Err(message) => {
                let note = format!("Failed to calculate the number of expected pods: {message}");
                cx.api.record(Event::warning(
                    SOURCE,
                    &object,
                    "CalculateExpectedPodCountFailed",
                    note,
                ));
                let mut failed = Budget::clone(budget);
                failed.status.disruptions_allowed = Some(0);
                condition::set_failed(&mut failed.status, &message, cx.now);
                write_if_changed(budget, failed, cx)
            }
        }
    }

    fn write(
        &self,
        budget: &Arc<Budget>,
        members: &Members,
        wanted: Wanted,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let disrupted = disrupted(budget, members, cx);
        let healthy = i32::try_from(members.n_healthy - disrupted.n_healthy).unwrap_or(i32::MAX);
        let mut allowed = healthy.saturating_sub(wanted.healthy).max(0);
        if wanted.expected <= 0 {
            allowed = 0;
        }
        let mut new = Budget::clone(budget);
        let status = &mut new.status;
        status.current_healthy = Some(healthy);
        status.desired_healthy = Some(wanted.healthy);
        status.expected_pods = Some(wanted.expected);
        status.disruptions_allowed = Some(allowed);
        status.disrupted_pods = (!disrupted.kept.is_empty()).then_some(disrupted.kept);
        status.observed_generation = Some(budget.meta.generation);
        condition::set_allowed(status, cx.now);
        write_if_changed(budget, new, cx)?;
        if let Some(at) = disrupted.recheck {
            cx.queue.add_at(&budget.meta.name, at);
        }
        Ok(())
    }
}

/// Pods that were evicted, and that still exist.
#[derive(Default)]
struct Disrupted {
    kept: BTreeMap<String, Time>,
    /// The number of them that are still healthy.
    n_healthy: usize,
    /// When to sync again.
    recheck: Option<Instant>,
}

fn disrupted(budget: &Budget, members: &Members, cx: &mut Context<'_>) -> Disrupted {
    let mut found = Disrupted::default();
    let namespace = &budget.meta.name.namespace;
    for (pod, since) in budget.status.disrupted_pods.iter().flatten() {
        let name = Name::new(Arc::clone(namespace), pod.as_str());
        let Some(known) = cx.cache.get::<Pod>(&name) else {
            continue;
        };
        if known.meta.is_terminating() || !members.selects(known) {
            continue;
        }
        let end = moment::of_wire(Some(since)).unwrap_or_default() + DELETION_TIMEOUT;
        if end < cx.now {
            // The message has the namespace twice, as upstream.
            let note = format!(
                "Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            );
            let pod = Pod::into_object(Arc::clone(known));
            cx.api
                .record(Event::warning(SOURCE, &pod, "NotDeleted", note));
            continue;
        }
        found.kept.insert(pod.clone(), since.clone());
        found.n_healthy += usize::from(is_healthy(known) && end > cx.now);
        // Right after the end, since at the end itself it is not over.
        let recheck = end + Span::from_millis(1);
        found.recheck = Some(found.recheck.map_or(recheck, |at| at.min(recheck)));
    }
    found
}

/// Writes with the cached version: if the store has a newer one, its evictions must not be overwritten.
fn write_if_changed(old: &Arc<Budget>, new: Budget, cx: &mut Context<'_>) -> Result<(), ApiError> {
    if new.status == old.status {
        return Ok(());
    }
    match cx.api.update_status(new.into()) {
        Ok(_) | Err(ApiError::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

fn unmanaged(budget: &Budget) -> String {
    let selector = budget.spec.selector.as_ref();
    let selector = selector.map(|selector| selector.to_json().to_string());
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status \
         of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods \
         please set \".spec.minAvailable\" field of the PDB to an integer value.",
        selector.unwrap_or_default()
    )
}

/// The condition DisruptionTarget of a running pod.
fn target(pod: &Pod) -> Option<&Condition> {
    let condition = pod.status.condition(DISRUPTION_TARGET)?;
    let is_live = pod.is_active() && condition.status == Truth::True;
    (is_live && &*condition.reason != "TerminationByKubelet").then_some(condition)
}

/// The budgets of a namespace by what they select.
fn selecting(budgets: &BTreeMap<Name, Members>, namespace: &Arc<str>) -> Selections<Name> {
    let first = Name::new(Arc::clone(namespace), "");
    let from_first = budgets.range((Bound::Included(first), Bound::Unbounded));
    let mut selecting = Selections::default();
    for (name, members) in from_first.take_while(|(name, _)| name.namespace == *namespace) {
        if let Some(selection) = &members.selection {
            selecting.push(selection.clone(), name.clone());
        }
    }
    selecting
}

/// The queue key of a pod, different from all keys of budgets: no namespace contains a slash.
fn pod_key(pod: &Name) -> Name {
    Name::new(format!("pod/{}", pod.namespace), Arc::clone(&pod.name))
}

fn reset_target(pod: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
    let Some(pod) = cx.cache.get::<Pod>(pod) else {
        return Ok(());
    };
    let Some(target) = target(pod) else {
        return Ok(());
    };
    let due = target.since + STALE_TARGET;
    if due > cx.now {
        cx.queue.add_at(&pod_key(&pod.meta.name), due);
        return Ok(());
    }
    let now = cx.now;
    write::change(cx.api, pod, Part::Status, |pod| {
        target_is_stale(pod, now)
            && pod
                .status
                .set_condition(DISRUPTION_TARGET, Truth::False, "", "", now)
    })?;
    Ok(())
}

fn target_is_stale(pod: &Pod, now: Instant) -> bool {
    target(pod).is_some_and(|target| target.since + STALE_TARGET <= now)
}

impl Controller for Disruption {
    fn name(&self) -> &'static str {
        "disruption-controller"
    }

    fn n_workers(&self) -> usize {
        workers::DISRUPTION
    }

    /// Only pods and budgets trigger syncs: the size of a pod's controller is read, but a change of it triggers none.
    fn observe(&mut self, _: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        if let Some((old, new)) = change.of::<Pod>() {
            return self.observe_pod(old, new, queue);
        }
        if let Some((old, new)) = change.of::<Budget>() {
            self.observe_budget(old, new, cache, queue);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if let Some(namespace) = name.namespace.strip_prefix("pod/") {
            return reset_target(&Name::new(namespace, Arc::clone(&name.name)), cx);
        }
        match (cx.cache.get::<Budget>(name), self.budgets.get(name)) {
            (Some(budget), Some(members)) => self.sync_budget(budget, members, cx),
            _ => Ok(()),
        }
    }
}
