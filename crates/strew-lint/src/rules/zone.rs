//! PodDisruptionBudgets by zone: the annotation `strew.dev/zone-aware`.
//!
//! Source: docs/budgets.md

use std::collections::BTreeSet;

use strew_manifest::field::FieldPath;
use strew_manifest::read::{known_label, nearest, nearest_label};
use strew_wire::zones::{CLAIM, UNREVIEWED, ZONE_AWARE};

use crate::Found;
use crate::files::{Budget, Files};

fn annotations<'b>(budget: &'b Budget<'_>) -> impl Iterator<Item = (&'b str, &'b str)> {
    let all = budget.budget.metadata.annotations.iter().flatten();
    all.map(|(key, value)| (key.as_str(), value.as_str()))
}

fn path_of(key: &str) -> FieldPath {
    FieldPath::root().child("metadata.annotations").key(key)
}

/// Annotations of strew that a budget does not have: a misspelt one changes nothing.
pub(crate) fn unknown_annotation(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for budget in &files.budgets {
        for (key, _) in annotations(budget) {
            let known = [ZONE_AWARE, CLAIM];
            let name = key.split_once('/').map_or(key, |(_, name)| name);
            let is_close = || {
                let wanted = ZONE_AWARE.split_once('/').map_or("", |(_, name)| name);
                name == wanted || nearest(name, [wanted]).is_some()
            };
            let is_of_strew = key.starts_with("strew.dev/") || is_close();
            if known.contains(&key) || !is_of_strew {
                continue;
            }
            let message = format!(
                "a budget has no annotation {key} of strew, so that it is kept by pods, not by zone"
            );
            let warning = Found::warning(budget.object, path_of(key), message);
            found.push(warning.help(format!("did you mean {ZONE_AWARE}?")));
        }
    }
    found
}

/// Budgets by zone whose topology key no node has: all nodes are one zone.
pub(crate) fn unknown_key(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for budget in &files.budgets {
        let Some((_, key)) = annotations(budget).find(|(key, _)| *key == ZONE_AWARE) else {
            continue;
        };
        if let Some(finding) = of_key(files, budget, key) {
            found.push(finding);
        }
    }
    found
}

/// Budgets by zone in a namespace whose evictions the webhook does not review.
pub(crate) fn unreviewed(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for budget in &files.budgets {
        let is_annotated = annotations(budget).any(|(key, _)| key == ZONE_AWARE);
        if is_annotated && UNREVIEWED.contains(&budget.namespace) {
            let message = format!(
                "evictions in {} are not reviewed, so that the budget is kept by pods, not by zone",
                budget.namespace
            );
            found.push(Found::warning(budget.object, path_of(ZONE_AWARE), message));
        }
    }
    found
}

fn of_key(files: &Files<'_>, budget: &Budget<'_>, key: &str) -> Option<Found> {
    let path = path_of(ZONE_AWARE);
    if key.is_empty() {
        let message =
            "the annotation names no topology key, so that the budget is kept by pods, not by zone";
        let warning = Found::warning(budget.object, path, message.to_owned());
        return Some(warning.help("write topology.kubernetes.io/zone"));
    }
    if files.nodes.is_empty() {
        let meant = known_label(key)?;
        let message =
            format!("the key {key} is a letter or two away from {meant}, which nodes have");
        let warning = Found::warning(budget.object, path, message);
        return Some(warning.help(format!("did you mean {meant}?")));
    }
    if files.more_come || files.nodes.iter().any(|node| node.label(key).is_some()) {
        return None;
    }
    let message = format!(
        "no node has the label {key}: all nodes are one zone, and no eviction waits for another"
    );
    let known = files.nodes.iter().flat_map(|node| node.written.keys());
    let known: BTreeSet<&str> = known.map(String::as_str).collect();
    let help = match nearest_label(key, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "label the nodes, or name a label that they have".to_owned(),
    };
    Some(Found::warning(budget.object, path, message).help(help))
}
