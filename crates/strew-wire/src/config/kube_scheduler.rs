//! `KubeSchedulerConfiguration`: defaults and validation of the document itself.
//!
//! Source: spec/scheduler §5.1, §5.6; `pkg/scheduler/apis/config/{v1,validation}` and
//! `k8s.io/component-base/config`, v1.36.

use serde_json::Value;
use strew_model::Interner;

use super::arguments::duration;
use super::gates::FeatureGates;
use super::problems::Problems;
use super::profiles::{self, Common, DEFAULT_SCHEDULER};
use super::versions::{self, Version};
use super::wire::{ClientConnectionWire, ConfigurationWire, ExtenderWire, LeaderElectionWire};
use super::{ClientConnection, Configuration, LeaderElection};
use strew_manifest::duration::GoDuration;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::Diagnostic;
use strew_manifest::validation::text;

/// Reads the document.
pub(super) fn read(
    mut value: Value,
    version: Version,
    gates: &FeatureGates,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) -> Configuration {
    versions::take_old_fields(&mut value, version, problems);
    let root = FieldPath::root();
    let mut wire: ConfigurationWire = problems.decode(value, &root);
    versions::rename_plugins(&mut wire, version, problems);
    let mut configuration = Configuration::of_gates(gates);
    let client = wire.client_connection.take().unwrap_or_default();
    configuration.client_connection = client_connection(client, problems);
    let election = wire.leader_election.take().unwrap_or_default();
    configuration.leader_election = leader_election(election, problems);
    numbers(&wire, &mut configuration, problems);
    profiles::percentage(wire.percentage_of_nodes_to_score, &root, problems);
    let common = Common {
        gates,
        version,
        percentage: wire.percentage_of_nodes_to_score,
    };
    configuration.profiles = all_profiles(&mut wire, common, problems, names);
    extenders(wire.extenders.as_deref().unwrap_or_default(), problems);
    configuration.enable_profiling = wire.enable_profiling.unwrap_or(true);
    configuration.enable_contention_profiling = wire
        .enable_contention_profiling
        .unwrap_or(configuration.enable_profiling);
    configuration.delay_cache_until_active = wire.delay_cache_until_active.unwrap_or(false);
    configuration
}

fn numbers(
    wire: &ConfigurationWire,
    configuration: &mut Configuration,
    problems: &mut Problems<'_>,
) {
    let root = FieldPath::root();
    let parallelism = wire.parallelism.unwrap_or(16);
    if parallelism <= 0 {
        let detail = "should be an integer value greater than zero";
        let path = root.child("parallelism");
        problems.field(FieldError::invalid_raw(path, parallelism, detail));
    }
    configuration.parallelism = u32::try_from(parallelism).unwrap_or(1);
    let initial = wire.pod_initial_backoff_seconds.unwrap_or(1);
    let max = wire.pod_max_backoff_seconds.unwrap_or(10);
    if initial <= 0 {
        let path = root.child("podInitialBackoffSeconds");
        problems.field(FieldError::invalid_raw(
            path,
            initial,
            "must be greater than 0",
        ));
    }
    if max < initial {
        let path = root.child("podMaxBackoffSeconds");
        let detail = "must be greater than or equal to PodInitialBackoffSeconds";
        problems.field(FieldError::invalid_raw(path, max, detail));
    }
    configuration.pod_initial_backoff_s = u64::try_from(initial).unwrap_or(1);
    configuration.pod_max_backoff_s = u64::try_from(max).unwrap_or(1);
    let percent = wire.percentage_of_nodes_to_score;
    configuration.percentage_of_nodes_to_score = percent.and_then(|p| u8::try_from(p).ok());
}

fn client_connection(wire: ClientConnectionWire, problems: &mut Problems<'_>) -> ClientConnection {
    let burst = wire.burst.unwrap_or(0);
    if burst < 0 {
        let path = FieldPath::root().child("clientConnection.burst");
        problems.field(FieldError::invalid_raw(path, burst, "must be non-negative"));
    }
    let defaults = ClientConnection::default();
    ClientConnection {
        kubeconfig: wire.kubeconfig.unwrap_or_default(),
        accept_content_types: wire.accept_content_types.unwrap_or_default(),
        content_type: given(wire.content_type).unwrap_or(defaults.content_type),
        qps: wire.qps.filter(|qps| *qps != 0.0).unwrap_or(defaults.qps),
        burst: u32::try_from(burst)
            .ok()
            .filter(|burst| *burst > 0)
            .unwrap_or(defaults.burst),
    }
}

