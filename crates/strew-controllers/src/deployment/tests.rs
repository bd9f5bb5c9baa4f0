use serde_json::{Value, json};
use strew_model::time::Span;

use super::revision::{REVISION, REVISION_HISTORY, revision};
use super::*;
use crate::replica_set::ReplicaSetController;
use crate::testing::TestCluster;

fn controllers() -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(DeploymentController::new()),
        Box::new(ReplicaSetController::new()),
    ]
}

fn manifest(replicas: usize, more: &Value) -> Value {
    let mut manifest = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "annotations": {"team": "a"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "v1"}]}
            }
        }
    });
    for (key, value) in more.as_object().unwrap() {
        manifest["spec"][key] = value.clone();
    }
    manifest
}

/// A Deployment whose pods all run.
fn running(replicas: usize, more: &Value) -> TestCluster {
    let mut world = TestCluster::new(controllers());
    world.create(manifest(replicas, more));
    world.settle();
    finish(&mut world);
    world.news();
    world
}

/// Pods start and end until nothing changes any more, a second at a time.
fn finish(world: &mut TestCluster) {
    for _ in 0..200 {
        let before = world.server.n_writes;
        world.start_pods(usize::MAX, |_| true);
        world.end_pods();
        world.pass(Span::from_secs(1));
        if world.server.n_writes == before {
            return;
        }
    }
    panic!("no end of it");
}

fn edit(world: &mut TestCluster, edit: impl FnOnce(&mut DeploymentSpec)) {
    world.edit::<Deployment>("web", |web| edit(Arc::make_mut(&mut web.spec)));
    world.settle();
}

fn image(world: &mut TestCluster, image: &str) {
    edit(world, |spec| set_image(spec, image));
}

fn set_image(spec: &mut DeploymentSpec, image: &str) {
    let pod = spec.template.spec.as_mut().unwrap();
    pod.containers[0].image = Some(image.to_owned());
}

fn image_of(set: &ReplicaSet) -> String {
    let template = set.spec.template.as_ref().unwrap();
    let containers = &template.spec.as_ref().unwrap().containers;
    containers[0].image.clone().unwrap()
}

/// `image revision: size/ready`, in the order of revisions.
fn sets(world: &TestCluster) -> String {
    let mut all: Vec<_> = world.server.tables.of::<ReplicaSet>().iter().collect();
    all.sort_by_key(|set| revision(set));
    let line = |set: &&Arc<ReplicaSet>| {
        let ready = set.status.ready_replicas.unwrap_or(0);
        let size = set.spec.replicas.unwrap();
        format!("{} r{}: {size}/{ready}", image_of(set), revision(set))
    };
    all.iter().map(line).collect::<Vec<_>>().join(", ")
}

fn news(world: &mut TestCluster) -> Vec<String> {
    let name = |image: &str| {
        let mut sets = world.server.tables.of::<ReplicaSet>().iter();
        let set = sets.find(|set| image_of(set) == image);
        set.map(|set| set.meta.name.name.to_string())
    };
    let names: Vec<_> = ["v1", "v2", "v3"].map(|image| (image, name(image))).into();
    let news = world
        .news()
        .into_iter()
        .filter(|n| n.starts_with("ScalingReplicaSet "));
    let short = news.map(|line| {
        let line = line
            .replace("ScalingReplicaSet Scaled ", "")
            .replace(" replica set", "");
        names.iter().fold(line, |line, (image, name)| match name {
            Some(name) => line.replace(name, image),
            None => line,
        })
    });
    short.collect()
}

/// `status reason message` of Progressing, with the name of the newest set cut out.
fn progressing(world: &TestCluster) -> String {
    let status = &world.get::<Deployment>("web").status;
    let found = condition(status, PROGRESSING).unwrap();
    let message = found.message.as_deref().unwrap();
    let message = message.split('"').enumerate().filter(|(i, _)| i % 2 == 0);
    let message: Vec<_> = message.map(|(_, part)| part).collect();
    format!(
        "{} {} {}",
        found.status,
        found.reason.as_deref().unwrap(),
        message.join("X")
    )
}

