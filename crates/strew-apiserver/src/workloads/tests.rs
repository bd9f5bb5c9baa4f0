use super::*;
use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{Node, PodTemplateSpec};
use serde_json::{Value, json};

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn the_identity_of_a_stateful_sets_pod() {
    let set = json!({
        "selector": {}, "serviceName": "s", "template": template(),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    });
    let set: StatefulSetSpec = serde_json::from_value(set).unwrap();
    let mut spec = set.template.spec.clone().unwrap();
    set_stateful_identity(&mut spec, &set, "web-7");
    let identity = [spec.hostname.as_deref(), spec.subdomain.as_deref()];
    assert_eq!(identity, [Some("web-7"), Some("s")]);
    let volume = &spec.volumes.as_ref().unwrap()[0];
    let claim = volume.persistent_volume_claim.as_ref().unwrap();
    assert_eq!(claim.claim_name, "data-web-7");
}

#[test]
fn daemon_pods_belong_on_nodes_that_they_tolerate() {
    let node = |name: &str, os: &str, taint: Value| -> Node {
        let node =
            json!({"metadata": {"name": name, "labels": {"os": os}}, "spec": {"taints": taint}});
        serde_json::from_value(node).unwrap()
    };
    let mut of_linux = template();
    of_linux["spec"]["nodeSelector"] = json!({"os": "linux"});
    let of_linux: PodTemplateSpec = serde_json::from_value(of_linux).unwrap();
    let mut daemon = DaemonTemplate::new(&of_linux);
    let unschedulable =
        json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    for (node, expected) in [
        (node("free", "linux", json!([])), true),
        (node("cordoned", "linux", unschedulable), true),
        (
            node(
                "dedicated",
                "linux",
                json!([{"key": "gpu", "effect": "NoSchedule"}]),
            ),
            false,
        ),
        (node("windows", "windows", json!([])), false),
    ] {
        let fit = daemon.fit(NodeView::of(&node));
        assert_eq!(fit.should_run, expected, "{:?}", node.metadata.name);
    }
    let spec = daemon.pod_spec("free");
    assert_eq!(daemon_pod_node(&spec), Some("free"));
    assert_eq!(spec.tolerations.unwrap().len(), 6);
}
