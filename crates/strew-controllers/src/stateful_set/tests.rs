//! Whole lives of StatefulSets over a small server.

use std::fmt::Write as _;

use serde_json::{Value, json};
use strew_apiserver::ApiError;
use strew_apiserver::object::{ControllerRevision, Key, Kind, Name, Phase, StatefulSet};
use strew_model::time::Span;

use super::{StatefulSetController, StatefulSetSettings};
use crate::sets::REVISION_LABEL;
use crate::testing::TestCluster;

fn world(max_unavailable: bool) -> TestCluster {
    let controller = StatefulSetController::new(StatefulSetSettings { max_unavailable });
    TestCluster::new(vec![Box::new(controller)])
}

fn manifest(fields: Value) -> Value {
    let mut spec = json!({
        "replicas": 3,
        "serviceName": "web",
        "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "a"}]},
        },
    });
    let given = fields.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(given);
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "default"}, "spec": spec})
}

/// `web-0=1+ web-1=2-`: pod, number of its revision, `+` ready, `-` not, `!` terminating.
fn picture(world: &TestCluster) -> String {
    let mut text = String::new();
    for pod in world.pods(|_| true) {
        let label = pod.meta.label(REVISION_LABEL).unwrap_or("none");
        let revisions = &world.server.tables;
        let revision = revisions.get::<ControllerRevision>(&Name::new("default", label));
        let number = revision.map_or(0, |r| r.spec.revision);
        let state = match (pod.meta.is_terminating(), pod.is_ready()) {
            (true, _) => '!',
            (false, true) => '+',
            (false, false) => '-',
        };
        write!(text, "{}={number}{state} ", pod.meta.name.name).unwrap();
    }
    text.trim_end().to_owned()
}

#[track_caller]
fn check(world: &mut TestCluster, expected: &str) {
    world.settle();
    assert_eq!(picture(world), expected);
}

/// Kubelets start one pod, and are done with those that terminate.
fn kubelets(world: &mut TestCluster) {
    world.end_pods();
    world.settle();
    world.start_pods(usize::MAX, |_| true);
}

fn at_rest(fields: Value, gate: bool) -> TestCluster {
    let mut world = world(gate);
    world.create(manifest(fields));
    for _ in 0..8 {
        world.settle();
        kubelets(&mut world);
    }
    world.settle();
    world.news();
    world
}

fn set_image(world: &mut TestCluster, image: &str) {
    let image = image.to_owned();
    world.edit::<StatefulSet>("web", move |set| {
        let spec = std::sync::Arc::make_mut(&mut set.spec);
        spec.template.spec.as_mut().unwrap().containers[0].image = Some(image);
    });
}

fn scale(world: &mut TestCluster, replicas: i32) {
    world.edit::<StatefulSet>("web", |set| {
        std::sync::Arc::make_mut(&mut set.spec).replicas = Some(replicas);
    });
}

#[test]
fn ordered_pods_come_one_by_one_each_ready_before_the_next() {
    let mut world = world(false);
    world.create(manifest(json!({})));
    check(&mut world, "web-0=1-");
    assert_eq!(
        world.news(),
        ["SuccessfulCreate create Pod web-0 in StatefulSet web successful"]
    );
    kubelets(&mut world);
    check(&mut world, "web-0=1+ web-1=1-");
    kubelets(&mut world);
    check(&mut world, "web-0=1+ web-1=1+ web-2=1-");
    kubelets(&mut world);
    check(&mut world, "web-0=1+ web-1=1+ web-2=1+");
    let status = &world.get::<StatefulSet>("web").status;
    assert_eq!(
        (
            status.replicas,
            status.ready_replicas,
            status.updated_replicas,
            status.current_replicas
        ),
        (3, Some(3), Some(3), Some(3))
    );
    assert_eq!(status.current_revision, status.update_revision);
    let pod = world.get::<strew_apiserver::object::Pod>("web-1");
    assert_eq!(pod.meta.label("apps.kubernetes.io/pod-index"), Some("1"));
    assert_eq!(pod.spec.hostname.as_deref(), Some("web-1"));
    assert_eq!(pod.spec.subdomain.as_deref(), Some("web"));
}

#[test]
fn parallel_pods_come_and_go_all_together() {
    let mut world = world(false);
    world.create(manifest(json!({"podManagementPolicy": "Parallel"})));
    check(&mut world, "web-0=1- web-1=1- web-2=1-");
    kubelets(&mut world);
    scale(&mut world, 1);
    check(&mut world, "web-0=1+ web-1=1! web-2=1!");
}

#[test]
fn min_ready_seconds_count_between_pods() {
    let mut world = world(false);
    world.create(manifest(json!({"minReadySeconds": 10})));
    world.settle();
    kubelets(&mut world);
    world.pass(Span::from_secs(9));
    assert_eq!(picture(&world), "web-0=1+");
    world.pass(Span::from_secs(1));
    assert_eq!(picture(&world), "web-0=1+ web-1=1-");
}

