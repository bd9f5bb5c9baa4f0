use serde_json::{Value, json};
use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Name, Object, Pod};
use strew_manifest::read::KubeObject;

use super::volume::zone_of;
use super::{CLAIM, ClaimBinder, key};
use crate::api::Api;
use crate::testing::TestCluster;

fn world(mode: &str, is_default: bool) -> TestCluster {
    let mut world = TestCluster::new(vec![Box::new(ClaimBinder::new())]);
    for zone in ["a", "b", "c"] {
        world.create(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("{zone}-0"), "labels": {"topology.kubernetes.io/zone": zone}},
        }));
    }
    world.create(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "disk", "annotations": {
            "storageclass.kubernetes.io/is-default-class": is_default.to_string(),
        }},
        "provisioner": "disk.example.com",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    }));
    world
}

fn claim(name: &str, class: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

fn pod(name: &str, claim: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    })
}

/// A claim as it is stored, and the volume that it names.
fn stored(world: &TestCluster, name: &str) -> (Value, Option<Value>) {
    let json = |object: &Object| match object {
        Object::Plain(plain) => plain.object.to_json(),
        _ => Value::Null,
    };
    let claim = world
        .server
        .tables
        .find(&key(CLAIM, Name::new("default", name)));
    let claim = json(&claim.unwrap());
    let volume = claim["spec"]["volumeName"].as_str().map(|name| {
        let all = world.server.tables.all_plain();
        let mut found = all.filter(|plain| {
            *plain.meta.name.name == *name
                && matches!(plain.object, KubeObject::PersistentVolume(_))
        });
        found.next().unwrap().object.to_json()
    });
    (claim, volume)
}

#[test]
fn a_claim_that_waits_is_bound_in_the_zone_of_its_first_pod() {
    let mut world = world("WaitForFirstConsumer", false);
    world.create(claim("data-db-0", Some("disk")));
    world.create(pod("db-0", "data-db-0"));
    world.settle();
    assert_eq!(stored(&world, "data-db-0").1, None);
    world.edit::<Pod>("db-0", |pod| pod.node = Some("b-0".into()));
    world.settle();
    let (claim, volume) = stored(&world, "data-db-0");
    assert_eq!(claim["status"]["phase"], "Bound");
    let volume = volume.unwrap();
    assert_eq!(zone_of(&volume), Some("b"));
    assert_eq!(volume["spec"]["csi"]["driver"], "disk.example.com");
    assert_eq!(volume["spec"]["claimRef"]["name"], "data-db-0");
    assert_eq!(volume["spec"]["capacity"]["storage"], "1Gi");
    // With the claim the volume goes.
    let claim = key(CLAIM, Name::new("default", "data-db-0"));
    world
        .server
        .delete(&claim, &DeleteOptions::default())
        .unwrap();
    world.settle();
    let volumes = world.server.tables.all_plain();
    let volumes = volumes.filter(|p| matches!(p.object, KubeObject::PersistentVolume(_)));
    assert_eq!(volumes.count(), 0);
}

#[test]
fn claims_that_do_not_wait_go_from_zone_to_zone() {
    let mut world = world("Immediate", true);
    let names = ["data-db-0", "data-db-1", "data-db-2"];
    // The default class is theirs; an empty name means none.
    names
        .iter()
        .for_each(|name| drop(world.create(claim(name, None))));
    world.create(claim("by-hand", Some("")));
    world.settle();
    let mut zones: Vec<String> = names
        .iter()
        .map(|name| {
            let (claim, volume) = stored(&world, name);
            assert_eq!(claim["spec"]["storageClassName"], "disk");
            zone_of(&volume.unwrap()).unwrap().to_owned()
        })
        .collect();
    zones.sort_unstable();
    assert_eq!(zones, ["a", "b", "c"]);
    assert_eq!(stored(&world, "by-hand").1, None);
}

#[test]
fn volumes_that_several_nodes_mount_are_in_no_zone() {
    let mut world = world("Immediate", true);
    for mode in ["ReadWriteMany", "ReadOnlyMany"] {
        let mut shared = claim(mode, None);
        shared["metadata"]["name"] = json!(mode.to_lowercase());
        shared["spec"]["accessModes"] = json!([mode]);
        world.create(shared);
        world.settle();
        let (_, volume) = stored(&world, &mode.to_lowercase());
        assert_eq!(zone_of(&volume.unwrap()), None, "{mode}");
    }
}

fn volume(name: &str, class: Option<&str>, size: &str, more: Value) -> Value {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "capacity": {"storage": size}, "persistentVolumeReclaimPolicy": "Retain",
        },
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        volume["spec"][key] = value.clone();
    }
    volume
}

