//! The arguments of NodeResourcesFit and NodeResourcesBalancedAllocation.
//!
//! Source: spec/scheduler §5.3; `validation_pluginargs.go` of `pkg/scheduler/apis/config/validation`, v1.36.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use strew_model::{Interner, ResourceName};
use strew_scheduler::{Profile, ScoringStrategy};

use super::problems::Problems;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata;

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct FitWire {
    ignored_resources: Option<Vec<String>>,
    ignored_resource_groups: Option<Vec<String>>,
    scoring_strategy: Option<StrategyWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct StrategyWire {
    #[serde(rename = "type")]
    type_: Option<String>,
    resources: Option<Vec<ResourceWire>>,
    requested_to_capacity_ratio: Option<RatioWire>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct RatioWire {
    shape: Option<Vec<ShapePointWire>>,
}

/// A point of a score over utilization.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct ShapePointWire {
    utilization: Option<i32>,
    score: Option<i32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ResourceWire {
    name: Option<String>,
    weight: Option<i64>,
}

impl ShapePointWire {
    fn point(&self) -> (i32, i32) {
        (self.utilization.unwrap_or(0), self.score.unwrap_or(0))
    }
}

/// As Go prints the struct.
impl fmt::Display for ShapePointWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (utilization, score) = self.point();
        write!(
            f,
            "config.UtilizationShapePoint{{Utilization:{utilization}, Score:{score}}}"
        )
    }
}

const STRATEGIES: [&str; 3] = [
    "LeastAllocated",
    "MostAllocated",
    "RequestedToCapacityRatio",
];

pub(super) fn fit(
    args: Value,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) {
    let wire: FitWire = problems.decode(args, path);
    let mut errors = Vec::new();
    let resources_path = path.child("ignoredResources");
    for (i, name) in wire.ignored_resources.iter().flatten().enumerate() {
        metadata::label_name(name, &resources_path.index(i), &mut errors);
    }
    let groups_path = path.child("ignoredResourceGroups");
    for (i, group) in wire.ignored_resource_groups.iter().flatten().enumerate() {
        let path = groups_path.index(i);
        if group.contains('/') {
            let detail = "resource group name can't contain '/'";
            errors.push(FieldError::invalid(path.clone(), group, detail));
        }
        metadata::label_name(group, &path, &mut errors);
    }
    let ignored = wire.ignored_resources.iter().flatten();
    profile.fit.ignored_resources = ignored.map(|name| names.intern(name)).collect();
    profile.fit.ignored_resource_groups = wire.ignored_resource_groups.unwrap_or_default();
    if let Some(given) = wire.scoring_strategy {
        strategy(
            given,
            &path.child("scoringStrategy"),
            profile,
            &mut errors,
            names,
        );
    }
    problems.fields(errors);
}

fn strategy(
    given: StrategyWire,
    path: &FieldPath,
    profile: &mut Profile,
    errors: &mut Vec<FieldError>,
    names: &mut Interner,
) {
    let kind = given.type_.as_deref().unwrap_or_default();
    if !STRATEGIES.contains(&kind) {
        errors.push(FieldError::not_supported(
            path.child("type"),
            kind,
            &STRATEGIES,
        ));
    }
    let resources = with_defaults(given.resources);
    for (i, (name, weight)) in resources.iter().enumerate() {
        if !(1..=100).contains(weight) {
            let path = path.child("resources").index(i).child("weight");
            let detail = format!("resource weight of {name} not in valid range (0, 100]");
            errors.push(FieldError::invalid_raw(path, weight, detail));
        }
    }
    let ratio_path = path.child("requestedToCapacityRatio");
    let ratio = given.requested_to_capacity_ratio;
    profile.fit.strategy = match (kind, ratio) {
        ("RequestedToCapacityRatio", None) => {
            let detail = "must be specified when type is RequestedToCapacityRatio";
            errors.push(FieldError::required(ratio_path, detail));
            ScoringStrategy::LeastAllocated
        }
        ("RequestedToCapacityRatio", Some(ratio)) => {
            let points = ratio.shape.unwrap_or_default();
            let points: Vec<_> = points.iter().map(ShapePointWire::point).collect();
            shape(&points, &ratio_path.child("shape"), errors);
            let points = points.into_iter();
            let points = points.map(|(x, y)| (i64::from(x), i64::from(y)));
            ScoringStrategy::RequestedToCapacityRatio(points.collect())
        }
        (_, Some(_)) => {
            let detail = "must be nil when type is not RequestedToCapacityRatio";
            errors.push(FieldError::forbidden(ratio_path, detail));
            ScoringStrategy::LeastAllocated
        }
        ("MostAllocated", None) => ScoringStrategy::MostAllocated,
        (_, None) => ScoringStrategy::LeastAllocated,
    };
    let resources = resources.into_iter();
    let resources = resources.map(|(name, weight)| (resource_name(&name, names), weight));
    profile.fit.resources = resources.collect();
}

/// cpu and memory if the list is missing, weight 1 if a weight is missing.
fn with_defaults(given: Option<Vec<ResourceWire>>) -> Vec<(String, i64)> {
    let given = given.unwrap_or_default();
    if given.is_empty() {
        return vec![("cpu".to_owned(), 1), ("memory".to_owned(), 1)];
    }
    let each = given.into_iter().map(|resource| {
        let weight = resource.weight.filter(|weight| *weight != 0).unwrap_or(1);
        (resource.name.unwrap_or_default(), weight)
    });
    each.collect()
}

fn resource_name(name: &str, names: &mut Interner) -> ResourceName {
    match name {
        "cpu" => ResourceName::Cpu,
        "memory" => ResourceName::Memory,
        "ephemeral-storage" => ResourceName::EphemeralStorage,
        other => ResourceName::Scalar(names.intern(other)),
    }
}

fn shape(points: &[(i32, i32)], path: &FieldPath, errors: &mut Vec<FieldError>) {
    if points.is_empty() {
        let detail = "at least one point must be specified";
        errors.push(FieldError::required(path.clone(), detail));
        return;
    }
    let unsorted = points.windows(2).position(|two| two[0].0 >= two[1].0);
    if let Some(before) = unsorted {
        let at = path.index(before + 1).child("utilization");
        let detail = "values must be sorted in increasing order";
        errors.push(FieldError::invalid_raw(at, points[before + 1].0, detail));
    }
    for (i, (utilization, score)) in points.iter().enumerate() {
        let path = path.index(i);
        if !(0..=100).contains(utilization) {
            let detail = "not in valid range [0, 100]";
            errors.push(FieldError::invalid_raw(
                path.child("utilization"),
                utilization,
                detail,
            ));
        }
        if !(0..=10).contains(score) {
            let detail = "not in valid range [0, 10]";
            errors.push(FieldError::invalid_raw(path.child("score"), score, detail));
        }
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct BalancedWire {
    resources: Option<Vec<ResourceWire>>,
}

pub(super) fn balanced(
    args: Value,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) {
    let wire: BalancedWire = problems.decode(args, path);
    let resources = with_defaults(wire.resources);
    for (i, (name, weight)) in resources.iter().enumerate() {
        let path = path.child("resources").index(i);
        if resources[..i].iter().any(|(earlier, _)| earlier == name) {
            problems.field(FieldError::duplicate(path.child("name"), name));
        }
        if *weight != 1 {
            problems.field(FieldError::invalid_raw(
                path.child("weight"),
                weight,
                "must be 1",
            ));
        }
    }
    let resources = resources.iter();
    profile.balanced = resources
        .map(|(name, _)| resource_name(name, names))
        .collect();
}
