//! Reads an Indexed Job and the logs of its pods.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client};
use strew_manifest::json::Json;
use thiserror::Error;

use crate::causes::in_a_line;
use crate::untyped::{self, Untyped};

/// The annotation of a pod with its completion index.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The label of a pod with the name of its Job.
const JOB: &str = "batch.kubernetes.io/job-name";

/// The number of pods in a page of a list.
const PAGE: u32 = 500;

/// The time limit for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The bytes of a log that are read. A longer log is cut, and holds no whole result.
const LOG_MAX: i64 = 64 << 20;

/// An Indexed Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedJob {
    /// The number of its completions.
    pub completions: u32,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its pods, by index and name. An index may have none, or several.
    pub pods: Vec<JobPod>,
}

/// A pod of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobPod {
    /// Its completion index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// `Pending`, `Running`, `Succeeded` or `Failed`.
    pub phase: String,
}

/// Why a Job cannot be read.
#[derive(Debug, Error)]
pub enum JobError {
    /// No Job has this name.
    #[error("there is no Job {name} in namespace {namespace}")]
    Missing {
        /// The namespace that was searched.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// It is not Indexed.
    #[error("Job {0} has no completionMode Indexed, or no completions")]
    NotIndexed(String),
    /// The API server refused, or does not answer.
    #[error("{what} cannot be read: {text}")]
    Refused {
        /// The object of the request.
        what: &'static str,
        /// The error.
        text: String,
    },
}

/// Reads a Job and lists its pods.
///
/// # Errors
/// There is no such Job, or the API server refuses.
pub async fn job(client: &Client, namespace: &str, name: &str) -> Result<IndexedJob, JobError> {
    let jobs = untyped::api::<Job>(client, namespace);
    let job = answer("the Job", jobs.get_opt(name)).await?;
    let job = job.and_then(|job| Job::of_json(job.value).ok());
    let job = job.ok_or_else(|| JobError::Missing {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })?;
    let completions = job.spec.as_ref().and_then(|spec| {
        let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let n = spec.completions.filter(|_| is_indexed)?;
        u32::try_from(n).ok()
    });
    let completions = completions.ok_or_else(|| JobError::NotIndexed(name.to_owned()))?;
    Ok(IndexedJob {
        completions,
        annotations: job.metadata.annotations.unwrap_or_default(),
        pods: pods(client, namespace, name).await?,
    })
}

async fn pods(client: &Client, namespace: &str, job: &str) -> Result<Vec<JobPod>, JobError> {
    let api = untyped::api::<Pod>(client, namespace);
    let mut params = ListParams::default()
        .labels(&format!("{JOB}={job}"))
        .limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = answer("the Job's pods", api.list(&params)).await?;
        found.extend(page.items.into_iter().filter_map(job_pod));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    found.sort();
    Ok(found)
}

fn job_pod(pod: Untyped) -> Option<JobPod> {
    let pod = Pod::of_json(pod.value).ok()?;
    let annotations = pod.metadata.annotations.as_ref();
    let index = annotations?.get(INDEX)?.parse().ok()?;
    let status = pod.status.as_ref();
    Some(JobPod {
        index,
        phase: status.and_then(|s| s.phase.clone()).unwrap_or_default(),
        name: pod.metadata.name?,
    })
}

/// The log of a pod's container, up to 64 MiB.
///
/// # Errors
/// The API server refuses, or the node of the pod does not answer.
pub async fn log(
    client: &Client,
    namespace: &str,
    pod: &str,
    container: &str,
) -> Result<String, JobError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let params = LogParams {
        container: Some(container.to_owned()),
        limit_bytes: Some(LOG_MAX),
        ..LogParams::default()
    };
    answer("the log", pods.logs(pod, &params)).await
}

async fn answer<T>(
    what: &'static str,
    asked: impl Future<Output = kube::Result<T>>,
) -> Result<T, JobError> {
    let refused = |text: String| JobError::Refused { what, text };
    match tokio::time::timeout(ANSWER_WITHIN, asked).await {
        Ok(answer) => answer.map_err(|error| refused(in_a_line(&error))),
        Err(_) => Err(refused(format!(
            "no answer within {} s",
            ANSWER_WITHIN.as_secs()
        ))),
    }
}
