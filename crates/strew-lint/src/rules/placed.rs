//! Workloads whose pods do not find nodes among those of the files, and what follows from where they are.

use strew_manifest::field::FieldPath;
use strew_manifest::read::KubeObject;
use strew_wire::rolling::{Rounding, scaled};

use super::autoscaler::targets_of;
use crate::Found;
use crate::files::Files;

/// The findings that placing the workloads makes, of one rule each.
macro_rules! of_placings {
    ($($name:ident $code:literal)*) => {$(
        #[doc = concat!("The rule `", $code, "`.")]
        pub(crate) fn $name(files: &Files<'_>) -> Vec<Found> {
            files.placings().found($code)
        }
    )*};
}

of_placings! {
    tainted_domain "tainted-domain-counts"
    min_domains_unmet "min-domains-unmet"
    full_domain "full-domain-holds-back"
    anti_affinity "anti-affinity-over-domains"
    volume_pins "volume-pins-pods"
    defaults "default-constraints-hold-back"
    no_node "selector-matches-no-node"
    no_room "pods-do-not-fit"
    unselected_domain "unselected-domain-counts"
}

/// Rollouts that do not end: those that were played or placed, and those that wait for a claim, a quota or a host port.
pub(crate) fn stuck_rollout(files: &Files<'_>) -> Vec<Found> {
    let mut found = files.placings().found("rollout-stuck");
    let waiting = super::rollout::waits_for_claim(files).into_iter();
    let waiting = waiting.chain(super::rollout::waits_for_port(files));
    for waiting in waiting.chain(super::quota::refuses_surge(files)) {
        if found.iter().all(|found| found.object != waiting.object) {
            found.push(waiting);
        }
    }
    found
}

/// Constraints that contradict each other on the nodes of the files, or on any nodes.
pub(crate) fn contradictions(files: &Files<'_>) -> Vec<Found> {
    let mut found = files.placings().found("constraints-contradict");
    if files.nodes.is_empty() {
        found.extend(super::ideal::contradictions(files));
    }
    found
}

const ZONE: &str = "topology.kubernetes.io/zone";

/// The pods of a workload by zone; `None` if they are not all on nodes, or the nodes are in fewer than two zones.
fn by_zone(files: &Files<'_>, workload: usize) -> Option<Vec<(String, i64)>> {
    let placings = files.placings();
    let nodes = placings.nodes.get(&workload)?;
    let counts = placings.bench.as_ref()?.borrow().by_value(ZONE, nodes);
    (counts.len() > 1).then_some(counts)
}

/// Budgets that ask for more pods than the loss of a zone leaves.
///
/// Source: spec/controllers §8.1
pub(crate) fn budget_below_zone_loss(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for budget in &files.budgets {
        let mut selected = files.selected(budget.namespace, &budget.selector);
        let (Some((number, workload)), None) = (selected.next(), selected.next()) else {
            continue;
        };
        let least = budget.budget.spec.as_ref();
        let least = least.and_then(|spec| spec.min_available.as_ref());
        let (Some(least), Some(n)) = (least, workload.n_pods) else {
            continue;
        };
        let Some(counts) = by_zone(files, number) else {
            continue;
        };
        let least = scaled(least, n, Rounding::Up);
        let Some((zone, most)) = counts.iter().max_by_key(|(_, count)| *count) else {
            continue;
        };
        let left = n - most;
        // One that allows no eviction at all is another rule's.
        if left >= least || least >= n {
            continue;
        }
        let message = format!(
            "the loss of zone {zone} leaves {left} of {n} pods, and minAvailable asks for {least}: until others are ready, no pod may be evicted and no node drained"
        );
        let path = FieldPath::root().child("spec.minAvailable");
        let note = Found::note(budget.object, path, message)
            .help(below(left, n))
            .number("left", left)
            .number("minAvailable", least);
        found.push(note.related(workload.object, "its pods"));
    }
    found
}