fn in_zone(zone: &str) -> Value {
    json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]},
    ]}}})
}

/// The volume of a claim by name.
fn volume_of(world: &TestCluster, claim: &str) -> Option<String> {
    let (_, volume) = stored(world, claim);
    volume.map(|volume| volume["metadata"]["name"].as_str().unwrap().to_owned())
}

#[test]
fn a_volume_that_is_there_is_bound_before_one_is_made() {
    let mut world = world("Immediate", false);
    world.create(volume("large", Some("disk"), "5Gi", json!({})));
    world.create(volume("right", Some("disk"), "2Gi", json!({})));
    world.create(volume("small", Some("disk"), "1Mi", json!({})));
    world.create(volume("other", Some("hdd"), "1Gi", json!({})));
    world.settle();
    world.create(claim("a", Some("disk")));
    // Without a StorageClass object: at once, and only by hand.
    world.create(claim("b", Some("hdd")));
    world.create(claim("c", Some("tape")));
    world.settle();
    assert_eq!(volume_of(&world, "a").as_deref(), Some("right"));
    assert_eq!(volume_of(&world, "b").as_deref(), Some("other"));
    assert_eq!(volume_of(&world, "c"), None);
    let (bound, taken) = stored(&world, "a");
    assert_eq!(bound["status"]["phase"], "Bound");
    assert_eq!(bound["status"]["capacity"]["storage"], "2Gi");
    let taken = taken.unwrap();
    assert_eq!(taken["status"]["phase"], "Bound");
    assert!(taken["spec"]["claimRef"]["uid"].is_string());
    let notes: Vec<&str> = world
        .server
        .events
        .iter()
        .map(|event| &*event.note)
        .collect();
    assert!(notes.contains(&"storageclass.storage.k8s.io \"tape\" not found"));
    // A volume that comes later.
    world.create(volume("tape-1", Some("tape"), "1Gi", json!({})));
    world.settle();
    assert_eq!(volume_of(&world, "c").as_deref(), Some("tape-1"));
    // The volume of a deleted claim is kept from others.
    let gone = key(CLAIM, Name::new("default", "c"));
    world
        .server
        .delete(&gone, &DeleteOptions::default())
        .unwrap();
    world.settle();
    world.create(claim("d", Some("tape")));
    world.settle();
    assert_eq!(volume_of(&world, "d"), None);
}

#[test]
fn a_claim_that_waits_gets_a_volume_that_its_pods_node_reaches() {
    let mut world = world("WaitForFirstConsumer", false);
    world.create(volume("near", Some("disk"), "3Gi", in_zone("b")));
    world.create(volume("far", Some("disk"), "2Gi", in_zone("a")));
    world.create(claim("data", Some("disk")));
    world.create(pod("db-0", "data"));
    world.settle();
    assert_eq!(volume_of(&world, "data"), None);
    world.edit::<Pod>("db-0", |pod| pod.node = Some("b-0".into()));
    world.settle();
    assert_eq!(volume_of(&world, "data").as_deref(), Some("near"));
}

#[test]
fn a_volume_that_is_kept_for_a_claim_is_for_it_alone() {
    let mut world = world("WaitForFirstConsumer", false);
    let kept = json!({"claimRef": {"namespace": "default", "name": "mine"}});
    world.create(volume("kept", Some("disk"), "9Gi", kept));
    world.create(claim("other", Some("disk")));
    world.create(claim("mine", Some("disk")));
    let mut named = claim("named", Some("disk"));
    named["spec"]["volumeName"] = "wrong".into();
    world.create(named);
    world.create(volume("wrong", Some("tape"), "9Gi", json!({})));
    world.settle();
    // Even before a pod has a node.
    assert_eq!(volume_of(&world, "mine").as_deref(), Some("kept"));
    assert_eq!(volume_of(&world, "other"), None);
    let (named, _) = stored(&world, "named");
    assert_ne!(named["status"]["phase"], "Bound");
    assert!(
        world
            .server
            .events
            .iter()
            .any(|event| event.reason == "VolumeMismatch")
    );
}

#[test]
fn the_older_annotation_names_the_class() {
    let mut world = world("Immediate", true);
    let mut old = claim("old", None);
    old["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "tape"});
    world.create(old);
    world.settle();
    assert_eq!(volume_of(&world, "old"), None);
    world.create(volume("tape", Some("tape"), "1Gi", json!({})));
    world.settle();
    assert_eq!(volume_of(&world, "old").as_deref(), Some("tape"));
}