fn availability(world: &TestCluster) -> String {
    let status = &world.get::<Deployment>("web").status;
    let found = condition(status, status::AVAILABLE).unwrap();
    format!("{} {}", found.status, found.reason.as_deref().unwrap())
}

/// `replicas updated ready available unavailable terminating`
fn counts(world: &TestCluster) -> [i32; 6] {
    let status = world.get::<Deployment>("web").status.clone();
    [
        status.replicas,
        status.updated_replicas,
        status.ready_replicas,
        status.available_replicas,
        status.unavailable_replicas,
        status.terminating_replicas,
    ]
    .map(|count| count.unwrap_or(-1))
}

#[test]
fn a_deployment_makes_a_replica_set_and_completes() {
    let mut world = TestCluster::new(controllers());
    world.create(manifest(3, &json!({})));
    world.settle();
    assert_eq!(sets(&world), "v1 r1: 3/0");
    assert_eq!(news(&mut world), ["up v1 from 0 to 3"]);
    assert_eq!(
        progressing(&world),
        "True ReplicaSetUpdated ReplicaSet X is progressing."
    );
    assert_eq!(availability(&world), "False MinimumReplicasUnavailable");
    assert_eq!(counts(&world), [3, 3, 0, 0, 3, 0]);
    finish(&mut world);
    assert_eq!(
        progressing(&world),
        "True NewReplicaSetAvailable ReplicaSet X has successfully progressed."
    );
    assert_eq!(availability(&world), "True MinimumReplicasAvailable");
    assert_eq!(counts(&world), [3, 3, 3, 3, 0, 0]);
    let web = world.get::<Deployment>("web");
    let set = Arc::clone(
        world
            .server
            .tables
            .of::<ReplicaSet>()
            .iter()
            .next()
            .unwrap(),
    );
    let hash = set.meta.label("pod-template-hash").unwrap().to_owned();
    assert_eq!(*set.meta.name.name, format!("web-{hash}"));
    assert_eq!(
        set.spec.selector.match_labels.as_ref().unwrap()["pod-template-hash"],
        hash
    );
    assert!(
        world
            .pods(|_| true)
            .iter()
            .all(|pod| pod.meta.label("pod-template-hash") == Some(&hash))
    );
    assert_eq!(
        (web.meta.annotation(REVISION), set.meta.annotation("team")),
        (Some("1"), Some("a"))
    );
    assert_eq!(set.meta.annotation(revision::DESIRED_REPLICAS), Some("3"));
    assert_eq!(set.meta.annotation(revision::MAX_REPLICAS), Some("4"));
    assert_eq!(web.status.observed_generation, Some(web.meta.generation));
}

#[test]
fn a_rollout_goes_step_by_step_within_its_limits() {
    let mut world = running(4, &json!({}));
    image(&mut world, "v2");
    assert_eq!(sets(&world), "v1 r1: 3/3, v2 r2: 2/0");
    finish(&mut world);
    assert_eq!(sets(&world), "v1 r1: 0/0, v2 r2: 4/4");
    assert_eq!(
        news(&mut world),
        [
            "up v2 from 0 to 1",
            "down v1 from 4 to 3",
            "up v2 from 1 to 2",
            // Both new ones were ready by then.
            "down v1 from 3 to 1",
            "up v2 from 2 to 4",
            "down v1 from 1 to 0",
        ]
    );
    assert_eq!(
        world.get::<Deployment>("web").meta.annotation(REVISION),
        Some("2")
    );
}

#[test]
fn a_rollout_that_cannot_go_on_stops_and_is_called_stuck_when_its_time_is_over() {
    for (replicas, expected) in [
        (10, "v1 r1: 8/8, v2 r2: 5/0"),
        (3, "v1 r1: 3/3, v2 r2: 1/0"),
    ] {
        let mut world = running(replicas, &json!({"progressDeadlineSeconds": 60}));
        image(&mut world, "v2");
        world.end_pods();
        world.settle();
        assert_eq!(sets(&world), expected);
        world.pass(Span::from_secs(60));
        assert_eq!(
            progressing(&world),
            "True ReplicaSetUpdated ReplicaSet X is progressing."
        );
        world.pass(Span::from_secs(1));
        let late = "False ProgressDeadlineExceeded ReplicaSet X has timed out progressing.";
        assert_eq!(progressing(&world), late);
        assert_eq!(availability(&world), "True MinimumReplicasAvailable");
        // The deadline stops nothing: the pods start after all.
        finish(&mut world);
        assert_eq!(
            sets(&world),
            format!("v1 r1: 0/0, v2 r2: {replicas}/{replicas}")
        );
        assert!(progressing(&world).starts_with("True NewReplicaSetAvailable"));
    }
}

