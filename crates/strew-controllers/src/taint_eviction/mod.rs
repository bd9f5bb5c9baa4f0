//! Evicts pods from nodes whose NoExecute taints they do not tolerate, at once or after `tolerationSeconds`.
//!
//! Source: spec/controllers §7.5; upstream `pkg/controller/tainteviction`, v1.36.

pub mod toleration;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;
use strew_apiserver::object::pod::DISRUPTION_TARGET;
use strew_apiserver::object::{Key, Kind, Name, Node, Pod, Truth};
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_model::time::Instant;

use toleration::{Stay, stay};

use crate::api::{Api, Event};
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;
use crate::write::{self, Part};

/// The source of its events.
const SOURCE: &str = "taint-eviction-controller";

/// The taint eviction controller.
#[derive(Debug, Default)]
pub struct TaintEviction {
    /// The NoExecute taints of nodes that have any.
    tainted: BTreeMap<Arc<str>, Vec<Taint>>,
    timers: BTreeMap<Name, Timer>,
}

#[derive(Debug, Clone)]
struct Timer {
    /// The uid of the pod.
    uid: Arc<str>,
    /// When the pod is deleted; `None` if its deletion was requested.
    at: Option<Instant>,
}

impl TaintEviction {
    /// A controller that has seen no taint.
    pub fn new() -> Self {
        Self::default()
    }

    fn observe_node(&mut self, old: Option<&Node>, new: Option<&Node>, queue: &mut Queue) {
        let taints = new.map(no_execute).unwrap_or_default();
        if let Some(node) = new.or(old) {
            let name = &node.meta.name;
            let before = self.tainted.get(&name.name).map_or(&[][..], Vec::as_slice);
            // The time of a taint does not matter.
            let same = |a: &Taint, b: &Taint| a.key == b.key && a.value == b.value;
            let is_same =
                before.len() == taints.len() && before.iter().zip(&taints).all(|(a, b)| same(a, b));
            if is_same {
                return;
            }
            if taints.is_empty() {
                self.tainted.remove(&name.name);
            } else {
                self.tainted.insert(Arc::clone(&name.name), taints);
            }
            // The timers of a deleted node continue.
            if new.is_some() {
                queue.add(name);
            }
        }
    }

    /// Decides about a pod. Returns true if it must be deleted now.
    fn is_due(&mut self, pod: &Arc<Pod>, cx: &mut Context<'_>) -> bool {
        let name = &pod.meta.name;
        if let Some(timer) = self.timers.get(name) {
            if timer.uid != pod.meta.uid {
                self.cancel(name, cx.api);
            } else if timer.at.is_some_and(|at| at <= cx.now) {
                return true;
            }
        }
        let taints = pod.node.as_ref().and_then(|node| self.tainted.get(node));
        let how_long = taints.map_or(Stay::Forever, |taints| stay(&pod.spec, taints));
        match how_long {
            Stay::Not => {
                self.cancel(name, cx.api);
                true
            }
            Stay::Forever => {
                self.cancel(name, cx.api);
                false
            }
            Stay::For(time) => {
                // A different finite time changes nothing: the first timer stays (spec/controllers §7.5, quirk).
                if !self.timers.contains_key(name) {
                    let at = cx.now + time;
                    let uid = Arc::clone(&pod.meta.uid);
                    self.timers
                        .insert(name.clone(), Timer { uid, at: Some(at) });
                    cx.queue.add_at(name, at);
                }
                false
            }
        }
    }

    fn cancel(&mut self, name: &Name, api: &mut dyn Api) {
        let Some(timer) = self.timers.remove(name) else {
            return;
        };
        if timer.at.is_some() {
            let note = format!("Cancelling deletion of Pod {name}");
            api.record(event(name, &timer.uid, note));
        }
    }

