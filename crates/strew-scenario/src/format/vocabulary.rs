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

pub(crate) const fn may(name: &'static str, form: &'static Form, doc: &'static str) -> Field {
    Field {
        name,
        form,
        is_required: false,
        doc,
    }
}

pub(crate) const fn must(name: &'static str, form: &'static Form, doc: &'static str) -> Field {
    Field {
        is_required: true,
        ..may(name, form, doc)
    }
}

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
    &[
        must(
            "apiVersion",
            &Choice(&[super::API_VERSION]),
            "The version of the format.",
        ),
        must("kind", &Choice(&[super::KIND]), "Scenario."),
        must(
            "metadata",
            &Form::Shape(&METADATA),
            "Its name, and notes for people.",
        ),
        may("spec", &Form::Shape(&SPEC), "The scenario."),
    ],
);

pub(super) static METADATA: Shape = shape(
    "Metadata",
    "The name of the scenario.",
    &[
        must("name", &Text, "Its name."),
        may(
            "namespace",
            &Text,
            "The namespace of targets that name none. Default: default.",
        ),
        may("labels", &LABELS, "For people and tools."),
        may(
            "annotations",
            &LABELS,
            "For readers; `story` describes the scenario.",
        ),
    ],
);

pub(super) static SPEC: Shape = shape(
    "ScenarioSpec",
    "The scenario.",
    &[
        may("kubernetes", &Text, "The version of Kubernetes: \"1.36\"."),
        may(
            "seeds",
            &Count,
            "The number of seeds that each variant runs with; an expectation holds if it holds in all. Default: 1.",
        ),
        may("seed", &Count, "The first of the seeds. Default: 1."),
        may("featureGates", &Map(&Boolean), "Gates by name."),
        may(
            "nodeGroups",
            &List(&Form::Shape(&NODE_GROUP)),
            "Nodes made from a template, called NAME-0, NAME-1, …",
        ),
        may(
            "autoscaler",
            &Form::Shape(&AUTOSCALER),
            "A cluster autoscaler over the node groups. Default: none.",
        ),
        may(
            "timing",
            &Form::Shape(&TIMING),
            "How long things take; drawn from the seed.",
        ),
        may(
            "params",
            &Map(&Number),
            "Numbers for ${name} in texts of this document and in the values of the others.",
        ),
        may(
            "until",
            &Form::Span,
            "When the run ends. Default: after the last step.",
        ),
        may(
            "always",
            &EXPECTATIONS,
            "What must be true after every instant.",
        ),
        may(
            "timeline",
            &List(&Form::Shape(&STEP)),
            "What happens, in order of time.",
        ),
        may(
            "variants",
            &List(&Form::Shape(&VARIANT)),
            "Changes under which the scenario is played again.",
        ),
    ],
);

pub(super) static NODE_GROUP: Shape = shape(
    "NodeGroup",
    "Equal nodes.",
    &[
        must(
            "name",
            &Text,
            "Its name; nodes are called NAME-0, NAME-1, …",
        ),
        may(
            "min",
            &Count,
            "The least number of nodes that the autoscaler leaves. Default: `size`.",
        ),
        may(
            "max",
            &Count,
            "The largest number of nodes that the autoscaler makes. Default: `size`.",
        ),
        may("size", &Count, "Nodes at second 0. Default: `min`."),
        may(
            "boot",
            &Form::Span,
            "From a new node's order to its readiness. Default: `timing.nodeBoot`.",
        ),
        must("template", &Object, "A Node: labels, taints, allocatable."),
    ],
);

pub(super) static AUTOSCALER: Shape = shape(
    "Autoscaler",
    "The cluster autoscaler.",
    &[
        may(
            "scanEvery",
            &Form::Span,
            "The interval between two scans. Default: 10s.",
        ),
        may(
            "expander",
            &Choice(EXPANDERS),
            "Which group grows. Default: least-waste.",
        ),
        may(
            "unneeded",
            &Form::Span,
            "How long a node must be unneeded before it is removed. Default: 10m.",
        ),
        may(
            "delayAfterAdd",
            &Form::Span,
            "The pause without removals after a node was added. Default: 10m.",
        ),
        may(
            "delayAfterFailure",
            &Form::Span,
            "The pause without removals after one failed. Default: 3m.",
        ),
        may(
            "provision",
            &Form::Span,
            "A node that takes longer than this to become ready is given up. Default: 15m.",
        ),
        may(
            "unready",
            &Form::Span,
            "How long a node must be unready before it is removed. Default: 20m.",
        ),
    ],
);

