//! What is read of storage objects, case by case.

use serde_json::{Value, json};
use strew_model::well_known;

use super::*;

fn read_claim(metadata: Value, spec: Value, phase: Option<&str>) -> (ClaimFact, Interner) {
    let status = phase.map(|phase| json!({"phase": phase}));
    let wire = json!({"metadata": metadata, "spec": spec, "status": status});
    let mut names = Interner::new();
    let fact = claim(&serde_json::from_value(wire).unwrap(), &mut names);
    (fact, names)
}

#[test]
fn a_claim_is_bound_when_the_controller_says_so_or_no_controller_can() {
    let named = json!({"volumeName": "pv"});
    let completed = json!({"annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
    for (metadata, phase, bound) in [
        (json!({}), Some("Bound"), true),
        (json!({}), Some("Pending"), false),
        (completed, Some("Pending"), true),
        (json!({}), None, true),
        (json!({}), Some("Lost"), false),
    ] {
        let (fact, _) = read_claim(metadata.clone(), named.clone(), phase);
        assert_eq!(fact.bound, bound, "{metadata} {phase:?}");
        assert_eq!(fact.unattended, phase.is_none());
        assert_eq!(fact.lost, phase == Some("Lost"));
        assert!(fact.volume.is_some());
    }
}

#[test]
fn a_claim_tells_mode_class_owner_and_that_it_goes() {
    let metadata = json!({
        "deletionTimestamp": "2024-01-01T00:00:00Z",
        "annotations": {"volume.beta.kubernetes.io/storage-class": "old"},
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u1", "controller": true},
        ],
    });
    let spec =
        json!({"accessModes": ["ReadWriteOncePod"], "storageClassName": "new", "volumeName": ""});
    let (fact, mut names) = read_claim(metadata, spec, None);
    assert!(fact.once_pod && fact.terminating);
    assert_eq!(fact.class, Some(names.intern("old")));
    assert_eq!(fact.owner.as_deref(), Some("u1"));
    assert_eq!(fact.volume, None);
    let (fact, _) = read_claim(json!({}), json!({"accessModes": ["ReadWriteOnce"]}), None);
    assert_eq!((fact.once_pod, fact.class, fact.owner), (false, None, None));
}

#[test]
fn a_volume_tells_its_zones_its_terms_and_its_driver() {
    let wire = json!({
        "metadata": {"labels": {
            "topology.kubernetes.io/zone": "a__ b",
            "failure-domain.beta.kubernetes.io/zone": "",
            "app": "db",
        }},
        "spec": {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
            ]}},
        },
    });
    let mut names = Interner::new();
    let fact = volume(&serde_json::from_value(wire).unwrap(), &mut names);
    let [a, b, disk, driver, handle] =
        ["a", "b", "disk", "ebs.csi.aws.com", "vol-1"].map(|text| names.intern(text));
    assert_eq!(*fact.zones, [(well_known::ZONE, [a, b].into())]);
    assert_eq!(fact.attached, Some((driver, handle)));
    assert!(fact.admits(&Labels::new(vec![(disk, a)]), &names));
    assert!(!fact.admits(&Labels::default(), &names));
}

#[test]
fn disks_that_drivers_took_over_count_as_theirs() {
    let mut names = Interner::new();
    let mut driver_of = |spec: Value| {
        let wire = json!({"spec": spec});
        let fact = volume(&serde_json::from_value(wire).unwrap(), &mut names);
        fact.attached
            .map(|(driver, handle)| format!("{} {}", names.text(driver), names.text(handle)))
    };
    let cases = [
        (
            json!({"awsElasticBlockStore": {"volumeID": "v1"}}),
            Some("ebs.csi.aws.com v1"),
        ),
        (
            json!({"gcePersistentDisk": {"pdName": "d"}}),
            Some("pd.csi.storage.gke.io d"),
        ),
        (
            json!({"cinder": {"volumeID": "c"}}),
            Some("cinder.csi.openstack.org c"),
        ),
        (json!({"nfs": {"server": "s", "path": "/"}}), None),
        (json!({"local": {"path": "/mnt"}}), None),
    ];
    for (spec, expected) in cases {
        assert_eq!(driver_of(spec.clone()).as_deref(), expected, "{spec}");
    }
}

#[test]
fn classes_tell_who_binds_and_nodes_how_many_are_attached() {
    let mut names = Interner::new();
    let mut class = |wire: Value| {
        let fact = storage_class(&serde_json::from_value(wire).unwrap(), &mut names);
        (
            fact.waits,
            fact.driver.map(|driver| names.text(driver).to_owned()),
        )
    };
    let waits = "WaitForFirstConsumer";
    assert_eq!(
        class(json!({"provisioner": "kubernetes.io/aws-ebs", "volumeBindingMode": waits})),
        (true, Some("ebs.csi.aws.com".to_owned()))
    );
    assert_eq!(
        class(json!({"provisioner": "example.com/nfs"})),
        (false, Some("example.com/nfs".to_owned()))
    );
    assert_eq!(
        class(json!({"provisioner": "kubernetes.io/azure-file"})),
        (false, None)
    );
    let wire = json!({"spec": {"drivers": [
        {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}},
        {"name": "efs.csi.aws.com", "nodeID": "i-1"},
    ]}});
    let limits = attach_limits(&serde_json::from_value(wire).unwrap(), &mut names);
    assert_eq!(*limits, [(names.intern("ebs.csi.aws.com"), 25)]);
}