#[test]
fn a_rolling_update_goes_from_the_top_and_waits_for_each_pod() {
    for policy in ["OrderedReady", "Parallel"] {
        let mut world = at_rest(json!({"podManagementPolicy": policy}), false);
        set_image(&mut world, "b");
        check(&mut world, "web-0=1+ web-1=1+ web-2=1!");
        world.end_pods();
        check(&mut world, "web-0=1+ web-1=1+ web-2=2-");
        kubelets(&mut world);
        check(&mut world, "web-0=1+ web-1=1! web-2=2+");
        for _ in 0..3 {
            kubelets(&mut world);
            world.settle();
        }
        check(&mut world, "web-0=2+ web-1=2+ web-2=2+");
        let status = &world.get::<StatefulSet>("web").status;
        assert_eq!(status.current_revision, status.update_revision, "{policy}");
    }
}

#[test]
fn with_the_gate_several_are_updated_at_once() {
    let strategy =
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}});
    let mut world = at_rest(json!({"updateStrategy": strategy}), true);
    set_image(&mut world, "b");
    check(&mut world, "web-0=1+ web-1=1! web-2=1!");
}

#[test]
fn below_the_partition_pods_stay_and_come_back_as_they_were() {
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let mut world = at_rest(json!({"updateStrategy": strategy}), false);
    set_image(&mut world, "b");
    world.settle();
    kubelets(&mut world);
    check(&mut world, "web-0=1+ web-1=1+ web-2=2+");
    world.delete::<strew_apiserver::object::Pod>("web-0");
    world.settle();
    kubelets(&mut world);
    check(&mut world, "web-0=1+ web-1=1+ web-2=2+");
}

#[test]
fn on_delete_updates_only_what_a_user_deletes() {
    let mut world = at_rest(json!({"updateStrategy": {"type": "OnDelete"}}), false);
    set_image(&mut world, "b");
    check(&mut world, "web-0=1+ web-1=1+ web-2=1+");
    world.delete::<strew_apiserver::object::Pod>("web-1");
    world.settle();
    world.end_pods();
    check(&mut world, "web-0=1+ web-1=2- web-2=1+");
}

/// Before, a debug build panicked.
#[test]
fn a_rollout_goes_on_after_the_largest_revision_number() {
    let mut world = at_rest(json!({"replicas": 1}), false);
    let status = world.get::<StatefulSet>("web").status.clone();
    let present = status.update_revision.unwrap();
    world.edit::<ControllerRevision>(&present, |revision| {
        std::sync::Arc::make_mut(&mut revision.spec).revision = i64::MAX;
    });
    set_image(&mut world, "b");
    world.settle();
    world.end_pods();
    world.settle();
    let status = world.get::<StatefulSet>("web").status.clone();
    let next = world.get::<ControllerRevision>(&status.update_revision.unwrap());
    assert_eq!(next.spec.revision, i64::MAX);
    assert_eq!(status.updated_replicas, Some(1));
}

#[test]
fn a_pod_that_never_gets_ready_stops_the_rollback_too() {
    let mut world = at_rest(json!({}), false);
    set_image(&mut world, "bad");
    world.settle();
    world.end_pods();
    check(&mut world, "web-0=1+ web-1=1+ web-2=2-");
    set_image(&mut world, "a");
    check(&mut world, "web-0=3+ web-1=3+ web-2=2-");
    let revision = world
        .get::<StatefulSet>("web")
        .status
        .update_revision
        .clone();
    let revision = world.get::<ControllerRevision>(&revision.unwrap());
    assert_eq!(
        revision.spec.revision, 3,
        "an old template that returns gets a new number"
    );
    world.delete::<strew_apiserver::object::Pod>("web-2");
    check(&mut world, "web-0=3+ web-1=3+ web-2=3-");
}

#[test]
fn condemned_pods_go_from_the_top_one_by_one() {
    let mut world = at_rest(json!({}), false);
    scale(&mut world, 1);
    check(&mut world, "web-0=1+ web-1=1+ web-2=1!");
    world.end_pods();
    check(&mut world, "web-0=1+ web-1=1!");
    world.end_pods();
    check(&mut world, "web-0=1+");
}

#[test]
fn a_condemned_pod_waits_for_replicas_that_are_not_ready() {
    let mut world = at_rest(json!({}), false);
    world.edit_pod("web-0", |pod| pod.status.conditions.clear());
    scale(&mut world, 2);
    check(&mut world, "web-0=1- web-1=1+ web-2=1+");
}

#[test]
fn a_failed_pod_is_deleted_and_made_anew() {
    let mut world = at_rest(json!({}), false);
    world.edit_pod("web-1", |pod| pod.status.phase = Phase::Failed);
    check(&mut world, "web-0=1+ web-1=1- web-2=1+");
    assert_eq!(
        world.news(),
        [
            "RecreatingFailedPod StatefulSet default/web is recreating failed Pod web-1",
            "SuccessfulDelete delete Pod web-1 in StatefulSet web successful",
            "SuccessfulCreate create Pod web-1 in StatefulSet web successful",
        ]
    );
}

