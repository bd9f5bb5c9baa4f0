//! The scheduler's configuration file and feature gates.
//!
//! [`configure`] reads a `KubeSchedulerConfiguration` (v1, and v1beta1 to v1beta3 by the rules of the KEPs) or a legacy
//! `Policy` into a [`Configuration`]: the profiles of [`strew_scheduler`], and the settings of the process. Reading is
//! strict and reports all errors at once, in kube-scheduler's words where kube-scheduler makes the same check. A
//! setting that strew cannot obey is an error and never ignored; notes explain the effect of old fields.
//!
//! ```
//! use strew_wire::config::{FeatureGates, Given, configure};
//! use strew_manifest::read::Sources;
//! use strew_model::Interner;
//! use strew_scheduler::PluginId;
//!
//! let mut sources = Sources::new();
//! sources.add("scheduler.yaml", "
//! apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! profiles:
//! - plugins: {multiPoint: {enabled: [{name: PodTopologySpread, weight: 7}]}}
//! ");
//! let gates = FeatureGates::default();
//! let configuration = configure(Given::Files(&sources), &gates, &mut Interner::new()).unwrap();
//! assert_eq!(configuration.profiles[0].weight(PluginId::PodTopologySpread), 7);
//! ```
//!
//! Differences from kube-scheduler: weights must not be negative and their sum is at most 21474836; a plugin that
//! filters or scores needs its PreFilter or PreScore; extenders and arguments of plugins that do not exist are refused;
//! without `percentageOfNodesToScore` all nodes are scored.

mod admission;
mod arguments;
mod fields;
pub mod gates;
mod kube_scheduler;
mod merge;
mod plugins;
mod policy;
mod problems;
mod profiles;
mod resource_arguments;
mod spread_arguments;
mod versions;
mod wire;

use std::time::Duration;

use serde_json::Value;
use strew_model::{Interner, Span};
use strew_scheduler::machine::Limits;
use strew_scheduler::{Compat, DefaultConstraints, Profile, TieRule};

pub use admission::AdmissionOptions;
#[cfg(feature = "schemas")]
pub use fields::field_table;
pub use gates::{FeatureGates, GateError};
use problems::Problems;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{self, Diagnostic, Origin, RawDocument, Sources, nearest};
use versions::Version;

/// The configuration of a scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// At least one; their names differ.
    pub profiles: Vec<Profile>,
    /// The first wait of a pod that could not be placed, in seconds.
    pub pod_initial_backoff_s: u64,
    /// The longest wait of such a pod; not below the first one.
    pub pod_max_backoff_s: u64,
    /// `parallelism`, at least 1: the number of workers that filter nodes concurrently in kube-scheduler. A simulation
    /// draws their effect; strew's own scheduler checks one node after the other.
    pub parallelism: u32,
    /// The percentage of nodes to look at; `None`: all. The profiles contain it already.
    pub percentage_of_nodes_to_score: Option<u8>,
    /// `leaderElection`
    pub leader_election: LeaderElection,
    /// `clientConnection`
    pub client_connection: ClientConnection,
    /// `enableProfiling`
    pub enable_profiling: bool,
    /// `enableContentionProfiling`
    pub enable_contention_profiling: bool,
    /// `delayCacheUntilActive`
    pub delay_cache_until_active: bool,
    /// Notes for the user: the effect of old fields, and settings without effect.
    pub notes: Vec<String>,
}

/// `leaderElection`, with its defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderElection {
    /// True if several schedulers elect a leader.
    pub leader_elect: bool,
    /// How long a lease holds without a renewal.
    pub lease_duration: Duration,
    /// How long the leader tries to renew; less than `lease_duration`.
    pub renew_deadline: Duration,
    /// The wait between two attempts.
    pub retry_period: Duration,
    /// `leases`, if there is an election.
    pub resource_lock: String,
    /// The name of the lease.
    pub resource_name: String,
    /// The namespace of the lease.
    pub resource_namespace: String,
}

/// `clientConnection`, with its defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientConnection {
    /// The path of a kubeconfig file; empty if there is none.
    pub kubeconfig: String,
    /// `acceptContentTypes`
    pub accept_content_types: String,
    /// `contentType`
    pub content_type: String,
    /// Requests per second.
    pub qps: f32,
    /// Requests in a burst.
    pub burst: u32,
}

impl Default for LeaderElection {
    fn default() -> Self {
        Self {
            leader_elect: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_lock: "leases".to_owned(),
            resource_name: "strew-scheduler".to_owned(),
            resource_namespace: "kube-system".to_owned(),
        }
    }
}

impl Default for ClientConnection {
    fn default() -> Self {
        Self {
            kubeconfig: String::new(),
            accept_content_types: String::new(),
            content_type: "application/vnd.kubernetes.protobuf".to_owned(),
            qps: 50.0,
            burst: 100,
        }
    }
}

