//! The legacy `kind: Policy` file, which Kubernetes had until 1.22.
//!
//! Its predicates and priorities replace the default ones. Each is mapped to its successor in 1.36, with a note, or
//! reported as removed. With KEP-1258, `SelectorSpreadPriority` means PodTopologySpread with its default constraints,
//! and `EvenPodsSpreadPriority` alone means the plugin without default constraints. If both are given, the weights add
//! up: the plugin's score counts once for each. With the gate DefaultPodTopologySpread off, `SelectorSpreadPriority` is
//! the plugin SelectorSpread again.
//!
//! Source: `pkg/scheduler/framework/plugins/legacy_registry.go`, v1.21; KEP-1258.

use serde::Deserialize;
use serde_json::{Value, json};
use strew_model::Interner;
use strew_scheduler::{DefaultConstraints, PluginId, Profile, ScoringStrategy};

use super::Configuration;
use super::gates::FeatureGates;
use super::problems::Problems;
use super::profiles::check_weights;
use super::resource_arguments;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::{Diagnostic, nearest};

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "the document's own type was looked at before")]
pub(super) struct PolicyWire {
    api_version: Option<String>,
    kind: Option<String>,
    predicates: Option<Vec<PredicateWire>>,
    priorities: Option<Vec<PriorityWire>>,
    extenders: Option<Vec<Value>>,
    hard_pod_affinity_symmetric_weight: Option<i32>,
    always_check_all_predicates: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct PredicateWire {
    name: Option<String>,
    argument: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct PriorityWire {
    name: Option<String>,
    weight: Option<i64>,
    argument: Option<Value>,
}

/// The successor of a predicate or a priority in 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Successor {
    /// These plugins; for a priority, one.
    Plugins(&'static [PluginId]),
    /// SelectorSpread, or the default constraints of PodTopologySpread, depending on a gate.
    SelectorSpread,
    /// NodeResourcesFit with this strategy.
    Fit(Strategy),
    /// It has no effect on today's clusters, for this reason.
    NoEffect(&'static str),
    /// It had an effect and was removed; the text says what replaces it.
    Gone(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
}

const NO_LABEL_PLUGIN: &str =
    "it was the plugin NodeLabel, which no Kubernetes since 1.25 has: use node affinity";
const NO_SERVICE_PLUGIN: &str =
    "it was the plugin ServiceAffinity, which no Kubernetes since 1.25 has: use pod affinity";

/// All predicates of 1.21, and the older name `PodFitsPorts`.
const PREDICATES: [(&str, Successor); 20] = {
    use PluginId::*;
    use Successor::{Gone, Plugins};
    [
        (
            "GeneralPredicates",
            Plugins(&[NodeResourcesFit, NodeName, NodePorts, NodeAffinity]),
        ),
        ("PodFitsResources", Plugins(&[NodeResourcesFit])),
        ("HostName", Plugins(&[NodeName])),
        ("PodFitsHostPorts", Plugins(&[NodePorts])),
        ("PodFitsPorts", Plugins(&[NodePorts])),
        ("MatchNodeSelector", Plugins(&[NodeAffinity])),
        ("PodToleratesNodeTaints", Plugins(&[TaintToleration])),
        ("CheckNodeUnschedulable", Plugins(&[NodeUnschedulable])),
        ("NoDiskConflict", Plugins(&[VolumeRestrictions])),
        ("NoVolumeZoneConflict", Plugins(&[VolumeZone])),
        ("CheckVolumeBinding", Plugins(&[VolumeBinding])),
        ("MaxCSIVolumeCountPred", Plugins(&[NodeVolumeLimits])),
        ("MaxEBSVolumeCount", Plugins(&[NodeVolumeLimits])),
        ("MaxGCEPDVolumeCount", Plugins(&[NodeVolumeLimits])),
        ("MaxAzureDiskVolumeCount", Plugins(&[NodeVolumeLimits])),
        ("MaxCinderVolumeCount", Plugins(&[NodeVolumeLimits])),
        ("MatchInterPodAffinity", Plugins(&[InterPodAffinity])),
        ("EvenPodsSpread", Plugins(&[PodTopologySpread])),
        ("CheckNodeLabelPresence", Gone(NO_LABEL_PLUGIN)),
        ("CheckServiceAffinity", Gone(NO_SERVICE_PLUGIN)),
    ]
};

/// Filters that a Policy cannot switch off (`mandatoryPredicates`), and filters that are newer than it.
const ALWAYS: [PluginId; 4] = [
    PluginId::NodeUnschedulable,
    PluginId::TaintToleration,
    PluginId::DynamicResources,
    PluginId::NodeDeclaredFeatures,
];

/// All priorities of 1.21, `EqualPriority`, and KEP-1258's name of `SelectorSpreadPriority`.
const PRIORITIES: [(&str, Successor); 14] = {
    use PluginId::*;
    use Successor::{Fit, NoEffect, Plugins, SelectorSpread};
    [
        ("SelectorSpreadPriority", SelectorSpread),
        (SELECTOR_SPREADING, SelectorSpread),
        ("ServiceSpreadingPriority", SelectorSpread),
        (EVEN_PODS_SPREAD, Plugins(&[PodTopologySpread])),
        ("InterPodAffinityPriority", Plugins(&[InterPodAffinity])),
        ("NodeAffinityPriority", Plugins(&[NodeAffinity])),
        ("TaintTolerationPriority", Plugins(&[TaintToleration])),
        ("ImageLocalityPriority", Plugins(&[ImageLocality])),
        (
            "BalancedResourceAllocation",
            Plugins(&[NodeResourcesBalancedAllocation]),
        ),
        ("LeastRequestedPriority", Fit(Strategy::LeastAllocated)),
        ("MostRequestedPriority", Fit(Strategy::MostAllocated)),
        (
            "RequestedToCapacityRatioPriority",
            Fit(Strategy::RequestedToCapacityRatio),
        ),
        (
            "NodePreferAvoidPodsPriority",
            NoEffect("no Kubernetes since 1.25 reads the annotation that it looked at"),
        ),
        ("EqualPriority", NoEffect("it gave all nodes the same")),
    ]
};

const SELECTOR_SPREADING: &str = "SelectorSpreadingPriority";
const EVEN_PODS_SPREAD: &str = "EvenPodsSpreadPriority";

/// Arguments that define a predicate or priority of any name, with its successor.
const BY_ARGUMENT: [(&str, Successor); 5] = [
    ("labelsPresence", Successor::Gone(NO_LABEL_PLUGIN)),
    ("labelPreference", Successor::Gone(NO_LABEL_PLUGIN)),
    ("serviceAffinity", Successor::Gone(NO_SERVICE_PLUGIN)),
    ("serviceAntiAffinity", Successor::Gone(NO_SERVICE_PLUGIN)),
    (RATIO, Successor::Fit(Strategy::RequestedToCapacityRatio)),
];

const RATIO: &str = "requestedToCapacityRatioArguments";

/// Reads the document.
pub(super) fn read(
    value: Value,
    gates: &FeatureGates,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) -> Configuration {
    let root = FieldPath::root();
    let wire: PolicyWire = problems.decode(value, &root);
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
    if let Some(predicates) = &wire.predicates {
        set_predicates(predicates, profile, problems);
    }
    match &wire.priorities {
        Some(priorities) => set_priorities(priorities, gates, profile, problems, names),
        None => {
            let note =
                "Policy: without priorities the default score plugins of Kubernetes 1.36 count";
            problems.notes.push(note.to_owned());
        }
    }
    configuration
}

fn set_predicates(
    predicates: &[PredicateWire],
    profile: &mut Profile,
    problems: &mut Problems<'_>,
) {
    let root = FieldPath::root().child("predicates");
    let mut named = ALWAYS.to_vec();
    for (i, predicate) in predicates.iter().enumerate() {
        let path = root.index(i);
        let name = predicate.name.as_deref().unwrap_or_default();
        match successor(&PREDICATES, name, predicate.argument.as_ref()) {
            Some(Successor::Plugins(plugins)) => {
                named.extend(plugins);
                let plugins: Vec<&str> = plugins.iter().map(|plugin| plugin.name()).collect();
                let note = format!("{path}: {name} became {}", plugins.join(", "));
                problems.notes.push(note);
            }
            Some(Successor::Gone(why)) => problems.at(path.child("name"), gone(name, why)),
            _ => problems.at(path.child("name"), unknown("predicate", name, &PREDICATES)),
        }
    }
    let (on, off): (Vec<PluginId>, Vec<PluginId>) =
        profile.filters.iter().partition(|id| named.contains(id));
    profile.filters = on;
    if !off.is_empty() {
        let off: Vec<&str> = off.iter().map(|plugin| plugin.name()).collect();
        problems.notes.push(format!(
            "predicates: filters that are not named do not filter: {}",
            off.join(", ")
        ));
    }
}

fn set_priorities(
    priorities: &[PriorityWire],
    gates: &FeatureGates,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) {
    let root = FieldPath::root().child("priorities");
    let mut scores: Vec<(PluginId, i64)> = Vec::new();
    let mut merged: Vec<PluginId> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    let mut strategies: Vec<Strategy> = Vec::new();
    let mut has_defaults = false;
    for (i, priority) in priorities.iter().enumerate() {
        let path = root.index(i);
        let name = priority.name.as_deref().unwrap_or_default();
        let argument = priority.argument.as_ref();
        if seen.contains(&name) {
            problems.field(FieldError::duplicate(path.child("name"), name));
        }
        seen.push(name);
        let found = successor(&PRIORITIES, name, argument);
        let takes_argument = found == Some(Successor::Fit(Strategy::RequestedToCapacityRatio));
        let (plugin, with) = match found {
            Some(Successor::SelectorSpread) if !gates.default_pod_topology_spread => {
                (PluginId::SelectorSpread, "")
            }
            Some(Successor::SelectorSpread) => {
                has_defaults = true;
                (PluginId::PodTopologySpread, "")
            }
            Some(Successor::Plugins(plugins)) => (plugins[0], ""),
            Some(Successor::Fit(strategy)) => {
                strategies.push(strategy);
                let of = fit(strategy, argument, &path, profile, problems, names);
                (PluginId::NodeResourcesFit, of)
            }
            Some(Successor::NoEffect(why)) => {
                let note = format!("{path}: {name} is left out: {why}");
                problems.notes.push(note);
                continue;
            }
            Some(Successor::Gone(why)) => {
                problems.at(path.child("name"), gone(name, why));
                continue;
            }
            None => {
                problems.at(path.child("name"), unknown("priority", name, &PRIORITIES));
                continue;
            }
        };
        if argument.is_some() && !takes_argument {
            let message = format!("{name} takes no argument");
            let error = Diagnostic::error("no-arguments", message);
            problems.at(path.child("argument"), error);
        }
        let weight = priority.weight.unwrap_or(0);
        if weight <= 0 {
            let detail = "must have a positive weight applied to it";
            let path = path.child("weight");
            problems.field(FieldError::invalid_raw(path, weight, detail));
        }
        problems.notes.push(format!(
            "{path}: {name} became {plugin}{with} with weight {weight}"
        ));
        match scores.iter_mut().find(|(known, _)| *known == plugin) {
            Some((_, sum)) => {
                *sum = sum.saturating_add(weight);
                merged.push(plugin);
            }
            None => scores.push((plugin, weight)),
        }
    }
    if !merged.is_empty() {
        let sums = scores.iter().filter(|(plugin, _)| merged.contains(plugin));
        let sums = sums.map(|(plugin, sum)| format!("{plugin} has {sum}"));
        let sums: Vec<String> = sums.collect();
        let note = format!("priorities: their weights add up: {}", sums.join(", "));
        problems.notes.push(note);
    }
    strategies.dedup();
    if strategies.len() > 1 {
        let message = "NodeResourcesFit scores by one strategy: only one of LeastRequestedPriority, \
                       MostRequestedPriority and RequestedToCapacityRatioPriority can be had";
        problems.at(root.clone(), Diagnostic::error("two-strategies", message));
    }
    problems
        .notes
        .push("priorities: the score plugins that are not named do not count".to_owned());
    check_weights(&scores, &root, problems);
    let spreads = scores
        .iter()
        .any(|(plugin, _)| *plugin == PluginId::PodTopologySpread);
    if spreads && !has_defaults && gates.default_pod_topology_spread {
        profile.default_constraints = DefaultConstraints::List(Vec::new());
        let note = "priorities: EvenPodsSpreadPriority alone has no default constraints";
        problems.notes.push(note.to_owned());
    }
    profile.scores = scores;
}

/// Sets the strategy of NodeResourcesFit; returns its description.
fn fit(
    strategy: Strategy,
    argument: Option<&Value>,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) -> &'static str {
    match strategy {
        Strategy::LeastAllocated => {
            profile.fit.strategy = ScoringStrategy::LeastAllocated;
            " (LeastAllocated)"
        }
        Strategy::MostAllocated => {
            profile.fit.strategy = ScoringStrategy::MostAllocated;
            " (MostAllocated)"
        }
        Strategy::RequestedToCapacityRatio => {
            let given = &argument.unwrap_or(&Value::Null)[RATIO];
            let resources = given["resources"].as_array().map_or(&[][..], Vec::as_slice);
            let resources = resources.iter();
            let resource = |r: &Value| json!({"name": r["name"], "weight": r["weight"]});
            let args = json!({"scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": given["shape"]},
                "resources": resources.map(resource).collect::<Vec<Value>>(),
            }});
            let path = path.child("argument");
            resource_arguments::fit(args, &path, profile, problems, names);
            " (RequestedToCapacityRatio)"
        }
    }
}

/// The successor by name, or by argument for a predicate or priority of any name.
fn successor(
    known: &[(&str, Successor)],
    name: &str,
    argument: Option<&Value>,
) -> Option<Successor> {
    let by_argument = |argument: &Value| {
        let mut all = BY_ARGUMENT.iter();
        all.find(|(field, _)| !argument[field].is_null())
            .map(|(_, successor)| *successor)
    };
    let by_name = known.iter().find(|(known, _)| *known == name);
    by_name
        .map(|(_, successor)| *successor)
        .or_else(|| argument.and_then(by_argument))
}

fn gone(name: &str, why: &str) -> Diagnostic {
    Diagnostic::error("gone", format!("{name} has no successor: {why}"))
}

fn unknown(what: &str, name: &str, known: &[(&str, Successor)]) -> Diagnostic {
    let error = Diagnostic::error("unknown-name", format!("unknown {what} {name:?}"));
    match nearest(name, known.iter().map(|(name, _)| *name)) {
        Some(meant) => error.with_help(format!("did you mean {meant:?}?")),
        None => {
            error.with_help("write a KubeSchedulerConfiguration for plugins that came after Policy")
        }
    }
}