#[test]
fn a_terminating_pod_keeps_its_name_until_it_is_gone() {
    let mut world = at_rest(json!({}), false);
    world.delete::<strew_apiserver::object::Pod>("web-1");
    world.pass(Span::from_secs(3600));
    assert_eq!(picture(&world), "web-0=1+ web-1=1! web-2=1+");
    let status = &world.get::<StatefulSet>("web").status;
    assert_eq!((status.replicas, status.current_replicas), (3, Some(2)));
    world.end_pods();
    check(&mut world, "web-0=1+ web-1=1- web-2=1+");
}

fn claim_owners(world: &TestCluster, name: &str) -> Vec<String> {
    let key = Key {
        kind: Kind::of("PersistentVolumeClaim"),
        name: Name::new("default", name),
    };
    let claim = world.server.tables.find(&key).unwrap();
    let owners = claim.meta().owners.iter();
    owners.map(|o| format!("{} {}", o.kind, o.name)).collect()
}

#[test]
fn claims_are_made_first_and_held_by_the_retention_policy() {
    let claims =
        json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]);
    for (scaled, deleted, kept, condemned) in [
        ("Retain", "Retain", None, None),
        (
            "Retain",
            "Delete",
            Some("StatefulSet web"),
            Some("StatefulSet web"),
        ),
        (
            "Delete",
            "Delete",
            Some("StatefulSet web"),
            Some("Pod web-1"),
        ),
        ("Delete", "Retain", None, Some("Pod web-1")),
    ] {
        let policy = json!({"whenScaled": scaled, "whenDeleted": deleted});
        let fields = json!({
            "replicas": 2,
            "volumeClaimTemplates": claims,
            "persistentVolumeClaimRetentionPolicy": policy,
        });
        let mut world = at_rest(fields, false);
        assert_eq!(picture(&world), "web-0=1+ web-1=1+");
        let owners = |owner: Option<&str>| Vec::from_iter(owner.map(str::to_owned));
        assert_eq!(claim_owners(&world, "data-web-0"), owners(kept));
        scale(&mut world, 1);
        check(&mut world, "web-0=1+ web-1=1!");
        assert_eq!(
            claim_owners(&world, "data-web-1"),
            owners(condemned),
            "{scaled} {deleted}"
        );
        assert_eq!(claim_owners(&world, "data-web-0"), owners(kept));
    }
}

#[test]
fn revisions_beyond_the_limit_go() {
    let mut world = at_rest(json!({"revisionHistoryLimit": 2, "replicas": 1}), false);
    for image in ["b", "c", "d", "e"] {
        set_image(&mut world, image);
        for _ in 0..3 {
            world.settle();
            kubelets(&mut world);
        }
    }
    check(&mut world, "web-0=5+");
    let revisions = world.server.tables.of::<ControllerRevision>();
    let numbers: std::collections::BTreeSet<i64> =
        revisions.iter().map(|r| r.spec.revision).collect();
    assert_eq!(Vec::from_iter(numbers), [3, 4, 5]);
}

#[test]
fn a_refused_create_is_told_and_tried_again() {
    let mut world = world(false);
    world.create(manifest(json!({"replicas": 1})));
    world.server.n_pods_max = 0;
    world.settle();
    assert_eq!(
        world.news()[0],
        "FailedCreate create Pod web-0 in StatefulSet web failed error: exceeded quota"
    );
    world.server.n_pods_max = 1;
    world.pass(Span::from_secs(60));
    assert_eq!(picture(&world), "web-0=1-");
}

#[test]
fn matching_orphans_with_a_fitting_name_are_adopted() {
    let mut world = at_rest(json!({}), false);
    world.edit_pod("web-1", |pod| pod.meta.owners = std::sync::Arc::new([]));
    world.settle();
    let pod = world.get::<strew_apiserver::object::Pod>("web-1");
    assert_eq!(pod.meta.controller().map(|o| &*o.kind), Some("StatefulSet"));
}

#[test]
fn nothing_is_done_twice_while_the_watch_is_silent() {
    let mut world = at_rest(json!({}), false);
    set_image(&mut world, "b");
    world.deliver(usize::MAX);
    world.sync();
    let n_writes = world.server.n_writes;
    // The set comes again, its pods and revisions do not.
    world.sync();
    assert_eq!(world.server.n_writes, n_writes);
    assert_eq!(picture(&world), "web-0=1+ web-1=1+ web-2=1!");
}

#[test]
fn a_controller_that_died_in_a_write_goes_on() {
    let mut world = world(false);
    let claims = json!([{"metadata": {"name": "data"}, "spec": {}}]);
    world.create(manifest(
        json!({"replicas": 1, "volumeClaimTemplates": claims}),
    ));
    world.deliver(usize::MAX);
    world.server.answers.push_back(Some(ApiError::Lost));
    world.sync();
    let settings = StatefulSetSettings {
        max_unavailable: false,
    };
    world.restart(vec![Box::new(StatefulSetController::new(settings))]);
    check(&mut world, "web-0=1-");
    assert_eq!(claim_owners(&world, "data-web-0"), Vec::<String>::new());
}
