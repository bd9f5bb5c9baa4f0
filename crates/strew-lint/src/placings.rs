//! Each workload of the files, placed by the engine on the nodes of the files, and what that shows.
//!
//! Reading order: [`Placings::of`], `Case` (a workload that is placed), `pods` (which pods), `cause` and `policy` (why they
//! do not find nodes), `rollout`, `priority`, `daemons`.

mod cause;
mod daemons;
mod pods;
mod policy;
mod priority;
mod rollout;

use std::cell::RefCell;
use std::collections::BTreeMap;

use strew_cluster::NodeIdx;
use strew_manifest::kinds;
use strew_manifest::read::KubeObject;

use daemons::{daemons_without_node, daemons_without_room};
use pods::{AllPods, pods_of, running};
pub(crate) use rollout::{one_by_one, rolling_path};

use crate::Found;
use crate::files::{Files, Workload};
use crate::trial::{Bench, PODS_MAX, Placed, Pods};

/// What came of placing the workloads of the files.
pub(crate) struct Placings {
    /// The findings, by rule.
    found: BTreeMap<&'static str, Vec<Found>>,
    /// The nodes of the pods of workloads whose pods all found one, by the index of the workload.
    pub(crate) nodes: BTreeMap<usize, Vec<NodeIdx>>,
    /// The nodes; `None` if the files have none.
    pub(crate) bench: Option<RefCell<Bench>>,
}

/// True for a kind whose pods may go to any node that takes them, as many as `replicas`.
fn is_placed(kind: &str) -> bool {
    kind == "Job" || kinds::of_kind(kind).is_some_and(|row| row.scales)
}

/// True for a kind whose pods are to find a node, wherever: those of a CronJob, of one of its Jobs.
fn is_judged(files: &Files<'_>, workload: &Workload<'_>) -> bool {
    match files.objects[workload.object] {
        // Pods of an owner that is not in the files count together, and some of them may run.
        KubeObject::Pod(_) => workload.n_pods == Some(1),
        KubeObject::CronJob(cron) => cron.spec.suspend != Some(true),
        _ => is_placed(workload.kind),
    }
}

impl Placings {
    pub(crate) fn of(files: &Files<'_>) -> Self {
        let mut placings = Self {
            found: BTreeMap::new(),
            nodes: BTreeMap::new(),
            bench: None,
        };
        if files.nodes.is_empty() || files.more_come {
            return placings;
        }
        let mut bench = Bench::of(files.objects, files.scheduling);
        let mut all = AllPods::default();
        for (number, workload) in files.workloads.iter().enumerate() {
            if let Some(found) = daemons_without_node(files, workload, &mut bench) {
                let of_rule = placings.found.entry("selector-matches-no-node");
                of_rule.or_default().push(found);
            }
            if let Some(found) = daemons_without_room(files, workload, &mut bench) {
                let of_rule = placings.found.entry("pods-do-not-fit");
                of_rule.or_default().push(found);
            }
            let Some(mut case) = Case::of(files, number, &mut bench, &mut all) else {
                continue;
            };
            for (rule, found) in case.judge() {
                placings.found.entry(rule).or_default().push(found);
            }
            if let Some(nodes) = case.nodes {
                placings.nodes.insert(number, nodes);
            }
        }
        placings.bench = Some(RefCell::new(bench));
        placings
    }

    /// The findings of a rule.
    pub(crate) fn found(&self, rule: &str) -> Vec<Found> {
        self.found.get(rule).cloned().unwrap_or_default()
    }

    /// How many of `n_pods` pods of a workload find a node and why no more; `None`: all do, or they cannot be placed
    /// like that.
    pub(crate) fn try_with(
        &self,
        files: &Files<'_>,
        number: usize,
        n_pods: i64,
    ) -> Option<(i64, String)> {
        let bench = &mut *self.bench.as_ref()?.borrow_mut();
        let workload = files.workloads.get(number)?;
        let is_placed = is_placed(workload.kind) && !files.spread.contains_key(&number);
        if !is_placed || n_pods > PODS_MAX {
            return None;
        }
        let mut pods = pods_of(files, workload, bench)?;
        let before = AllPods::default().before(files, number, &pods, bench);
        if before.is_none() {
            pods.spec.affinity.required = Box::default();
        }
        let before = before.unwrap_or_default();
        let n_running = i64::try_from(running(workload, bench).len()).ok()?;
        let placed = bench.place_after(&before, &[(&pods, n_pods - n_running)]);
        let n_placed = n_running + i64::try_from(placed.nodes.len()).ok()?;
        Some((n_placed, placed.refused?))
    }
}

