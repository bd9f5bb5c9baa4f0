//! PodDisruptionBudgets and the pods that they protect.

use std::collections::HashMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::kinds;

use super::autoscaler::targets_of;
use super::labels::{labels_text, may_get_labels, other_value};
use crate::Found;
use crate::files::{Budget, Files, Workload};
use strew_wire::rolling::{Rounding, scaled};

/// The path of the selector.
fn selector_path() -> FieldPath {
    FieldPath::root().child("spec.selector")
}

fn selected<'f, 'a>(
    files: &'f Files<'a>,
    budget: &'f Budget<'a>,
) -> impl Iterator<Item = &'f Workload<'a>> {
    let selected = files.selected(budget.namespace, &budget.selector);
    selected.map(|(_, workload)| workload)
}

/// Budgets whose pods are in another namespace.
pub(crate) fn elsewhere(files: &Files<'_>) -> Vec<Found> {
    let of = |budget: &Budget<'_>| {
        let other = elsewhere_of(files, budget)?;
        let label = files.objects[other.object].label();
        let message = format!(
            "the budget selects no pod of its namespace {}, and those of {label}",
            budget.namespace
        );
        let path = FieldPath::root().child("metadata.namespace");
        let mut warning = Found::warning(budget.object, path, message).help(format!(
            "a budget protects pods of its own namespace: write namespace: {}",
            other.namespace
        ));
        warning
            .related
            .push((other.object, "its pods have the labels"));
        Some(warning)
    };
    files.budgets.iter().filter_map(of).collect()
}

/// A workload of another namespace that the budget would select; `None` if it selects one of its own namespace.
fn elsewhere_of<'f, 'a>(files: &'f Files<'a>, budget: &'f Budget<'a>) -> Option<&'f Workload<'a>> {
    if budget.selector.is_empty() || selected(files, budget).next().is_some() {
        return None;
    }
    let mut others = files.workloads.iter();
    others.find(|w| w.namespace != budget.namespace && budget.selector.matches(&w.labels))
}

/// Budgets that select no pod although their namespace has some.
///
/// Source: spec/controllers §8.1
pub(crate) fn selects_none(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for budget in &files.budgets {
        let own = || files.of_namespace(budget.namespace).map(|(_, w)| w);
        let is_idle = selected(files, budget).next().is_none() && own().next().is_some();
        if files.more_come || !is_idle || elsewhere_of(files, budget).is_some() {
            continue;
        }
        // Labels that only running pods have: those of their controller, and of people.
        if files.has_pod(budget.namespace, &budget.selector) {
            continue;
        }
        let wire = budget
            .budget
            .spec
            .as_ref()
            .and_then(|s| s.selector.as_ref());
        let selector = files.text(&budget.selector);
        let message = match wire {
            None => {
                "the budget protects nothing: it has no selector, and so selects no pod".to_owned()
            }
            Some(_) => format!(
                "the budget protects nothing: no pod of namespace {} in these files has {selector}",
                budget.namespace
            ),
        };
        let meant = own().find_map(|w| Some((w, other_value(wire, w.written)?)));
        let is_open =
            files.has_unknown(budget.namespace) || own().any(|w| may_get_labels(wire, w.written));
        let path = selector_path();
        let finding = match (&meant, is_open) {
            // Its pods may be made by something that strew does not know, or get the label while they run.
            (None, true) => Found::note(budget.object, path, message),
            _ => Found::warning(budget.object, path, message),
        };
        found.push(match meant {
            Some((workload, (key, value))) => {
                let mut finding = finding.help(format!("did you mean {key}={value}?"));
                finding
                    .related
                    .push((workload.object, "its pods have other labels"));
                finding
            }
            None => {
                let labels = own().map(|w| labels_text(w.written));
                let labels: Vec<String> = labels.take(3).collect();
                finding.help(format!("there are pods with {}", labels.join("; ")))
            }
        });
    }
    found
}

/// Budgets that allow no eviction even when all pods are healthy: a drain waits for ever.
///
/// Source: spec/controllers §8.1, §8.3
pub(crate) fn allows_none(files: &Files<'_>) -> Vec<Found> {
    let minimums = targets_of(files);
    let minimums = minimums
        .filter_map(|scaled| Some((files.workloads[scaled.workload?].reference(), scaled.min)))
        .collect();
    files
        .budgets
        .iter()
        .filter_map(|budget| blocks(files, budget, &minimums))
        .collect()
}

/// True if a drain waits for the pods of a kind: kubectl drain leaves those of DaemonSets where they are, and those of
/// Jobs end by themselves.
fn is_waited_for(kind: &str) -> bool {
    !["DaemonSet", "Job", "CronJob"].contains(&kind)
}

/// The smallest number of pods of each workload that an autoscaler scales.
///
/// `None` for one that strew does not know.
type Minimums<'f> = HashMap<(&'f str, &'f str, &'f str), Option<i64>>;

