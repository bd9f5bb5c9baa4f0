//! Chooses the pods of a node that a drain evicts, with its messages about the others.
//!
//! Source: spec/controllers §8.3; upstream `k8s.io/kubectl/pkg/drain/filters.go`, v1.36.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{DaemonSet, Kind, Name, Pod};

use super::DrainOptions;

const DAEMON_FATAL: &str = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)";
const DAEMON_WARNING: &str = "ignoring DaemonSet-managed Pods";
const STORAGE_FATAL: &str = "Pods with local storage (use --delete-emptydir-data to override)";
const ALONE_FATAL: &str = "Pods that declare no controller (use --force to override)";
const ALONE_WARNING: &str = "deleting Pods that declare no controller";

/// The annotation of a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The decision on a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Delete,
    Warn { message: String, deletes: bool },
    Skip,
    Fatal(String),
}

/// The pods of a node by decision.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Pods to evict, in the order of names.
    pub(super) pods: Vec<Arc<Pod>>,
    /// The text after `WARNING: `; empty: no warning.
    pub(super) warnings: String,
    /// Why the node cannot be drained; empty: it can.
    pub(super) errors: Vec<String>,
}

/// Decides on each pod of a node.
pub(super) fn sort(node: &str, options: &DrainOptions, tables: &Tables) -> Sorted {
    let mut sorted = Sorted::default();
    let mut warnings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut errors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pod in tables.pods_on(node) {
        let name = pod.meta.name.to_string();
        match verdict(pod, options, tables) {
            Verdict::Delete => sorted.pods.push(Arc::clone(pod)),
            Verdict::Skip => {}
            Verdict::Fatal(message) => errors.entry(message).or_default().push(name),
            Verdict::Warn { message, deletes } => {
                warnings.entry(message).or_default().push(name);
                if deletes {
                    sorted.pods.push(Arc::clone(pod));
                }
            }
        }
    }
    let lines = |all: BTreeMap<String, Vec<String>>, first: &str| -> Vec<String> {
        let all = all.into_iter();
        all.map(|(message, pods)| format!("{first}{message}: {}", pods.join(", ")))
            .collect()
    };
    sorted.warnings = lines(warnings, "").join("; ");
    sorted.errors = lines(errors, "cannot delete ");
    sorted
}

/// Runs the filters in order. The first one that keeps the pod decides; otherwise the last one's warning counts.
fn verdict(pod: &Pod, options: &DrainOptions, tables: &Tables) -> Verdict {
    let daemon = daemon_verdict(pod, options, tables);
    if !matches!(
        daemon,
        Verdict::Delete | Verdict::Warn { deletes: true, .. }
    ) {
        return daemon;
    }
    if pod.meta.annotation(MIRROR).is_some() {
        return Verdict::Skip;
    }
    let is_finished = pod.is_finished();
    let mut volumes = pod.spec.volumes.iter().flatten();
    let has_local_storage = !is_finished && volumes.any(|volume| volume.empty_dir.is_some());
    if has_local_storage && !options.delete_empty_dir_data {
        return Verdict::Fatal(STORAGE_FATAL.to_owned());
    }
    // The warning about local storage is lost, as upstream: only the last filter's warning counts.
    match pod.meta.controller() {
        Some(_) => Verdict::Delete,
        None if options.owned.contains(&pod.meta.name) => Verdict::Delete,
        None if is_finished => Verdict::Delete,
        None if options.force => Verdict::Warn {
            message: ALONE_WARNING.to_owned(),
            deletes: true,
        },
        None => Verdict::Fatal(ALONE_FATAL.to_owned()),
    }
}

/// A DaemonSet would recreate its pods, so they are not evicted; pods whose DaemonSet is gone are.
fn daemon_verdict(pod: &Pod, options: &DrainOptions, tables: &Tables) -> Verdict {
    let owner = pod
        .meta
        .controller()
        .filter(|owner| Kind::of(&owner.kind) == Kind::DaemonSet);
    let Some(owner) = owner.filter(|_| !pod.is_finished()) else {
        return Verdict::Delete;
    };
    let set = Name::new(
        Arc::clone(&pod.meta.name.namespace),
        Arc::clone(&owner.name),
    );
    if tables.get::<DaemonSet>(&set).is_none() {
        let message = format!("daemonsets.apps {:?} not found", owner.name);
        return match options.force {
            true => Verdict::Warn {
                message,
                deletes: true,
            },
            false => Verdict::Fatal(message),
        };
    }
    match options.ignore_daemon_sets {
        true => Verdict::Warn {
            message: DAEMON_WARNING.to_owned(),
            deletes: false,
        },
        false => Verdict::Fatal(DAEMON_FATAL.to_owned()),
    }
}
