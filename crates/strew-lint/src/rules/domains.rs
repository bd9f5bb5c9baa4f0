//! Topology keys of constraints, and the nodes that have them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use strew_manifest::fix::Fix;
use strew_manifest::read::{known_label, nearest_label};
use strew_model::tolerates_all;

use crate::Found;
use crate::files::{Files, Node, Workload};
use strew_wire::facts;

/// Keys that no node has; without nodes, keys that differ by a letter or two from a known one.
///
/// Source: spec/scheduler §1.8, §1.9
pub(crate) fn unknown_key(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, index, constraint) in files.constraints() {
        let workload = &files.workloads[number];
        let key = constraint.topology_key.as_str();
        if files.nodes.iter().any(|node| node.label(key).is_some()) {
            continue;
        }
        let path = workload.constraint_path(index).child("topologyKey");
        if files.nodes.is_empty() {
            if let Some(meant) = known_label(key) {
                let message =
                    format!("the key {key} is a letter or two away from {meant}, which nodes have");
                let warning = Found::warning(workload.object, path.clone(), message);
                let warning = warning.help(format!("did you mean {meant}?"));
                found.push(warning.fix(Fix::set(&path, meant)));
            }
            continue;
        }
        if files.more_come {
            continue;
        }
        let effect = match is_hard(constraint) {
            true => "no pod of the workload can be placed",
            false => "the constraint spreads nothing",
        };
        let message = format!("no node has the label {key}: {effect}",);
        let known = files.nodes.iter().flat_map(|node| node.written.keys());
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        let meant = nearest_label(key, known);
        let help = match meant {
            Some(meant) => format!("did you mean {meant}?"),
            None => "label the nodes, or name nodes that have it".to_owned(),
        };
        let mut warning = Found::warning(workload.object, path.clone(), message).help(help);
        warning.fix = meant.map(|meant| Fix::set(&path, meant));
        found.push(warning.number("nodes", n(files.nodes.len())));
    }
    found
}

/// Keys that some of the nodes lack which the pods may use.
pub(crate) fn partial_key(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, index, constraint) in placeable(files) {
        let workload = &files.workloads[number];
        let key = constraint.topology_key.as_str();
        let usable = usable(files, workload);
        let lacking: Vec<&&Node<'_>> = usable
            .iter()
            .filter(|node| node.label(key).is_none())
            .collect();
        let has = |node: &Node<'_>| node.label(key).is_some();
        let ([first, ..], true) = (lacking.as_slice(), files.nodes.iter().any(has)) else {
            continue;
        };
        let path = workload.constraint_path(index).child("topologyKey");
        let (n_lacking, n_usable) = (lacking.len(), usable.len());
        let hard = is_hard(constraint);
        let effect = match (hard, n_lacking == n_usable) {
            (true, true) => "no pod can be placed",
            (true, false) => "no pod goes there",
            (false, _) => "they are the last choice",
        };
        let message = format!(
            "{n_lacking} of the {n_usable} nodes that the pods may use lack the label {key}: {effect}",
        );
        let make = match hard {
            true => Found::warning,
            false => Found::note,
        };
        let mut finding = make(workload.object, path, message)
            .help("label them, or keep the pods off them by a node selector");
        finding.related.push((first.object, "such a node"));
        let finding = finding.number("lacking", n(n_lacking));
        found.push(finding.number("nodes", n(n_usable)));
    }
    found
}

