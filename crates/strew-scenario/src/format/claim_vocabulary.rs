//! The field names of expectations.

use super::vocabulary::Form::{self, Boolean, Choice, Count, Either, List, Map, Object, Text};
use super::vocabulary::{Shape, fields, shape};

const COUNTS: Form = Either(&[List(&Count), Map(&Count)]);
const RANGE: Form = Either(&[Count, Form::Shape(&COUNT_RANGE)]);
const LABELS: Form = Map(&Text);

pub(super) const PHASES: &[&str] = &["Pending", "Running", "Succeeded", "Failed", "Unknown"];
pub(super) const REVISIONS: &[&str] = &["latest", "all"];

pub(super) static COUNT_RANGE: Shape = shape(
    "CountRange",
    "A number between two.",
    fields! {
        "min": &Count, "No less; 0.";
        "max": &Count, "No more; any number otherwise.";
    },
);

pub(super) static EXPECTATION: Shape = Shape {
    name: "Expectation",
    noun: "kind of expectation",
    doc: "One claim, and when it must hold.",
    fields: fields! {
        "spread": &Form::Shape(&SPREAD), "Counts and skew by domain.";
        "pods": &Form::Shape(&PODS), "Pods by phase and number.";
        "object": &Object, "A part of an object; without a name, of some object of that kind and labels.";
        "events": &Form::Shape(&EVENTS), "Events of an object.";
        "removed": &Form::Shape(&REMOVED), "Pods gone since the last step.";
        "placement": &Form::Shape(&PLACEMENT), "Clusters chosen by a Placement.";
        "rolledOut": &Form::Shape(&WORKLOADS),
            "Workloads have every pod that they ask for: made, of the newest template, available.";
        "withinBudget": &Form::Shape(&WORKLOADS), "PodDisruptionBudgets have the healthy pods that they ask for.";
        "survives": &Form::Shape(&WORKLOADS),
            "After a loss, workloads have a ready pod and the healthy pods of their budgets.";
        "withinConstraints": &Form::Shape(&WORKLOADS),
            "The pods of the newest template keep the workloads' hard spread constraints.";
        "cel": &Text, "A CEL expression over pods, nodes, objects and now.";
        "within": &Form::Span, "It must come true by then.";
        "for": &Form::Span, "It must hold so long.";
        "atRest": &Boolean,
            "It must hold when the cluster is at rest after the step: nothing was written for six minutes.";
        "not": &Boolean, "The opposite must be true.";
        "warn": &Boolean, "A breach is a warning, and fails nothing.";
    },
};

pub(super) static SPREAD: Shape = shape(
    "Spread",
    "Counts and skew by domain.",
    fields! {
        "of": &Text, "The workload, as TYPE/NAME; or `selector`.";
        "selector": &Object, "A label selector of pods, with matchLabels or matchExpressions.";
        "namespace": &Text, "The namespace for `selector`; the scenario's otherwise.";
        "by" must: &Text, "The topology key.";
        "counts": &COUNTS, "Pods per domain: a list in any order, or a map by domain.";
        "skew": &Count, "The skew, exactly.";
        "max": &Count, "The skew at most.";
        "revision": &Choice(REVISIONS), "Pods of the latest revision only, or all; all otherwise.";
    },
);

pub(super) static PODS: Shape = shape(
    "Pods",
    "Pods by phase and number.",
    fields! {
        "of": &Text, "The pod, or the workload, as TYPE/NAME; or `select`.";
        "select": &LABELS, "Labels of pods, in all namespaces.";
        "phase": &Choice(PHASES), "Only pods in this phase count.";
        "count": &RANGE, "How many; at least one otherwise.";
        "waiting": &Boolean,
            "Only pods count that wait for the scheduler, gated ones too: on no node, and of one of its profiles.";
        "blockedBy": &Text, "Only pods that this plugin keeps Pending count.";
        "message": &Text, "Only pods whose message holds this text count.";
    },
);

pub(super) static WORKLOADS: Shape = shape(
    "Workloads",
    "All workloads, but for those of a dump that were not so when it was taken; or one.",
    fields! {
        "of": &Text, "The workload or the budget, as TYPE/NAME; all otherwise.";
    },
);

pub(super) static EVENTS: Shape = shape(
    "Events",
    "Events of an object.",
    fields! {
        "of": &Text, "The object, as TYPE/NAME; all otherwise.";
        "reason": &Text, "Only events with this reason count.";
        "contains": &Text, "Only events with this text count.";
        "count": &RANGE, "How many; at least one otherwise.";
    },
);

pub(super) static REMOVED: Shape = shape(
    "Removed",
    "Pods gone since the last step.",
    fields! {
        "of" must: &Text, "The workload, as TYPE/NAME.";
        "by" must: &Text, "The topology key.";
        "counts" must: &COUNTS, "Pods per domain: a list in any order, or a map by domain.";
    },
);

pub(super) static PLACEMENT: Shape = shape(
    "PlacementClaim",
    "Clusters chosen by a Placement.",
    fields! {
        "of" must: &Text, "The placement, as placement/NAME.";
        "clusters": &Either(&[RANGE, List(&Text)]), "How many, or exactly which.";
        "counts": &Map(&COUNTS), "Clusters per domain, by topology key: a label, or a claim.";
        "skew": &Map(&Count), "The skew, by topology key; topologies with different parents are apart.";
        "moved": &Count, "Clusters given up since the last step, at most.";
    },
);
