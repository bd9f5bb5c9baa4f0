//! Workloads that find room only where pods of a lower priority run.

use std::collections::HashMap;

use strew_manifest::read::KubeObject;

use super::pods::{pods_of, running};
use super::{Case, Placings};
use crate::Found;
use crate::files::{Files, Workload};
use crate::trial::{PODS_MAX, Pods};

/// The priority classes of the files, and those of every cluster.
pub(super) fn classes<'f>(files: &Files<'f>) -> HashMap<&'f str, i64> {
    let classes = files.objects.iter().filter_map(|object| match object {
        KubeObject::PriorityClass(class) => Some((object.name(), i64::from(class.value?))),
        _ => None,
    });
    let system = [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ];
    classes.chain(system).collect()
}

/// `None` if its class is not in the files.
pub(super) fn priority_of(workload: &Workload<'_>, classes: &HashMap<&str, i64>) -> Option<i64> {
    match &workload.spec.priority_class_name {
        Some(name) => classes.get(name.as_str()).copied(),
        None => Some(workload.spec.priority.unwrap_or(0).into()),
    }
}

impl Case<'_, '_, '_> {
    /// A running pod that the workload's pods may evict; `None` if they find no node so either.
    pub(super) fn evicted(&mut self) -> Option<String> {
        let priority = priority_of(self.workload, &classes(self.files))?;
        let never = self.workload.spec.preemption_policy.as_deref() == Some("Never");
        let (pods, missing) = (self.pods.clone(), self.n_pods - self.n_running);
        (!never)
            .then(|| {
                self.bench
                    .place_of_lower(&self.before, &pods, missing, priority)
            })
            .flatten()
    }
}

impl Placings {
    /// Workloads that find room only on nodes that pods of a lower priority take first.
    pub(crate) fn evictions(&self, files: &Files<'_>) -> Vec<Found> {
        let Some(bench) = &self.bench else {
            return Vec::new();
        };
        let bench = &mut *bench.borrow_mut();
        let classes = classes(files);
        // Those whose pods all find a node alone, and do not run yet.
        let mut all: Vec<(i64, usize)> = Vec::new();
        for &number in self.nodes.keys() {
            let workload = &files.workloads[number];
            // Those that ask for the pods of others find them only after these.
            let is_tied =
                { workload.spec.affinity.as_ref() }.is_some_and(|a| a.pod_affinity.is_some());
            if !is_tied && running(workload, bench).is_empty() {
                all.extend(priority_of(workload, &classes).map(|priority| (priority, number)));
            }
        }
        all.sort_unstable();
        let n_pods: i64 = all
            .iter()
            .filter_map(|(_, number)| files.workloads[*number].n_pods)
            .sum();
        let has_several =
            all.first().map(|(priority, _)| priority) != all.last().map(|(priority, _)| priority);
        if !has_several || n_pods > PODS_MAX {
            return Vec::new();
        }
        let groups: Vec<(Pods, i64, i64, usize)> = all
            .iter()
            .filter_map(|&(priority, number)| {
                let workload = &files.workloads[number];
                Some((
                    pods_of(files, workload, bench)?,
                    workload.n_pods?,
                    priority,
                    number,
                ))
            })
            .collect();
        let together: Vec<(&Pods, i64)> = groups.iter().map(|(pods, n, ..)| (pods, *n)).collect();
        let placed = bench.place_beside(&together);
        if placed.refused.is_none() {
            return Vec::new();
        }
        let mut left = i64::try_from(placed.nodes.len()).unwrap_or(i64::MAX);
        let refused = groups.iter().find(|(_, n, ..)| {
            left -= n;
            left < 0
        });
        let lowest = &groups[0];
        let Some((.., priority, number)) = refused.filter(|(.., priority, _)| *priority > lowest.2)
        else {
            return Vec::new();
        };
        let (high, low) = (&files.workloads[*number], &files.workloads[lowest.3]);
        let never = high.spec.preemption_policy.as_deref() == Some("Never");
        if never {
            return Vec::new();
        }
        let message = format!(
            "these nodes do not hold all workloads of the files, and this one has priority {priority}: its pods evict those of lower priority, such as {} ({})",
            files.objects[low.object].label(),
            lowest.2
        );
        let path = high.spec_path.child("priorityClassName");
        let note = Found::note(high.object, path, message)
            .help("more room, or preemptionPolicy: Never in its PriorityClass")
            .number("priority", *priority);
        vec![note.related(low.object, "its pods may be evicted")]
    }
}
