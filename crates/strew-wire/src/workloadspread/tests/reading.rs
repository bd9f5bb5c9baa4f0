//! Texts into objects.

use super::*;

const BOTH: &str = "
apiVersion: apps.kruise.io/v1beta1
kind: WorkloadSpread
metadata: {name: new}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets:
  - name: own
    requiredNodeSelector: {matchExpressions: [{key: pool, operator: In, values: [own]}]}
    preferredNodeSelector: [{weight: 5, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]
    tolerations: [{key: own, operator: Exists}]
    maxReplicas: 30%
    patch: {metadata: {labels: {a: null}}, anything: [1, {b: c}]}
  scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 30, disableSimulationSchedule: true}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: old}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  subsets:
  - name: own
    requiredNodeSelectorTerm: {matchExpressions: [{key: pool, operator: In, values: [own]}]}
    preferredNodeSelectorTerms: [{weight: 5, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]
    tolerations: [{key: own, operator: Exists}]
    maxReplicas: 30%
    patch: {metadata: {labels: {a: null}}, anything: [1, {b: c}]}
  scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 30, disableSimulationSchedule: true}}
";

#[test]
fn both_versions_are_read_as_the_stored_one_and_a_patch_keeps_its_nulls() {
    let all = objects(BOTH);
    let [new, old] = &all[..] else {
        panic!("two objects: {all:?}");
    };
    let json = new.to_json();
    let mut of_old = old.to_json();
    of_old["metadata"]["name"] = "new".into();
    assert_eq!(json, of_old);
    assert_eq!(json["apiVersion"], "apps.kruise.io/v1beta1");
    assert_eq!(new.namespace(), Some("default"));
    assert_eq!(
        json["spec"]["subsets"][0]["patch"],
        json!({"metadata": {"labels": {"a": null}}, "anything": [1, {"b": "c"}]})
    );
    assert_eq!(KubeObject::of_json(json).unwrap(), *new);
}

#[test]
fn a_misspelt_field_is_an_error_with_its_place_and_the_nearest_name() {
    let text = "apiVersion: apps.kruise.io/v1beta1\nkind: WorkloadSpread\nmetadata: {name: ws}\nspec:\n  subsets:\n  - name: a\n    maxReplica: 3\n    requiredNodeSelectorTerm: {}\n";
    let reading = reading(text);
    let told: Vec<String> = reading
        .diagnostics
        .iter()
        .map(|d| d.message.clone())
        .collect();
    assert_eq!(
        told,
        [
            "unknown field \"maxReplica\", did you mean \"maxReplicas\"?",
            "unknown field \"requiredNodeSelectorTerm\", did you mean \"requiredNodeSelector\"?",
        ]
    );
    let place = reading.diagnostics[0].place.as_ref().unwrap();
    assert_eq!((place.line, place.column), (7, 5));
}

#[test]
fn kruises_own_workloads_are_read() {
    let text = "
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: web}]}}
  updateStrategy: {type: InPlaceIfPossible, partition: 1, maxUnavailable: 20%}
status: {replicas: 3, updateRevision: web-5, currentRevision: web-4, observedGeneration: 2}
---
apiVersion: apps.kruise.io/v1alpha1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  reserveOrdinals: [1]
  template: {spec: {containers: [{name: main, image: db}]}}
---
apiVersion: apps.kruise.io/v1alpha1
kind: SidecarSet
metadata: {name: other}
spec: {whatever: 1}
";
    let all = objects(text);
    let labels: Vec<String> = all.iter().map(KubeObject::label).collect();
    assert_eq!(
        labels,
        [
            "CloneSet default/web",
            "StatefulSet (apps.kruise.io) default/db",
            "SidecarSet (apps.kruise.io) other"
        ]
    );
    let KubeObject::CloneSet(web) = &all[0] else {
        panic!("{:?}", all[0]);
    };
    let status = web.status.as_ref().unwrap();
    assert_eq!(status.update_revision.as_deref(), Some("web-5"));
    assert_eq!(all[1].api_version(), "apps.kruise.io/v1beta1");
}

