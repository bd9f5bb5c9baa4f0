//! DaemonSets whose pods find no node.

use super::pods::{pods_of, running};
use super::priority::{classes, priority_of};
use crate::Found;
use crate::files::{Files, Workload};
use crate::trial::Bench;

/// A DaemonSet none of whose pods has a node. It is a note: pools may be empty on purpose.
pub(super) fn daemons_without_node(
    files: &Files<'_>,
    workload: &Workload<'_>,
    bench: &mut Bench,
) -> Option<Found> {
    if workload.kind != "DaemonSet" {
        return None;
    }
    let pods = pods_of(files, workload, bench)?;
    if bench.is_wanted(&pods.spec) {
        return None;
    }
    let reason = bench.place(&pods, 1).refused?;
    let message = format!("it has no pod: {reason}");
    let path = match workload.spec.node_selector.is_some() {
        true => workload.spec_path.child("nodeSelector"),
        false => workload.spec_path.child("affinity.nodeAffinity"),
    };
    let note = Found::note(workload.object, path, message);
    Some(note.help("compare them with the labels of the nodes"))
}

/// A DaemonSet whose pods find room on no node that they ask for. Taints are left out, since its controller adds
/// tolerations.
pub(super) fn daemons_without_room(
    files: &Files<'_>,
    workload: &Workload<'_>,
    bench: &mut Bench,
) -> Option<Found> {
    if workload.kind != "DaemonSet" || files.grows {
        return None;
    }
    let pods = pods_of(files, workload, bench)?;
    if !bench.is_wanted(&pods.spec) || !running(workload, bench).is_empty() {
        return None;
    }
    let nothing = bench.symbol("");
    let pods = pods.on_tainted(nothing);
    let reason = bench.place(&pods, 1).refused?;
    let priority = priority_of(workload, &classes(files))?;
    let never = workload.spec.preemption_policy.as_deref() == Some("Never");
    if !never && bench.place_of_lower(&[], &pods, 1, priority).is_some() {
        return None;
    }
    let message = format!("none of its pods finds a node: {reason}");
    let warning = Found::warning(workload.object, workload.spec_path.clone(), message);
    Some(warning.help(
        "other workloads of the files are not even counted: larger nodes, or smaller requests",
    ))
}
