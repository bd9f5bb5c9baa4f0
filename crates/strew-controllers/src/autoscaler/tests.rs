use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DeploymentSpec, DeploymentStatus};
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus,
};
use serde_json::json;
use strew_apiserver::object::{Autoscaler, Deployment, Meta, Name, Pod, PodStatus};

use super::AutoscalerController;
use crate::api::Api;
use crate::job::world::JobCluster;

fn world(replicas: i32, n_pods: usize) -> JobCluster {
    let mut world = JobCluster::new(vec![Box::new(AutoscalerController::new())]);
    let labels = json!({"app": "web"});
    let spec = json!({
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}}
    });
    world.create::<DeploymentSpec, DeploymentStatus>("web", spec);
    autoscaler(&mut world, "web");
    for i in 0..n_pods {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "100m"}}});
        let mut meta = Meta::new(Name::new("ns", format!("web-{i}")));
        meta.labels = Arc::new(BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        let pod = Pod {
            meta,
            spec: Arc::new(serde_json::from_value(json!({"containers": [container]})).unwrap()),
            node: None,
            status: PodStatus::default(),
        };
        world.store.create(pod.into()).unwrap();
    }
    world.run_pods();
    world
}

fn autoscaler(world: &mut JobCluster, name: &str) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 10});
    world.create::<HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus>(name, spec);
}

fn replicas(world: &JobCluster) -> Option<i32> {
    world.get::<Deployment>("web").unwrap().spec.replicas
}

fn reasons(world: &JobCluster) -> String {
    let autoscaler = world.get::<Autoscaler>("web").unwrap();
    let conditions = autoscaler.status.conditions.iter().flatten();
    let conditions = conditions.map(|c| {
        format!(
            "{}={}/{}",
            c.type_,
            c.status,
            c.reason.clone().unwrap_or_default()
        )
    });
    conditions.collect::<Vec<_>>().join(" ")
}

#[test]
fn it_looks_every_fifteen_seconds_and_scales_up() {
    let mut world = world(3, 3);
    world.store.utilisation = Some(160);
    world.pass(14);
    assert_eq!(replicas(&world), Some(3));
    world.pass(1);
    assert_eq!(replicas(&world), Some(6));
    let told = "SuccessfulRescale New size: 6; reason: cpu resource utilization (percentage of request) above target";
    assert_eq!(world.news(), [told]);
    let expected = "AbleToScale=True/SucceededRescale ScalingActive=True/ValidMetricFound \
                    ScalingLimited=False/DesiredWithinRange";
    assert_eq!(reasons(&world), expected);
}

#[test]
fn it_scales_down_five_minutes_later() {
    let mut world = world(6, 6);
    world.store.utilisation = Some(40);
    world.pass(300);
    assert_eq!(replicas(&world), Some(6));
    world.pass(45);
    assert_eq!(replicas(&world), Some(3));
    assert_eq!(
        world.news(),
        ["SuccessfulRescale New size: 3; reason: All metrics below target"]
    );
}

#[test]
fn minimum_and_maximum_hold_without_figures() {
    for (start, expected) in [(1, 2), (30, 10), (0, 0), (5, 5)] {
        let mut world = world(start, 1);
        world.pass(20);
        assert_eq!(replicas(&world), Some(expected));
    }
}

#[test]
fn without_figures_it_says_so() {
    let mut world = world(3, 3);
    world.pass(20);
    let expected = "AbleToScale=True/SucceededGetScale ScalingActive=False/FailedGetResourceMetric";
    assert_eq!(reasons(&world), expected);
}

#[test]
fn two_autoscalers_of_one_target_do_nothing() {
    let mut world = world(3, 3);
    autoscaler(&mut world, "other");
    world.store.utilisation = Some(160);
    world.pass(60);
    assert_eq!(replicas(&world), Some(3));
    let expected = "AbleToScale=True/SucceededGetScale ScalingActive=False/AmbiguousSelector";
    assert_eq!(reasons(&world), expected);
}
