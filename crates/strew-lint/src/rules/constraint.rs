//! Topology spread constraints and the pods that they count.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use strew_manifest::read::nearest;
use strew_model::Selector;

use super::labels::{labels_text, other_value};
use crate::Found;
use crate::files::{Files, POD_INDEX, POD_NAME, Workload};

/// Constraints that count none of their workload's pods.
///
/// Source: spec/scheduler §1.8, §1.16
pub(crate) fn counts_none(files: &Files<'_>) -> Vec<Found> {
    uncounted(files)
        .filter(|uncounted| uncounted.n_counted == 0)
        .map(|uncounted| uncounted.found(files))
        .collect()
}

/// Constraints that count some of their workload's pods, and others not.
pub(crate) fn counts_some(files: &Files<'_>) -> Vec<Found> {
    uncounted(files)
        .filter(|uncounted| uncounted.n_counted > 0)
        .map(|uncounted| uncounted.found(files))
        .collect()
}

/// Keys of `matchLabelKeys` that no pod of the workload has: the scheduler ignores them.
///
/// Source: spec/scheduler §1.3, §1.4
pub(crate) fn unknown_match_label_key(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, index, constraint) in files.constraints() {
        let workload = &files.workloads[number];
        if files.spread.get(&number) == Some(&true) {
            continue;
        }
        for (at, key) in constraint.match_label_keys.iter().flatten().enumerate() {
            if workload.labels.get(files.symbol(key)).is_some() {
                continue;
            }
            let path = workload.constraint_path(index).child("matchLabelKeys");
            let message =
                format!("no pod of the workload has the label {key}: the key has no effect");
            let known = ["pod-template-hash", "controller-revision-hash"];
            let known = known.into_iter();
            let known = known.filter(|key| workload.labels.get(files.symbol(key)).is_some());
            let known = known.chain(workload.written.keys().map(String::as_str));
            let known: Vec<&str> = known.collect();
            let help = match nearest(key, known.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("its pods have the labels {}", known.join(", ")),
            };
            let warning = Found::warning(workload.object, path.index(at), message);
            found.push(warning.help(help));
        }
    }
    found
}

/// A constraint that does not count all pods of its workload.
struct Uncounted<'f, 'a> {
    workload: &'f Workload<'a>,
    index: usize,
    constraint: &'a TopologySpreadConstraint,
    selector: Selector,
    n_counted: i64,
}

fn uncounted<'f, 'a>(files: &'f Files<'a>) -> impl Iterator<Item = Uncounted<'f, 'a>> {
    files
        .constraints()
        .filter_map(|(number, index, constraint)| {
            let workload = &files.workloads[number];
            // A patch of a WorkloadSpread may give them the labels.
            if files.spread.get(&number) == Some(&true) {
                return None;
            }
            let selector = files.selector(constraint.label_selector.as_ref())?;
            let n_counted = counted(files, workload, &selector)?;
            Some(Uncounted {
                workload,
                index,
                constraint,
                selector,
                n_counted,
            })
        })
}

/// The number of the workload's pods that a selector selects; `None`: all.
fn counted(files: &Files<'_>, workload: &Workload<'_>, selector: &Selector) -> Option<i64> {
    let Some(own) = ordinals(files, workload, selector) else {
        return (!selector.matches(&workload.labels)).then_some(0);
    };
    let n_pods = workload.n_pods.unwrap_or(0);
    (own < n_pods).then_some(own)
}

/// The pods of a StatefulSet that a selector selects, which asks for a label that differs from pod to pod; `None`: it
/// asks for no such label.
fn ordinals(files: &Files<'_>, workload: &Workload<'_>, selector: &Selector) -> Option<i64> {
    let own = [files.symbol(POD_NAME), files.symbol(POD_INDEX)];
    let asks = match selector {
        Selector::AllOf(requirements) => requirements.iter().any(|r| own.contains(&r.key)),
        Selector::Nothing => false,
    };
    // More pods than this are not counted one by one.
    let n_pods = workload.n_pods.filter(|n| *n <= 1000 && asks)?;
    workload.labels.get(own[0])?;
    let is_counted = |ordinal: &i64| {
        let name = files.symbol(&format!("{}-{ordinal}", workload.name));
        let index = files.symbol(&ordinal.to_string());
        let labels = workload.labels.with([(own[0], name), (own[1], index)]);
        selector.matches(&labels)
    };
    i64::try_from((0..n_pods).filter(is_counted).count()).ok()
}

impl Uncounted<'_, '_> {
    fn found(&self, files: &Files<'_>) -> Found {
        let Self {
            workload,
            n_counted,
            constraint,
            ..
        } = self;
        let all = workload.n_text();
        let counts = match (n_counted, workload.n_pods) {
            (0, Some(1)) => "does not count the only pod of the workload".to_owned(),
            (0, _) => format!("counts none of {all} of the workload, so it does not spread them"),
            (n, _) => {
                format!("counts only {n} of {all} of the workload, so it does not spread them")
            }
        };
        let selector = files.text(&self.selector);
        let message = format!("the constraint {counts}: its selector is {selector}");
        let path = workload.constraint_path(self.index);
        let path = match constraint.label_selector {
            Some(_) => path.child("labelSelector"),
            None => path,
        };
        let meant = other_value(constraint.label_selector.as_ref(), workload.written);
        let help = match (meant, &constraint.label_selector) {
            (Some((key, value)), _) => format!("did you mean {key}={value}?"),
            (None, None) => format!(
                "a missing selector selects no pod: write labelSelector, for example matchLabels with {}",
                labels_text(workload.written)
            ),
            (None, Some(_)) => {
                format!("its pods have the labels {}", labels_text(workload.written))
            }
        };
        let found = Found::warning(workload.object, path, message).help(help);
        let found = found.number("counted", *n_counted);
        match workload.n_pods {
            Some(n) => found.number("pods", n),
            None => found,
        }
    }
}