#[test]
fn without_a_deadline_there_is_no_condition() {
    let world = running(2, &json!({"progressDeadlineSeconds": i32::MAX}));
    let status = &world.get::<Deployment>("web").status;
    assert!(
        condition(status, PROGRESSING).is_none() && condition(status, status::AVAILABLE).is_some()
    );
}

#[test]
fn a_complete_deployment_that_loses_pods_keeps_progressing_true() {
    let mut world = running(3, &json!({}));
    let name = world.pods(|_| true)[0].meta.name.name.to_string();
    world.edit_pod(&name, |pod| pod.status.conditions.clear());
    world.settle();
    world.pass(Span::from_secs(700));
    assert_eq!(counts(&world), [3, 3, 2, 2, 1, 0]);
    assert_eq!(availability(&world), "False MinimumReplicasUnavailable");
    assert!(progressing(&world).starts_with("True NewReplicaSetAvailable"));
}

#[test]
fn a_return_to_an_old_template_renumbers_its_set_and_bad_pods_go_first() {
    let mut world = running(10, &json!({}));
    image(&mut world, "v2");
    world.end_pods();
    world.settle();
    image(&mut world, "v1");
    assert_eq!(sets(&world), "v2 r2: 0/0, v1 r3: 10/8");
    finish(&mut world);
    assert_eq!(sets(&world), "v2 r2: 0/0, v1 r3: 10/10");
    let all = world.server.tables.of::<ReplicaSet>().iter();
    let histories: Vec<_> = all
        .filter_map(|set| set.meta.annotation(REVISION_HISTORY))
        .collect();
    assert_eq!(histories, ["1"]);
    assert_eq!(
        world.get::<Deployment>("web").meta.annotation(REVISION),
        Some("3")
    );
}

/// Before, a debug build panicked.
#[test]
fn a_rollout_goes_on_after_the_largest_revision_number() {
    let mut world = running(1, &json!({}));
    let name = {
        let mut sets = world.server.tables.of::<ReplicaSet>().iter();
        sets.next().unwrap().meta.name.name.to_string()
    };
    world.edit::<ReplicaSet>(&name, |set| {
        set.meta.annotate(REVISION, i64::MAX.to_string())
    });
    image(&mut world, "v2");
    finish(&mut world);
    assert_eq!(sets(&world), format!("v2 r0: 1/1, v1 r{}: 0/0", i64::MAX));
}

#[test]
fn recreate_waits_until_the_last_old_pod_is_gone() {
    let mut world = running(3, &json!({"strategy": {"type": "Recreate"}}));
    image(&mut world, "v2");
    world.pass(Span::from_secs(300));
    assert_eq!(sets(&world), "v1 r1: 0/0");
    assert_eq!(counts(&world), [0, 0, 0, 0, 0, 3]);
    world.end_pods();
    world.settle();
    assert_eq!(sets(&world), "v1 r1: 0/0, v2 r2: 3/0");
    assert_eq!(
        news(&mut world),
        ["down v1 from 3 to 0", "up v2 from 0 to 3"]
    );
    finish(&mut world);
    assert!(progressing(&world).starts_with("True NewReplicaSetAvailable"));
}

