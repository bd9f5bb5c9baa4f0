//! `strew sweep --collect`: adds up the results of a Job's pods.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;
use strew_kube::connect::connect;
use strew_kube::jobs::{self, IndexedJob, JobError, JobPod};
use strew_wire::config::ClientConnection;

use super::audits::CLUSTERS;
use super::job::{CONTAINER, LOGS, RESULTS_IN};
use crate::audit::compare::Fleet;
use crate::cluster::access::{self, AccessArgs};
use crate::cluster::runtime;
use crate::context::Context;
use crate::diagnostics::say_note;
use crate::failure::{EXIT_OUTSIDE, Failure};
use crate::merge;
use crate::scenario::SummaryFormat;
use crate::scenario::merging::Merger;

/// The phase of a pod that wrote its result.
const SUCCEEDED: &str = "Succeeded";

/// The number of reasons that are shown; more are counted.
const REASONS_MAX: usize = 10;

/// What pods wrote, in sum.
enum Sum {
    /// Of shards.
    Shards(Box<Merger>),
    /// Of audits: the names of the clusters by index.
    Clusters(Vec<String>, Fleet),
}

impl Sum {
    /// For what a Job's pods write.
    ///
    /// # Errors
    /// The names of clusters cannot be read.
    fn of(job: &IndexedJob) -> Result<Self, Failure> {
        let Some(names) = job.annotations.get(CLUSTERS) else {
            return Ok(Self::Shards(Box::default()));
        };
        let names = serde_json::from_str(names)
            .map_err(|error| Failure::input(anyhow!("annotation {CLUSTERS}: {error}")))?;
        Ok(Self::Clusters(names, Fleet::default()))
    }

    /// Adds what the pod of an index wrote.
    ///
    /// # Errors
    /// It is not what such a pod writes.
    fn add(&mut self, index: u32, pod: &str, log: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Shards(merger) => merger.add(&format!("pod/{pod}"), log).map(drop),
            Self::Clusters(names, fleet) => {
                let name = usize::try_from(index).ok().and_then(|i| names.get(i));
                let name = name.map_or_else(|| format!("index {index}"), Clone::clone);
                match fleet.add_called(&name, document(log))? {
                    true => Ok(()),
                    false => Err(Failure::input(anyhow!("its log is no audit"))),
                }
            }
        }
    }
}

/// Reads the logs of all completed pods, and writes the sum of all parts, and which are missing.
pub(super) fn run(
    name: &str,
    namespace: Option<&str>,
    access: &AccessArgs,
    format: SummaryFormat,
    out: Option<&Path>,
    context: &Context,
) -> Result<u8, Failure> {
    let mut missing = BTreeMap::new();
    let (job, sum) = runtime()?.block_on(async {
        let connection = connect(&access.of(&ClientConnection::default()), "strew").await;
        let connection = connection.map_err(access::failure)?;
        let namespace = namespace.unwrap_or(&connection.namespace);
        let client = &connection.client;
        let job = jobs::job(client, namespace, name).await.map_err(failure)?;
        check_logs(&job, name)?;
        let mut sum = Sum::of(&job)?;
        for index in 0..job.completions {
            let pods = job.pods.iter().filter(|pod| pod.index == index);
            let done = pods.clone().filter(|pod| pod.phase == SUCCEEDED);
            let mut why = standing(pods);
            let mut is_there = false;
            for pod in done {
                let log = jobs::log(client, namespace, &pod.name, CONTAINER).await;
                match log.map_err(failure) {
                    // One at a time: the logs of all may not fit into memory.
                    Ok(log) => match sum.add(index, &pod.name, log.as_bytes()) {
                        Ok(()) => is_there = true,
                        Err(error) => why = error.in_a_line(),
                    },
                    Err(error) => why = format!("pod/{}: {}", pod.name, error.in_a_line()),
                }
            }
            if !is_there {
                missing.insert(index, why);
            }
        }
        Ok::<_, Failure>((job, sum))
    })?;
    let part = match &sum {
        Sum::Shards(_) => "shard",
        Sum::Clusters(..) => "cluster",
    };
    for (index, why) in missing.iter().take(REASONS_MAX) {
        let of = match &sum {
            Sum::Shards(_) => format!("{index}/{}", job.completions),
            Sum::Clusters(names, _) => { names.get(*index as usize) }
                .cloned()
                .unwrap_or_else(|| index.to_string()),
        };
        say_note(&format!("{part} {of}: {why}"), context);
    }
    if missing.len() > REASONS_MAX {
        let more = crate::text::count(missing.len() - REASONS_MAX, &format!("more {part}"));
        say_note(&format!("{more} without a result"), context);
    }
    let nothing = || {
        let error = anyhow!("no {part} of Job {name} has a result yet");
        Failure::outside(error).with_hint(format!("kubectl describe job {name}"))
    };
    match sum {
        Sum::Shards(merger) => {
            let merged = merger.finish().ok_or_else(nothing)?;
            merge::tell(&merged, format, out, context)
        }
        Sum::Clusters(_, fleet) if fleet.is_empty() => Err(nothing()),
        Sum::Clusters(_, fleet) => {
            let code = merge::tell_clusters(&fleet, format, out, context)?;
            Ok(match (code, missing.is_empty()) {
                (0, false) => EXIT_OUTSIDE,
                (code, _) => code,
            })
        }
    }
}

/// The JSON in a log, from the first line that begins with a brace to the last one: what a pod says of its input comes
/// before.
fn document(log: &[u8]) -> &[u8] {
    let begin = match log.starts_with(b"{") {
        true => Some(0),
        false => log
            .windows(2)
            .position(|pair| pair == b"\n{")
            .map(|at| at + 1),
    };
    let end = log.iter().rposition(|byte| *byte == b'}');
    match (begin, end) {
        (Some(begin), Some(end)) if begin <= end => &log[begin..=end],
        _ => log,
    }
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

#[cfg(test)]
mod tests {
    use super::document;

    #[test]
    fn the_document_of_a_log_has_nothing_before_and_after_it() {
        let whole = "{\n  \"kind\": \"Audit\"\n}";
        for log in [
            whole.to_owned(),
            format!("{whole}\n"),
            format!("warning: 2 warnings, not shown (-q)\n{whole}\n"),
            format!("note: of {{x}}\n\n{whole}\nnote: done\n"),
        ] {
            assert_eq!(document(log.as_bytes()), whole.as_bytes(), "{log}");
        }
        assert_eq!(document(b"killed"), b"killed");
        assert_eq!(document(b"}\n{"), b"}\n{");
    }
}
