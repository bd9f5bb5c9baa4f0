//! What is wrong in a cluster at a moment: pods that wait, constraints that are exceeded, nodes that are not ready.
//!
//! It reads [`ClusterValues`] and counts nothing anew; whether a constraint is exceeded says [`strew_spread::Limit`].

use schemars::JsonSchema;
use serde::Serialize;
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;
use strew_spread::{Limit, Tally};

use crate::values::{ClusterValues, ConstraintValues, NodeValues, SpreadValues, WorkloadDetail};
use crate::words::{count, short_key};

/// What is wrong, with the numbers that say how much is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wrong {
    /// Errors first.
    pub findings: Vec<Finding>,
    /// The numbers of the cluster.
    pub sums: Sums,
}

/// The numbers of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sums {
    /// Workloads, with or without pods.
    pub workloads: usize,
    /// Nodes.
    pub nodes: usize,
    /// Pods that have not finished and do not terminate.
    pub pods: usize,
    /// Those on a node that are ready.
    pub ready: usize,
    /// Those on no node that a scheduler of the configuration must place.
    pub pending: usize,
    /// Constraints with `DoNotSchedule`.
    pub hard: Within,
    /// Constraints with `ScheduleAnyway`.
    pub soft: Within,
}

/// Constraints, and how many of them are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Within {
    /// Those with a skew of at most their maxSkew.
    pub within: usize,
    /// All that the scheduler evaluates.
    pub all: usize,
}

/// What is wrong in a cluster.
pub fn of(values: &ClusterValues) -> Wrong {
    let mut sums = Sums {
        workloads: values.workloads.len(),
        nodes: values.nodes.len(),
        ..Sums::default()
    };
    let mut findings = Vec::new();
    for workload in &values.workloads {
        of_workload(workload, &mut sums, &mut findings);
    }
    of_nodes(values, &mut findings);
    of_domains(values, &mut findings);
    Wrong {
        findings: Finding::in_order(findings),
        sums,
    }
}

fn of_workload(workload: &WorkloadDetail, sums: &mut Sums, findings: &mut Vec<Finding>) {
    let counts = &workload.counts;
    let object = workload.id();
    let mut find = |severity, code: &str, n: usize, message: String| {
        let finding = Finding::new(severity, code, message);
        findings.push(Finding {
            object: Some(object.clone()),
            ..finding.with_number("pods", n as i64)
        });
    };
    let n_pending: usize = counts.pending.iter().map(|group| group.count).sum();
    sums.pods += counts.replicas;
    sums.ready += counts.ready;
    sums.pending += n_pending;
    for group in &counts.pending {
        let more = if group.count > 1 { ", …" } else { "" };
        let message = format!(
            "{} Pending ({}{more}): {}",
            count(group.count, "pod"),
            group.pod,
            group.message
        );
        find(Severity::Error, "pending", group.count, message);
    }
    let n_waiting = n_pending + counts.left_alone;
    let n_starting = counts.replicas.saturating_sub(counts.ready + n_waiting);
    if n_starting > 0 {
        let message = format!(
            "{} of {} on nodes not ready",
            n_starting,
            count(counts.replicas.saturating_sub(n_waiting), "pod")
        );
        find(Severity::Warning, "not-ready", n_starting, message);
    }
    for spread in &counts.spread {
        findings.extend(of_spread(spread, &object, sums));
    }
}