#[test]
fn scaling_in_the_middle_of_a_rollout_keeps_the_proportions() {
    let mut world = running(12, &json!({}));
    image(&mut world, "v2");
    world.end_pods();
    world.settle();
    assert_eq!(sets(&world), "v1 r1: 9/9, v2 r2: 6/0");
    edit(&mut world, |spec| {
        spec.paused = Some(true);
        spec.replicas = Some(20);
    });
    assert_eq!(sets(&world), "v1 r1: 15/9, v2 r2: 10/0");
    edit(&mut world, |spec| spec.replicas = Some(8));
    assert_eq!(sets(&world), "v1 r1: 6/6, v2 r2: 4/0");
    assert_eq!(
        progressing(&world),
        "Unknown DeploymentPaused Deployment is paused"
    );
    edit(&mut world, |spec| spec.paused = None);
    assert!(
        progressing(&world).starts_with("Unknown DeploymentResumed"),
        "{}",
        progressing(&world)
    );
    finish(&mut world);
    assert_eq!(sets(&world), "v1 r1: 0/0, v2 r2: 8/8");
}

#[test]
fn a_paused_deployment_scales_and_collects_changes() {
    let mut world = running(2, &json!({}));
    edit(&mut world, |spec| spec.paused = Some(true));
    image(&mut world, "v2");
    image(&mut world, "v3");
    edit(&mut world, |spec| spec.replicas = Some(5));
    finish(&mut world);
    assert_eq!(sets(&world), "v1 r1: 5/5");
    edit(&mut world, |spec| spec.paused = Some(false));
    finish(&mut world);
    assert_eq!(sets(&world), "v1 r1: 0/0, v3 r2: 5/5");
}

#[test]
fn scaling_from_and_to_nothing_is_exact() {
    let mut world = running(4, &json!({}));
    for (replicas, expected) in [(0, "v1 r1: 0/0"), (7, "v1 r1: 7/7"), (2, "v1 r1: 2/2")] {
        edit(&mut world, |spec| spec.replicas = Some(replicas));
        finish(&mut world);
        assert_eq!(sets(&world), expected);
        assert!(progressing(&world).starts_with("True NewReplicaSetAvailable"));
    }
    let expected = [
        "down v1 from 4 to 0",
        "up v1 from 0 to 7",
        "down v1 from 7 to 2",
    ];
    assert_eq!(news(&mut world), expected);
}

#[test]
fn old_revisions_go_when_there_are_too_many() {
    let mut world = running(2, &json!({"revisionHistoryLimit": 2}));
    for n in 2..=6 {
        image(&mut world, &format!("v{n}"));
        finish(&mut world);
    }
    assert_eq!(sets(&world), "v4 r4: 0/0, v5 r5: 0/0, v6 r6: 2/2");
}

#[test]
fn changes_that_mean_nothing_and_min_ready_seconds_make_no_rollout() {
    let mut world = running(2, &json!({}));
    edit(&mut world, |spec| {
        let meta = spec.template.metadata.as_mut().unwrap();
        meta.annotations = Some(std::collections::BTreeMap::new());
        spec.min_ready_seconds = Some(7);
        spec.revision_history_limit = Some(3);
    });
    finish(&mut world);
    assert_eq!(sets(&world), "v1 r1: 2/2");
    let set = Arc::clone(
        world
            .server
            .tables
            .of::<ReplicaSet>()
            .iter()
            .next()
            .unwrap(),
    );
    assert_eq!(set.spec.min_ready_seconds, Some(7));
}

#[test]
fn a_name_that_another_template_has_is_passed_over() {
    let mut world = running(2, &json!({}));
    let name = {
        let web = world.get::<Deployment>("web");
        let mut spec = DeploymentSpec::clone(&web.spec);
        set_image(&mut spec, "v2");
        format!(
            "web-{}",
            strew_apiserver::workloads::template_hash(&spec.template)
        )
    };
    world.create(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": {"app": "else"}},
            "template": {
                "metadata": {"labels": {"app": "else"}},
                "spec": {"containers": [{"name": "c", "image": "else"}]}
            }
        }
    }));
    image(&mut world, "v2");
    finish(&mut world);
    assert_eq!(sets(&world), "else r0: 0/0, v1 r1: 0/0, v2 r2: 2/2");
    assert_eq!(
        world.get::<Deployment>("web").status.collision_count,
        Some(1)
    );
}