impl Configuration {
    /// The configuration of a scheduler without a file.
    pub fn of_gates(gates: &FeatureGates) -> Self {
        Self {
            profiles: vec![profiles::default_profile(gates)],
            pod_initial_backoff_s: 1,
            pod_max_backoff_s: 10,
            parallelism: 16,
            percentage_of_nodes_to_score: None,
            leader_election: LeaderElection::default(),
            client_connection: ClientConnection::default(),
            enable_profiling: true,
            enable_contention_profiling: true,
            delay_cache_until_active: false,
            notes: gates.notes.clone(),
        }
    }

    /// The settings of a scheduler's machine: production's, with the configured waits.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::production();
        limits.queue.backoff.initial = Span::from_secs(self.pod_initial_backoff_s);
        limits.queue.backoff.max = Span::from_secs(self.pod_max_backoff_s);
        limits
    }

    /// Sets for all profiles which choices they follow, and how they break ties; no file has these settings. Adds notes
    /// about settings that lose their effect.
    pub fn set_choices(&mut self, compat: Compat, ties: TieRule) {
        for (i, profile) in self.profiles.iter_mut().enumerate() {
            if compat == Compat::V1_36 && has_match_label_keys(&profile.default_constraints) {
                self.notes.push(format!(
                    "profiles[{i}]: matchLabelKeys of defaultConstraints have no effect, as in kube-scheduler 1.36 \
                     (kubernetes#129198); with --compat strew they have"
                ));
            }
            profile.compat = compat;
            profile.ties = ties;
        }
    }

    /// The profile for pods with this `schedulerName`.
    pub fn profile(&self, scheduler_name: &str) -> Option<&Profile> {
        let mut profiles = self.profiles.iter();
        profiles.find(|profile| profile.scheduler_name == scheduler_name)
    }
}

fn has_match_label_keys(defaults: &DefaultConstraints) -> bool {
    match defaults {
        DefaultConstraints::System => false,
        DefaultConstraints::List(list) => list.iter().any(|c| !c.match_label_keys.is_empty()),
    }
}

