//! The legacy `kind: Policy` file, which Kubernetes had until 1.22.
//!
//! Its priorities replaced the default ones. strew knows the two that spread: with KEP-1258
//! `SelectorSpreadingPriority` means PodTopologySpread, with its default constraints, and so does
//! `EvenPodsSpreadPriority`. If both are given the weights add up: the plugin's score counts once for each.
//! With the gate DefaultPodTopologySpread off, `SelectorSpreadingPriority` is the plugin SelectorSpread again.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use strew_scheduler::{PluginId, Profile};

use super::Configuration;
use super::gates::FeatureGates;
use super::problems::Problems;
use super::profiles::check_weights;
use crate::field::{FieldError, FieldPath};
use crate::read::{Diagnostic, nearest};

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "the document's own type was looked at before")]
struct PolicyWire {
    api_version: Option<String>,
    kind: Option<String>,
    predicates: Option<Vec<PredicateWire>>,
    priorities: Option<Vec<PriorityWire>>,
    extenders: Option<Vec<Value>>,
    hard_pod_affinity_symmetric_weight: Option<i32>,
    always_check_all_predicates: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "no predicate is known")]
struct PredicateWire {
    name: Option<String>,
    argument: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PriorityWire {
    name: Option<String>,
    weight: Option<i64>,
    argument: Option<Value>,
}

const SELECTOR_SPREADING: &str = "SelectorSpreadingPriority";
const EVEN_PODS_SPREAD: &str = "EvenPodsSpreadPriority";
const KNOWN: [&str; 2] = [SELECTOR_SPREADING, EVEN_PODS_SPREAD];

/// Reads the document.
pub(super) fn read(
    value: Value,
    gates: &FeatureGates,
    problems: &mut Problems<'_>,
) -> Configuration {
    let root = FieldPath::root();
    let wire: PolicyWire = problems.decode(value, &root);
    refuse_predicates(wire.predicates.as_deref(), problems);
    if wire
        .extenders
        .is_some_and(|extenders| !extenders.is_empty())
    {
        let error = Diagnostic::error("extenders", "strew does not call extenders");
        problems.at(root.child("extenders"), error);
    }
    if wire.always_check_all_predicates == Some(true) {
        let message = "strew does not check all predicates of a node: the first that refuses gives the reason";
        let path = root.child("alwaysCheckAllPredicates");
        problems.at(path, Diagnostic::error("not-implemented", message));
    }
    let mut configuration = Configuration::of_gates(gates);
    let profile = &mut configuration.profiles[0];
    if let Some(weight) = wire.hard_pod_affinity_symmetric_weight {
        if !(0..=100).contains(&weight) {
            let path = root.child("hardPodAffinitySymmetricWeight");
            let detail = "not in valid range [0, 100]";
            problems.field(FieldError::invalid_raw(path, weight, detail));
        }
        profile.hard_pod_affinity_weight = weight;
    }
    match &wire.priorities {
        Some(priorities) => set_priorities(priorities, gates, profile, problems),
        None => {
            let note =
                "Policy: without priorities the default score plugins of Kubernetes 1.36 count";
            problems.notes.push(note.to_owned());
        }
    }
    configuration
}

fn refuse_predicates(predicates: Option<&[PredicateWire]>, problems: &mut Problems<'_>) {
    let path = FieldPath::root().child("predicates");
    let help = "leave predicates out: all filters of Kubernetes 1.36 then hold";
    if predicates.is_some_and(<[_]>::is_empty) {
        let message = "strew does not switch the filters off by an empty list of predicates";
        let error = Diagnostic::error("unknown-predicate", message);
        problems.at(path.clone(), error.with_help(help));
    }
    for (i, predicate) in predicates.unwrap_or_default().iter().enumerate() {
        let name = predicate.name.as_deref().unwrap_or_default();
        let message = format!("unknown predicate {name:?}: strew knows none");
        let error = Diagnostic::error("unknown-predicate", message).with_help(help);
        problems.at(path.index(i).child("name"), error);
    }
}

fn set_priorities(
    priorities: &[PriorityWire],
    gates: &FeatureGates,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
) {
    let root = FieldPath::root().child("priorities");
    let mut scores: Vec<(PluginId, i64)> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (i, priority) in priorities.iter().enumerate() {
        let path = root.index(i);
        let name = priority.name.as_deref().unwrap_or_default();
        let plugin = match name {
            SELECTOR_SPREADING if !gates.default_pod_topology_spread => PluginId::SelectorSpread,
            SELECTOR_SPREADING | EVEN_PODS_SPREAD => PluginId::PodTopologySpread,
            other => {
                problems.at(path.child("name"), unknown(other));
                continue;
            }
        };
        if seen.contains(&name) {
            problems.field(FieldError::duplicate(path.child("name"), name));
        }
        seen.push(name);
        if priority.argument.is_some() {
            let message = format!("{name} takes no argument");
            problems.at(
                path.child("argument"),
                Diagnostic::error("no-arguments", message),
            );
        }
        let weight = priority.weight.unwrap_or(0);
        if weight <= 0 {
            let detail = "must have a positive weight applied to it";
            problems.field(FieldError::invalid_raw(
                path.child("weight"),
                weight,
                detail,
            ));
        }
        problems.notes.push(format!(
            "{path}: {name} became {plugin} with weight {weight}"
        ));
        match scores.iter_mut().find(|(known, _)| *known == plugin) {
            Some((_, sum)) => *sum = sum.saturating_add(weight),
            None => scores.push((plugin, weight)),
        }
    }
    if let [(plugin, sum)] = scores[..]
        && seen.len() > 1
    {
        let note = format!("priorities: their weights add up: {plugin} has {sum}");
        problems.notes.push(note);
    }
    problems
        .notes
        .push("priorities: the score plugins that are not named do not count".to_owned());
    check_weights(&scores, &root, problems);
    profile.scores = scores;
}

fn unknown(name: &str) -> Diagnostic {
    let message = format!(
        "unknown priority {name:?}: strew knows {}",
        KNOWN.join(" and ")
    );
    let error = Diagnostic::error("unknown-priority", message);
    match nearest(name, KNOWN) {
        Some(meant) => error.with_help(format!("did you mean {meant:?}?")),
        None => error
            .with_help("write a KubeSchedulerConfiguration to set the weights of other plugins"),
    }
}
