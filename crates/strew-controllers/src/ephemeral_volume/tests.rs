use serde_json::json;
use strew_apiserver::object::Name;

use super::*;
use crate::testing::TestCluster;

#[test]
fn each_ephemeral_volume_gets_a_claim_that_goes_with_its_pod() {
    let mut world = TestCluster::new(vec![Box::new(EphemeralVolumes)]);
    world.create(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }}},
                {"name": "tmp", "emptyDir": {}},
            ],
        },
    }));
    world.settle();
    let key = Key {
        kind: Kind::of(CLAIM),
        name: Name::new("default", "web-scratch"),
    };
    let claim = world.server.tables.find(&key).unwrap();
    assert_eq!(claim.meta().label("app"), Some("web"));
    let pod = world
        .server
        .tables
        .get::<Pod>(&Name::new("default", "web"))
        .unwrap();
    assert_eq!(
        claim.meta().controller().map(|owner| &owner.uid),
        Some(&pod.meta.uid)
    );
    let claims = world
        .server
        .tables
        .all_plain()
        .filter(|plain| plain.kind == Kind::of(CLAIM));
    assert_eq!(claims.count(), 1);
}
