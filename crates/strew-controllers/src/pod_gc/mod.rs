//! Deletes pods that no kubelet will end: on nodes that are gone or out of service, unassigned and terminating, or
//! finished long ago.
//!
//! Source: spec/controllers §7.6, §7.7; upstream `pkg/controller/podgc`, v1.36.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::object::pod::DISRUPTION_TARGET;
use strew_apiserver::object::{Key, Kind, Name, Node, Phase, Pod, Truth};
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::controller::{Change, Context, Controller};
use crate::node_lifecycle::ready;
use crate::queue::Queue;
use crate::workers;
use crate::write::{self, Part};

/// The taint of a node that an administrator has declared dead.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The settings of the pod garbage collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The time between two passes.
    pub period: Span,
    /// How long a node must be missing before its pods are deleted.
    pub quarantine: Span,
    /// `--terminated-pod-gc-threshold`; `None`: finished pods stay.
    pub n_terminated_max: Option<usize>,
}

impl Settings {
    /// The defaults of v1.36. Source: spec/controllers §12.
    pub const KUBERNETES_1_36: Self = Self {
        period: Span::from_secs(20),
        quarantine: Span::from_secs(40),
        n_terminated_max: Some(12_500),
    };
}

/// The pod garbage collector.
#[derive(Debug)]
pub struct PodGc {
    settings: Settings,
    next_pass: Instant,
    finished: BTreeSet<Name>,
    /// Pods with a deletionTimestamp.
    terminating: BTreeSet<Name>,
    /// Missing nodes that pods name.
    missing: BTreeSet<Arc<str>>,
    /// The pass since which a node is known to be missing.
    quarantine: BTreeMap<Arc<str>, Instant>,
}

impl PodGc {
    /// A collector that has seen no pod.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            next_pass: Instant::default(),
            finished: BTreeSet::new(),
            terminating: BTreeSet::new(),
            missing: BTreeSet::new(),
            quarantine: BTreeMap::new(),
        }
    }

    fn pass(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.collect_finished(cx)?;
        self.collect_terminating(cx)?;
        self.collect_orphans(cx)?;
        while self.next_pass <= cx.now {
            self.next_pass = self.next_pass + self.settings.period;
        }
        cx.queue.add_at(&pass(), self.next_pass);
        Ok(())
    }

    /// Deletes finished pods beyond the threshold: first evicted ones, then the oldest.
    fn collect_finished(&self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(n_max) = self.settings.n_terminated_max else {
            return Ok(());
        };
        let n_extra = self.finished.len().saturating_sub(n_max);
        if n_extra == 0 {
            return Ok(());
        }
        let names = self.finished.iter();
        let mut pods: Vec<_> = names.filter_map(|name| cx.cache.get::<Pod>(name)).collect();
        pods.sort_by_key(|pod| {
            let is_evicted = pod.status.phase == Phase::Failed
                && pod.status.reason.as_deref() == Some("Evicted");
            (
                !is_evicted,
                pod.meta.created,
                Arc::clone(&pod.meta.name.name),
            )
        });
        for pod in pods.into_iter().take(n_extra) {
            fail_and_delete(pod, None, cx)?;
        }
        Ok(())
    }

    /// Deletes terminating pods whose node is out of service, or that never had one.
    fn collect_terminating(&self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        for pod in self
            .terminating
            .iter()
            .filter_map(|name| cx.cache.get::<Pod>(name))
        {
            let is_stuck = match &pod.node {
                None => true,
                Some(node) => {
                    let node = cx.cache.get::<Node>(&Name::new("", Arc::clone(node)));
                    node.is_some_and(|node| is_out_of_service(node))
                }
            };
            if is_stuck {
                fail_and_delete(pod, None, cx)?;
            }
        }
        Ok(())
    }

    /// Deletes pods of nodes that are still missing after the quarantine.
    fn collect_orphans(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let is_there = |node: &Arc<str>| {
            cx.cache
                .get::<Node>(&Name::new("", Arc::clone(node)))
                .is_some()
        };
        self.missing
            .retain(|node| !is_there(node) && cx.cache.pods_on(node).next().is_some());
        self.quarantine
            .retain(|node, _| self.missing.contains(node));
        for node in self.missing.clone() {
            let since = *self.quarantine.entry(Arc::clone(&node)).or_insert(cx.now);
            let end = since + self.settings.quarantine;
            // A pass at the very end may just miss it (spec/controllers §7.7).
            if cx.now < end || (cx.now == end && cx.dice.chance(1, 4)) {
                continue;
            }
            self.quarantine.remove(&node);
            let key = Key {
                kind: Kind::Node,
                name: Name::new("", Arc::clone(&node)),
            };
            if cx.api.get(&key).is_some() {
                continue;
            }
            for pod in cx.cache.pods_on(&node) {
                fail_and_delete(pod, Some("PodGC: node no longer exists"), cx)?;
            }
        }
        Ok(())
    }
}