/// Counts the constraint in `sums`; returns what is wrong with it.
fn of_spread(spread: &SpreadValues, object: &str, sums: &mut Sums) -> Vec<Finding> {
    let mut found = Vec::new();
    let about = |finding: Finding| Finding {
        object: Some(object.to_owned()),
        ..finding
    };
    if let Some(warning) = &spread.warning {
        let finding = Finding::new(Severity::Warning, "uncounted", warning);
        found.push(about(finding));
    }
    let evaluated = spread.constraint.as_ref().filter(|c| !c.without_effect);
    let Some(constraint) = evaluated else {
        return found;
    };
    let is_hard = constraint.when_unsatisfiable == "DoNotSchedule";
    let sum = if is_hard {
        &mut sums.hard
    } else {
        &mut sums.soft
    };
    let skew = skew(spread, constraint);
    sum.all += 1;
    if skew <= i64::from(constraint.max_skew) {
        sum.within += 1;
        return found;
    }
    let (severity, kind) = match is_hard {
        true => (Severity::Error, "hard"),
        false => (Severity::Warning, "soft"),
    };
    let (by, max_skew) = (&spread.by, constraint.max_skew);
    let message = format!("skew {skew} by {by}, over maxSkew {max_skew} of a {kind} constraint");
    let help = "a scheduler evaluates a constraint when it places a pod and moves no pod later; strew rebalance plans \
                evictions that make it even";
    let finding = Finding::new(severity, "uneven", message)
        .with_number("skew", skew)
        .with_number("maxSkew", i64::from(max_skew));
    found.push(about(Finding {
        help: Some(help.to_owned()),
        ..finding
    }));
    found
}

/// The skew that the scheduler compares with maxSkew: with fewer domains than minDomains its minimum is 0.
fn skew(spread: &SpreadValues, constraint: &ConstraintValues) -> i64 {
    let mut counts: Vec<i32> = spread.counts.0.iter().map(|(_, count)| *count).collect();
    // Of many domains, those without pods are not listed.
    counts.resize(counts.len().max(spread.domains), 0);
    let places = vec![1; counts.len()];
    let limit = Limit {
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains.unwrap_or(1),
    };
    limit.skew(&Tally::of_counts(counts, places))
}

/// With more nodes in one state, they are one finding.
const NODES_MAX: usize = 10;

fn of_nodes(values: &ClusterValues, findings: &mut Vec<Finding>) {
    let is_away = |node: &&NodeValues| !node.ready;
    let is_cordoned = |node: &&NodeValues| node.ready && node.usage.unschedulable;
    let away: Vec<&NodeValues> = values.nodes.iter().filter(is_away).collect();
    let cordoned: Vec<&NodeValues> = values.nodes.iter().filter(is_cordoned).collect();
    findings.extend(in_state(
        &away,
        Severity::Warning,
        "node-not-ready",
        "not ready",
    ));
    findings.extend(in_state(
        &cordoned,
        Severity::Note,
        "node-cordoned",
        "cordoned",
    ));
}

/// A finding a node, or one for all if there are many.
fn in_state(nodes: &[&NodeValues], severity: Severity, code: &str, state: &str) -> Vec<Finding> {
    let pods = |node: &NodeValues| node.usage.requested.get("pods").copied().unwrap_or(0);
    let with = |n: i64| count(usize::try_from(n).unwrap_or(0), "pod");
    if nodes.len() > NODES_MAX {
        let all: i64 = nodes.iter().map(|node| pods(node)).sum();
        let names = nodes.iter().take(NODES_MAX).map(|node| &*node.usage.name);
        let message = format!(
            "{} are {state}, with {} on them: {} and {} more",
            count(nodes.len(), "node"),
            with(all),
            names.collect::<Vec<_>>().join(", "),
            nodes.len() - NODES_MAX
        );
        let finding = Finding::new(severity, code, message).with_number("pods", all);
        return vec![finding.with_number("nodes", nodes.len() as i64)];
    }
    let of = |node: &&NodeValues| {
        let (name, n) = (&node.usage.name, pods(node));
        let message = format!("node {name} is {state}, with {} on it", with(n));
        Finding {
            object: Some(format!("Node {name}")),
            ..Finding::new(severity, code, message).with_number("pods", n)
        }
    };
    nodes.iter().map(of).collect()
}