pub(super) static TIMING: Shape = shape(
    "Timing",
    "How long things take.",
    &[
        may("podStart", &SPAN_RANGE_FORM, "From bound to running."),
        may(
            "podStop",
            &SPAN_RANGE_FORM,
            "From deleted to gone, within the grace period.",
        ),
        may("podRun", &SPAN_RANGE_FORM, "How long the pods of Jobs run."),
        may(
            "nodeBoot",
            &SPAN_RANGE_FORM,
            "From a new node's order to its readiness.",
        ),
        may(
            "statusWrite",
            &SPAN_RANGE_FORM,
            "A status write of the webhook for WorkloadSpreads, which creations wait for. Default: 5ms.",
        ),
    ],
);

pub(super) static SPAN_RANGE: Shape = shape(
    "SpanRange",
    "A duration between two bounds.",
    &[
        must("min", &Form::Span, "The least duration."),
        must("max", &Form::Span, "The largest duration."),
    ],
);

pub(super) static STEP: Shape = Shape {
    name: "Step",
    noun: "verb",
    doc: "Verbs at one time, in the order written, and what must be true after them.",
    fields: &[
        may(
            "name",
            &Text,
            "Its name in reports and for `--until`. Default: its time.",
        ),
        may(
            "at",
            &Form::Span,
            "The time since the start. Default: when the previous step ends, which must have `rest`.",
        ),
        may(
            "rest",
            &Form::Shape(&REST),
            "The step ends when the cluster is at rest: then its expectations are judged, and the next step begins.",
        ),
        may(
            "apply",
            &OneOrMany(&Object),
            "Creates objects, or changes them.",
        ),
        may(
            "create",
            &OneOrMany(&Object),
            "Creates objects, which must be new.",
        ),
        may("delete", &DELETED, "Deletes objects, or pods by label."),
        may(
            "patch",
            &Map(&Either(&[List(&Form::Shape(&OPERATION)), Object])),
            "Per target a JSON patch (a list) or a merge patch (an object).",
        ),
        may(
            "scale",
            &Map(&Either(&[Count, Text])),
            "Per workload its replicas, or a percentage of those it has: \"50%\", rounded down, one at least.",
        ),
        may(
            "set-image",
            &TEXTS_BY_TARGET,
            "Per workload CONTAINER=IMAGE, or *=IMAGE.",
        ),
        may(
            "rollout-restart",
            &TARGETS,
            "Replaces all pods of workloads.",
        ),
        may("rollout-undo", &TARGETS, "Back to the revision before."),
        may("rollout-pause", &TARGETS, "Pauses deployments."),
        may("rollout-resume", &TARGETS, "Resumes deployments."),
        may("run-once", &TARGETS, "Runs CronJobs that have not run."),
        may("cordon", &TARGETS, "No new pods on these nodes."),
        may("uncordon", &TARGETS, "New pods again."),
        may(
            "drain",
            &Either(&[TARGETS, Form::Shape(&DRAIN)]),
            "Cordons nodes and evicts their pods, as kubectl does.",
        ),
        may(
            "ready",
            &Map(&Boolean),
            "Per pod, or labels of pods: whether its readiness gate holds.",
        ),
        may(
            "taint",
            &TEXTS_BY_TARGET,
            "Per node KEY=VALUE:EFFECT; KEY:EFFECT- or KEY- removes.",
        ),
        may(
            "label",
            &TEXTS_BY_TARGET,
            "Per target KEY=VALUE; KEY- removes.",
        ),
        may(
            "annotate",
            &TEXTS_BY_TARGET,
            "Per target KEY=VALUE; KEY- removes.",
        ),
        may(
            "lose",
            &TARGETS,
            "Nodes stop their heartbeats; KEY=<most pods> are those of the fullest domain, <most pods> the fullest node.",
        ),
        may(
            "restore",
            &TARGETS,
            "Lost nodes, or all of them by <lost>, are back: each reports with its next heartbeat, within ten seconds.",
        ),
        may("gates", &Map(&Boolean), "Feature gates from now on."),
        may(
            "metric",
            &COUNTS_BY_TARGET,
            "Per HorizontalPodAutoscaler the observed utilisation in percent.",
        ),
        may(
            "crash",
            &Either(&[OneOrMany(&Choice(COMPONENTS)), Form::Shape(&CRASH)]),
            "Components stop, and start again empty.",
        ),
        may(
            "fault",
            &Form::Shape(&FAULT),
            "What goes wrong for a while.",
        ),
        may("expect", &EXPECTATIONS, "What must be true."),
    ],
};

pub(super) static REST: Shape = shape(
    "Rest",
    "How long a step waits for the cluster to come to rest.",
    &[
        may(
            "quiet",
            &Form::Span,
            "The cluster is at rest when nothing was written for this long. Default: 6m.",
        ),
        may(
            "within",
            &Form::Span,
            "The step ends after this long, at rest or not. Default: 1h.",
        ),
    ],
);