#[test]
fn a_status_edited_by_hand_is_read_as_far_as_it_goes() {
    let mut broken = web(json!([{"name": "a", "maxReplicas": 2}]));
    broken["status"] = json!({
        "observedGeneration": "three",
        "subsetStatuses": {"a": 1},
        "versionedSubsetStatuses": {"7": [
            {"name": "a", "replicas": -4, "missingReplicas": -9, "creatingPods": {"x": "yesterday", "y": "1901-01-01T00:00:00Z"},
             "conditions": [{"type": "Other"}, {"type": "Schedulable", "status": "Maybe"}]},
            {"name": "a", "replicas": 1, "missingReplicas": 1e300},
            {"replicas": 2_147_483_648_i64},
            null,
            7,
        ]},
        "more": true,
    });
    let (object, faults) = strew_manifest::kruise::read_back(broken.clone()).unwrap();
    assert!(faults.len() >= 6, "{faults:?}");
    let fact = crate::workloadspread::status::fact(object.status.as_ref().unwrap());
    assert!(fact.overall.is_empty());
    let rows = fact.rows("7");
    assert_eq!((rows[0].replicas, rows[0].missing), (-4, -9));
    assert_eq!(rows[0].schedulable.map(|s| s.holds), Some(true));
    assert!(!rows[0].has_room());
    let again = crate::workloadspread::status::wire(&fact);
    assert_eq!(crate::workloadspread::status::fact(&again), fact);
}

#[test]
fn every_row_over_all_revisions_says_that_no_webhook_is_ready() {
    use strew_workloadspread::facts::status::{Webhook, WebhookCondition};
    use strew_workloadspread::{Row, Schedulable, Status};

    use crate::workloadspread::status;

    let since = strew_model::Instant::from_secs(1_795_000_000);
    let row = |name: &str, schedulable| Row {
        schedulable,
        ..Row::new(name.into(), 1)
    };
    let holds = Schedulable { holds: true, since };
    for (why, reason) in [
        (Webhook::NotRegistered, "WebhookNotRegistered"),
        (Webhook::NotReady, "WebhookNotReady"),
    ] {
        let fact = Status {
            overall: vec![row("own", Some(holds)), row("elastic", None)],
            versioned: [("v1".into(), vec![row("own", None)])].into(),
            webhook: Some(WebhookCondition { why, since }),
            ..Status::default()
        };
        let wire = status::wire(&fact);
        assert_eq!(status::fact(&wire), fact);
        let rows = wire.subset_statuses.as_ref().unwrap();
        for row in rows {
            let last = row.conditions.as_ref().unwrap().last().unwrap();
            let said = (&*last.type_, &*last.status, &*last.reason);
            assert_eq!(said, ("WebhookReady", "False", reason));
        }
        let versioned = wire.versioned_subset_statuses.unwrap();
        assert_eq!(versioned["v1"][0].conditions, None);
    }
}

#[test]
fn what_a_rollout_does_to_a_subset_is_read_back_from_its_condition() {
    use strew_workloadspread::facts::status::RolloutMisfit;
    use strew_workloadspread::{Misfit, Row, Status};

    use crate::workloadspread::status;

    let since = strew_model::Instant::from_secs(1_795_000_000);
    for (what, reason) in [
        (Misfit::Stuck, "OldPodsHoldNodes"),
        (Misfit::NoRoom, "OldPodsHoldLimits"),
        (Misfit::Short(7), "SurgePassesBy"),
    ] {
        let rows = ["own", "elastic"].map(|name| Row::new(name.into(), 1));
        let fact = Status {
            overall: rows.into(),
            misfits: [("own".into(), RolloutMisfit { what, since })].into(),
            ..Status::default()
        };
        let wire = status::wire(&fact);
        assert_eq!(status::fact(&wire), fact);
        let rows = wire.subset_statuses.unwrap();
        let condition = &rows[0].conditions.as_ref().unwrap()[0];
        let said = (
            &*condition.type_,
            &*condition.status,
            &*condition.reason,
            &*condition.message,
        );
        let message = status::misfit(what);
        assert_eq!(said, ("RolloutFits", "False", reason, &*message));
        assert_eq!(rows[1].conditions, None, "of that subset alone");
    }
}