fn leader_election(wire: LeaderElectionWire, problems: &mut Problems<'_>) -> LeaderElection {
    let path = FieldPath::root().child("leaderElection");
    let mut time = |text: Option<String>, name, default| {
        // Go's zero duration means that no value is set.
        let read = duration(text.as_deref(), path.child(name), problems);
        let read = read.filter(|duration| *duration != GoDuration::ZERO);
        read.unwrap_or(GoDuration::from_secs(default))
    };
    let lease = time(wire.lease_duration, "leaseDuration", 15);
    let renew = time(wire.renew_deadline, "renewDeadline", 10);
    let retry = time(wire.retry_period, "retryPeriod", 2);
    let defaults = LeaderElection::default();
    let election = LeaderElection {
        leader_elect: wire.leader_elect.unwrap_or(true),
        lease_duration: lease.to_std(),
        renew_deadline: renew.to_std(),
        retry_period: retry.to_std(),
        resource_lock: given(wire.resource_lock).unwrap_or(defaults.resource_lock),
        resource_name: given(wire.resource_name).unwrap_or(defaults.resource_name),
        resource_namespace: given(wire.resource_namespace).unwrap_or(defaults.resource_namespace),
    };
    if !election.leader_elect {
        return election;
    }
    let positive = [
        ("leaseDuration", lease),
        ("renewDeadline", renew),
        ("retryPeriod", retry),
    ];
    for (name, duration) in positive {
        if duration <= GoDuration::ZERO {
            let detail = "must be greater than zero";
            problems.field(FieldError::invalid_raw(path.child(name), duration, detail));
        }
    }
    if lease <= renew {
        // The error shows the value of renewDeadline, as upstream.
        let detail = "must be greater than `RenewDeadline`";
        problems.field(FieldError::invalid_raw(
            path.child("leaseDuration"),
            renew,
            detail,
        ));
    }
    if election.resource_lock != "leases" {
        let detail = "resourceLock value must be \"leases\"";
        let path = path.child("resourceLock");
        problems.field(FieldError::invalid(path, &election.resource_lock, detail));
    }
    election
}

fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn all_profiles(
    wire: &mut ConfigurationWire,
    common: Common<'_>,
    problems: &mut Problems<'_>,
    names: &mut Interner,
) -> Vec<strew_scheduler::Profile> {
    let path = FieldPath::root().child("profiles");
    let mut given = wire.profiles.take().unwrap_or_default();
    if given.is_empty() {
        given.push(super::wire::ProfileWire::default());
    }
    if let [only] = &mut given[..] {
        let name = only.scheduler_name.take();
        only.scheduler_name = Some(name.unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned()));
    }
    let mut built = Vec::with_capacity(given.len());
    for (i, profile) in given.iter().enumerate() {
        let at = path.index(i);
        let name = profile.scheduler_name.as_deref().unwrap_or_default();
        if name.is_empty() {
            problems.field(FieldError::required(at.child("schedulerName"), ""));
        }
        built.push(profiles::build(profile, common, &at, problems, names));
        // The last of the earlier ones, as in a map that each profile overwrites.
        let same = |other: &super::wire::ProfileWire| {
            other.scheduler_name.as_deref().unwrap_or_default() == name
        };
        if let Some(earlier) = given[..i].iter().rposition(same) {
            let value = path.index(earlier).child("schedulerName").to_string();
            let kind = strew_manifest::field::FieldErrorKind::Duplicate { value };
            problems.field(FieldError::new(at.child("schedulerName"), kind, ""));
        }
    }
    profiles::common_queue_sort(&given, problems);
    built
}

/// Checked as kube-scheduler does, then refused: decisions without them would differ from the cluster's.
fn extenders(given: &[ExtenderWire], problems: &mut Problems<'_>) {
    let root = FieldPath::root().child("extenders");
    let text_of = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut managed: Vec<String> = Vec::new();
    for (i, extender) in given.iter().enumerate() {
        let path = root.index(i);
        let weight = extender.weight.unwrap_or(0);
        if !text_of(&extender.prioritize_verb).is_empty() && weight <= 0 {
            let detail = "must have a positive weight applied to it";
            problems.field(FieldError::invalid_raw(
                path.child("weight"),
                weight,
                detail,
            ));
        }
        if let Some(timeout) = &extender.http_timeout {
            duration(Some(timeout), path.child("httpTimeout"), problems);
        }
        for (j, resource) in extender.managed_resources.iter().flatten().enumerate() {
            let path = path.child("managedResources").index(j).child("name");
            let name = text_of(&resource.name);
            managed_resource(&name, &path, problems);
            if managed.contains(&name) {
                let detail = "duplicate extender managed resource name";
                problems.field(FieldError::invalid(path, &name, detail));
            }
            managed.push(name);
        }
    }
    let binders = given
        .iter()
        .filter(|e| !text_of(&e.bind_verb).is_empty())
        .count();
    if binders > 1 {
        let value = format!("found {binders} extenders implementing bind");
        let detail = "only one extender can implement bind";
        problems.field(FieldError::invalid(root.clone(), &value, detail));
    }
    if !given.is_empty() {
        let error = Diagnostic::error("extenders", "strew does not call extenders");
        let help = "without them it would not decide as this cluster does; take them out to see what the plugins say";
        problems.at(root, error.with_help(help));
    }
}

/// Source: `validateExtendedResourceName`, v1.36.
fn managed_resource(name: &str, path: &FieldPath, problems: &mut Problems<'_>) {
    let sentences = text::qualified_name(name);
    let is_named = sentences.is_empty();
    for detail in sentences {
        problems.field(FieldError::invalid(path.clone(), name, detail));
    }
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    let is_quota = !text::qualified_name(&format!("requests.{name}")).is_empty();
    if is_named && (is_native || name.starts_with("requests.") || is_quota) {
        let detail = "is an invalid extended resource name";
        problems.field(FieldError::invalid(path.clone(), name, detail));
    }
}