/// Constraints over nodes that are in one domain: there is nothing to compare.
///
/// Source: spec/scheduler §1.6, §1.8
pub(crate) fn one_domain(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, index, constraint) in placeable(files) {
        let workload = &files.workloads[number];
        // A domain that is missing counts as an empty one.
        let asks_for_more = constraint.min_domains.unwrap_or(1) > 1;
        if asks_for_more || workload.n_pods.is_none_or(|n| n < 2) {
            continue;
        }
        let counting = counting(files, workload, constraint);
        let key = constraint.topology_key.as_str();
        let domains = counting.iter().filter_map(|node| node.label(key));
        let domains: BTreeSet<&str> = domains.collect();
        let Some(domain) = domains.first().filter(|_| domains.len() == 1) else {
            continue;
        };
        let path = workload.constraint_path(index).child("topologyKey");
        let make = match is_hard(constraint) {
            true => Found::warning,
            false => Found::note,
        };
        let nodes = match counting.len() {
            1 => "the only node that counts is".to_owned(),
            n => format!("all {n} nodes that count are"),
        };
        let message =
            format!("1 domain: this constraint limits nothing, since {nodes} in {key}={domain}");
        let finding = make(workload.object, path, message)
            .help("nodes in other domains make it count; minDomains asks for a number of domains");
        found.push(finding.number("domains", 1));
    }
    found
}

/// The constraints of workloads whose pods may use all nodes that their own spec allows: a WorkloadSpread asks for
/// nodes, too, and so does the controller of a DaemonSet.
fn placeable<'f, 'a>(
    files: &'f Files<'a>,
) -> impl Iterator<Item = (usize, usize, &'a TopologySpreadConstraint)> + 'f {
    files.constraints().filter(|(number, ..)| {
        let is_daemon = files.workloads[*number].kind == "DaemonSet";
        !files.more_come && !files.spread.contains_key(number) && !is_daemon
    })
}

fn is_hard(constraint: &TopologySpreadConstraint) -> bool {
    constraint.when_unsatisfiable == "DoNotSchedule"
}

/// The nodes that the pods may go to, as far as labels and taints decide it.
fn usable<'f, 'a>(files: &'f Files<'a>, workload: &Workload<'_>) -> Vec<&'f Node<'a>> {
    let names = &mut files.names.borrow_mut();
    let affinity = facts::required_node_affinity(workload.spec, names);
    let tolerations = facts::tolerations(workload.spec, names);
    let nodes = files.nodes.iter();
    nodes
        .filter(|node| {
            !node.is_cordoned
                && affinity.matches(node.name, &node.labels, names)
                && tolerates_all(&tolerations, &node.taints)
        })
        .collect()
}

/// The number of domains of the nodes that count for the constraint with this index.
pub(crate) fn n_domains(files: &Files<'_>, workload: &Workload<'_>, index: usize) -> usize {
    let constraints = workload.spec.topology_spread_constraints.as_deref();
    let Some(constraint) = constraints.and_then(|constraints| constraints.get(index)) else {
        return 0;
    };
    let nodes = counting(files, workload, constraint);
    let values = nodes
        .iter()
        .filter_map(|node| node.label(&constraint.topology_key));
    values.collect::<BTreeSet<&str>>().len()
}

/// The number of domains of a key in which the pods may be.
pub(super) fn n_usable(files: &Files<'_>, workload: &Workload<'_>, key: &str) -> usize {
    let nodes = usable(files, workload);
    let values = nodes.iter().filter_map(|node| node.label(key));
    values.collect::<BTreeSet<&str>>().len()
}

/// The nodes that count for a constraint.
fn counting<'f, 'a>(
    files: &'f Files<'a>,
    workload: &Workload<'_>,
    constraint: &TopologySpreadConstraint,
) -> Vec<&'f Node<'a>> {
    let names = &mut files.names.borrow_mut();
    let affinity = facts::required_node_affinity(workload.spec, names);
    let tolerations = facts::tolerations(workload.spec, names);
    let ignores_affinity = constraint.node_affinity_policy.as_deref() == Some("Ignore");
    let honors_taints = constraint.node_taints_policy.as_deref() == Some("Honor");
    let counts = |node: &&Node<'_>| {
        (ignores_affinity || affinity.matches(node.name, &node.labels, names))
            && (!honors_taints || tolerates_all(&tolerations, &node.taints))
    };
    files.nodes.iter().filter(counts).collect()
}

fn n(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
