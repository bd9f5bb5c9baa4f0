//! What a constraint allows on nodes that are made for the question: these rules need none in the files.

use std::collections::BTreeMap;

use strew_cluster::SpreadConstraint;
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_model::Labels;

use crate::Found;
use crate::files::{Files, Workload};
use crate::trial::{Bench, PODS_MAX, Pods};

/// A hard constraint of a workload with at least two pods, alone on empty nodes.
struct Question<'f, 'a> {
    workload: &'f Workload<'a>,
    index: usize,
    n_pods: i64,
    key: &'a str,
    constraint: SpreadConstraint,
    pods: Pods,
}

/// Calls a function for each hard constraint, with a bench of these domains; a domain without room has one node that
/// takes no pod.
fn each(
    files: &Files<'_>,
    n_domains: usize,
    mut judge: impl FnMut(&mut Bench, &Question<'_, '_>) -> Option<Found>,
) -> Vec<Found> {
    let mut found = Vec::new();
    let mut benches: BTreeMap<&str, Bench> = BTreeMap::new();
    for (number, index, wire) in files.constraints() {
        let workload = &files.workloads[number];
        let n_pods = workload.n_pods.filter(|n| (2..=PODS_MAX).contains(n));
        let is_hard = wire.when_unsatisfiable == "DoNotSchedule";
        let (Some(n_pods), true, false) = (n_pods, is_hard, workload.kind == "Pod") else {
            continue;
        };
        let key = wire.topology_key.as_str();
        let bench = benches.entry(key).or_insert_with(|| {
            Bench::ideal((0..n_domains).map(|domain| vec![(key, format!("{domain}"))]))
        });
        let Some(pods) = bench.pods(workload) else {
            continue;
        };
        let Some(constraint) = pods.spec.spread.get(index).cloned() else {
            continue;
        };
        // A selector that does not count the pods is another rule's.
        if !constraint.selector.matches(&pods.labels) || constraint.selector.is_empty() {
            continue;
        }
        let question = Question {
            workload,
            index,
            n_pods,
            key,
            pods: pods.alone(&constraint),
            constraint,
        };
        found.extend(judge(bench, &question));
    }
    found
}

/// Hard constraints that hold with all pods in one domain.
///
/// Source: spec/scheduler §1.8
pub(crate) fn one_domain_satisfies(files: &Files<'_>) -> Vec<Found> {
    // Nodes that are there and stay tell how many domains there are: `one-domain` says it as a fact.
    if !files.nodes.is_empty() && !files.grows {
        return Vec::new();
    }
    each(files, 1, |bench, question| {
        let Question {
            workload,
            key,
            n_pods,
            ..
        } = *question;
        let is_other = question.constraint.min_domains.is_some_and(|min| min > 1)
            || i64::from(question.constraint.max_skew) >= n_pods
            || strew_manifest::read::known_label(key).is_some();
        if is_other {
            return None;
        }
        if bench.place(&question.pods, n_pods).refused.is_some() {
            return None;
        }
        let path = workload.constraint_path(question.index);
        let asks = question
            .pods
            .with(|spec| spec.spread[0].min_domains = Some(2));
        let n_first = bench.place(&asks, n_pods).nodes.len();
        let message = format!(
            "this constraint holds with all {n_pods} pods in one domain of {key}: skew is a difference between domains that exist, and minDomains is not set"
        );
        let note = Found::note(workload.object, path.clone(), message)
            .help("where domains can be missing (an autoscaler, a zone that is down, a first node), minDomains counts them as empty; of two domains in all, the loss of one then leaves pods Pending")
            .number("pods", n_pods);
        let is_prevented = i64::try_from(n_first).is_ok_and(|n| n < n_pods);
        Some(match is_prevented {
            true => {
                let mut fix = Fix::set(&path.child("minDomains"), 2);
                fix.verified = Some(format!(
                    "with one domain, pod {} of {n_pods} is then refused",
                    n_first + 1
                ));
                note.fix(fix)
            }
            false => note,
        })
    })
}

/// Hard constraints whose maxSkew lets all pods into one of several domains.
///
/// Source: spec/scheduler §1.8
pub(crate) fn max_skew_allows_all(files: &Files<'_>) -> Vec<Found> {
    let mut found = each(files, 2, |bench, question| {
        let Question {
            workload, n_pods, ..
        } = *question;
        let max_skew = question.constraint.max_skew;
        // The other domain takes no pod: what goes into the first one is what the constraint allows.
        let (key, first) = (bench.symbol(question.key), bench.symbol("0"));
        let only = question.pods.with(|spec| {
            spec.spread[0].node_affinity_policy = strew_cluster::Policy::Ignore;
            spec.node_affinity.node_selector = Labels::new(vec![(key, first)]);
        });
        if bench.place(&only, n_pods).refused.is_some() {
            return None;
        }
        let path = workload.constraint_path(question.index).child("maxSkew");
        let message = format!(
            "maxSkew {max_skew} lets all {n_pods} pods into one domain of {}: the constraint refuses nothing",
            question.key
        );
        let warning = Found::warning(workload.object, path.clone(), message)
            .number("maxSkew", max_skew.into())
            .number("pods", n_pods);
        Some(warning.fix(Fix::set(&path, 1)))
    });
    // An autoscaler may make more of them than are written.
    let scaled: Vec<usize> = super::autoscaler::targets_of(files)
        .filter_map(|target| Some(files.workloads[target.workload?].object))
        .collect();
    found.retain(|found| !scaled.contains(&found.object));
    found
}