fn pass() -> Name {
    Name::new("pass", "")
}

fn is_out_of_service(node: &Node) -> bool {
    let mut taints = node.spec.taints.iter().flatten();
    ready(&node.status) != Some(Truth::True) && taints.any(|taint| taint.key == OUT_OF_SERVICE)
}

/// Sets an unfinished pod to Failed, then deletes it without grace period. A refused write is retried in the next pass.
fn fail_and_delete(
    pod: &Arc<Pod>,
    message: Option<&str>,
    cx: &mut Context<'_>,
) -> Result<(), ApiError> {
    let now = cx.now;
    let failed = write::change(cx.api, pod, Part::Status, |pod| {
        if pod.is_finished() {
            return false;
        }
        pod.status.phase = Phase::Failed;
        if let Some(message) = message {
            let status = &mut pod.status;
            status.set_condition(
                DISRUPTION_TARGET,
                Truth::True,
                "DeletionByPodGC",
                message,
                now,
            );
        }
        true
    });
    let key = Key {
        kind: Kind::Pod,
        name: pod.meta.name.clone(),
    };
    let options = DeleteOptions {
        grace: Some(Span(0)),
        ..DeleteOptions::of_uid(&pod.meta.uid)
    };
    match failed.and_then(|_| cx.api.delete(&key, &options)) {
        Err(ApiError::Lost) => Err(ApiError::Lost),
        _ => Ok(()),
    }
}

