//! The verbs of a step: kubectl's verbs, and faults.

use strew_manifest::field::FieldPath;
use strew_manifest::read::Place;
use strew_model::Span;

use super::edits::{ImageEdit, MetadataEdit, TaintEdit};
use super::fault::{Crash, Fault};
use super::manifest::Manifest;
use super::patch::Patch;
use super::target::{Deleted, NodeTarget, ObjectTarget, PodTarget, Target};

/// A verb with its targets, in the order written.
#[derive(Debug, Clone)]
pub enum Verb {
    /// Creates objects, or changes them to match.
    Apply(Vec<Manifest>),
    /// Creates objects that must not exist yet.
    Create(Vec<Manifest>),
    /// Deletes objects.
    Delete(Vec<Deleted>),
    /// Changes objects.
    Patch(Vec<(Target, Patch)>),
    /// Sets replicas.
    Scale(Vec<(ObjectTarget, Replicas)>),
    /// Sets images.
    SetImage(Vec<(ObjectTarget, Vec<ImageEdit>)>),
    /// Changes the rollout of workloads.
    Rollout(RolloutAction, Vec<ObjectTarget>),
    /// Makes a Job of each CronJob that has made none yet.
    RunOnce(Vec<ObjectTarget>),
    /// Keeps new pods off nodes.
    Cordon(Vec<NodeTarget>),
    /// Allows new pods on nodes again.
    Uncordon(Vec<NodeTarget>),
    /// Cordons nodes and evicts their pods.
    Drain {
        /// The nodes.
        nodes: Vec<NodeTarget>,
        /// Evictions are retried until this time has passed; `None`: without end.
        timeout: Option<Span>,
        /// True if it must give up: then one that ends fails the run.
        must_fail: bool,
    },
    /// Sets the readiness gate of pods.
    Ready(Vec<(PodTarget, bool)>),
    /// Changes taints.
    Taint(Vec<(NodeTarget, Vec<TaintEdit>)>),
    /// Cordons nodes, and takes their pods out of all endpoints while they run on, as a zonal shift does. Scenarios have
    /// no word for it.
    Shift(Vec<NodeTarget>),
    /// Changes labels.
    Label(Vec<(Target, Vec<MetadataEdit>)>),
    /// Changes annotations.
    Annotate(Vec<(Target, Vec<MetadataEdit>)>),
    /// Nodes stop sending heartbeats.
    Lose(Vec<NodeTarget>),
    /// Lost nodes return with their next heartbeat.
    Restore(Vec<NodeTarget>),
    /// Sets feature gates from now on.
    Gates(Vec<(String, bool)>),
    /// Sets the observed utilisation in percent, by HorizontalPodAutoscaler.
    Metric(Vec<(ObjectTarget, u32)>),
    /// Components stop, and start again without state.
    Crash(Vec<Crash>),
    /// Faults that last for a while.
    Fault(Vec<Fault>),
}

/// The number of replicas to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// This number.
    Count(u32),
    /// A percentage of the present replicas, rounded down; at least 1 if there is at least 1.
    Percent(u32),
}

/// `kubectl rollout …`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutAction {
    /// Replaces all pods.
    Restart,
    /// Returns to the previous revision.
    Undo,
    /// Stops the rollout.
    Pause,
    /// Continues the rollout.
    Resume,
}

/// A verb and its place.
#[derive(Debug, Clone)]
pub struct LocatedVerb {
    /// What is done.
    pub verb: Verb,
    /// The field that it was read from.
    pub path: FieldPath,
    /// Its place in its file; `None` until the whole scenario was read without errors.
    pub place: Option<Place>,
    /// Its text in reports: one line of YAML.
    pub text: String,
}
