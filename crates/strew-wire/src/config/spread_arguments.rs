//! The arguments of PodTopologySpread: default constraints for pods without their own.
//!
//! Source: spec/scheduler §1.5, §1.12; KEP-1258 for the fields of v1beta1.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde::Deserialize;
use serde_json::Value;
use strew_model::Interner;
use strew_scheduler::{DefaultConstraints, Profile};

use super::problems::Problems;
use super::versions::Version;
use crate::facts::spread_constraint;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata;

#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct SpreadWire {
    defaulting_type: Option<String>,
    default_constraints: Option<Vec<TopologySpreadConstraint>>,
}

/// The same before v1.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct BetaSpreadWire {
    defaulting_type: Option<String>,
    default_constraints: Option<Vec<TopologySpreadConstraint>>,
    disable_default_constraints: Option<bool>,
}

const SYSTEM: &str = "System";
const LIST: &str = "List";

pub(super) fn spread(
    args: Value,
    version: Version,
    path: &FieldPath,
    profile: &mut Profile,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) {
    let wire = match version {
        Version::V1 => problems.decode(args, path),
        _ => converted(problems.decode(args, path), version, path, problems),
    };
    let constraints = wire.default_constraints.unwrap_or_default();
    // With DefaultPodTopologySpread off there are no system default constraints.
    let absent = match profile.default_constraints {
        DefaultConstraints::System => SYSTEM,
        DefaultConstraints::List(_) => LIST,
    };
    let given = wire.defaulting_type.filter(|given| !given.is_empty());
    let defaulting = given.as_deref().unwrap_or(absent);
    let mut errors = Vec::new();
    validate(defaulting, &constraints, path, &mut errors);
    problems.fields(errors);
    profile.default_constraints = match defaulting {
        SYSTEM => DefaultConstraints::System,
        _ => {
            let constraints = constraints.into_iter().map(|mut constraint| {
                // The selector is deduced for each pod; a given one is an error (spec/scheduler §1.5).
                constraint.label_selector = None;
                spread_constraint(&constraint, names)
            });
            DefaultConstraints::List(constraints.filter_map(Result::ok).collect())
        }
    };
}

/// KEP-1258's rules: a list means that list; an empty list, or `disableDefaultConstraints`, means no constraints.
fn converted(
    beta: BetaSpreadWire,
    version: Version,
    path: &FieldPath,
    problems: &mut Problems<'_>,
) -> SpreadWire {
    let disables = beta.disable_default_constraints == Some(true);
    let n_constraints = beta.default_constraints.as_ref().map_or(0, Vec::len);
    let disable_path = path.child("disableDefaultConstraints");
    let given = beta.defaulting_type.filter(|given| !given.is_empty());
    if disables && n_constraints > 0 {
        let detail = "when .defaultConstraints are not empty";
        problems.field(FieldError::invalid_raw(disable_path, true, detail));
    } else if disables && given.as_deref() == Some(SYSTEM) {
        let detail = "when .defaultingType is System";
        problems.field(FieldError::invalid_raw(disable_path, true, detail));
    }
    let was = match (&given, &beta.default_constraints) {
        (Some(_), _) => None,
        (None, _) if disables => Some("disableDefaultConstraints: true".to_owned()),
        (None, Some(list)) if list.is_empty() => Some("defaultConstraints: []".to_owned()),
        (None, Some(_)) => Some("defaultConstraints without defaultingType".to_owned()),
        (None, None) => None,
    };
    let became = match (was.is_some(), n_constraints) {
        (true, 0) => " without constraints",
        _ => "",
    };
    if let Some(was) = &was {
        let note = format!("{path}: {was} ({version}) became defaultingType: {LIST}{became}");
        problems.notes.push(note);
    }
    SpreadWire {
        defaulting_type: given.or_else(|| was.map(|_| LIST.to_owned())),
        default_constraints: beta.default_constraints,
    }
}

fn validate(
    defaulting: &str,
    constraints: &[TopologySpreadConstraint],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let type_path = path.child("defaultingType");
    if ![SYSTEM, LIST].contains(&defaulting) {
        errors.push(FieldError::not_supported(
            type_path,
            defaulting,
            &[SYSTEM, LIST],
        ));
    } else if defaulting == SYSTEM && !constraints.is_empty() {
        let detail = "when .defaultConstraints are not empty";
        let error = FieldError::invalid(type_path, defaulting, detail);
        errors.push(error.with_help("write `defaultingType: List` beside defaultConstraints"));
    }
    for (i, constraint) in constraints.iter().enumerate() {
        let path = path.child("defaultConstraints").index(i);
        validate_one(constraint, &path, errors);
        let same_pair = |other: &TopologySpreadConstraint| {
            other.topology_key == constraint.topology_key
                && other.when_unsatisfiable == constraint.when_unsatisfiable
        };
        if constraints[..i].iter().any(same_pair) {
            let (key, action) = (&constraint.topology_key, &constraint.when_unsatisfiable);
            errors.push(FieldError::duplicate(path, &format!("{{{key}, {action}}}")));
        }
    }
}

fn validate_one(
    constraint: &TopologySpreadConstraint,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
    let empty = "can not be empty";
    if constraint.max_skew <= 0 {
        let detail = "not in valid range (0, inf)";
        let path = path.child("maxSkew");
        errors.push(FieldError::invalid_raw(path, constraint.max_skew, detail));
    }
    let key_path = path.child("topologyKey");
    match constraint.topology_key.as_str() {
        "" => errors.push(FieldError::required(key_path, empty)),
        key => metadata::label_name(key, &key_path, errors),
    }
    let action_path = path.child("whenUnsatisfiable");
    match constraint.when_unsatisfiable.as_str() {
        "" => errors.push(FieldError::required(action_path, empty)),
        action if !ACTIONS.contains(&action) => {
            errors.push(FieldError::not_supported(action_path, action, &ACTIONS));
        }
        _ => {}
    }
    if constraint.label_selector.is_some() {
        let detail = "constraint must not define a selector, as they deduced for each pod";
        errors.push(FieldError::forbidden(path.child("labelSelector"), detail));
    }
    // kube-scheduler drops the keys and never reads them (spec/scheduler §1.5); `--compat strew` merges them.
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    for (i, key) in keys.iter().enumerate() {
        metadata::label_name(key, &path.child("matchLabelKeys").index(i), errors);
    }
}