impl Controller for PodGc {
    fn name(&self) -> &'static str {
        "pod-garbage-collector"
    }

    fn n_workers(&self) -> usize {
        workers::POD_GC
    }

    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        self.next_pass = now + Span(dice.between(0, self.settings.period.0.saturating_sub(1)));
        queue.add_at(&pass(), self.next_pass);
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, cache: &Tables, _: &mut Queue) {
        if let Some((Some(old), None)) = change.of::<Node>() {
            self.missing.insert(Arc::clone(&old.meta.name.name));
        }
        let Some((old, new)) = change.of::<Pod>() else {
            return;
        };
        let Some(name) = new.or(old).map(|pod| &pod.meta.name) else {
            return;
        };
        let keep = |set: &mut BTreeSet<Name>, is_in: bool| match is_in {
            true => _ = set.insert(name.clone()),
            false => _ = set.remove(name),
        };
        keep(&mut self.finished, new.is_some_and(Pod::is_finished));
        keep(
            &mut self.terminating,
            new.is_some_and(|pod| pod.meta.is_terminating()),
        );
        let Some(node) = new.and_then(|pod| pod.node.as_ref()) else {
            return;
        };
        let is_bound_now = old.is_none_or(|old| old.node.is_none());
        if is_bound_now
            && cache
                .get::<Node>(&Name::new("", Arc::clone(node)))
                .is_none()
        {
            self.missing.insert(Arc::clone(node));
        }
    }

    fn sync(&mut self, _: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        self.pass(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Api;
    use crate::small_world::{START, SmallCluster, key};
    use serde_json::json;
    use strew_apiserver::object::{Deletion, Object};

    fn world(seed: u64, settings: Settings) -> SmallCluster {
        let mut world = SmallCluster::new(seed, vec![Box::new(PodGc::new(settings))]);
        world.add_node("n", "a");
        world.add_node("m", "a");
        world
    }

    fn terminate(world: &mut SmallCluster, pod: &str) {
        world.change(Kind::Pod, pod, |object| {
            let grace = Span::from_secs(30);
            object.meta_mut().deletion = Some(Deletion {
                at: START + grace,
                grace,
            });
        });
    }

    #[test]
    fn pods_of_a_deleted_node_go_after_40_to_80_seconds() {
        let mut seconds = BTreeSet::new();
        for seed in 0..60 {
            let mut world = world(seed, Settings::KUBERNETES_1_36);
            world.add_pod("p", "n", json!({}));
            world.add_pod("other", "m", json!({}));
            world.run_until(100);
            world
                .server
                .delete(&key(Kind::Node, "n"), &DeleteOptions::default())
                .unwrap();
            let mut at = 100;
            while world.get::<Pod>("p").is_some() {
                at += 1;
                world.run_until(at);
            }
            seconds.insert(at - 100);
            assert!(world.get::<Pod>("other").is_some());
        }
        assert!(*seconds.first().unwrap() <= 45 && *seconds.first().unwrap() >= 40);
        assert!(*seconds.last().unwrap() > 60 && *seconds.last().unwrap() <= 80);
    }

    #[test]
    fn a_node_that_comes_back_in_time_saves_them() {
        for seed in 0..20 {
            let mut world = world(seed, Settings::KUBERNETES_1_36);
            world.add_pod("p", "n", json!({}));
            world.run_until(100);
            world
                .server
                .delete(&key(Kind::Node, "n"), &DeleteOptions::default())
                .unwrap();
            world.run_until(139);
            world.add_node("n", "a");
            world.run_until(400);
            assert!(world.get::<Pod>("p").unwrap().is_ready());
        }
    }

    #[test]
    fn pods_that_no_kubelet_will_end_go_in_the_next_pass() {
        let mut world = world(1, Settings::KUBERNETES_1_36);
        world.add_pod("stuck", "n", json!({}));
        world.add_pod("running", "n", json!({}));
        world.kill("n");
        world.run_until(100);
        terminate(&mut world, "stuck");
        world.run_until(200);
        assert!(world.get::<Pod>("stuck").is_some());
        world.change(Kind::Node, "n", |object| {
            if let Object::Node(node) = object {
                let node = Arc::make_mut(node);
                let taint = json!({"key": OUT_OF_SERVICE, "effect": "NoSchedule"});
                Arc::make_mut(&mut node.spec).taints =
                    Some(vec![serde_json::from_value(taint).unwrap()]);
                node.status.conditions = None;
            }
        });
        world.run_until(220);
        assert_eq!(world.names::<Pod>(), ["running".to_owned()].into());
    }

    #[test]
    fn finished_pods_beyond_the_threshold_go_evicted_ones_first() {
        let settings = Settings {
            n_terminated_max: Some(2),
            ..Settings::KUBERNETES_1_36
        };
        let mut world = world(1, settings);
        for (name, created, status) in [
            ("old", 1, json!({"phase": "Succeeded"})),
            ("older", 0, json!({"phase": "Failed"})),
            ("young", 3, json!({"phase": "Succeeded"})),
            (
                "evicted",
                4,
                json!({"phase": "Failed", "reason": "Evicted"}),
            ),
        ] {
            let created = format!("2020-01-01T00:00:0{created}Z");
            let fields = json!({"metadata": {"creationTimestamp": created}, "status": status});
            world.add_pod(name, "n", fields);
        }
        world.add_pod("running", "n", json!({}));
        world.run_until(20);
        let expected = ["old", "young", "running"].map(str::to_owned);
        assert_eq!(world.names::<Pod>(), expected.into());
    }
}
