//! Between the versions.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use serde_json::json;

use crate::workloadspread::{annotations, status, v1beta1 as new};
use strew_manifest::kruise::conversion::{ConvertError, convert, up};
use strew_manifest::kruise::spec::*;
use strew_manifest::kruise::v1alpha1 as old;

fn down(object: new::WorkloadSpread) -> old::WorkloadSpread {
    let object = serde_json::to_value(object).unwrap();
    serde_json::from_value(convert(object, "apps.kruise.io/v1alpha1").unwrap()).unwrap()
}

fn time() -> impl Strategy<Value = Time> {
    (0..4_000_000_000_i64).prop_map(|s| Time(jiff::Timestamp::from_second(s).unwrap()))
}

fn word() -> impl Strategy<Value = String> {
    "[a-c]{1,3}"
}

fn condition() -> impl Strategy<Value = Condition> {
    (word(), word(), time(), word(), "[a-c]{0,2}").prop_map(
        |(type_, status, last_transition_time, reason, message)| Condition {
            type_,
            status,
            last_transition_time,
            reason,
            message,
            observed_generation: None,
        },
    )
}

fn row() -> impl Strategy<Value = new::SubsetStatus> {
    let pods = || of(btree_map(word(), time(), 0..3));
    let conditions = of(vec(condition(), 0..3));
    (
        word(),
        any::<i32>(),
        any::<i32>(),
        pods(),
        pods(),
        conditions,
    )
        .prop_map(
            |(name, replicas, missing_replicas, creating_pods, deleting_pods, conditions)| {
                new::SubsetStatus {
                    name,
                    replicas,
                    missing_replicas,
                    creating_pods,
                    deleting_pods,
                    conditions,
                }
            },
        )
}

fn subset() -> impl Strategy<Value = new::WorkloadSpreadSubset> {
    let limit = of(prop_oneof![
        any::<i32>().prop_map(IntOrString::Int),
        "[0-9]{1,3}%".prop_map(IntOrString::String),
    ]);
    let patch =
        of(word().prop_map(|label| json!({"metadata": {"labels": {"a": label, "b": null}}})));
    let term = || {
        word().prop_map(|key| {
            serde_json::from_value(
                json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}),
            )
            .unwrap()
        })
    };
    let preferred = of(vec(
        (1..100, term()).prop_map(|(weight, preference)| {
            k8s_openapi::api::core::v1::PreferredSchedulingTerm { weight, preference }
        }),
        0..3,
    ));
    let toleration = word().prop_map(|key| k8s_openapi::api::core::v1::Toleration {
        key: Some(key),
        ..Default::default()
    });
    (
        word(),
        of(term()),
        preferred,
        of(vec(toleration, 0..3)),
        limit,
        patch,
    )
        .prop_map(
            |(
                name,
                required_node_selector,
                preferred_node_selector,
                tolerations,
                max_replicas,
                patch,
            )| {
                new::WorkloadSpreadSubset {
                    name,
                    required_node_selector,
                    preferred_node_selector,
                    tolerations,
                    max_replicas,
                    patch,
                }
            },
        )
}

fn object() -> impl Strategy<Value = new::WorkloadSpread> {
    let beyond = btree_map(
        prop_oneof![
            Just(annotations::MIN_REPLICAS.to_owned()),
            Just(annotations::WINDOW_SECONDS.to_owned()),
            word(),
        ],
        "[a-z{}0-9\":]{0,6}",
        0..4,
    );
    let target = of(
        (word(), word(), word()).prop_map(|(api_version, kind, name)| TargetReference {
            api_version,
            kind,
            name,
        }),
    );
    let strategy = of(
        (of(word()), of((of(any::<bool>()), of(any::<i32>())))).prop_map(|(type_, adaptive)| {
            ScheduleStrategy {
                type_,
                adaptive: adaptive.map(
                    |(disable_simulation_schedule, reschedule_critical_seconds)| AdaptiveStrategy {
                        disable_simulation_schedule,
                        reschedule_critical_seconds,
                    },
                ),
            }
        }),
    );
    let filter = of(
        of(vec(word(), 0..3)).prop_map(|replicas_path_list| TargetFilter {
            selector: None,
            replicas_path_list,
        }),
    );
    let rows = || of(vec(row(), 0..3));
    let versioned = of(btree_map(word(), vec(row(), 0..2), 0..3));
    let status = of((of(any::<i64>()), rows(), versioned).prop_map(
        |(observed_generation, subset_statuses, versioned_subset_statuses)| {
            new::WorkloadSpreadStatus {
                observed_generation,
                subset_statuses,
                versioned_subset_statuses,
            }
        },
    ));
    (
        of(beyond),
        target,
        filter,
        vec(subset(), 0..4),
        strategy,
        status,
    )
        .prop_map(
            |(annotations, target_reference, target_filter, subsets, schedule_strategy, status)| {
                new::WorkloadSpread {
                    metadata: ObjectMeta {
                        name: Some("ws".to_owned()),
                        annotations: annotations.map(BTreeMap::from_iter),
                        ..ObjectMeta::default()
                    },
                    spec: Some(new::WorkloadSpreadSpec {
                        target_reference,
                        target_filter,
                        subsets,
                        schedule_strategy,
                    }),
                    status,
                }
            },
        )
}