fn blocks(files: &Files<'_>, budget: &Budget<'_>, minimums: &Minimums<'_>) -> Option<Found> {
    let spec = budget.budget.spec.as_ref()?;
    let workloads: Vec<&Workload<'_>> = selected(files, budget).collect();
    if !workloads.iter().any(|w| is_waited_for(w.kind)) {
        return None;
    }
    // Its controller has no scale: then only what holds for any number is said. Of an autoscaler, its smallest number.
    let counts = workloads.iter().map(|w| scale(w, minimums));
    let counts: Option<Vec<Scale>> = counts.collect();
    let is_least = counts
        .iter()
        .flatten()
        .any(|scale| matches!(scale, Scale::AtLeast(_)));
    let known: Option<i64> = counts.map(|counts| counts.iter().map(Scale::n_pods).sum());
    let whole = known.filter(|n| *n > 0);
    let path = FieldPath::root().child("spec");
    let path_of_spec = path.clone();
    let (path, value, needs) = match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let none = scaled(most, whole.unwrap_or(100), Rounding::Up) == 0;
            (path.child("maxUnavailable"), most, none.then_some(whole)?)
        }
        (None, Some(least @ IntOrString::Int(n))) => {
            let all = i64::from(*n) >= whole?;
            (path.child("minAvailable"), least, all.then_some(whole)?)
        }
        (None, Some(least)) => {
            let whole = whole.unwrap_or(100);
            let all = scaled(least, whole, Rounding::Up) >= whole;
            (path.child("minAvailable"), least, all.then_some(known)?)
        }
        (None, None) => return Some(without_bound(budget, &path)),
    };
    let field = path.to_string().replace("spec.", "");
    let value = match value {
        IntOrString::Int(n) => n.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    let of = match needs {
        Some(1) => " of 1 pod".to_owned(),
        Some(n) => format!(" of {n} pods"),
        None => String::new(),
    };
    let until = match is_least {
        true => "while an autoscaler keeps its minimum, the budget allows no eviction",
        false => "the budget allows no eviction",
    };
    let ever = match is_least {
        true => "waits until there are more",
        false => "waits for ever",
    };
    let message = format!("{until}: {field} {value}{of}, so a drain of their nodes {ever}");
    let help = match needs {
        Some(1) => {
            "two replicas and maxUnavailable: 1 let a drain go on; one replica is away meanwhile in any case"
        }
        _ => "maxUnavailable: 1 lets one pod go at a time",
    };
    let fix = Fix::set(&path_of_spec.child("maxUnavailable"), 1);
    let fix = match spec.min_available {
        Some(_) => fix.instead_of("minAvailable"),
        None => fix,
    };
    let warning = Found::warning(budget.object, path, message).help(help);
    Some(match needs {
        Some(n @ 2..) => warning.number("pods", n).fix(fix),
        Some(n) => warning.number("pods", n),
        None => warning,
    })
}

/// A budget without a bound expects no pods, and then its status allows no eviction.
fn without_bound(budget: &Budget<'_>, path: &FieldPath) -> Found {
    let message = "the budget allows no eviction: it has neither minAvailable nor maxUnavailable, so a drain of their nodes waits for ever";
    let warning = Found::warning(budget.object, path.clone(), message.to_owned());
    let warning = warning.help("maxUnavailable: 1 lets one pod go at a time");
    warning.fix(Fix::set(&path.child("maxUnavailable"), 1))
}

/// The number of pods that a budget expects of a workload.
enum Scale {
    Is(i64),
    /// An autoscaler sets it.
    AtLeast(i64),
}

impl Scale {
    fn n_pods(&self) -> i64 {
        match self {
            Self::Is(n) | Self::AtLeast(n) => *n,
        }
    }
}

/// `None` if its controller has no scale, or the number is not known.
fn scale(workload: &Workload<'_>, minimums: &Minimums<'_>) -> Option<Scale> {
    let scales = kinds::of_kind(workload.kind).is_some_and(|row| row.scales);
    let n_pods = workload.n_pods.filter(|_| scales)?;
    Some(match minimums.get(&workload.reference()) {
        Some(Some(min)) => Scale::AtLeast(*min),
        // As many as are written, until it is scaled.
        Some(None) => Scale::AtLeast(n_pods),
        None => Scale::Is(n_pods),
    })
}

/// Pods with two budgets: the API refuses to evict them.
///
/// Source: spec/controllers §8.2
pub(crate) fn two(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut earlier: HashMap<usize, &Budget<'_>> = HashMap::new();
    for budget in &files.budgets {
        let mut both = None;
        for (number, workload) in files.selected(budget.namespace, &budget.selector) {
            let other = *earlier.entry(number).or_insert(budget);
            if both.is_none() && other.object != budget.object {
                both = Some((workload, other));
            }
        }
        if let Some((workload, other)) = both {
            let label = files.objects[workload.object].label();
            let message = format!(
                "the pods of {label} have two budgets, {} and {}: the API server refuses to evict them",
                other.name, budget.name
            );
            let mut warning = Found::warning(budget.object, selector_path(), message)
                .help("a pod has at most one budget: narrow a selector, or remove a budget");
            warning.related.push((other.object, "the other budget"));
            found.push(warning);
        }
    }
    found
}