/// Numbers for a budget that lets a pod go after the loss of a zone, which leaves `left` of `n_pods`.
fn below(left: i64, n_pods: i64) -> String {
    // As many as are left allow no eviction.
    match left - 1 {
        least @ 1.. => format!(
            "minAvailable: {least}, or maxUnavailable: {}, lets one more pod go during such a loss; keep it where none may go then",
            n_pods - least
        ),
        _ => "more replicas, in more zones, leave more of them; keep it where no pod may go during such a loss".to_owned(),
    }
}

/// Services that keep traffic in a zone, with a zone that has none of their pods.
pub(crate) fn zone_without_endpoint(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (object, wire) in files.objects.iter().enumerate() {
        let KubeObject::Service(service) = wire else {
            continue;
        };
        let Some(spec) = &service.spec else { continue };
        let annotations = service.metadata.annotations.iter().flatten();
        let mut annotations = annotations.map(|(key, value)| (key.as_str(), value.to_lowercase()));
        let is_annotated = annotations.any(|(key, value)| {
            let keys = [
                "service.kubernetes.io/topology-mode",
                "service.kubernetes.io/topology-aware-hints",
            ];
            keys.contains(&key) && value == "auto"
        });
        let wanted = spec.selector.as_ref().filter(|wanted| !wanted.is_empty());
        let (Some(wanted), true) = (wanted, spec.traffic_distribution.is_some() || is_annotated)
        else {
            continue;
        };
        let namespace = wire.namespace().unwrap_or("default");
        let selected = files.of_namespace(namespace);
        let selected: Vec<usize> = selected
            .filter(|(_, w)| {
                wanted
                    .iter()
                    .all(|(key, value)| w.written.get(key) == Some(value))
            })
            .map(|(number, _)| number)
            .collect();
        let counts: Option<Vec<_>> = selected
            .iter()
            .map(|number| by_zone(files, *number))
            .collect();
        let Some(counts) = counts.filter(|counts| !counts.is_empty()) else {
            continue;
        };
        let mut empty = counts[0].iter().map(|(zone, _)| zone);
        let is_empty = |zone: &&String| {
            let in_zone = counts.iter().flatten().filter(|(other, _)| other == *zone);
            in_zone.map(|(_, count)| count).sum::<i64>() == 0
        };
        let Some(zone) = empty.find(is_empty) else {
            continue;
        };
        let n: i64 = selected
            .iter()
            .filter_map(|number| files.workloads[*number].n_pods)
            .sum();
        let message = format!(
            "the Service keeps traffic in its zone, and zone {zone} gets none of its {n} pods: clients there go to other zones"
        );
        let path = match spec.traffic_distribution.is_some() {
            true => FieldPath::root().child("spec.trafficDistribution"),
            false => FieldPath::root().child("metadata.annotations"),
        };
        let note = Found::note(object, path, message)
            .help("a replica for each zone, and a constraint over zones that keeps one there")
            .number("pods", n);
        let first = files.workloads[selected[0]].object;
        found.push(note.related(first, "its pods"));
    }
    found
}

/// Autoscalers whose smallest number of pods finds no nodes.
pub(crate) fn autoscaler_min(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for target in targets_of(files) {
        let Some(number) = target.workload else {
            continue;
        };
        let workload = &files.workloads[number];
        let asked = workload.n_pods.unwrap_or(0);
        // What it asks for itself is judged with the workload.
        let Some(min) = target.min.filter(|min| *min > asked && !files.grows) else {
            continue;
        };
        let Some((n_placed, reason)) = files.placings().try_with(files, number, min) else {
            continue;
        };
        let field = target.field;
        let message = format!("{n_placed} of {field} {min} pods find a node: {reason}");
        let warning = Found::warning(target.object, target.path(), message)
            .help(format!(
                "a smaller {field}, more nodes, or constraints that these nodes can keep"
            ))
            .number(field, min)
            .number("placed", n_placed);
        found.push(warning.related(workload.object, "it scales this"));
    }
    found
}

/// Workloads whose priority evicts others of the same files, since there is no room for all.
///
/// Source: spec/scheduler §2.6
pub(crate) fn priority_evicts(files: &Files<'_>) -> Vec<Found> {
    if files.grows {
        return Vec::new();
    }
    let mut found = files.placings().found("priority-evicts");
    found.extend(files.placings().evictions(files));
    found
}
