//! Judges CronJobs at rest: no more Jobs are kept than asked for, and `status.active` has the running ones.
//!
//! Source: spec/controllers §5.2.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::object::{CronJob, Job};

use super::rest::Resting;
use super::{Rule, Witness};

/// Judges every CronJob that is not being deleted.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    let tables = world.server.tables();
    for cron in tables.of::<CronJob>().iter() {
        if cron.meta.is_terminating() {
            continue;
        }
        let is_its = |job: &&Arc<Job>| {
            let owner = job.meta.controller();
            owner.is_some_and(|owner| owner.uid == cron.meta.uid)
        };
        let jobs: Vec<&Arc<Job>> = tables.of::<Job>().iter().filter(is_its).collect();
        let n_with = |condition: &str| jobs.iter().filter(|job| has(job, condition)).count();
        let kept = [
            (
                "Complete",
                cron.spec.successful_jobs_history_limit.unwrap_or(3),
            ),
            ("Failed", cron.spec.failed_jobs_history_limit.unwrap_or(1)),
        ];
        let name = || cron.meta.name.to_string();
        for (condition, limit) in kept {
            let n = n_with(condition);
            if n > usize::try_from(limit).unwrap_or(0) {
                let text = format!("keeps {n} Jobs that are {condition}, of {limit}");
                witness.blame(Rule::Replicas, name(), text);
            }
        }
        let runs = jobs
            .iter()
            .filter(|j| !has(j, "Complete") && !has(j, "Failed"));
        let running: BTreeSet<&str> = runs.map(|job| &*job.meta.uid).collect();
        let said = cron.status.active.iter().flatten();
        let said: BTreeSet<&str> = said.filter_map(|job| job.uid.as_deref()).collect();
        if said != running {
            let text = format!("active is {said:?}, recounted {running:?}");
            witness.blame(Rule::Status, name(), text);
        }
        let is_alone = cron.spec.concurrency_policy.as_deref() != Some("Allow");
        if is_alone && running.len() > 1 {
            let text = format!("{} Jobs run at once", running.len());
            witness.blame(Rule::Surplus, name(), text);
        }
    }
}

fn has(job: &Job, condition: &str) -> bool {
    let mut conditions = job.status.conditions.iter().flatten();
    conditions.any(|c| c.type_ == condition && c.status == "True")
}
