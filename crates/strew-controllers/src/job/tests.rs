use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use serde_json::{Value, json};
use strew_apiserver::object::{Job, Pod};

use super::world::JobCluster;
use super::{JobController, TtlController};

fn world(spec: Value) -> JobCluster {
    let controllers: Vec<Box<dyn crate::Controller>> = vec![
        Box::new(JobController::new()),
        Box::new(TtlController::new()),
    ];
    let mut world = JobCluster::new(controllers);
    let mut all = json!({"template": {"spec": {"containers": [], "restartPolicy": "Never"}}});
    all.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    world.create::<JobSpec, JobStatus>("j", all);
    world
}

/// Active, succeeded, failed, and the conditions that are True with their reasons.
fn status(world: &JobCluster) -> String {
    let job = world.get::<Job>("j").unwrap();
    let n = |n: Option<i32>| n.unwrap_or(0);
    let s = &job.status;
    let conditions = s.conditions.iter().flatten().filter(|c| c.status == "True");
    let conditions: String = conditions
        .map(|c| format!(" {}/{}", c.type_, c.reason.clone().unwrap_or_default()))
        .collect();
    format!(
        "{} {} {}{conditions}",
        n(s.active),
        n(s.succeeded),
        n(s.failed)
    )
}

fn n_active(world: &JobCluster) -> usize {
    world.pods().iter().filter(|pod| pod.is_active()).count()
}

#[test]
fn completions_are_reached_with_so_many_at_once() {
    let mut world = world(json!({"completions": 3, "parallelism": 2}));
    assert_eq!((n_active(&world), status(&world)), (2, "2 0 0".to_owned()));
    world.run_pods();
    let first = world.pods()[0].meta.name.clone();
    world.end_pods(0, |pod| pod.meta.name == first);
    // Changes of pods are looked at a second after the first one.
    assert_eq!((n_active(&world), status(&world)), (1, "2 0 0".to_owned()));
    world.pass(1);
    assert_eq!((n_active(&world), status(&world)), (2, "2 1 0".to_owned()));
    world.run_pods();
    world.end_pods(0, |_| true);
    world.pass(2);
    let ended = " SuccessCriteriaMet/CompletionsReached Complete/CompletionsReached";
    assert_eq!(status(&world), format!("0 3 0{ended}"));
    assert!(
        world
            .pods()
            .iter()
            .all(|pod| pod.meta.finalizers.is_empty())
    );
    assert_eq!(world.pods().len(), 3);
    assert_eq!(world.news().last().unwrap(), "Completed Job completed");
}

#[test]
fn failures_are_waited_after_until_the_limit_ends_the_job() {
    let mut world = world(json!({"backoffLimit": 1}));
    world.run_pods();
    world.end_pods(1, |_| true);
    world.pass(9);
    assert_eq!((n_active(&world), status(&world)), (0, "0 0 1".to_owned()));
    world.pass(2);
    assert_eq!((n_active(&world), status(&world)), (1, "1 0 1".to_owned()));
    world.end_pods(1, |_| true);
    world.pass(2);
    let ended = " FailureTarget/BackoffLimitExceeded Failed/BackoffLimitExceeded";
    assert_eq!(status(&world), format!("0 0 2{ended}"));
    let last = world.news().pop().unwrap();
    assert_eq!(
        last,
        "BackoffLimitExceeded Job has reached the specified backoff limit"
    );
}

#[test]
fn a_deadline_ends_the_job_when_its_pods_are_gone() {
    let mut world = world(json!({"activeDeadlineSeconds": 60}));
    world.run_pods();
    world.pass(61);
    assert_eq!(status(&world), "0 0 1 FailureTarget/DeadlineExceeded");
    world.end_pods(137, |_| true);
    world.pass(2);
    let ended = " FailureTarget/DeadlineExceeded Failed/DeadlineExceeded";
    assert_eq!(status(&world), format!("0 0 1{ended}"));
}

#[test]
fn a_suspended_job_has_no_pods_and_starts_anew() {
    let mut world = world(json!({"completions": 2, "parallelism": 2}));
    world.pass(10);
    world.edit::<Job>("j", |job| {
        std::sync::Arc::make_mut(&mut job.spec).suspend = Some(true)
    });
    world.pass(2);
    assert_eq!(status(&world), "0 0 0 Suspended/JobSuspended");
    assert_eq!(world.get::<Job>("j").unwrap().status.start_time, None);
    assert_eq!(world.pods().len(), 0);
    world.edit::<Job>("j", |job| {
        std::sync::Arc::make_mut(&mut job.spec).suspend = Some(false)
    });
    world.pass(2);
    assert_eq!(status(&world), "2 0 0");
    assert!(world.get::<Job>("j").unwrap().status.start_time.is_some());
}

#[test]
fn indexes_fail_each_for_itself() {
    let mut world = world(json!({
        "completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1
    }));
    let index = |pod: &Pod| pod.meta.label(super::terms::INDEX).unwrap().to_owned();
    let indexes: Vec<String> = world.pods().iter().map(|pod| index(pod)).collect();
    assert_eq!(indexes, ["0", "1", "2"]);
    world.run_pods();
    world.end_pods(0, |pod| index(pod) != "1");
    world.end_pods(1, |pod| index(pod) == "1");
    world.pass(5);
    assert_eq!((n_active(&world), status(&world)), (0, "0 2 0".to_owned()));
    world.pass(6);
    let pods = world.pods();
    let second = pods.iter().find(|pod| pod.is_active()).unwrap();
    assert_eq!(
        second.meta.annotation(super::terms::INDEX_FAILURES),
        Some("1")
    );
    assert_eq!(second.spec.hostname.as_deref(), Some("j-1"));
    world.end_pods(1, |_| true);
    world.pass(3);
    let ended = " FailureTarget/FailedIndexes Failed/FailedIndexes";
    assert_eq!(status(&world), format!("0 2 2{ended}"));
    let job = world.get::<Job>("j").unwrap();
    assert_eq!(job.status.completed_indexes.as_deref(), Some("0,2"));
    assert_eq!(job.status.failed_indexes.as_deref(), Some("1"));
}

#[test]
fn a_finished_job_goes_when_it_is_due_and_lets_its_pods_go() {
    let mut world = world(json!({"ttlSecondsAfterFinished": 30}));
    world.end_pods(0, |_| true);
    world.pass(20);
    assert!(world.get::<Job>("j").is_some());
    world.pass(30);
    assert!(world.get::<Job>("j").is_none());
}

#[test]
fn a_job_that_is_deleted_lets_its_pods_go() {
    let mut world = world(json!({"parallelism": 2}));
    world.delete::<Job>("j");
    world.pass(5);
    assert_eq!((world.get::<Job>("j"), world.pods().len()), (None, 0));
}
