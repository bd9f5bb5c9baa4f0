use serde_json::{Value, json};
use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Name, Object, Pod};
use strew_manifest::read::KubeObject;

use super::volume::zone_of;
use super::{CLAIM, ClaimBinder, key};
use crate::api::Api;
use crate::testing::World;

fn world(mode: &str, is_default: bool) -> World {
    let mut world = World::new(vec![Box::new(ClaimBinder::new())]);
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
fn stored(world: &World, name: &str) -> (Value, Option<Value>) {
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
