//! The arguments of plugins: checks `pluginConfig` and applies it to the profile.
//!
//! Source: spec/scheduler §5.3, §1.12; `pkg/scheduler/apis/config/{v1,validation}`, v1.36. Two differences: the
//! arguments of NodeResourcesFit are checked here, while kube-scheduler checks them when it starts the plugin; and
//! arguments of a plugin that does not exist, or takes none, are refused, while kube-scheduler ignores them.

use k8s_openapi::api::core::v1 as core;
use serde::Deserialize;
use serde_json::Value;
use strew_model::Interner;
use strew_scheduler::{AddedAffinity, PreemptionArgs, Profile};

use super::merge::is_removed;
use super::plugins;
use super::problems::Problems;
use super::resource_arguments::{balanced, fit};
use super::spread_arguments::spread;
use super::versions::Version;
use super::wire::PluginConfigWire;
use crate::facts::node_selector_term;
use strew_manifest::duration::GoDuration;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::{Diagnostic, nearest};
use strew_manifest::validation;

/// Checks the arguments of all plugins of a profile, and applies them.
pub(super) fn apply(
    configs: &[PluginConfigWire],
    version: Version,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, config) in configs.iter().enumerate() {
        let path = path.child("pluginConfig").index(i);
        let name = config.name.as_deref().unwrap_or_default();
        if seen.contains(&name) {
            problems.field(FieldError::duplicate(path.clone(), name));
        }
        seen.push(name);
        if is_removed(name) {
            let error = FieldError::invalid(path, name, version.was_invalid());
            problems.field(error);
            continue;
        }
        let args_path = path.child("args");
        let Some(args) = arguments_of(name, config, version, &path, problems) else {
            continue;
        };
        match name {
            "DefaultPreemption" => preemption(args, &args_path, profile, problems),
            "InterPodAffinity" => inter_pod_affinity(args, &args_path, profile, problems),
            "NodeAffinity" => node_affinity(args, &args_path, profile, problems, names),
            "NodeResourcesFit" => fit(args, &args_path, profile, problems, names),
            "NodeResourcesBalancedAllocation" => {
                balanced(args, &args_path, profile, problems, names);
            }
            "PodTopologySpread" => {
                spread(args, version, &args_path, profile, problems, names);
            }
            "VolumeBinding" => volume_binding(args, &args_path, problems),
            "DynamicResources" => dynamic_resources(args, &args_path, problems),
            _ => {}
        }
    }
}

const WITH_ARGUMENTS: [&str; 8] = [
    "DefaultPreemption",
    "DynamicResources",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "PodTopologySpread",
    "VolumeBinding",
];