    /// Deletes a pod if it is due, regardless of budgets. A terminating pod stays unchanged.
    fn look_at(&mut self, pod: &Arc<Pod>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let is_done = |timer: &Timer| timer.at.is_none() && timer.uid == pod.meta.uid;
        let name = &pod.meta.name;
        if self.timers.get(name).is_some_and(is_done) || pod.meta.is_terminating() {
            return Ok(());
        }
        if !self.is_due(pod, cx) {
            return Ok(());
        }
        let uid = &pod.meta.uid;
        let note = format!("Marking for deletion Pod {name}");
        cx.api.record(event(name, uid, note));
        let now = cx.now;
        write::change(cx.api, pod, Part::Status, |pod| {
            let message = "Taint manager: deleting due to NoExecute taint";
            let status = &mut pod.status;
            status.set_condition(
                DISRUPTION_TARGET,
                Truth::True,
                "DeletionByTaintManager",
                message,
                now,
            )
        })?;
        let key = Key {
            kind: Kind::Pod,
            name: name.clone(),
        };
        match cx.api.delete(&key, &DeleteOptions::of_uid(uid)) {
            Ok(()) | Err(ApiError::NotFound(_) | ApiError::Conflict(_)) => {}
            Err(error) => return Err(error),
        }
        let uid = Arc::clone(uid);
        self.timers.insert(name.clone(), Timer { uid, at: None });
        Ok(())
    }
}

/// The NoExecute taints of a node.
pub fn no_execute(node: &Node) -> Vec<Taint> {
    let all = node.spec.taints.iter().flatten();
    all.filter(|taint| taint.effect == "NoExecute")
        .cloned()
        .collect()
}

fn event(pod: &Name, uid: &Arc<str>, note: String) -> Event {
    Event {
        regarding: Key {
            kind: Kind::Pod,
            name: pod.clone(),
        },
        uid: Arc::clone(uid),
        is_warning: false,
        reason: "TaintManagerEviction",
        note: note.into(),
        source: SOURCE,
    }
}

