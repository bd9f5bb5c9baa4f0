//! Three probes at rest, after a story with WorkloadSpreads: a dry run, a scale-up by three pods, a scale-in to half.
//!
//! Source: spec/workloadspread §8, I4, I7, I8.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Pod, pod};
use strew_model::time::Span;
use strew_wire::workloadspread::marker;
use strew_workloadspread::{COST_ANNOTATION, MARKER_ANNOTATION, Marked, invariants};

use super::acts;
use super::play::{Going, Life};
use super::story::{Action, ClusterPlan, SpreadPlan, Story, SubsetPlan, Worker};
use crate::auditor::{Rule, Violation};
use crate::fault::{Component, Crash};
use crate::workloadspread::with_webhook;

/// After this long, every component has reacted to a change: pods are bound and started, deletion costs are written.
const SETTLED: Span = Span::from_secs(60);

/// The number of pods that a scale-up adds.
const MORE: u32 = 3;

/// Long enough for what docs/webhook.md promises when all replicas are killed, and again when they are back.
const REGISTERED_AGAIN: Span = Span::from_secs(30);

impl Life {
    /// At rest all replicas are killed, and come back.
    pub(super) fn probe_registration(&mut self) -> Going {
        self.sim.crash(Crash {
            component: Component::Webhook,
            after_writes: 0,
            down: REGISTERED_AGAIN,
        });
        self.until(Span(self.sim.elapsed().0 + 2 * REGISTERED_AGAIN.0))?;
        self.sim.audit_rest();
        self.verdict()
    }

    /// Runs the probes, after all faults are over.
    pub(super) fn probe(&mut self, story: &Story) -> Going {
        self.dry_run()?;
        for plan in &story.world.spreads {
            if let Some(size) = self.is_plain(plan, &story.world) {
                self.grow(plan, &story.world, size)?;
                self.shrink(plan, &story.world)?;
            }
        }
        Going::Continue(())
    }

    fn blame(&self, rule: Rule, actor: &str, broken: &invariants::Broken) -> Going {
        Going::Break(vec![Violation {
            rule,
            after: self.sim.elapsed(),
            actor: actor.to_owned(),
            text: broken.to_string(),
        }])
    }

    /// I8.
    fn dry_run(&mut self) -> Going {
        let (now, seen) = (self.sim.now(), self.sim.server().listen());
        let pods = self.sim.server().tables().of::<Pod>();
        let Some(pod) = pods.iter().find(|pod| pod.meta.controller().is_some()) else {
            return Going::Continue(());
        };
        let pod = Arc::clone(pod);
        let server = &mut self.sim.server;
        let all = with_webhook(server, |webhook, server| webhook.dry_run(now, server, &pod));
        for effects in all.into_iter().flatten() {
            if let Err(broken) = invariants::dry_run_changes_nothing(&effects) {
                return self.blame(Rule::SpreadChoice, "a dry run", &broken);
            }
        }
        match self.sim.server().is_behind(&seen) {
            false => Going::Continue(()),
            true => self.blame(
                Rule::SpreadChoice,
                "a dry run",
                &invariants::Broken::DryRunActed,
            ),
        }
    }

    /// The number of pods of a workload; `None` unless all of them are ready and marked, the limits of its subsets are
    /// numbers, and no WorkloadSpread before this one takes its pods.
    fn is_plain(&self, plan: &SpreadPlan, world: &ClusterPlan) -> Option<u32> {
        let worker = world.workloads.iter().find(|w| w.name == plan.of)?.worker;
        let is_counted = plan
            .subsets
            .iter()
            .all(|subset| !matches!(subset, SubsetPlan::Percent(_)));
        let mut spreads = world.spreads.iter();
        let is_outranked =
            spreads.any(|other| other.takes_others && other.of != plan.of && other.of < plan.of);
        if !is_counted
            || plan.adaptive.is_some()
            || is_outranked
            || !matches!(
                worker,
                Worker::Deployment(_) | Worker::ReplicaSet | Worker::CloneSet
            )
        {
            return None;
        }
        let pods = pods_of(self.sim.server().tables(), &plan.of);
        let is_well = |pod: &Arc<Pod>| pod.is_ready() && pod.node.is_some();
        let hashes = pods.iter().map(|pod| pod.meta.label("pod-template-hash"));
        let is_one_revision = hashes
            .clone()
            .all(|hash| hashes.clone().next() == Some(hash));
        let is_whole = is_one_revision && !pods.is_empty() && pods.iter().all(is_well);
        is_whole.then(|| u32::try_from(pods.len()).unwrap_or(0))
    }

