//! The complete objects of the KEPs and of the OCM spread proposal.

use super::*;

#[test]
fn kep_1258_replica_set_has_a_bad_name() {
    check::<ReplicaSet>(
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "replicated_demo"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "demo"}},
                "template": {
                    "metadata": {"labels": {"app": "demo"}},
                    "spec": {"containers": [{"name": "php-redis", "image": "example.com/registry/demo:latest"}]},
                },
            },
        }),
        &[&format!(
            "metadata.name: Invalid value: \"replicated_demo\": {SUBDOMAIN}"
        )],
    );
}

#[test]
fn kep_3022_deployment_does_not_select_its_pods() {
    check::<Deployment>(
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "nginx-deployment"},
            "spec": {
                "selector": {"matchLabels": {"app": "nginx"}},
                "replicas": 10,
                "template": {
                    "metadata": {"labels": {"foo": "bar"}},
                    "spec": {
                        "containers": [{"name": "nginx", "image": "nginx:1.14.2", "ports": [{"containerPort": 80}]}],
                        "topologySpreadConstraints": [{
                            "maxSkew": 2, "minDomains": 5, "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": {"foo": "bar"}},
                        }],
                    },
                },
            },
        }),
        &[
            "spec.template.metadata.labels: Invalid value: {\"foo\":\"bar\"}: `selector` does not match template `labels`",
        ],
    );
}

#[test]
fn kep_3243_deployment_is_accepted() {
    check::<Deployment>(
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "nginx"},
            "spec": {
                "replicas": 12,
                "selector": {"matchLabels": {"foo": "bar"}},
                "template": {
                    "metadata": {"labels": {"foo": "bar"}},
                    "spec": {
                        "restartPolicy": "Always",
                        "containers": [{"name": "nginx", "image": "nginx:1.14.2"}],
                        "topologySpreadConstraints": [{
                            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": {"foo": "bar"}},
                            "matchLabelKeys": ["pod-template-hash"],
                        }],
                    },
                },
            },
        }),
        &[],
    );
}