impl Controller for TaintEviction {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::TAINTS
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        if let Some((old, new)) = change.of::<Node>() {
            return self.observe_node(old, new, queue);
        }
        let Some((old, new)) = change.of::<Pod>() else {
            return;
        };
        match (old, new) {
            (Some(old), None) => {
                if self.timers.contains_key(&old.meta.name) {
                    queue.add(&old.meta.name);
                }
            }
            (old, Some(pod)) => {
                let is_new = old.is_none_or(|old| {
                    old.node != pod.node
                        || old.meta.uid != pod.meta.uid
                        || old.spec.tolerations != pod.spec.tolerations
                });
                if is_new
                    && pod
                        .node
                        .as_ref()
                        .is_some_and(|node| self.tainted.contains_key(node))
                {
                    queue.add(&pod.meta.name);
                }
            }
            (None, None) => {}
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if name.namespace.is_empty() {
            // A pod that cannot be deleted now is retried by itself; the others do not wait for it.
            for pod in cx.cache.pods_on(&name.name) {
                match self.look_at(pod, cx) {
                    Ok(()) => {}
                    Err(ApiError::Lost) => return Err(ApiError::Lost),
                    Err(_) => cx.queue.add_after_error(&pod.meta.name, cx.now),
                }
            }
            return Ok(());
        }
        match cx.cache.get::<Pod>(name) {
            Some(pod) => self.look_at(pod, cx),
            None => {
                self.cancel(name, cx.api);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::small_world::SmallCluster;
    use serde_json::json;
    use strew_apiserver::object::Object;

    const TOLERATES_5_MINUTES: &str = "300";

    fn tolerating(seconds: &str) -> serde_json::Value {
        let seconds: i64 = seconds.parse().unwrap();
        json!({"spec": {"tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]}})
    }

    fn world() -> SmallCluster {
        let mut world = SmallCluster::new(1, vec![Box::new(TaintEviction::new())]);
        world.add_node("n", "a");
        world.add_pod("now", "n", json!({}));
        world.add_pod("later", "n", tolerating(TOLERATES_5_MINUTES));
        world.add_pod(
            "never",
            "n",
            json!({"spec": {"tolerations": [{"operator": "Exists"}]}}),
        );
        world.run_until(10);
        world
    }

    fn taint(world: &mut SmallCluster, taints: &[&str]) {
        let taints = taints
            .iter()
            .map(|key| json!({"key": key, "effect": "NoExecute"}));
        let taints: Vec<Taint> = taints.map(|t| serde_json::from_value(t).unwrap()).collect();
        world.change(Kind::Node, "n", |object| {
            if let Object::Node(node) = object {
                Arc::make_mut(&mut Arc::make_mut(node).spec).taints = Some(taints);
            }
        });
    }

    #[test]
    fn pods_go_at_once_or_when_their_time_is_over() {
        let mut world = world();
        world.server.n_conflicts = 1;
        taint(&mut world, &["x"]);
        world.run_until(11);
        let pod = world.get::<Pod>("now").unwrap();
        assert!(pod.is_terminating());
        let target = pod.status.condition(DISRUPTION_TARGET).unwrap();
        assert_eq!(&*target.reason, "DeletionByTaintManager");
        assert_eq!(
            &*target.message,
            "Taint manager: deleting due to NoExecute taint"
        );
        world.run_until(309);
        assert!(world.get::<Pod>("later").unwrap().is_active());
        world.run_until(310);
        assert!(world.get::<Pod>("later").unwrap().is_terminating());
        world.run_until(1000);
        assert_eq!(world.names::<Pod>(), ["never".to_owned()].into());
        assert_eq!(
            world.events_of("Eviction"),
            [
                "Pod default/now Normal TaintManagerEviction: Marking for deletion Pod default/now",
                "Pod default/later Normal TaintManagerEviction: Marking for deletion Pod default/later",
            ]
        );
    }

    #[test]
    fn a_timer_is_cancelled_or_stands() {
        let mut world = world();
        taint(&mut world, &["x"]);
        world.run_until(100);
        // Another taint with the same finite time: the first timer stays.
        taint(&mut world, &["x", "y"]);
        world.run_until(200);
        taint(&mut world, &[]);
        world.run_until(201);
        assert_eq!(
            world.events_of("Cancelling"),
            [
                "Pod default/later Normal TaintManagerEviction: Cancelling deletion of Pod default/later"
            ]
        );
        world.run_until(500);
        taint(&mut world, &["x"]);
        world.run_until(600);
        taint(&mut world, &["x", "y"]);
        world.run_until(799);
        assert!(world.get::<Pod>("later").unwrap().is_active());
        world.run_until(800);
        assert!(world.get::<Pod>("later").unwrap().is_terminating());
    }

    #[test]
    fn a_pod_that_is_bound_later_and_one_that_goes_by_itself() {
        let mut world = world();
        taint(&mut world, &["x"]);
        world.run_until(50);
        world.add_pod("late", "n", json!({}));
        world.change(Kind::Pod, "later", |object| {
            let at = crate::small_world::START + strew_model::time::Span::from_secs(60);
            let grace = strew_model::time::Span::from_secs(10);
            object.meta_mut().deletion = Some(strew_apiserver::object::Deletion { at, grace });
        });
        world.run_until(61);
        assert!(world.get::<Pod>("late").unwrap().is_terminating());
        assert_eq!(world.events_of("Cancelling").len(), 1);
        // Another pod of this name has its own time.
        world.add_pod(
            "later",
            "n",
            json!({"metadata": {"uid": "second"}, "spec": tolerating("40")["spec"]}),
        );
        world.run_until(100);
        assert!(world.get::<Pod>("later").unwrap().is_active());
        world.run_until(101);
        assert!(world.get::<Pod>("later").unwrap().is_terminating());
    }
}