#[test]
fn a_refused_replica_set_is_told_and_tried_again() {
    let mut world = TestCluster::new(controllers());
    world.create(manifest(1, &json!({})));
    world.server.answers = [Some(ApiError::Forbidden("no ReplicaSets today".into()))].into();
    world.deliver(1);
    world.sync();
    let text = "Failed to create new replica set X: no ReplicaSets today";
    assert_eq!(
        progressing(&world),
        format!("False ReplicaSetCreateError {text}")
    );
    assert!(world.news()[0].starts_with("ReplicaSetCreateError Failed to create"));
    world.settle();
    assert_eq!(sets(&world), "v1 r1: 1/0");
}

#[test]
fn a_quota_shows_on_the_deployment() {
    let mut world = TestCluster::new(controllers());
    world.server.n_pods_max = 2;
    world.create(manifest(5, &json!({})));
    world.settle();
    let status = &world.get::<Deployment>("web").status;
    let failure = condition(status, "ReplicaFailure").unwrap();
    assert_eq!(
        (&*failure.status, failure.reason.as_deref()),
        ("True", Some("FailedCreate"))
    );
    assert_eq!(failure.message.as_deref(), Some("exceeded quota"));
    assert_eq!(counts(&world)[0], 2);
}

#[test]
fn an_orphan_with_the_template_is_adopted_without_a_rollout() {
    let mut world = running(3, &json!({}));
    let set = Arc::clone(
        world
            .server
            .tables
            .of::<ReplicaSet>()
            .iter()
            .next()
            .unwrap(),
    );
    let name = set.meta.name.name.to_string();
    // As `kubectl delete --cascade=orphan` and a new Deployment do it.
    world.edit::<ReplicaSet>(&name, |set| set.meta.owners = Arc::new([]));
    world.delete::<Deployment>("web");
    world.settle();
    world.create(manifest(3, &json!({})));
    finish(&mut world);
    assert_eq!(sets(&world), "v1 r1: 3/3");
    let web = world.get::<Deployment>("web");
    let set = world.get::<ReplicaSet>(&name);
    assert_eq!(set.meta.controller().unwrap().uid, web.meta.uid);
    assert_eq!(news(&mut world), [""; 0]);
}

#[test]
fn a_deployment_that_selects_everything_is_refused() {
    let mut world = TestCluster::new(controllers());
    let mut all = manifest(3, &json!({}));
    all["spec"]["selector"] = json!({});
    world.create(all);
    world.settle();
    assert!(world.news()[0].starts_with("SelectingAll This deployment is selecting all pods."));
    assert!(world.server.tables.of::<ReplicaSet>().is_empty());
    assert_eq!(
        world.get::<Deployment>("web").status.observed_generation,
        Some(1)
    );
}

#[test]
fn whatever_dies_in_a_rollout_it_ends_the_same() {
    for n_answered in 0..40 {
        let mut world = running(4, &json!({}));
        world.edit::<Deployment>("web", |web| set_image(Arc::make_mut(&mut web.spec), "v2"));
        let lost = (0..n_answered).map(|_| None).chain([Some(ApiError::Lost)]);
        world.server.answers = lost.collect();
        for _ in 0..60 {
            let n_left = world.server.answers.len();
            world.deliver(1);
            world.sync_once();
            if n_left > 0 && world.server.answers.is_empty() {
                world.restart(controllers());
            }
            world.start_pods(1, |_| true);
        }
        world.server.answers.clear();
        finish(&mut world);
        assert_eq!(
            sets(&world),
            "v1 r1: 0/0, v2 r2: 4/4",
            "after {n_answered} writes"
        );
        assert_eq!(counts(&world), [4, 4, 4, 4, 0, 0]);
    }
}

#[test]
fn a_large_deployment_is_made_resized_and_counted_with_each_pod_a_change() {
    let mut world = TestCluster::new(controllers());
    world.create(manifest(20_000, &json!({})));
    world.settle();
    // 40 bursts, and nothing ordered twice.
    assert_eq!(world.pods(|_| true).len(), 20_000);
    world.start_pods(usize::MAX, |_| true);
    while world.deliver(1) {
        world.sync();
    }
    world.settle();
    assert_eq!(counts(&world), [20_000, 20_000, 20_000, 20_000, 0, 0]);
    edit(&mut world, |spec| spec.replicas = Some(19_000));
    assert_eq!(counts(&world), [19_000, 19_000, 19_000, 19_000, 0, 1000]);
}