proptest! {
    #[test]
    fn down_and_up_again_loses_nothing(object in object()) {
        prop_assert_eq!(&up(down(object.clone())), &object);
        // So does the way through texts.
        let text = serde_json::to_string(&down(object.clone())).unwrap();
        let read: old::WorkloadSpread = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&up(read), &object);
        // And up and down again, from what went down.
        let old = down(object);
        prop_assert_eq!(&down(up(old.clone())), &old);
    }

    #[test]
    fn texts_are_converted_as_objects_are(object in object()) {
        let json = |object: &new::WorkloadSpread| serde_json::to_value(object).unwrap();
        let old = down(object.clone());
        let (old, again) = (serde_json::to_value(&old).unwrap(), json(&up(old)));
        prop_assert_eq!(&convert(json(&object), "apps.kruise.io/v1alpha1").unwrap(), &old);
        prop_assert_eq!(convert(old, "apps.kruise.io/v1beta1").unwrap(), again);
    }

    #[test]
    fn a_ledger_is_the_same_after_the_wire(object in object()) {
        let fact = object.status.as_ref().map(status::fact).unwrap_or_default();
        let text = serde_json::to_string(&status::wire(&fact)).unwrap();
        let back: new::WorkloadSpreadStatus = serde_json::from_str(&text).unwrap();
        let mut expected = fact;
        // A revision without rows, and what is null, is the same to the ledger.
        expected.versioned.retain(|_, rows| !rows.is_empty());
        let mut back = status::fact(&back);
        back.versioned.retain(|_, rows| !rows.is_empty());
        prop_assert_eq!(back, expected);
    }
}

#[test]
fn what_the_other_version_cannot_say_has_a_stand_in() {
    let row = json!({"name": "a", "replicas": 1, "missingReplicas": 0, "conditions": [{"type": "Schedulable", "status": "True"}]});
    let given: old::WorkloadSpread = serde_json::from_value(
        json!({"metadata": {}, "status": {"subsetStatuses": [row.clone()], "versionedSubsetStatuses": {"7": [row]}}}),
    )
    .unwrap();
    let status = up(given).status.unwrap();
    let versioned = status.versioned_subset_statuses.unwrap();
    for row in status
        .subset_statuses
        .unwrap()
        .iter()
        .chain(&versioned["7"])
    {
        let condition = &row.conditions.as_ref().unwrap()[0];
        assert_eq!(condition.reason, "Unknown");
        assert_eq!(
            condition.last_transition_time.0.to_string(),
            "0001-01-01T00:00:00Z"
        );
    }
    let condition = json!({"type": "Schedulable", "status": "True", "reason": "Sufficient", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 9});
    let given: new::WorkloadSpread = serde_json::from_value(
        json!({"metadata": {}, "status": {"subsetStatuses": [{"name": "a", "conditions": [condition]}]}}),
    )
    .unwrap();
    let back = up(down(given)).status.unwrap().subset_statuses.unwrap();
    assert_eq!(
        back[0].conditions.as_ref().unwrap()[0].observed_generation,
        None
    );
}

#[test]
fn what_a_later_definition_has_goes_through_untouched() {
    let object = |version: &str, selector: &str| {
        json!({
            "apiVersion": format!("apps.kruise.io/{version}"),
            "kind": "WorkloadSpread",
            "metadata": {"name": "ws", "labels": {}, "of": {"tomorrow": [1]}},
            "spec": {
                "subsets": [{"name": "a", selector: {"of": "tomorrow"}, "weight": 7}, "what is this"],
                "priority": {"subsets": []},
            },
            "status": {"subsetStatuses": "?", "versionedSubsetStatuses": {"7": [{"name": "a", "ready": 1}], "8": 9}},
            "more": null,
        })
    };
    let (old, new) = (
        object("v1alpha1", "requiredNodeSelectorTerm"),
        object("v1beta1", "requiredNodeSelector"),
    );
    let up = convert(old.clone(), "apps.kruise.io/v1beta1").unwrap();
    // Names of fields, and their order.
    assert_eq!(up.to_string(), new.to_string());
    let down = convert(new.clone(), "apps.kruise.io/v1alpha1").unwrap();
    assert_eq!(down.to_string(), old.to_string());
    let same = convert(new.clone(), "apps.kruise.io/v1beta1");
    assert_eq!(same, Ok(new.clone()));
    let to = "apps.kruise.io/v1".to_owned();
    assert_eq!(convert(new, &to), Err(ConvertError::To(to)));
}
