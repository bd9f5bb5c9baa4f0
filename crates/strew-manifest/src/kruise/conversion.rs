//! Converts between the versions. Only what the other version cannot express is lost.
//!
//! [`convert`] changes the JSON of an object where the versions differ and keeps everything else, because a webhook
//! must return fields that only a later CustomResourceDefinition has. [`up`] converts decoded objects.
//!
//! | from | not expressible | written instead |
//! |---|---|---|
//! | v1alpha1 | a condition without a reason | reason `Unknown` |
//! | v1alpha1 | a condition without a time | Go's zero time |
//! | v1beta1 | a condition's `observedGeneration` | nothing |
//!
//! Source: spec/workloadspread §2.4.

use std::collections::BTreeMap;

use k8s_openapi::Resource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Map, Value};

use super::{v1alpha1 as old, v1beta1 as new};

/// The reason of a condition without one.
const NO_REASON: &str = "Unknown";

/// Seconds of Go's zero time.
const ZERO_TIME_S: i64 = -62_135_596_800;

/// Go's zero time in the API's format.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// The names of a subset's fields in v1alpha1 and in v1beta1.
const RENAMED: [[&str; 2]; 2] = [
    ["requiredNodeSelectorTerm", "requiredNodeSelector"],
    ["preferredNodeSelectorTerms", "preferredNodeSelector"],
];

/// Why an object cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// It is no WorkloadSpread.
    #[error("kind {0:?} is not WorkloadSpread")]
    Kind(String),
    /// Its version is unknown.
    #[error("version {0:?} is neither v1alpha1 nor v1beta1 of apps.kruise.io")]
    From(String),
    /// The requested version is unknown.
    #[error("version {0:?} is asked for, which is neither v1alpha1 nor v1beta1 of apps.kruise.io")]
    To(String),
}

/// Converts the JSON of a WorkloadSpread to the version `version`, an `apiVersion`. Invalid values are kept as they
/// are: the caller checks the schema.
///
/// # Errors
/// The object is no WorkloadSpread of a known version, or the requested version is unknown.
pub fn convert(mut object: Value, version: &str) -> Result<Value, ConvertError> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (kind, from) = (text("kind"), text("apiVersion"));
    if kind != new::WorkloadSpread::KIND {
        return Err(ConvertError::Kind(kind));
    }
    let is_old = is_old(&from).ok_or(ConvertError::From(from))?;
    let to_old = self::is_old(version).ok_or_else(|| ConvertError::To(version.to_owned()))?;
    if is_old == to_old {
        return Ok(object);
    }
    object["apiVersion"] = version.into();
    for subset in items(object.pointer_mut("/spec/subsets")) {
        for [of_old, of_new] in RENAMED {
            match to_old {
                true => rename(subset, of_new, of_old),
                false => rename(subset, of_old, of_new),
            }
        }
    }
    let condition = match to_old {
        true => lower,
        false => raise,
    };
    let rows = |rows: Option<&mut Value>| {
        for row in items(rows) {
            items(row.get_mut("conditions")).for_each(condition);
        }
    };
    rows(object.pointer_mut("/status/subsetStatuses"));
    let versioned = object.pointer_mut("/status/versionedSubsetStatuses");
    let versioned = versioned.and_then(Value::as_object_mut);
    for (_, of_revision) in versioned.into_iter().flatten() {
        rows(Some(of_revision));
    }
    Ok(object)
}

/// True for v1alpha1, false for v1beta1; `None` for other versions.
fn is_old(version: &str) -> Option<bool> {
    match version {
        old::WorkloadSpread::API_VERSION => Some(true),
        new::WorkloadSpread::API_VERSION => Some(false),
        _ => None,
    }
}

/// The objects of a list; empty if there is no list.
fn items(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let list = list.and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Fields keep their positions, so that repeated conversions look alike.
fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    if !fields.contains_key(from) {
        return;
    }
    let before = std::mem::take(fields);
    let named = |(key, value)| match key {
        key if key == from => (to.to_owned(), value),
        key => (key, value),
    };
    *fields = before.into_iter().map(named).collect();
}

/// Converts a condition of v1alpha1 to v1beta1, which requires all of its fields.
fn raise(condition: &mut Map<String, Value>) {
    for (key, of_silence) in [
        ("reason", NO_REASON),
        ("lastTransitionTime", ZERO_TIME),
        ("message", ""),
    ] {
        let value = condition.entry(key).or_insert(Value::Null);
        if value.is_null() || value == "" {
            *value = of_silence.into();
        }
    }
}

/// Converts a condition of v1beta1 to v1alpha1.
fn lower(condition: &mut Map<String, Value>) {
    condition.shift_remove("observedGeneration");
    for (key, silence) in [("lastTransitionTime", ZERO_TIME), ("message", "")] {
        if condition.get(key).is_some_and(|value| value == silence) {
            condition.shift_remove(key);
        }
    }
}

/// Converts v1alpha1 to v1beta1.
pub fn up(object: old::WorkloadSpread) -> new::WorkloadSpread {
    new::WorkloadSpread {
        metadata: object.metadata,
        spec: object.spec.map(|spec| new::WorkloadSpreadSpec {
            target_reference: spec.target_reference,
            target_filter: spec.target_filter,
            subsets: spec.subsets.into_iter().map(subset_up).collect(),
            schedule_strategy: spec.schedule_strategy,
        }),
        status: object.status.map(|status| new::WorkloadSpreadStatus {
            observed_generation: status.observed_generation,
            subset_statuses: status.subset_statuses.map(|rows| each(rows, row_up)),
            versioned_subset_statuses: status
                .versioned_subset_statuses
                .map(|by_revision| values(by_revision, row_up)),
        }),
    }
}

fn each<A, B>(rows: Vec<A>, of: fn(A) -> B) -> Vec<B> {
    rows.into_iter().map(of).collect()
}

fn values<A, B>(rows: BTreeMap<String, Vec<A>>, of: fn(A) -> B) -> BTreeMap<String, Vec<B>> {
    let rows = rows.into_iter();
    rows.map(|(key, rows)| (key, each(rows, of))).collect()
}

fn subset_up(subset: old::WorkloadSpreadSubset) -> new::WorkloadSpreadSubset {
    new::WorkloadSpreadSubset {
        name: subset.name,
        required_node_selector: subset.required_node_selector_term,
        preferred_node_selector: subset.preferred_node_selector_terms,
        tolerations: subset.tolerations,
        max_replicas: subset.max_replicas,
        patch: subset.patch,
    }
}

fn row_up(row: old::SubsetStatus) -> new::SubsetStatus {
    new::SubsetStatus {
        name: row.name,
        replicas: row.replicas,
        missing_replicas: row.missing_replicas,
        creating_pods: row.creating_pods,
        deleting_pods: row.deleting_pods,
        conditions: row.conditions.map(|all| each(all, condition_up)),
    }
}

fn condition_up(condition: old::SubsetCondition) -> Condition {
    let reason = condition.reason.filter(|reason| !reason.is_empty());
    Condition {
        type_: condition.type_,
        status: condition.status,
        last_transition_time: condition.last_transition_time.unwrap_or_else(zero_time),
        reason: reason.unwrap_or_else(|| NO_REASON.to_owned()),
        message: condition.message.unwrap_or_default(),
        observed_generation: None,
    }
}

fn zero_time() -> Time {
    let zero = jiff::Timestamp::from_second(ZERO_TIME_S);
    Time(zero.unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}
