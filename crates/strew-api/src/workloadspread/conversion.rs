//! Between the versions. Nothing is lost but what the other version cannot say.
//!
//! | from | what cannot be said | what is written |
//! |---|---|---|
//! | v1alpha1 | a condition without a reason | reason `Unknown` |
//! | v1alpha1 | a condition without a time | the zero time of Go |
//! | v1beta1 | a condition's `observedGeneration` | nothing |
//!
//! Source: spec/workloadspread §2.4.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{v1alpha1 as old, v1beta1 as new};

/// Of a condition that tells none.
const NO_REASON: &str = "Unknown";

/// Seconds of Go's zero time, 0001-01-01T00:00:00Z.
const ZERO_TIME_S: i64 = -62_135_596_800;

/// v1alpha1 as v1beta1.
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

/// v1beta1 as v1alpha1.
pub fn down(object: new::WorkloadSpread) -> old::WorkloadSpread {
    old::WorkloadSpread {
        metadata: object.metadata,
        spec: object.spec.map(|spec| old::WorkloadSpreadSpec {
            target_reference: spec.target_reference,
            target_filter: spec.target_filter,
            subsets: spec.subsets.into_iter().map(subset_down).collect(),
            schedule_strategy: spec.schedule_strategy,
        }),
        status: object.status.map(|status| old::WorkloadSpreadStatus {
            observed_generation: status.observed_generation,
            subset_statuses: status.subset_statuses.map(|rows| each(rows, row_down)),
            versioned_subset_statuses: status
                .versioned_subset_statuses
                .map(|by_revision| values(by_revision, row_down)),
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

fn subset_down(subset: new::WorkloadSpreadSubset) -> old::WorkloadSpreadSubset {
    old::WorkloadSpreadSubset {
        name: subset.name,
        required_node_selector_term: subset.required_node_selector,
        preferred_node_selector_terms: subset.preferred_node_selector,
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

fn row_down(row: new::SubsetStatus) -> old::SubsetStatus {
    old::SubsetStatus {
        name: row.name,
        replicas: row.replicas,
        missing_replicas: row.missing_replicas,
        creating_pods: row.creating_pods,
        deleting_pods: row.deleting_pods,
        conditions: row.conditions.map(|all| each(all, condition_down)),
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

fn condition_down(condition: Condition) -> old::SubsetCondition {
    let time = Some(condition.last_transition_time).filter(|time| *time != zero_time());
    old::SubsetCondition {
        type_: condition.type_,
        status: condition.status,
        last_transition_time: time,
        reason: Some(condition.reason),
        message: Some(condition.message).filter(|message| !message.is_empty()),
    }
}

fn zero_time() -> Time {
    let zero = jiff::Timestamp::from_second(ZERO_TIME_S);
    Time(zero.unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}
