//! What a step does: kubectl's verbs, and faults.

use strew_api::field::FieldPath;
use strew_api::read::Place;
use strew_model::Span;

use super::edits::{ImageEdit, MetadataEdit, TaintEdit};
use super::fault::{Crash, Fault};
use super::manifest::Manifest;
use super::patch::Patch;
use super::target::{NodeTarget, ObjectTarget, PodTarget, Target};

/// A verb with all that it is done to, in the order written.
#[derive(Debug, Clone)]
pub enum Verb {
    /// Makes objects, or changes them to be so.
    Apply(Vec<Manifest>),
    /// Makes objects that must be new.
    Create(Vec<Manifest>),
    /// Deletes objects.
    Delete(Vec<Target>),
    /// Changes objects.
    Patch(Vec<(Target, Patch)>),
    /// Sets replicas.
    Scale(Vec<(ObjectTarget, Replicas)>),
    /// Sets images.
    SetImage(Vec<(ObjectTarget, Vec<ImageEdit>)>),
    /// A change of a workload's rollout.
    Rollout(RolloutAction, Vec<ObjectTarget>),
    /// No new pods on nodes.
    Cordon(Vec<NodeTarget>),
    /// New pods again.
    Uncordon(Vec<NodeTarget>),
    /// Cordons nodes and evicts their pods.
    Drain {
        /// The nodes.
        nodes: Vec<NodeTarget>,
        /// Evictions are tried again until then; none: without an end.
        timeout: Option<Span>,
    },
    /// Whether the readiness gate of pods holds.
    Ready(Vec<(PodTarget, bool)>),
    /// Changes taints.
    Taint(Vec<(NodeTarget, Vec<TaintEdit>)>),
    /// Changes labels.
    Label(Vec<(Target, Vec<MetadataEdit>)>),
    /// Changes annotations.
    Annotate(Vec<(Target, Vec<MetadataEdit>)>),
    /// Nodes stop their heartbeats.
    Lose(Vec<NodeTarget>),
    /// Lost nodes are back: each reports with its next heartbeat.
    Restore(Vec<NodeTarget>),
    /// Feature gates from now on.
    Gates(Vec<(String, bool)>),
    /// Observed utilisation in percent, by HorizontalPodAutoscaler.
    Metric(Vec<(ObjectTarget, u32)>),
    /// Components stop and start again empty.
    Crash(Vec<Crash>),
    /// What goes wrong for a while.
    Fault(Vec<Fault>),
}

/// How many replicas a workload shall have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicas {
    /// So many.
    Count(u32),
    /// A percentage of those that it has, rounded down; of one or more, at least one stays.
    Percent(u32),
}

/// `kubectl rollout …`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutAction {
    /// Replaces all pods.
    Restart,
    /// Back to the revision before.
    Undo,
    /// Stops the rollout where it is.
    Pause,
    /// Goes on.
    Resume,
}

/// A verb and its place.
#[derive(Debug, Clone)]
pub struct LocatedVerb {
    /// What is done.
    pub verb: Verb,
    /// The field that says so.
    pub path: FieldPath,
    /// Its place in its file; `None` until the scenario is found to be good.
    pub place: Option<Place>,
    /// Its text for reports: one line of YAML.
    pub text: String,
}