/// The arguments without apiVersion and kind, which may be missing but must be right if present.
fn arguments_of(
    name: &str,
    config: &PluginConfigWire,
    version: Version,
    path: &FieldPath,
    problems: &mut Problems<'_>,
) -> Option<Value> {
    if !WITH_ARGUMENTS.contains(&name) {
        let error = match plugins::find(name) {
            Some(_) => {
                Diagnostic::error("no-arguments", format!("plugin {name} takes no arguments"))
            }
            None => {
                let message = format!("there is no plugin {name:?}");
                let error = Diagnostic::error("unknown-plugin", message);
                match nearest(name, WITH_ARGUMENTS) {
                    Some(meant) => error.with_help(format!("did you mean {meant:?}?")),
                    None => error,
                }
            }
        };
        problems.at(path.child("name"), error);
        return None;
    }
    let mut args = config.args.clone().unwrap_or(Value::Null);
    if args.is_null() {
        args = Value::Object(serde_json::Map::new());
    }
    let Some(fields) = args.as_object_mut() else {
        return Some(args);
    };
    let text = |value: Option<Value>| value.and_then(|v| v.as_str().map(str::to_owned));
    let api_version = text(fields.shift_remove("apiVersion"));
    let kind = text(fields.shift_remove("kind"));
    let api_version = api_version.filter(|given| !given.is_empty());
    let api_version = api_version.unwrap_or_else(|| version.api_version());
    let wanted = format!("{name}Args");
    let kind = kind.filter(|given| !given.is_empty());
    let kind = kind.unwrap_or_else(|| wanted.clone());
    let (group, _) = api_version.split_once('/').unwrap_or(("", &api_version));
    let args_path = path.child("args");
    if group != Version::GROUP || kind != wanted {
        let message = format!(
            "args for plugin {name} were not of type {wanted}.{}, got {kind}{}{group}",
            Version::GROUP,
            if group.is_empty() { "" } else { "." },
        );
        problems.at(
            args_path.child("kind"),
            Diagnostic::error("wrong-kind", message),
        );
        return None;
    }
    if Version::of(&api_version).is_none() {
        let message = format!("no kind {kind:?} is registered for version {api_version:?}");
        problems.at(
            args_path.child("apiVersion"),
            Diagnostic::error("wrong-kind", message),
        );
        return None;
    }
    Some(args)
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct PreemptionWire {
    min_candidate_nodes_percentage: Option<i32>,
    min_candidate_nodes_absolute: Option<i32>,
}

fn preemption(args: Value, path: &FieldPath, profile: &mut Profile, problems: &mut Problems<'_>) {
    let wire: PreemptionWire = problems.decode(args, path);
    let percentage = wire.min_candidate_nodes_percentage.unwrap_or(10);
    let absolute = wire.min_candidate_nodes_absolute.unwrap_or(100);
    let percentage_path = path.child("minCandidateNodesPercentage");
    let absolute_path = path.child("minCandidateNodesAbsolute");
    if !(0..=100).contains(&percentage) {
        let detail = "not in valid range [0, 100]";
        problems.field(FieldError::invalid_raw(
            percentage_path.clone(),
            percentage,
            detail,
        ));
    }
    if absolute < 0 {
        let detail = "not in valid range [0, inf)";
        problems.field(FieldError::invalid_raw(
            absolute_path.clone(),
            absolute,
            detail,
        ));
    }
    if percentage == 0 && absolute == 0 {
        let detail = "cannot be zero at the same time as minCandidateNodesAbsolute";
        problems.field(FieldError::invalid_raw(percentage_path, 0, detail));
        let detail = "cannot be zero at the same time as minCandidateNodesPercentage";
        problems.field(FieldError::invalid_raw(absolute_path, 0, detail));
    }
    if let (Ok(percentage), Ok(absolute)) = (u8::try_from(percentage), u32::try_from(absolute)) {
        profile.preemption = Some(PreemptionArgs {
            candidate_nodes_percentage_min: percentage,
            candidate_nodes_min: absolute,
        });
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct InterPodAffinityWire {
    hard_pod_affinity_weight: Option<i32>,
    ignore_preferred_terms_of_existing_pods: Option<bool>,
}

fn inter_pod_affinity(
    args: Value,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
) {
    let wire: InterPodAffinityWire = problems.decode(args, path);
    let weight = wire.hard_pod_affinity_weight.unwrap_or(1);
    if !(0..=100).contains(&weight) {
        let path = path.child("hardPodAffinityWeight");
        let detail = "not in valid range [0, 100]";
        problems.field(FieldError::invalid_raw(path, weight, detail));
    }
    profile.hard_pod_affinity_weight = weight;
    profile.ignore_preferred_terms_of_existing_pods = wire
        .ignore_preferred_terms_of_existing_pods
        .unwrap_or(false);
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct NodeAffinityWire {
    added_affinity: Option<core::NodeAffinity>,
}

/// The affinity must obey the rules of a pod's affinity.
fn node_affinity(
    args: Value,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) {
    let wire: NodeAffinityWire = problems.decode(args, path);
    let Some(added) = wire.added_affinity else {
        return;
    };
    let mut errors = Vec::new();
    validation::affinity::node_affinity(&added, &path.child("addedAffinity"), &mut errors);
    problems.fields(errors);
    let required = added.required_during_scheduling_ignored_during_execution;
    let preferred = added.preferred_during_scheduling_ignored_during_execution;
    let preferred = preferred.iter().flatten().filter(|term| term.weight != 0);
    profile.added_affinity = AddedAffinity {
        required: required.map(|required| {
            let terms = required.node_selector_terms.iter();
            terms.map(|term| node_selector_term(term, names)).collect()
        }),
        preferred: preferred
            .map(|term| (term.weight, node_selector_term(&term.preference, names)))
            .collect(),
    };
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct VolumeBindingWire {
    bind_timeout_seconds: Option<i64>,
    shape: Option<Vec<super::resource_arguments::ShapePointWire>>,
}

/// Checked, but without effect: strew provisions no volumes.
fn volume_binding(args: Value, path: &FieldPath, problems: &mut Problems<'_>) {
    let wire: VolumeBindingWire = problems.decode(args, path);
    let timeout = wire.bind_timeout_seconds.unwrap_or(600);
    if timeout < 0 {
        let detail = "invalid BindTimeoutSeconds, should not be a negative value";
        let path = path.child("bindTimeoutSeconds");
        problems.field(FieldError::invalid_raw(path, timeout, detail));
    }
    if let Some(shape) = wire.shape {
        let points: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let value = format!("[]config.UtilizationShapePoint{{{}}}", points.join(", "));
        let detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring";
        problems.field(FieldError::invalid_raw(path.child("shape"), value, detail));
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct DynamicResourcesWire {
    filter_timeout: Option<String>,
    binding_timeout: Option<String>,
}

/// Checked, but without effect: strew allocates no devices.
fn dynamic_resources(args: Value, path: &FieldPath, problems: &mut Problems<'_>) {
    let wire: DynamicResourcesWire = problems.decode(args, path);
    let filter = duration(
        wire.filter_timeout.as_deref(),
        path.child("filterTimeout"),
        problems,
    );
    if let Some(filter) = filter.filter(|timeout| *timeout < GoDuration::ZERO) {
        let path = path.child("filterTimeout");
        problems.field(FieldError::invalid_raw(
            path,
            filter,
            "must be zero or positive",
        ));
    }
    let path = path.child("bindingTimeout");
    let binding = duration(wire.binding_timeout.as_deref(), path.clone(), problems);
    if let Some(binding) = binding.filter(|timeout| *timeout < GoDuration::from_secs(1)) {
        problems.field(FieldError::invalid_raw(
            path,
            binding,
            "must be at least 1 second",
        ));
    }
}

/// A duration; `None` if it is missing or invalid.
pub(super) fn duration(
    text: Option<&str>,
    path: FieldPath,
    problems: &mut Problems<'_>,
) -> Option<GoDuration> {
    let text = text?;
    let duration = GoDuration::parse(text);
    if duration.is_none() {
        let message = format!("time: invalid duration {text:?}");
        let error = Diagnostic::error("wrong-type", message);
        problems.at(path, error.with_help("write it like 15s, 500ms or 1h30m"));
    }
    duration
}
