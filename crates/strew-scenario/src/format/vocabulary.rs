//! The objects of the format and their fields, defined once for the reader and the JSON schema.
//!
//! The reader refuses fields that are not here; the schema is made from these tables only.

/// An object with a fixed set of fields.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// What an unknown field is called in a message: `verb` or `field`.
    pub(crate) noun: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) fields: &'static [Field],
}

/// A field of a [`Shape`].
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) form: &'static Form,
    pub(crate) is_required: bool,
    pub(crate) doc: &'static str,
}

/// The form of a value.
#[derive(Debug)]
pub(crate) enum Form {
    /// Any value, or an object of Kubernetes.
    Object,
    Text,
    Boolean,
    /// A whole number, 0 or more.
    Count,
    Number,
    /// `90s`
    Span,
    /// 0 to 1.
    Ratio,
    Choice(&'static [&'static str]),
    List(&'static Form),
    /// One value, or a list.
    OneOrMany(&'static Form),
    /// An object whose keys the user chooses.
    Map(&'static Form),
    Shape(&'static Shape),
    Either(&'static [Form]),
}

impl Shape {
    /// The field of this name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }
}

/// Fields: `"name": &FORM, "What it says.";`, with `must` after the name of one that is required.
macro_rules! fields {
    (@) => { false };
    (@ must) => { true };
    ($($name:literal $($must:ident)?: $form:expr, $doc:literal;)*) => {
        &[$($crate::format::vocabulary::Field {
            name: $name,
            form: $form,
            is_required: $crate::format::vocabulary::fields!(@ $($must)?),
            doc: $doc,
        }),*]
    };
}
pub(crate) use fields;

pub(crate) const fn shape(
    name: &'static str,
    doc: &'static str,
    fields: &'static [Field],
) -> Shape {
    Shape {
        name,
        noun: "field",
        doc,
        fields,
    }
}

use super::claim_vocabulary::EXPECTATION;
use Form::{Boolean, Choice, Count, Either, List, Map, Number, Object, OneOrMany, Text};

const TARGETS: Form = OneOrMany(&Text);
const DELETED: Form = Either(&[TARGETS, Form::Shape(&DELETE)]);
const TEXTS_BY_TARGET: Form = Map(&OneOrMany(&Text));
const COUNTS_BY_TARGET: Form = Map(&Count);
const EXPECTATIONS: Form = List(&Form::Shape(&EXPECTATION));
const LABELS: Form = Map(&Text);
const SPAN_RANGE_FORM: Form = Form::Shape(&SPAN_RANGE);

pub(super) const COMPONENTS: &[&str] = &["scheduler", "webhook", "controller", "controllers"];
pub(super) const EXPANDERS: &[&str] = &["least-waste", "most-pods", "random"];
pub(super) const OPERATIONS: &[&str] = &["add", "remove", "replace", "move", "copy", "test"];

pub(super) static DOCUMENT: Shape = shape(
    "Scenario",
    "What happens to a cluster in virtual time, and what must be true of it.",
    fields! {
        "apiVersion" must: &Choice(&[super::API_VERSION]), "The version of the format.";
        "kind" must: &Choice(&[super::KIND]), "Scenario.";
        "metadata" must: &Form::Shape(&METADATA), "Its name, and notes for people.";
        "spec": &Form::Shape(&SPEC), "The scenario.";
    },
);

pub(super) static METADATA: Shape = shape(
    "Metadata",
    "The name of the scenario.",
    fields! {
        "name" must: &Text, "Its name.";
        "namespace": &Text, "The namespace of targets that name none. Default: default.";
        "labels": &LABELS, "For people and tools.";
        "annotations": &LABELS, "For readers; `story` describes the scenario.";
    },
);

pub(super) static SPEC: Shape = shape(
    "ScenarioSpec",
    "The scenario.",
    fields! {
        "kubernetes": &Text, "The version of Kubernetes: \"1.36\".";
        "seeds": &Count,
            "The number of seeds that each variant runs with; an expectation holds if it holds in all. Default: 1.";
        "seed": &Count, "The first of the seeds. Default: 1.";
        "featureGates": &Map(&Boolean), "Gates by name.";
        "nodeGroups": &List(&Form::Shape(&NODE_GROUP)), "Nodes made from a template, called NAME-0, NAME-1, …";
        "autoscaler": &Form::Shape(&AUTOSCALER), "A cluster autoscaler over the node groups. Default: none.";
        "timing": &Form::Shape(&TIMING), "How long things take; drawn from the seed.";
        "params": &Map(&Number), "Numbers for ${name} in texts of this document and in the values of the others.";
        "until": &Form::Span, "When the run ends. Default: after the last step.";
        "always": &EXPECTATIONS, "What must be true after every instant.";
        "timeline": &List(&Form::Shape(&STEP)), "What happens, in order of time.";
        "variants": &List(&Form::Shape(&VARIANT)), "Changes under which the scenario is played again.";
    },
);

pub(super) static NODE_GROUP: Shape = shape(
    "NodeGroup",
    "Equal nodes.",
    fields! {
        "name" must: &Text, "Its name; nodes are called NAME-0, NAME-1, …";
        "min": &Count, "The least number of nodes that the autoscaler leaves. Default: `size`.";
        "max": &Count, "The largest number of nodes that the autoscaler makes. Default: `size`.";
        "size": &Count, "Nodes at second 0. Default: `min`.";
        "boot": &Form::Span, "From a new node's order to its readiness. Default: `timing.nodeBoot`.";
        "template" must: &Object, "A Node: labels, taints, allocatable.";
    },
);

pub(super) static AUTOSCALER: Shape = shape(
    "Autoscaler",
    "The cluster autoscaler.",
    fields! {
        "scanEvery": &Form::Span, "The interval between two scans. Default: 10s.";
        "expander": &Choice(EXPANDERS), "Which group grows. Default: least-waste.";
        "unneeded": &Form::Span, "How long a node must be unneeded before it is removed. Default: 10m.";
        "delayAfterAdd": &Form::Span, "The pause without removals after a node was added. Default: 10m.";
        "delayAfterFailure": &Form::Span, "The pause without removals after one failed. Default: 3m.";
        "provision": &Form::Span, "A node that takes longer than this to become ready is given up. Default: 15m.";
        "unready": &Form::Span, "How long a node must be unready before it is removed. Default: 20m.";
    },
);

pub(super) static TIMING: Shape = shape(
    "Timing",
    "How long things take.",
    fields! {
        "podStart": &SPAN_RANGE_FORM, "From bound to running.";
        "podStop": &SPAN_RANGE_FORM, "From deleted to gone, within the grace period.";
        "podRun": &SPAN_RANGE_FORM, "How long the pods of Jobs run.";
        "nodeBoot": &SPAN_RANGE_FORM, "From a new node's order to its readiness.";
        "statusWrite": &SPAN_RANGE_FORM,
            "A status write of the webhook for WorkloadSpreads, which creations wait for. Default: 5ms.";
    },
);

pub(super) static SPAN_RANGE: Shape = shape(
    "SpanRange",
    "A duration between two bounds.",
    fields! {
        "min" must: &Form::Span, "The least duration.";
        "max" must: &Form::Span, "The largest duration.";
    },
);

pub(super) static STEP: Shape = Shape {
    name: "Step",
    noun: "verb",
    doc: "Verbs at one time, in the order written, and what must be true after them.",
    fields: fields! {
        "name": &Text, "Its name in reports and for `--until`. Default: its time.";
        "at": &Form::Span, "The time since the start. Default: when the previous step ends, which must have `rest`.";
        "rest": &Form::Shape(&REST),
            "The step ends when the cluster is at rest: then its expectations are judged, and the next step begins.";
        "apply": &OneOrMany(&Object), "Creates objects, or changes them.";
        "create": &OneOrMany(&Object), "Creates objects, which must be new.";
        "delete": &DELETED, "Deletes objects, or pods by label.";
        "patch": &Map(&Either(&[List(&Form::Shape(&OPERATION)), Object])),
            "Per target a JSON patch (a list) or a merge patch (an object).";
        "scale": &Map(&Either(&[Count, Text])),
            "Per workload its replicas, or a percentage of those it has: \"50%\", rounded down, one at least.";
        "set-image": &TEXTS_BY_TARGET, "Per workload CONTAINER=IMAGE, or *=IMAGE.";
        "rollout-restart": &TARGETS, "Replaces all pods of workloads.";
        "rollout-undo": &TARGETS, "Back to the revision before.";
        "rollout-pause": &TARGETS, "Pauses deployments.";
        "rollout-resume": &TARGETS, "Resumes deployments.";
        "run-once": &TARGETS, "Runs CronJobs that have not run.";
        "cordon": &TARGETS, "No new pods on these nodes.";
        "uncordon": &TARGETS, "New pods again.";
        "drain": &Either(&[TARGETS, Form::Shape(&DRAIN)]), "Cordons nodes and evicts their pods, as kubectl does.";
        "ready": &Map(&Boolean), "Per pod, or labels of pods: whether its readiness gate holds.";
        "taint": &TEXTS_BY_TARGET, "Per node KEY=VALUE:EFFECT; KEY:EFFECT- or KEY- removes.";
        "label": &TEXTS_BY_TARGET, "Per target KEY=VALUE; KEY- removes.";
        "annotate": &TEXTS_BY_TARGET, "Per target KEY=VALUE; KEY- removes.";
        "lose": &TARGETS,
            "Nodes stop their heartbeats; KEY=<most pods> are those of the fullest domain, <most pods> the fullest node.";
        "restore": &TARGETS,
            "Lost nodes, or all of them by <lost>, are back: each reports with its next heartbeat, within ten seconds.";
        "gates": &Map(&Boolean), "Feature gates from now on.";
        "metric": &COUNTS_BY_TARGET, "Per HorizontalPodAutoscaler the observed utilisation in percent.";
        "crash": &Either(&[OneOrMany(&Choice(COMPONENTS)), Form::Shape(&CRASH)]),
            "Components stop, and start again empty.";
        "fault": &Form::Shape(&FAULT), "What goes wrong for a while.";
        "expect": &EXPECTATIONS, "What must be true.";
    },
};

pub(super) static REST: Shape = shape(
    "Rest",
    "How long a step waits for the cluster to come to rest.",
    fields! {
        "quiet": &Form::Span, "The cluster is at rest when nothing was written for this long. Default: 6m.";
        "within": &Form::Span, "The step ends after this long, at rest or not. Default: 1h.";
    },
);

pub(super) static OPERATION: Shape = shape(
    "PatchOperation",
    "A step of a JSON patch (RFC 6902).",
    fields! {
        "op" must: &Choice(OPERATIONS), "What to do.";
        "path" must: &Text, "Where: /spec/replicas.";
        "from": &Text, "From where, for move and copy.";
        "value": &Object, "What, for add, replace and test.";
    },
);

pub(super) static DELETE: Shape = shape(
    "Delete",
    "Pods to delete.",
    fields! {
        "pods" must: &TARGETS, "By label or workload: app=web, deployment/web.";
    },
);

pub(super) static DRAIN: Shape = shape(
    "Drain",
    "Which nodes, and how long.",
    fields! {
        "nodes" must: &TARGETS, "The nodes.";
        "timeout": &Form::Span, "Evictions are retried for this long. Default: without end.";
        "mustFail": &Boolean, "It must give up; one that ends fails the run. Default: false.";
    },
);

pub(super) static CRASH: Shape = Shape {
    name: "Crash",
    noun: "component",
    doc: "Components that stop.",
    fields: fields! {
        "scheduler": &Form::Shape(&OUTAGE), "The scheduler.";
        "webhook": &Form::Shape(&OUTAGE), "The admission webhook.";
        "controller": &Form::Shape(&OUTAGE), "strew's controller.";
        "controllers": &Form::Shape(&OUTAGE), "Kubernetes' controllers.";
    },
};

pub(super) static OUTAGE: Shape = shape(
    "Outage",
    "How long it is away.",
    fields! {
        "for": &Form::Span, "How long. Default: 1s.";
    },
);

pub(super) static FAULT: Shape = Shape {
    name: "Fault",
    noun: "kind of fault",
    doc: "What goes wrong for a while.",
    fields: fields! {
        "watch": &Form::Shape(&WATCH_FAULT), "Watches are late, repeat events or break.";
        "conflict": &Form::Shape(&CONFLICT_FAULT), "Writes meet conflicts.";
        "bind": &Form::Shape(&BIND_FAULT), "Binds are slow or fail.";
        "clock": &Form::Shape(&CLOCK_FAULT), "The clock jumps forward.";
        "secondScheduler": &Form::Shape(&SECOND_SCHEDULER_FAULT), "Another scheduler decides as well.";
    },
};

pub(super) static WATCH_FAULT: Shape = shape(
    "WatchFault",
    "Watches misbehave.",
    fields! {
        "delay": &Form::Span, "How late events come.";
        "repeat": &Form::Ratio, "The share of events that come twice.";
        "cut": &Form::Ratio, "The share of events after which the watch breaks.";
        "for" must: &Form::Span, "How long.";
    },
);

pub(super) static CONFLICT_FAULT: Shape = shape(
    "ConflictFault",
    "Writes meet conflicts.",
    fields! {
        "rate" must: &Form::Ratio, "The share of writes refused.";
        "for" must: &Form::Span, "How long.";
    },
);

pub(super) static BIND_FAULT: Shape = shape(
    "BindFault",
    "Binds misbehave.",
    fields! {
        "slow": &Form::Span, "How long each takes.";
        "fail": &Form::Ratio, "The share that fails.";
        "for" must: &Form::Span, "How long.";
    },
);

pub(super) static CLOCK_FAULT: Shape = shape(
    "ClockFault",
    "The clock jumps.",
    fields! {
        "jump" must: &Form::Span, "How far forward.";
    },
);

pub(super) static SECOND_SCHEDULER_FAULT: Shape = shape(
    "SecondSchedulerFault",
    "Two schedulers at once.",
    fields! {
        "for" must: &Form::Span, "How long.";
    },
);

pub(super) static VARIANT: Shape = shape(
    "Variant",
    "A change under which the scenario is played again.",
    fields! {
        "name" must: &Text, "Its name; not `base`, which is the scenario itself.";
        "set": &Object, "Merged into the spec; null removes a field.";
        "patch": &Map(&Either(&[List(&Form::Shape(&OPERATION)), Object])),
            "Per object of the stream a JSON patch or a merge patch.";
        "replace": &Map(&EXPECTATIONS), "Per name or time of a step the expectations that replace its own.";
        "mustFail": &Boolean, "It shows a defect: the run is red if it breaks in no seed.";
        "mayFail": &Boolean, "A breach is reported and does not fail the run.";
    },
);