pub(super) static OPERATION: Shape = shape(
    "PatchOperation",
    "A step of a JSON patch (RFC 6902).",
    &[
        must("op", &Choice(OPERATIONS), "What to do."),
        must("path", &Text, "Where: /spec/replicas."),
        may("from", &Text, "From where, for move and copy."),
        may("value", &Object, "What, for add, replace and test."),
    ],
);

pub(super) static DELETE: Shape = shape(
    "Delete",
    "Pods to delete.",
    &[must(
        "pods",
        &TARGETS,
        "By label or workload: app=web, deployment/web.",
    )],
);

pub(super) static DRAIN: Shape = shape(
    "Drain",
    "Which nodes, and how long.",
    &[
        must("nodes", &TARGETS, "The nodes."),
        may(
            "timeout",
            &Form::Span,
            "Evictions are retried for this long. Default: without end.",
        ),
    ],
);

pub(super) static CRASH: Shape = Shape {
    name: "Crash",
    noun: "component",
    doc: "Components that stop.",
    fields: &[
        may("scheduler", &Form::Shape(&OUTAGE), "The scheduler."),
        may("webhook", &Form::Shape(&OUTAGE), "The admission webhook."),
        may("controller", &Form::Shape(&OUTAGE), "strew's controller."),
        may(
            "controllers",
            &Form::Shape(&OUTAGE),
            "Kubernetes' controllers.",
        ),
    ],
};

pub(super) static OUTAGE: Shape = shape(
    "Outage",
    "How long it is away.",
    &[may("for", &Form::Span, "How long. Default: 1s.")],
);

pub(super) static FAULT: Shape = Shape {
    name: "Fault",
    noun: "kind of fault",
    doc: "What goes wrong for a while.",
    fields: &[
        may(
            "watch",
            &Form::Shape(&WATCH_FAULT),
            "Watches are late, repeat events or break.",
        ),
        may(
            "conflict",
            &Form::Shape(&CONFLICT_FAULT),
            "Writes meet conflicts.",
        ),
        may("bind", &Form::Shape(&BIND_FAULT), "Binds are slow or fail."),
        may(
            "clock",
            &Form::Shape(&CLOCK_FAULT),
            "The clock jumps forward.",
        ),
        may(
            "secondScheduler",
            &Form::Shape(&SECOND_SCHEDULER_FAULT),
            "Another scheduler decides as well.",
        ),
    ],
};

pub(super) static WATCH_FAULT: Shape = shape(
    "WatchFault",
    "Watches misbehave.",
    &[
        may("delay", &Form::Span, "How late events come."),
        may(
            "repeat",
            &Form::Ratio,
            "The share of events that come twice.",
        ),
        may(
            "cut",
            &Form::Ratio,
            "The share of events after which the watch breaks.",
        ),
        must("for", &Form::Span, "How long."),
    ],
);

pub(super) static CONFLICT_FAULT: Shape = shape(
    "ConflictFault",
    "Writes meet conflicts.",
    &[
        must("rate", &Form::Ratio, "The share of writes refused."),
        must("for", &Form::Span, "How long."),
    ],
);

pub(super) static BIND_FAULT: Shape = shape(
    "BindFault",
    "Binds misbehave.",
    &[
        may("slow", &Form::Span, "How long each takes."),
        may("fail", &Form::Ratio, "The share that fails."),
        must("for", &Form::Span, "How long."),
    ],
);

pub(super) static CLOCK_FAULT: Shape = shape(
    "ClockFault",
    "The clock jumps.",
    &[must("jump", &Form::Span, "How far forward.")],
);

pub(super) static SECOND_SCHEDULER_FAULT: Shape = shape(
    "SecondSchedulerFault",
    "Two schedulers at once.",
    &[must("for", &Form::Span, "How long.")],
);

pub(super) static VARIANT: Shape = shape(
    "Variant",
    "A change under which the scenario is played again.",
    &[
        must(
            "name",
            &Text,
            "Its name; not `base`, which is the scenario itself.",
        ),
        may(
            "set",
            &Object,
            "Merged into the spec; null removes a field.",
        ),
        may(
            "patch",
            &Map(&Either(&[List(&Form::Shape(&OPERATION)), Object])),
            "Per object of the stream a JSON patch or a merge patch.",
        ),
        may(
            "replace",
            &Map(&EXPECTATIONS),
            "Per name or time of a step the expectations that replace its own.",
        ),
        may(
            "mustFail",
            &Boolean,
            "It shows a defect: the run is red if it breaks in no seed.",
        ),
        may(
            "mayFail",
            &Boolean,
            "A breach is reported and does not fail the run.",
        ),
    ],
);