/// The source of the configuration.
#[derive(Debug, Clone, Copy)]
pub enum Given<'a> {
    /// None: the defaults apply.
    Nothing,
    /// The only document of these files.
    Files(&'a Sources),
    /// The same, or the `PodTopologySpreadArgs` of the default profile alone.
    Defaults(&'a Sources),
    /// A document among others, which [`read`](strew_manifest::read::read) found and [`is_configuration`] recognised.
    Document(&'a Sources, &'a Origin),
}

/// True if an object is a configuration for [`configure`], in any version; `configure` may still refuse the version.
pub fn is_configuration(api_version: &str, kind: &str) -> bool {
    let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
    (group == Version::GROUP && kind == CONFIGURATION) || (api_version == "v1" && kind == POLICY)
}

const CONFIGURATION: &str = "KubeSchedulerConfiguration";
const POLICY: &str = "Policy";
const SPREAD_ARGUMENTS: &str = "PodTopologySpreadArgs";

/// Reads a configuration and applies the gates to its profiles.
///
/// # Errors
/// All errors, each with its place.
pub fn configure(
    given: Given<'_>,
    gates: &FeatureGates,
    names: &mut Interner,
) -> Result<Configuration, Vec<Diagnostic>> {
    match given {
        Given::Nothing => Ok(Configuration::of_gates(gates)),
        Given::Files(sources) => only_document(sources, |document| {
            configure_document(document, sources, gates, names)
        }),
        Given::Defaults(sources) => {
            only_document(sources, |document| match document.value["kind"].as_str() {
                Some(CONFIGURATION | POLICY) => configure_document(document, sources, gates, names),
                _ => of_spread_arguments(document, sources, gates, names),
            })
        }
        Given::Document(sources, origin) => match read::document_at(sources, origin) {
            Some(document) => configure_document(document, sources, gates, names),
            None => {
                let message = "this document can't be read";
                let place = read::locate(sources, origin, &FieldPath::root());
                Err(vec![
                    Diagnostic::error("no-configuration", message).at(place),
                ])
            }
        },
    }
}

/// Reads the only document of files.
fn only_document(
    sources: &Sources,
    read: impl FnOnce(RawDocument) -> Result<Configuration, Vec<Diagnostic>>,
) -> Result<Configuration, Vec<Diagnostic>> {
    let (mut documents, mut diagnostics) = read::documents(sources);
    documents.retain(|document| !document.value.is_null());
    let mut documents = documents.into_iter();
    let read = documents.next().map(read);
    for surplus in documents {
        let message = "a configuration is one document, and this is another";
        let place = read::locate(sources, &surplus.origin, &FieldPath::root());
        diagnostics.push(Diagnostic::error("surplus-document", message).at(place));
    }
    match read {
        Some(Ok(configuration)) if diagnostics.is_empty() => Ok(configuration),
        Some(Err(errors)) => {
            diagnostics.extend(errors);
            let placeless = |diagnostic: &Diagnostic| diagnostic.place.is_none();
            diagnostics.sort_by_key(|d| (placeless(d), d.place));
            Err(diagnostics)
        }
        None if diagnostics.is_empty() => {
            let message = "there is no configuration in this file";
            Err(vec![Diagnostic::error("no-configuration", message)])
        }
        _ => Err(diagnostics),
    }
}

/// The default profile with these arguments of PodTopologySpread.
fn of_spread_arguments(
    document: RawDocument,
    sources: &Sources,
    gates: &FeatureGates,
    names: &mut Interner,
) -> Result<Configuration, Vec<Diagnostic>> {
    let RawDocument { mut value, origin } = document;
    let mut problems = Problems::new(sources, &origin, SPREAD_ARGUMENTS);
    let mut configuration = Configuration::of_gates(gates);
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    match (Version::of(&api_version), value.as_object_mut()) {
        (Some(version), Some(fields)) if kind == SPREAD_ARGUMENTS => {
            fields.shift_remove("apiVersion");
            fields.shift_remove("kind");
            let root = FieldPath::root();
            for profile in &mut configuration.profiles {
                spread_arguments::spread(
                    value.take(),
                    version,
                    &root,
                    profile,
                    &mut problems,
                    names,
                );
            }
        }
        _ => {
            let (path, error) = wrong_type(&value, &api_version, &kind, &DEFAULTS);
            problems.at(path, error);
        }
    }
    let notes = problems.finish()?;
    configuration.notes.extend(notes);
    Ok(configuration)
}

fn configure_document(
    document: RawDocument,
    sources: &Sources,
    gates: &FeatureGates,
    names: &mut Interner,
) -> Result<Configuration, Vec<Diagnostic>> {
    let RawDocument { value, origin } = document;
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let label = match kind.as_str() {
        POLICY => POLICY,
        _ => CONFIGURATION,
    };
    let mut problems = Problems::new(sources, &origin, label);
    let mut configuration = match (Version::of(&api_version), kind.as_str()) {
        (Some(version), CONFIGURATION) => {
            kube_scheduler::read(value, version, gates, &mut problems, names)
        }
        (None, POLICY) if api_version == "v1" => policy::read(value, gates, &mut problems, names),
        _ => {
            let (path, error) = wrong_type(&value, &api_version, &kind, &CONFIGURATIONS);
            problems.at(path, error);
            Configuration::of_gates(gates)
        }
    };
    let notes = problems.finish()?;
    configuration.notes.extend(notes);
    Ok(configuration)
}

/// The documents that are read.
struct Readable {
    kinds: &'static [&'static str],
    help: &'static str,
}

const CONFIGURATIONS: Readable = Readable {
    kinds: &[CONFIGURATION, POLICY],
    help: "strew reads a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1 (or v1beta1, v1beta2, v1beta3), or a Policy of v1",
};

const DEFAULTS: Readable = Readable {
    kinds: &[CONFIGURATION, SPREAD_ARGUMENTS],
    help: "strew reads default constraints from a KubeSchedulerConfiguration or a PodTopologySpreadArgs of kubescheduler.config.k8s.io/v1",
};

/// Why a document is no configuration.
fn wrong_type(
    value: &Value,
    api_version: &str,
    kind: &str,
    readable: &Readable,
) -> (FieldPath, Diagnostic) {
    let root = FieldPath::root();
    let wanted = readable.help;
    if !value.is_object() {
        let error = Diagnostic::error("no-configuration", "expected a configuration");
        return (root, error.with_help(wanted));
    }
    let (name, found, known): (_, _, &[&str]) = match kind {
        CONFIGURATION | SPREAD_ARGUMENTS => (
            "apiVersion",
            api_version,
            &["kubescheduler.config.k8s.io/v1"],
        ),
        POLICY => ("apiVersion", api_version, &["v1"]),
        _ => ("kind", kind, readable.kinds),
    };
    let message = match (found, nearest(found, known.iter().copied())) {
        ("", _) => format!("{name} is missing"),
        (_, Some(meant)) => {
            format!("no configuration: {name} is {found:?}, did you mean {meant:?}?")
        }
        (_, None) => format!("no configuration: {name} is {found:?}"),
    };
    let error = Diagnostic::error("no-configuration", message);
    (root.child(name), error.with_help(wanted))
}

#[cfg(test)]
mod tests;