/// The most pods of a workload for which nodes are made, so that contradictions cost little.
const MADE_PODS_MAX: i64 = 8;

/// Constraints, affinity and node selector that no nodes can keep together.
///
/// Source: spec/scheduler §1.8, §3.6
pub(crate) fn contradictions(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, workload) in files.workloads.iter().enumerate() {
        let n_pods = workload.n_pods.filter(|n| (2..=MADE_PODS_MAX).contains(n));
        let (Some(n_pods), false) = (n_pods, files.spread.contains_key(&number)) else {
            continue;
        };
        let Some(mut bench) = made(workload, n_pods) else {
            continue;
        };
        let Some(pods) = bench.pods(workload) else {
            continue;
        };
        let pods = pods.with(|spec| {
            spec.requests = strew_model::Resources::default();
            spec.claims = Box::default();
            spec.tolerations = Box::default();
            spec.gates = Box::default();
        });
        if !pods.spec.unsupported.is_empty() || !pods.spec.spread.iter().any(|c| c.hard) {
            continue;
        }
        let Some(reason) = bench.place(&pods, n_pods).refused else {
            continue;
        };
        // Without the constraints all of them go somewhere: otherwise it is not the constraints.
        let free = pods.with(|spec| spec.spread = Box::default());
        if bench.place(&free, n_pods).refused.is_some() {
            continue;
        }
        let n_placed = bench.place(&pods, n_pods).nodes.len();
        let message = format!(
            "{n_placed} of {n_pods} pods find a node even on empty nodes in {} domains: constraints, affinity and node selector cannot hold together ({reason})",
            n_domains(workload, n_pods)
        );
        let path: FieldPath = workload.spec_path.child("topologySpreadConstraints");
        found.push(
            Found::warning(workload.object, path, message)
                .help("a node selector or an affinity that leaves one domain contradicts a constraint that asks for several: change one of them")
                .number("pods", n_pods)
                .number("placed", i64::try_from(n_placed).unwrap_or(0)),
        );
    }
    found
}

fn n_domains(workload: &Workload<'_>, n_pods: i64) -> i64 {
    let constraints = workload.spec.topology_spread_constraints.iter().flatten();
    let asked = constraints.filter_map(|constraint| constraint.min_domains);
    let asked = asked.max().unwrap_or(1).clamp(1, 16);
    n_pods.max(i64::from(asked)).max(3)
}

/// Nodes in enough domains of every key that the workload names, with the labels that it asks for; `None` if nothing
/// can contradict, or what it asks of nodes has another form.
fn made(workload: &Workload<'_>, n_pods: i64) -> Option<Bench> {
    let spec = workload.spec;
    let constraints = spec
        .topology_spread_constraints
        .as_deref()
        .unwrap_or_default();
    let affinity = spec.affinity.as_ref();
    let to_pods = affinity.and_then(|a| a.pod_affinity.as_ref());
    let to_pods = to_pods.and_then(|a| {
        a.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    let anti = affinity.and_then(|a| a.pod_anti_affinity.as_ref());
    let anti = anti.and_then(|a| {
        a.required_during_scheduling_ignored_during_execution
            .as_deref()
    });
    let to_pods = to_pods.unwrap_or_default();
    let anti = anti.unwrap_or_default();
    let required = affinity.and_then(|a| a.node_affinity.as_ref());
    let required = required.and_then(|a| {
        a.required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let mut given: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in spec.node_selector.iter().flatten() {
        given.insert(key, vec![value]);
    }
    if let Some(required) = required {
        let [term] = required.node_selector_terms.as_slice() else {
            return None;
        };
        if term.match_fields.is_some() {
            return None;
        }
        for expression in term.match_expressions.iter().flatten() {
            let values = expression.values.as_deref().unwrap_or_default();
            if expression.operator != "In" || given.contains_key(expression.key.as_str()) {
                return None;
            }
            given.insert(&expression.key, values.iter().map(String::as_str).collect());
        }
    }
    let n_parts = constraints.len() + to_pods.len() + anti.len();
    let keys = constraints.iter().map(|c| c.topology_key.as_str());
    let terms = to_pods
        .iter()
        .chain(anti)
        .map(|term| term.topology_key.as_str());
    let keys: std::collections::BTreeSet<&str> = keys.chain(terms).collect();
    let narrows = keys.iter().any(|key| given.contains_key(key));
    if constraints.is_empty() || (n_parts < 2 && !narrows) {
        return None;
    }
    let n_domains = usize::try_from(n_domains(workload, n_pods)).ok()?;
    let hosts = usize::try_from(n_pods + 1).ok()?;
    let nodes = (0..n_domains).flat_map(|domain| {
        let (keys, given) = (&keys, &given);
        (0..hosts).map(move |host| {
            let mut labels: Vec<(&str, String)> = Vec::new();
            for (key, values) in given {
                labels.push((
                    *key,
                    values
                        .get(domain % values.len().max(1))
                        .map_or(String::new(), |v| (*v).to_owned()),
                ));
            }
            for key in keys.iter().filter(|key| !given.contains_key(**key)) {
                let is_host = *key == "kubernetes.io/hostname";
                labels.push((
                    *key,
                    match is_host {
                        true => format!("{domain}-{host}"),
                        false => domain.to_string(),
                    },
                ));
            }
            labels
        })
    });
    Some(Bench::ideal(nodes.collect::<Vec<_>>()))
}