    /// I7: new pods fill the subsets one after the other, as if they had been created one by one.
    fn grow(&mut self, plan: &SpreadPlan, world: &ClusterPlan, size: u32) -> Going {
        let mut serial = self.totals(plan);
        let mut left = i64::from(MORE);
        for (name, room) in self.rooms(plan) {
            let takes = room.map_or(left, |room| room.clamp(0, left));
            left -= takes;
            *serial.entry(name).or_default() += takes;
        }
        *serial.entry("".into()).or_default() += left;
        self.scale(plan, world, size + MORE)?;
        let tables = self.sim.server().tables();
        if pods_of(tables, &plan.of).len() != (size + MORE) as usize {
            // The rollout is paused, or waits for a user in another way.
            return Going::Continue(());
        }
        let mut found = self.totals(plan);
        // Pods beyond all limits are adopted by the subset of the node that they run on, which is not predicted here.
        if left > 0 {
            serial.clear();
            found.clear();
        }
        match invariants::same_totals(&serial_or_empty(serial), &serial_or_empty(found)) {
            Ok(()) => Going::Continue(()),
            Err(broken) => self.blame(Rule::SpreadScale, &plan.of, &broken),
        }
    }

    /// I4: half of the pods go, the ones with the lowest deletion costs.
    fn shrink(&mut self, plan: &SpreadPlan, world: &ClusterPlan) -> Going {
        let before = pods_of(self.sim.server().tables(), &plan.of);
        // The sync that the change triggers adopts pods without a subset and gives them their costs.
        let has = |pod: &Arc<Pod>, key: &str| pod.meta.annotation(key).is_some();
        let has_cost = |pod: &Arc<Pod>| has(pod, COST_ANNOTATION) && has(pod, MARKER_ANNOTATION);
        if !before.iter().all(|pod| pod.is_ready() && has_cost(pod)) || self.sim.wants_sync() {
            return Going::Continue(());
        }
        let costs: BTreeMap<Arc<str>, i32> = before
            .iter()
            .map(|pod| {
                let cost = pod.meta.annotation(COST_ANNOTATION).unwrap_or("0");
                (Arc::clone(&pod.meta.uid), cost.parse().unwrap_or(0))
            })
            .collect();
        let size = u32::try_from(before.len()).unwrap_or(0);
        self.scale(plan, world, size.div_ceil(2))?;
        let after = pods_of(self.sim.server().tables(), &plan.of);
        let is_kept = |uid: &Arc<str>| after.iter().any(|pod| pod.meta.uid == *uid);
        let pods = costs.iter().map(|(uid, cost)| (*cost, is_kept(uid)));
        match invariants::keeps_the_dearest(pods) {
            Ok(()) => Going::Continue(()),
            Err(broken) => self.blame(Rule::SpreadScale, &plan.of, &broken),
        }
    }

    fn scale(&mut self, plan: &SpreadPlan, world: &ClusterPlan, replicas: u32) -> Going {
        let action = Action::Scale(plan.of.clone(), replicas);
        let answer = acts::act(&mut self.sim, world, &action);
        self.figures.ask(answer);
        let end = Span(self.sim.elapsed().0 + SETTLED.0);
        self.until(end)?;
        self.verdict()
    }

    /// Active pods by the subset of their marker.
    fn totals(&self, plan: &SpreadPlan) -> BTreeMap<Arc<str>, i64> {
        let mut totals = BTreeMap::new();
        for pod in pods_of(self.sim.server().tables(), &plan.of) {
            let subset = match marker::read(pod.meta.annotation(MARKER_ANNOTATION)) {
                Marked::As(marker) => marker.subset,
                _ => "".into(),
            };
            *totals.entry(subset).or_default() += 1;
        }
        totals
    }

    /// The subsets in their order, with the number of further pods that each takes; `None`: no limit.
    fn rooms(&self, plan: &SpreadPlan) -> Vec<(Arc<str>, Option<i64>)> {
        use strew_apiserver::object::WorkloadSpread;
        let name = Name::new("default", plan.of.as_str());
        let spread = self
            .sim
            .server()
            .tables()
            .get::<WorkloadSpread>(&name)
            .cloned();
        let rows = spread.and_then(|spread| spread.status.subset_statuses.clone());
        let room = |missing: i32| (missing >= 0).then_some(i64::from(missing));
        let rows = rows.into_iter().flatten();
        rows.map(|row| (row.name.as_str().into(), room(row.missing_replicas)))
            .collect()
    }
}

fn serial_or_empty(mut totals: BTreeMap<Arc<str>, i64>) -> BTreeMap<Arc<str>, i64> {
    totals.retain(|_, n| *n > 0);
    totals
}

/// The active pods of a workload.
fn pods_of(tables: &Tables, workload: &str) -> Vec<Arc<Pod>> {
    let pods = tables.of::<pod::Pod>().iter();
    pods.filter(|pod| pod.is_active() && pod.meta.label("app") == Some(workload))
        .cloned()
        .collect()
}
