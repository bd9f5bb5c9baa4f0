//! Jobs and CronJobs.
//!
//! Source: spec/controllers §5.3; `pkg/apis/batch/validation`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::Validate;
use super::job_policy;
use super::workload::{nonnegative_each, spec_path, warnings_of};
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_manifest::schedule::{self, Schedule};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::pod::validate_template;
use strew_manifest::validation::{json, nonnegative, one_of, selector, text};

/// Source: `validation.go` of batch: names of Jobs are 11 characters longer.
const N_CRON_JOB_NAME_CHARS_MAX: usize = 52;
const INDEXED_PARALLELISM_MAX: i32 = 100_000;

impl Validate for Job {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let spec = self.spec.clone().unwrap_or_default();
        let generated = Generated::of(self, &spec);
        generated.check(&spec, &mut errors);
        job(&spec, &spec_path(), &mut errors);
        generated.check_match(&spec, &mut errors);
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
        schedule_of(&self.spec.schedule, &path.child("schedule"), &mut errors);
        if let Some(seconds) = self.spec.starting_deadline_seconds {
            nonnegative(seconds, &path.child("startingDeadlineSeconds"), &mut errors);
        }
        if let Some(zone) = &self.spec.time_zone {
            time_zone(zone, &path.child("timeZone"), &mut errors);
        }
        let policy = self.spec.concurrency_policy.as_deref().unwrap_or_default();
        let at = path.child("concurrencyPolicy");
        match policy {
            "" => errors.push(FieldError::required(at, "")),
            policy => one_of(policy, &["Allow", "Forbid", "Replace"], &at, &mut errors),
        }
        let spec = self.spec.job_template.spec.clone().unwrap_or_default();
        let at = path.child("jobTemplate.spec");
        job(&spec, &at, &mut errors);
        if let Some(selector) = &spec.selector {
            let detail = "`selector` will be auto-generated";
            errors.push(FieldError::invalid_raw(
                at.child("selector"),
                json(selector),
                detail,
            ));
        }
        if spec.manual_selector == Some(true) {
            let value = "true".to_owned();
            errors.push(FieldError::new(
                at.child("manualSelector"),
                FieldErrorKind::NotSupported { value },
                "supported values: \"nil\", \"false\"",
            ));
        }
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
    job_policy::limits_per_index(spec, path, errors);
    if let Some(mode) = &spec.completion_mode {
        one_of(
            mode,
            &["NonIndexed", "Indexed"],
            &path.child("completionMode"),
            errors,
        );
        if mode == "Indexed" {
            indexed_job(spec, path, errors);
            job_policy::limits_of_indexed(spec, path, errors);
        }
    }
    job_policy::policies(spec, path, errors);
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
        "OnFailure" if spec.pod_failure_policy.is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(at, "OnFailure", detail));
        }
        policy => one_of(policy, &["OnFailure", "Never"], &at, errors),
    }
}

fn schedule_of(text: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if text.is_empty() {
        errors.push(FieldError::required(path.clone(), ""));
        return;
    }
    if let Err(error) = Schedule::parse(text) {
        errors.push(FieldError::invalid(path.clone(), text, error.to_string()));
    }
    if text.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(path.clone(), text, detail));
    }
}

/// The longest part of a time zone's name.
const N_ZONE_CHARS_MAX: usize = 14;

fn time_zone(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || ".-_+".contains(c);
    let is_part = |part: &str| {
        (1..=N_ZONE_CHARS_MAX).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.chars().all(is_of_name)
    };
    let detail = if name.is_empty() {
        "timeZone must be nil or non-empty string".to_owned()
    } else if name.eq_ignore_ascii_case("Local") {
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            .to_owned()
    } else if !name.split('/').all(is_part) || schedule::zone(name).is_none() {
        format!("unknown time zone {name}")
    } else {
        return;
    };
    errors.push(FieldError::invalid(path.clone(), name, detail));
}

/// What the API server makes of a Job's selector and of the labels of its pods.
struct Generated {
    is_manual: bool,
    selector: Option<LabelSelector>,
    labels: BTreeMap<String, String>,
    /// The labels that the API server generates.
    expected: [(&'static str, String); 4],
}

/// The label that a generated selector selects.
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";

/// The uid of a Job that is not stored yet.
const NEW_UID: &str = "<uid of the new Job>";

impl Generated {
    fn of(job: &Job, spec: &JobSpec) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (name, uid) = (text(&job.metadata.name), text(&job.metadata.uid));
        let uid = if uid.is_empty() {
            NEW_UID.to_owned()
        } else {
            uid
        };
        let expected = [
            ("controller-uid", uid.clone()),
            ("job-name", name.clone()),
            (CONTROLLER_UID, uid.clone()),
            ("batch.kubernetes.io/job-name", name),
        ];
        let labels = spec.template.metadata.as_ref();
        let labels = labels.and_then(|metadata| metadata.labels.clone());
        let mut generated = Self {
            is_manual: spec.manual_selector == Some(true),
            selector: spec.selector.clone(),
            labels: labels.unwrap_or_default(),
            expected,
        };
        if !generated.is_manual {
            for (key, value) in &generated.expected {
                let labels = generated.labels.entry((*key).to_owned());
                labels.or_insert_with(|| value.clone());
            }
            let selector = generated.selector.get_or_insert_default();
            let wanted = selector.match_labels.get_or_insert_default();
            wanted.entry(CONTROLLER_UID.to_owned()).or_insert(uid);
        }
        generated
    }

    /// Checks what the user wrote where the API server generates. Source: `validateGeneratedSelector`.
    fn check(&self, spec: &JobSpec, errors: &mut Vec<FieldError>) {
        if self.is_manual {
            return;
        }
        let help = "leave spec.selector and these labels out, or set spec.manualSelector: true";
        let given = spec.template.metadata.as_ref();
        let given = given.and_then(|metadata| metadata.labels.as_ref());
        for (key, value) in &self.expected {
            if self.labels.get(*key) != Some(value) {
                let path = spec_path().child("template.metadata.labels").key(*key);
                let detail = format!("must be '{value}'");
                let error = FieldError::invalid_raw(path, json(&given), detail);
                errors.push(error.with_help(help));
            }
        }
        let expected = self.expected.iter();
        let expected = expected.map(|(key, value)| ((*key).to_owned(), value.clone()));
        let expected: BTreeMap<String, String> = expected.collect();
        if let Some(wanted) = &self.selector
            && selector::matches(wanted, Some(&expected)) == Some(false)
        {
            let detail = "`selector` not auto-generated";
            let given = json(&spec.selector);
            let error = FieldError::invalid_raw(spec_path().child("selector"), given, detail);
            errors.push(error.with_help(help));
        }
    }

    /// Checks that the selector selects the pods.
    fn check_match(&self, spec: &JobSpec, errors: &mut Vec<FieldError>) {
        let path = spec_path();
        let Some(wanted) = &self.selector else {
            errors.push(FieldError::required(path.child("selector"), ""));
            return;
        };
        selector::validate(spec.selector.as_ref(), &path.child("selector"), errors);
        if selector::matches(wanted, Some(&self.labels)) == Some(false) {
            errors.push(FieldError::invalid_raw(
                path.child("template.metadata.labels"),
                json(&self.labels),
                "`selector` does not match template `labels`",
            ));
        }
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
