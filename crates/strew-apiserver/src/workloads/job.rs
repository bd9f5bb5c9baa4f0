//! Jobs: as many pods at once as parallelism allows.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::Pod;

use super::owners::Owners;
use super::template::{Maker, PodMaker, PodName, set_label, uid_of};
use super::{ExpandError, Workload, WorkloadKind, is_active, name_of, phase_of};

const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

pub(super) fn expand<'a>(
    job: &'a Job,
    owners: &Owners<'a>,
    pods: &mut PodMaker<'_>,
) -> Result<(), ExpandError> {
    let Some(spec) = &job.spec else { return Ok(()) };
    if spec.suspend == Some(true) || is_finished(job) {
        return Ok(());
    }
    let maker = Maker {
        kind: WorkloadKind::Job,
        metadata: &job.metadata,
        workload: &Workload::Job(job).reference(),
    };
    let present: Vec<&Pod> = owners.pods_of(maker.kind, &job.metadata).collect();
    let n_active = present.iter().filter(|pod| is_active(pod)).count();
    let n_missing = n_wanted(job, spec, &present).saturating_sub(n_active);
    pods.check_room(maker.workload, n_missing)?;

    let name = name_of(&job.metadata);
    let uid = uid_of(maker.kind, &job.metadata);
    let mut free_indexes = if spec.completion_mode.as_deref() == Some("Indexed") {
        Some(free_indexes(spec, &present))
    } else {
        None
    };
    for _ in 0..n_missing {
        let index = match &mut free_indexes {
            None => None,
            Some(indexes) => match indexes.next() {
                None => break,
                index => index,
            },
        };
        let base = match index {
            None => format!("{name}-"),
            Some(index) => format!("{name}-{index}-"),
        };
        pods.pod(maker, &spec.template, PodName::Generate(base), |pod| {
            complete(pod, name, &uid, index);
        });
    }
    Ok(())
}

/// Adds labels, the finalizer that keeps a finished pod until it is counted, and the index.
pub(super) fn complete(pod: &mut Pod, job_name: &str, job_uid: &str, index: Option<usize>) {
    for prefix in ["", "batch.kubernetes.io/"] {
        set_label(pod, &format!("{prefix}job-name"), job_name);
        set_label(pod, &format!("{prefix}controller-uid"), job_uid);
    }
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    finalizers.push(TRACKING.to_string());
    if let Some(index) = index {
        set_label(pod, INDEX, &index.to_string());
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert(INDEX.to_string(), index.to_string());
        let spec = pod.spec.get_or_insert_default();
        spec.hostname = Some(format!("{job_name}-{index}"));
    }
}

fn is_finished(job: &Job) -> bool {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| {
        matches!(condition.type_.as_str(), "Complete" | "Failed") && condition.status == "True"
    })
}

/// The number of pods that should run now. Source: `manageJob`.
fn n_wanted(job: &Job, spec: &JobSpec, present: &[&Pod]) -> usize {
    let number = |n: Option<i32>| usize::try_from(n.unwrap_or(0)).unwrap_or(0);
    let parallelism = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or(0);
    let in_status = number(job.status.as_ref().and_then(|status| status.succeeded));
    let in_pods = present.iter().filter(|pod| has_succeeded(pod)).count();
    let n_succeeded = in_status.max(in_pods);
    match spec.completions {
        Some(_) => parallelism.min(number(spec.completions).saturating_sub(n_succeeded)),
        // A work queue starts no pods after the first success.
        None if n_succeeded > 0 => 0,
        None => parallelism,
    }
}

fn has_succeeded(pod: &Pod) -> bool {
    phase_of(pod) == Some("Succeeded")
}

/// The indexes without a running or succeeded pod, lowest first.
fn free_indexes(spec: &JobSpec, present: &[&Pod]) -> impl Iterator<Item = usize> + use<> {
    let n = usize::try_from(spec.completions.unwrap_or(0)).unwrap_or(0);
    let holders = present
        .iter()
        .filter(|pod| is_active(pod) || has_succeeded(pod));
    let held: BTreeSet<usize> = holders
        .filter_map(|pod| pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok())
        .collect();
    (0..n).filter(move |index| !held.contains(index))
}
