//! Jobs and CronJobs.
//!
//! Source: `pkg/apis/batch/validation`, v1.36.

use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};

use super::Validate;
use super::workload::{nonnegative_each, spec_path, warnings_of};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::pod::validate_template;
use strew_manifest::validation::{nonnegative, one_of, text};

/// Source: `validation.go` of batch: names of Jobs are 11 characters longer.
const N_CRON_JOB_NAME_CHARS_MAX: usize = 52;
const INDEXED_PARALLELISM_MAX: i32 = 100_000;

impl Validate for Job {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let spec = self.spec.clone().unwrap_or_default();
        job(&spec, &spec_path(), &mut errors);
        errors
    }

    fn warnings(&self) -> Vec<String> {
        warnings_of(self.spec.as_ref().map(|spec| &spec.template))
    }
}

impl Validate for CronJob {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let name = self.metadata.name.as_deref().unwrap_or_default();
        if name.len() > N_CRON_JOB_NAME_CHARS_MAX {
            errors.push(FieldError::invalid(
                FieldPath::root().child("metadata.name"),
                name,
                "must be no more than 52 characters",
            ));
        }
        let path = spec_path();
        if self.spec.schedule.is_empty() {
            errors.push(FieldError::required(path.child("schedule"), ""));
        }
        if let Some(seconds) = self.spec.starting_deadline_seconds {
            nonnegative(seconds, &path.child("startingDeadlineSeconds"), &mut errors);
        }
        let policy = self.spec.concurrency_policy.as_deref().unwrap_or_default();
        let at = path.child("concurrencyPolicy");
        match policy {
            "" => errors.push(FieldError::required(at, "")),
            policy => one_of(policy, &["Allow", "Forbid", "Replace"], &at, &mut errors),
        }
        let spec = self.spec.job_template.spec.clone().unwrap_or_default();
        job(&spec, &path.child("jobTemplate.spec"), &mut errors);
        let numbers = [
            (
                "successfulJobsHistoryLimit",
                self.spec.successful_jobs_history_limit,
            ),
            (
                "failedJobsHistoryLimit",
                self.spec.failed_jobs_history_limit,
            ),
        ];
        nonnegative_each(&numbers, &path, &mut errors);
        errors
    }
}

fn job(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let numbers = [
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
    ];
    nonnegative_each(&numbers, path, errors);
    nonnegative(
        spec.active_deadline_seconds.unwrap_or(0),
        &path.child("activeDeadlineSeconds"),
        errors,
    );
    let numbers = [
        ("backoffLimit", spec.backoff_limit),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
    ];
    nonnegative_each(&numbers, path, errors);
    if let Some(mode) = &spec.completion_mode {
        one_of(
            mode,
            &["NonIndexed", "Indexed"],
            &path.child("completionMode"),
            errors,
        );
        if mode == "Indexed" {
            indexed_job(spec, path, errors);
        }
    }
    validate_template(&spec.template, &path.child("template"), errors);
    let policy = spec
        .template
        .spec
        .as_ref()
        .and_then(|spec| spec.restart_policy.as_deref());
    let at = path.child("template.spec.restartPolicy");
    match policy.unwrap_or_default() {
        // This is the default, as if it were missing.
        "Always" => {
            let detail = "valid values: \"OnFailure\", \"Never\"";
            errors.push(FieldError::required(at, detail));
        }
        policy => one_of(policy, &["OnFailure", "Never"], &at, errors),
    }
}

fn indexed_job(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if spec.completions.is_none() {
        let detail = "when completion mode is Indexed";
        errors.push(FieldError::required(path.child("completions"), detail));
    }
    if let Some(parallelism) = spec.parallelism.filter(|&n| n > INDEXED_PARALLELISM_MAX) {
        let detail = format!(
            "must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
        );
        errors.push(FieldError::invalid_raw(
            path.child("parallelism"),
            parallelism,
            detail,
        ));
    }
}
