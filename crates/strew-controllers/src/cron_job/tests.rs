use k8s_openapi::api::batch::v1::{CronJobSpec, CronJobStatus};
use serde_json::{Value, json};
use strew_apiserver::object::{CronJob, Job};

use super::CronJobController;
use crate::job::JobController;
use crate::job::world::JobCluster;

fn world(spec: Value) -> JobCluster {
    let mut world = JobCluster::new(vec![
        Box::new(CronJobController::new()),
        Box::new(JobController::new()),
    ]);
    let template = json!({"spec": {"template": {"spec": {"containers": []}}}});
    let mut all = json!({"schedule": "*/5 * * * *", "jobTemplate": template});
    all.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    world.create::<CronJobSpec, CronJobStatus>("c", all);
    world
}

/// The minutes since the start that Jobs stand for.
fn jobs(world: &JobCluster) -> Vec<i64> {
    let jobs = world.store.tables.of::<Job>().iter();
    let start = i64::try_from(crate::job::world::START.secs() / 60).unwrap();
    jobs.map(|job| {
        job.meta
            .name
            .name
            .strip_prefix("c-")
            .unwrap()
            .parse::<i64>()
            .unwrap()
            - start
    })
    .collect()
}

fn n_active(world: &JobCluster) -> usize {
    let cron_job = world.get::<CronJob>("c").unwrap();
    cron_job.status.active.iter().flatten().count()
}

#[test]
fn a_job_starts_at_each_time_and_the_oldest_finished_ones_go() {
    let mut world = world(json!({"successfulJobsHistoryLimit": 2}));
    world.pass(299);
    assert_eq!(jobs(&world), [0; 0]);
    world.pass(2);
    assert_eq!((jobs(&world), n_active(&world)), (vec![5], 1));
    let job = world.get::<Job>("c-29921525").unwrap();
    let scheduled = job.meta.annotation(super::SCHEDULED);
    assert_eq!(scheduled, Some("2026-11-21T20:05:00Z"));
    for _ in 0..3 {
        world.end_pods(0, |_| true);
        world.pass(300);
    }
    assert_eq!((jobs(&world), n_active(&world)), (vec![10, 15, 20], 1));
    let news = world.news();
    assert!(news.contains(
        &"SawCompletedJob Saw completed job: c-29921525, condition: Complete".to_owned()
    ));
    assert!(news.contains(&"SuccessfulDelete Deleted job c-29921525".to_owned()));
}

#[test]
fn a_policy_says_what_becomes_of_a_job_that_still_runs() {
    for (policy, expected, told) in [
        (
            "Allow",
            vec![5, 10],
            "SuccessfulCreate Created job c-29921530",
        ),
        (
            "Forbid",
            vec![5],
            "JobAlreadyActive Not starting job because prior execution is running and concurrency policy is Forbid",
        ),
        (
            "Replace",
            vec![10],
            "SuccessfulDelete Deleted job c-29921525",
        ),
    ] {
        let mut world = world(json!({"concurrencyPolicy": policy}));
        world.pass(603);
        assert_eq!(jobs(&world), expected, "{policy}");
        let news = world.news();
        assert!(news.contains(&told.to_owned()), "{policy} {news:?}");
    }
}

#[test]
fn what_cannot_run_says_why() {
    for (spec, told) in [
        (
            json!({"schedule": "x"}),
            "UnparseableSchedule unparseable schedule: \"x\" : expected exactly 5 fields, found 1: [x]",
        ),
        (
            json!({"timeZone": "Mars/Olympus"}),
            "UnknownTimeZone invalid timeZone: \"Mars/Olympus\": unknown time zone Mars/Olympus",
        ),
    ] {
        let mut world = world(spec);
        assert_eq!(world.news(), [told]);
        world.pass(900);
        assert_eq!(jobs(&world), [0; 0]);
    }
}
