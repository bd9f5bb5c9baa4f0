//! `strew sweep --collect`: adds up the results of a Job's pods.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use strew_kube::connect::connect;
use strew_kube::jobs::{self, IndexedJob, JobError, JobPod};
use strew_wire::config::ClientConnection;

use super::job::{CONTAINER, LOGS, RESULTS_IN};
use crate::cluster::access::{self, AccessArgs};
use crate::cluster::runtime;
use crate::context::Context;
use crate::diagnostics::say_note;
use crate::failure::Failure;
use crate::merge;
use crate::scenario::SummaryFormat;
use crate::scenario::merging::Merger;

/// The phase of a pod that wrote its result.
const SUCCEEDED: &str = "Succeeded";

/// The number of reasons that are shown; more are counted.
const REASONS_MAX: usize = 10;

/// Reads the logs of all completed pods, and writes the sum of all shards, and which are missing.
pub(super) fn run(
    name: &str,
    namespace: Option<&str>,
    access: &AccessArgs,
    format: SummaryFormat,
    out: Option<&Path>,
    context: &Context,
) -> Result<u8, Failure> {
    let mut merger = Merger::default();
    let mut missing = BTreeMap::new();
    let job = runtime()?.block_on(async {
        let connection = connect(&access.of(&ClientConnection::default()), "strew").await;
        let connection = connection.map_err(access::failure)?;
        let namespace = namespace.unwrap_or(&connection.namespace);
        let client = &connection.client;
        let job = jobs::job(client, namespace, name).await.map_err(failure)?;
        check_logs(&job, name)?;
        for index in 0..job.completions {
            let pods = job.pods.iter().filter(|pod| pod.index == index);
            let done = pods.clone().filter(|pod| pod.phase == SUCCEEDED);
            let mut why = standing(pods);
            let mut is_there = false;
            for pod in done {
                let log = jobs::log(client, namespace, &pod.name, CONTAINER).await;
                match log.map_err(failure) {
                    // One at a time: the logs of all may not fit into memory.
                    Ok(log) => match merger.add(&format!("pod/{}", pod.name), log.as_bytes()) {
                        Ok(_) => is_there = true,
                        Err(error) => why = error.in_a_line(),
                    },
                    Err(error) => why = format!("pod/{}: {}", pod.name, error.in_a_line()),
                }
            }
            if !is_there {
                missing.insert(index, why);
            }
        }
        Ok::<_, Failure>(job)
    })?;
    for (index, why) in missing.iter().take(REASONS_MAX) {
        say_note(
            &format!("shard {index}/{}: {why}", job.completions),
            context,
        );
    }
    if missing.len() > REASONS_MAX {
        let more = crate::text::count(missing.len() - REASONS_MAX, "more shard");
        say_note(&format!("{more} without a result"), context);
    }
    let Some(merged) = merger.finish() else {
        let error = anyhow!("no shard of Job {name} has a result yet");
        return Err(Failure::outside(error).with_hint(format!("kubectl describe job {name}")));
    };
    merge::tell(&merged, format, out, context)
}

/// Why an index has no result, from its pods.
fn standing<'a>(pods: impl Iterator<Item = &'a JobPod>) -> String {
    let pods = pods.map(|pod| format!("pod/{} is {}", pod.name, pod.phase));
    match pods.collect::<Vec<_>>().as_slice() {
        [] => "it has no pod".to_owned(),
        pods => pods.join(", "),
    }
}

fn check_logs(job: &IndexedJob, name: &str) -> Result<(), Failure> {
    match job.annotations.get(RESULTS_IN).map(String::as_str) {
        Some(LOGS) => Ok(()),
        Some(claim) => {
            let error = anyhow!("the results of Job {name} are in volume claim {claim}");
            let hint = format!("mount it, and merge its folder {name} with strew merge");
            Err(Failure::input(error).with_hint(hint))
        }
        None => Err(Failure::input(anyhow!("Job {name} is none of strew sweep"))),
    }
}

fn failure(error: JobError) -> Failure {
    match &error {
        JobError::Missing { .. } => {
            let hint = "kubectl get jobs -A -l app.kubernetes.io/name=strew-sweep lists all";
            Failure::input(error).with_hint(hint)
        }
        JobError::NotIndexed(_) => Failure::input(error),
        JobError::Refused { .. } => Failure::outside(error),
    }
}