/// Domains of several nodes on which no CPU is free.
fn of_domains(values: &ClusterValues, findings: &mut Vec<Finding>) {
    let domains = values.domains.iter();
    let domains = domains.filter(|d| short_key(&d.key) != "hostname");
    for domain in domains.filter(|d| d.free.get("cpu").is_none_or(|&free| free <= 0)) {
        let message = format!(
            "{} {} is full: of its {}, those that take pods have no free CPU",
            short_key(&domain.key),
            domain.value,
            count(domain.nodes.len(), "node")
        );
        findings.push(Finding::new(Severity::Note, "domain-full", message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::tests::values;

    #[test]
    fn pending_pods_and_exceeded_constraints_are_errors_with_their_numbers() {
        let Wrong { findings, sums } = of(&values());
        let lines: Vec<String> = findings.iter().map(Finding::line).collect();
        let expected = [
            "error[pending]: ReplicaSet shop/web: 1 pod Pending (web-2): 0/2 nodes",
            "warning[node-not-ready]: Node b1: node b1 is not ready, with 0 pods on it",
            "note[domain-full]: zone b is full: of its 1 node, those that take pods have no free CPU",
        ];
        assert_eq!(lines, expected);
        assert_eq!((sums.pods, sums.ready, sums.pending), (2, 1, 1));
        assert_eq!((sums.workloads, sums.nodes), (1, 2));
    }

    #[test]
    fn many_nodes_in_one_state_are_one_finding() {
        let mut values = values();
        let away = values.nodes[1].clone();
        let node = |n: usize| {
            let mut node = away.clone();
            node.usage.name = format!("b{n}");
            node.usage.requested.insert("pods".to_owned(), 2);
            node
        };
        values.nodes = (0..12).map(node).collect();
        let findings = of(&values).findings;
        let found = findings.iter().find(|one| one.code == "node-not-ready");
        let found = found.expect("it is told");
        assert_eq!(
            found.message,
            "12 nodes are not ready, with 24 pods on them: b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 and 2 more"
        );
        assert_eq!((found.numbers["nodes"], found.numbers["pods"]), (12, 24));
    }

    fn spread(counts: &[i32], min_domains: Option<i32>, hard: bool) -> SpreadValues {
        let constraint = ConstraintValues {
            source: "pod",
            index: 0,
            when_unsatisfiable: crate::values::when_unsatisfiable(hard),
            max_skew: 1,
            min_domains,
            selector: "app=web".to_owned(),
            match_label_keys: Vec::new(),
            without_effect: false,
        };
        let named = counts.iter().enumerate();
        let named = named.map(|(n, &count)| (n.to_string(), count));
        SpreadValues {
            by: "zone".to_owned(),
            constraint: Some(constraint),
            domains: counts.len(),
            counts: crate::values::Counts(named.collect()),
            skew: 0,
            before: None,
            own: None,
            warning: None,
            others: 0,
        }
    }

    #[test]
    fn a_constraint_is_judged_as_the_scheduler_compares() {
        let judge = |counts: &[i32], min_domains, hard| {
            let mut sums = Sums::default();
            let found = of_spread(
                &spread(counts, min_domains, hard),
                "Deployment shop/web",
                &mut sums,
            );
            (
                found
                    .first()
                    .map(|finding| (finding.severity, finding.numbers["skew"])),
                sums,
            )
        };
        let hard = |within| Sums {
            hard: Within { within, all: 1 },
            ..Sums::default()
        };
        assert_eq!(judge(&[2, 1], None, true), (None, hard(1)));
        assert_eq!(
            judge(&[3, 1], None, true),
            (Some((Severity::Error, 2)), hard(0))
        );
        // With fewer domains than minDomains the minimum is 0.
        assert_eq!(
            judge(&[2, 1], Some(3), true),
            (Some((Severity::Error, 2)), hard(0))
        );
        let (found, sums) = judge(&[3, 1], None, false);
        assert_eq!(found, Some((Severity::Warning, 2)));
        assert_eq!(sums.soft, Within { within: 0, all: 1 });
    }

    #[test]
    fn domains_without_pods_count_although_they_are_not_listed() {
        let mut many = spread(&[2], None, true);
        many.domains = 100;
        let found = of_spread(&many, "Deployment shop/web", &mut Sums::default());
        assert_eq!(found[0].numbers["skew"], 2);
        assert_eq!(
            found[0].message,
            "skew 2 by zone, over maxSkew 1 of a hard constraint"
        );
    }
}