/// A workload that the engine is to place.
struct Case<'f, 'a, 'b> {
    files: &'f Files<'a>,
    /// Its index.
    number: usize,
    workload: &'f Workload<'a>,
    bench: &'b mut Bench,
    pods: Pods,
    /// The pods that its required podAffinity asks for, and theirs: they are placed first.
    before: Vec<(Pods, i64)>,
    /// How many pods it asks for.
    n_pods: i64,
    /// How many of them run already.
    n_running: i64,
    /// The nodes of all its pods, if all found one.
    nodes: Option<Vec<NodeIdx>>,
    /// True if a WorkloadSpread chooses the subset of each pod: only a play says where they go.
    is_spread: bool,
}

impl<'f, 'a, 'b> Case<'f, 'a, 'b> {
    /// `None`: its pods cannot be placed like that, or something else decides about them.
    fn of(
        files: &'f Files<'a>,
        number: usize,
        bench: &'b mut Bench,
        all: &mut AllPods,
    ) -> Option<Self> {
        let workload = &files.workloads[number];
        let n_pods = workload
            .n_pods
            .filter(|n| (1..=PODS_MAX).contains(n))
            .filter(|_| is_judged(files, workload))?;
        let mut pods = pods_of(files, workload, bench)?;
        let before = match all.before(files, number, &pods, bench) {
            Some(before) => before,
            // Where those pods are is not known: what asks for them is left out.
            None => {
                pods.spec.affinity.required = Box::default();
                Vec::new()
            }
        };
        let nodes = running(workload, bench);
        Some(Self {
            files,
            number,
            workload,
            before,
            n_running: i64::try_from(nodes.len()).ok()?.min(n_pods),
            nodes: Some(nodes),
            bench,
            pods,
            n_pods,
            is_spread: files.spread.contains_key(&number),
        })
    }

    /// True if all pods find a node after this change.
    fn fits(&mut self, pods: &Pods) -> bool {
        let missing = self.n_pods - self.n_running;
        self.place(&[(pods, missing)]).refused.is_none()
    }

    /// Places these pods, group by group, beside those that they are tied to.
    fn place(&mut self, groups: &[(&Pods, i64)]) -> Placed {
        self.bench.place_after(&self.before, groups)
    }

    fn judge(&mut self) -> Vec<(&'static str, Found)> {
        if self.is_spread {
            self.nodes = None;
            return self.stuck_rollout().into_iter().collect();
        }
        let missing = self.n_pods - self.n_running;
        let pods = self.pods.clone();
        let placed = self.place(&[(&pods, missing)]);
        match placed.refused {
            None => {
                let nodes = self.nodes.get_or_insert_default();
                nodes.extend(placed.nodes);
                let unmet = self.unmet_min_domains();
                self.stuck_rollout().into_iter().chain(unmet).collect()
            }
            Some(reason) => {
                self.nodes = None;
                let n_placed = self.n_running + i64::try_from(placed.nodes.len()).unwrap_or(0);
                let Some((rule, found)) = self.cause(n_placed, &reason, &placed.by) else {
                    return Vec::new();
                };
                // More nodes may come.
                let is_short = [
                    "default-constraints-hold-back",
                    "priority-evicts",
                    "pods-do-not-fit",
                    "min-domains-unmet",
                    "anti-affinity-over-domains",
                ];
                if self.files.grows && is_short.contains(&rule) {
                    return Vec::new();
                }
                let found = found.number("pods", self.n_pods).number("placed", n_placed);
                vec![(rule, found)]
            }
        }
    }
}
