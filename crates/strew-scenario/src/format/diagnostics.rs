//! The diagnostics of scenarios, one function each: code, message, help.

use std::fmt::Display;

use serde_json::Value;
use strew_manifest::duration::GoDuration;
use strew_manifest::field::FieldError;
use strew_manifest::kinds;
use strew_manifest::read::{Diagnostic, describe, nearest, nearest_label, shortened};
use strew_model::Span;
use strew_wire::config::GateError;

use super::event_reasons;
use super::existence::ObjectKey;
use super::known::Labels;
use super::target::ObjectTarget;
use super::vocabulary::Shape;
use super::{API_VERSION, KIND};

fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, message)
}

/// A span as people write it: `1h30m`, `10m`.
pub(crate) fn span(span: Span) -> String {
    let text = GoDuration::from_nanos(span.0).to_string();
    let text = match text.strip_suffix("m0s") {
        Some(short) => format!("{short}m"),
        None => text,
    };
    match text.strip_suffix("h0m") {
        Some(short) => format!("{short}h"),
        None => text,
    }
}

// Forms of values.

pub(crate) fn wrong_type(expected: &str, found: &Value) -> Diagnostic {
    let error = error(
        "wrong-type",
        format!("expected {expected}, found {}", describe(found)),
    );
    match (expected, found) {
        ("a string", Value::Number(_) | Value::Bool(_)) => error.with_help("put it in quotes"),
        ("an integer" | "a boolean" | "a number", Value::String(_)) => {
            error.with_help("leave the quotes out")
        }
        _ => error,
    }
}

pub(crate) fn unknown(shape: &Shape, name: &str) -> Diagnostic {
    let code = match shape.noun {
        "verb" => "unknown-verb",
        "kind of fault" => "unknown-fault",
        "kind of expectation" => "unknown-expectation",
        "component" => "unknown-component",
        _ => "unknown-field",
    };
    let (noun, shown) = (shape.noun, shortened(name));
    match nearest(name, shape.names()) {
        Some(meant) => error(
            code,
            format!("unknown {noun} {shown}, did you mean {meant:?}?"),
        ),
        None => {
            let names: Vec<&str> = shape.names().collect();
            let help = format!("there are {}", names.join(", "));
            error(code, format!("unknown {noun} {shown}")).with_help(help)
        }
    }
}

pub(crate) fn missing(name: &str) -> Diagnostic {
    error("missing-field", format!("{name} is missing"))
}

pub(crate) fn empty_list() -> Diagnostic {
    error("empty", "nothing is named here").with_help("name something, or leave the field out")
}

pub(crate) fn empty_text() -> Diagnostic {
    error("empty", "the text is empty")
}

pub(crate) fn negative(value: &Value) -> Diagnostic {
    let shown = value.as_str().map_or_else(|| value.to_string(), shortened);
    error("negative", format!("{shown} is negative"))
}

pub(crate) fn huge_count(value: &Value) -> Diagnostic {
    error(
        "out-of-range",
        format!("{value} is too large: at most {}", u32::MAX),
    )
}

pub(crate) fn no_duration(value: &Value) -> Diagnostic {
    let message = format!("expected a duration, found {}", describe(value));
    error("no-duration", message).with_help("write it like 90s, 1h30m or 500ms")
}

pub(crate) fn huge_span(text: &str) -> Diagnostic {
    let message = format!(
        "{} is too long: at most ten years (87600h)",
        shortened(text)
    );
    error("out-of-range", message)
}

pub(super) fn no_time() -> Diagnostic {
    error("no-time", "it must last longer than 0s")
}

pub(crate) fn no_ratio(value: &Value) -> Diagnostic {
    let message = format!("expected a ratio from 0 to 1, found {}", describe(value));
    error("no-ratio", message).with_help("write it like 0.25, with six decimals at most")
}

pub(crate) fn no_choice(text: &str, names: &[&'static str]) -> Diagnostic {
    let shown = shortened(text);
    match nearest(text, names.iter().copied()) {
        Some(meant) => error(
            "unknown-value",
            format!("unknown value {shown}, did you mean {meant:?}?"),
        ),
        None => error("unknown-value", format!("unknown value {shown}"))
            .with_help(format!("one of {}", names.join(", "))),
    }
}

pub(super) fn reversed(min: &impl Display, max: &impl Display) -> Diagnostic {
    error("min-over-max", format!("min {min} is more than max {max}"))
}

pub(super) fn invalid_field(field: &FieldError) -> Diagnostic {
    let mut invalid = error("invalid-field", field.to_string());
    invalid.help.clone_from(&field.help);
    invalid
}

pub(super) fn undecodable(cause: &serde_json::Error) -> Diagnostic {
    error("undecodable", format!("can't be read: {cause}"))
}

pub(crate) fn too_many(n_left_out: usize) -> Diagnostic {
    error(
        "too-many",
        format!("{n_left_out} more problems are not listed"),
    )
}

// The document.

pub(super) fn second_scenario() -> Diagnostic {
    error(
        "surplus-scenario",
        "a stream has one Scenario, and this is another",
    )
    .with_help("run them one after another, or make one a variant of the other")
}

pub(super) fn unknown_version(found: &str) -> Diagnostic {
    error(
        "unknown-version",
        format!("no {KIND} in {}", shortened(found)),
    )
    .with_help(format!("use apiVersion: {API_VERSION}"))
}

pub(super) fn unknown_kind(found: &str) -> Diagnostic {
    let message = format!(
        "{API_VERSION} has no kind {}, did you mean {KIND:?}?",
        shortened(found)
    );
    error("unknown-kind", message)
}

pub(super) fn unsupported_kubernetes(found: &Value) -> Diagnostic {
    let message = match found {
        Value::String(text) => format!("strew can't be Kubernetes {}", shortened(text)),
        other => format!("expected a string, found {}", describe(other)),
    };
    error("unsupported-kubernetes", message).with_help("write kubernetes: \"1.36\"")
}

pub(super) fn gate(cause: &GateError) -> Diagnostic {
    error("feature-gate", cause.to_string())
}

pub(super) fn no_seeds() -> Diagnostic {
    error("no-seeds", "without a seed nothing runs").with_help("seeds: 1 is the least")
}

pub(super) fn too_many_seeds(max: u32) -> Diagnostic {
    error("out-of-range", format!("at most {max} seeds"))
}

pub(super) fn bad_parameter(name: &str) -> Diagnostic {
    error(
        "bad-name",
        format!("{} is no name of a parameter", shortened(name)),
    )
    .with_help("use letters, digits and _, no digit first")
}

pub(super) fn unknown_parameter<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Diagnostic {
    let shown = shortened(name);
    match nearest(name, known) {
        Some(meant) => error(
            "unknown-parameter",
            format!("unknown parameter {shown}, did you mean {meant:?}?"),
        ),
        None => error("unknown-parameter", format!("unknown parameter {shown}"))
            .with_help("give it a number in spec.params, or write $${ for ${"),
    }
}

// Nodes.

pub(super) fn bad_name(name: &str) -> Diagnostic {
    error(
        "bad-name",
        format!("{} can't begin the name of a node", shortened(name)),
    )
    .with_help("use lower case letters, digits, - and .")
}

pub(super) fn too_many_nodes(max: u32) -> Diagnostic {
    error("out-of-range", format!("at most {max} nodes in a group"))
}

pub(super) fn size_outside(size: u32, relation: &str, bound: u32) -> Diagnostic {
    error("size-outside", format!("size {size} is {relation} {bound}"))
}

pub(super) fn named_template() -> Diagnostic {
    error(
        "named-template",
        "a template has no name: its nodes are called GROUP-0, GROUP-1, …",
    )
    .with_help("leave it out")
}

pub(super) fn nothing_to_scale() -> Diagnostic {
    error(
        "nothing-to-scale",
        "an autoscaler without nodeGroups has nothing to scale",
    )
}

pub(super) fn same_name(what: &str, name: &str) -> Diagnostic {
    error(
        "duplicate-name",
        format!("{what} {} is there twice", shortened(name)),
    )
}

pub(super) fn reserved_name(name: &str) -> Diagnostic {
    error(
        "reserved-name",
        format!("{name:?} is the scenario as it is written"),
    )
    .with_help("give the variant another name")
}

// The timeline.

pub(super) fn out_of_order(at: Span, last: Span) -> Diagnostic {
    let message = format!("{} comes after {}", span(at), span(last));
    error("out-of-order", message).with_help("write steps in order of time")
}

pub(super) fn after_rest(at: Span) -> Diagnostic {
    let message = format!(
        "a step at {} after one that is over when the cluster is at rest",
        span(at)
    );
    error("after-rest", message)
        .with_help("leave `at` out: the step begins when the one before is over")
}

pub(super) fn ends_early(until: Span, last: Span) -> Diagnostic {
    let message = format!(
        "the run ends at {}, before its last step at {}",
        span(until),
        span(last)
    );
    error("ends-early", message)
}

pub(super) fn named_twice() -> Diagnostic {
    error("named-twice", "this is the same as one before")
}

pub(super) fn made_twice(label: &str) -> Diagnostic {
    error(
        "made-twice",
        format!("apply and create of one step both make {label}"),
    )
}

pub(super) fn without_effect(what: &str, names: &[&str]) -> Diagnostic {
    error("without-effect", format!("{what} does nothing"))
        .with_help(format!("give any of {}", names.join(", ")))
}

pub(super) fn no_taint(text: &str) -> Diagnostic {
    error("no-taint", format!("{} is no taint", shortened(text)))
        .with_help("write KEY=VALUE:EFFECT or KEY:EFFECT; KEY:EFFECT- or KEY- removes it")
}

pub(super) fn no_label(text: &str) -> Diagnostic {
    error("no-label", format!("{} is no KEY=VALUE", shortened(text))).with_help("KEY- removes it")
}

pub(super) fn bad_key(key: &str, sentence: &str) -> Diagnostic {
    error(
        "bad-key",
        format!("{} is no key: {sentence}", shortened(key)),
    )
}

pub(super) fn no_image(text: &str) -> Diagnostic {
    error(
        "no-image",
        format!("{} is no CONTAINER=IMAGE", shortened(text)),
    )
    .with_help("*=IMAGE means all containers")
}

pub(super) fn no_patch(found: &Value) -> Diagnostic {
    let message = format!("expected a patch, found {}", describe(found));
    error("wrong-type", message).with_help("a list is a JSON patch, an object a merge patch")
}

pub(super) fn no_pointer(found: &Value) -> Diagnostic {
    let message = format!(
        "{} is no JSON pointer",
        found.as_str().map_or_else(String::new, shortened)
    );
    error("no-pointer", message)
        .with_help("write it like /spec/replicas; ~1 stands for / in a name")
}

pub(super) fn not_patched(target: &ObjectTarget, why: &str) -> Diagnostic {
    error(
        "not-patched",
        format!("{target} can't be patched so: {why}"),
    )
}

// Targets.

pub(super) fn no_target(text: &str) -> Diagnostic {
    error("no-target", format!("{} is no target", shortened(text))).with_help(
        "write TYPE/NAME or NAMESPACE/TYPE/NAME; for nodes a bare name, or KEY=VALUE, does too",
    )
}

pub(super) fn unknown_type(text: &str) -> Diagnostic {
    let shown = shortened(text);
    match kinds::meant(text) {
        Some(meant) => error(
            "unknown-type",
            format!("unknown type {shown}, did you mean {meant:?}?"),
        ),
        None => error("unknown-type", format!("unknown type {shown}")),
    }
}

pub(super) fn no_namespace(kind: &str) -> Diagnostic {
    error("no-target", format!("a {kind} is in no namespace"))
}

pub(super) fn wrong_kind(by: &str, kinds: &[&str], found: &str) -> Diagnostic {
    let kinds: Vec<String> = kinds.iter().map(|kind| kind.to_lowercase()).collect();
    let message = format!("{by} takes no {}", found.to_lowercase());
    error("wrong-kind", message).with_help(format!("it takes {}", kinds.join(", ")))
}

pub(super) fn deadline_at_rest() -> Diagnostic {
    error(
        "deadline-at-rest",
        "a step with rest judges its claims once, at rest, where a deadline comes too late",
    )
    .with_help("leave rest out of the step: within begins with its verbs then")
}

/// `known`: all kinds.
pub(super) fn no_kind<'a>(kind: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let message = format!("there is no kind {}", shortened(kind));
    match nearest(kind, known) {
        Some(meant) => error("not-there", format!("{message}, did you mean {meant:?}?")),
        None => error("not-there", message)
            .with_help("write the kind as in a manifest, such as Deployment"),
    }
}

/// `versions`: those in which objects of the kind are stored.
pub(super) fn no_version(kind: &str, version: &str, versions: &[&str]) -> Diagnostic {
    let message = format!("no {kind} has apiVersion {}", shortened(version));
    error("not-there", message).with_help(format!("write {}", versions.join(" or ")))
}

/// `known`: all objects of its kind.
pub(super) fn not_there<'a>(
    target: &ObjectTarget,
    known: impl Iterator<Item = &'a ObjectKey>,
) -> Diagnostic {
    let message = format!("there is no {target}");
    let known: Vec<&ObjectKey> = known.collect();
    let elsewhere = known.iter().find(|key| key.name == target.name);
    if let Some(namespace) = elsewhere.and_then(|key| key.namespace.clone()) {
        let meant = ObjectTarget {
            namespace: Some(namespace),
            ..target.clone()
        };
        let help = format!(
            "there is {meant}; metadata.namespace of the Scenario is where targets are that name none"
        );
        return error("not-there", message).with_help(help);
    }
    match nearest(&target.name, known.iter().map(|key| key.name.as_str())) {
        Some(meant) => error("not-there", format!("{message}, did you mean {meant:?}?")),
        None => error("not-there", message)
            .with_help("add it to the files, or apply it in an earlier step"),
    }
}

pub(super) fn no_event_reason(reason: &str) -> Diagnostic {
    let message = format!(
        "no part of the simulated cluster records events with reason {}",
        shortened(reason)
    );
    match nearest(reason, event_reasons::ALL.iter().copied()) {
        Some(meant) => error("no-reason", format!("{message}, did you mean {meant:?}?")),
        None => error("no-reason", message)
            .with_help(format!("reasons: {}", event_reasons::ALL.join(", "))),
    }
}

/// `values`: the wanted values, empty for any; `known`: all labels of nodes, of pods, or of clusters.
pub(super) fn label_not_there(
    noun: &str,
    key: &str,
    values: &[String],
    known: &Labels,
) -> Diagnostic {
    let Some(there) = known.get(key) else {
        let message = format!("no {noun} has the label {key:?}");
        let nouns = noun.replace(" or ", "s or ") + "s";
        let keys = || known.keys().map(String::as_str);
        // `zone` for `topology.kubernetes.io/zone`.
        let is_end = |whole: &&str| whole.rsplit_once('/').is_some_and(|(_, end)| end == key);
        let meant = nearest_label(key, keys()).or_else(|| keys().find(is_end));
        return match meant {
            Some(meant) => error(
                "label-not-there",
                format!("{message}, did you mean {meant:?}?"),
            ),
            None if known.is_empty() => error("label-not-there", message),
            None => error("label-not-there", message)
                .with_help(format!("labels of {nouns}: {}", listed(keys()))),
        };
    };
    let wanted: Vec<String> = values
        .iter()
        .map(|value| format!("{key}={value}"))
        .collect();
    let message = format!("no {noun} has the label {}", wanted.join(" or "));
    let there = || there.iter().map(String::as_str);
    let meant = values.iter().find_map(|value| nearest(value, there()));
    match meant {
        Some(meant) => error(
            "label-not-there",
            format!("{message}, did you mean {meant:?}?"),
        ),
        None => error("label-not-there", message)
            .with_help(format!("its values on {noun}s: {}", listed(there()))),
    }
}

pub(super) fn no_container(target: &ObjectTarget, name: &str, known: &[&str]) -> Diagnostic {
    let message = format!("{target} has no container {name:?}");
    match nearest(name, known.iter().copied()) {
        Some(meant) => error(
            "no-container",
            format!("{message}, did you mean {meant:?}?"),
        ),
        None => error("no-container", message)
            .with_help(format!("its containers: {}", listed(known.iter().copied()))),
    }
}

/// `a, b, c`, at most [`LISTED_MAX`].
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<&str> = names.collect();
    let shown = all.len().min(LISTED_MAX);
    match all.len() - shown {
        0 => all.join(", "),
        more => format!("{} and {more} more", all[..shown].join(", ")),
    }
}

/// The number of names that a help lists.
const LISTED_MAX: usize = 12;

// Expectations.

pub(super) fn no_claim() -> Diagnostic {
    error("no-claim", "nothing is expected here")
        .with_help("give one of spread, pods, object, events, removed, placement, rolledOut, withinBudget, survives, withinConstraints, cel")
}

pub(super) fn second_claim() -> Diagnostic {
    error(
        "second-claim",
        "an expectation makes one claim, and this is another",
    )
    .with_help("give each an element of its own")
}

pub(super) fn two_moments() -> Diagnostic {
    error(
        "two-moments",
        "an expectation is judged at one moment, and this is another",
    )
    .with_help("atRest waits for at most an hour; within is for deadlines")
}

pub(super) fn claims_nothing(names: &[&str]) -> Diagnostic {
    error("claims-nothing", "this holds whatever happens")
        .with_help(format!("give any of {}", names.join(", ")))
}

pub(super) fn no_subject() -> Diagnostic {
    error("missing-field", "of is missing")
        .with_help("write of: deployment/web, or selector: {matchLabels: {app: web}}")
}

pub(super) fn two_subjects() -> Diagnostic {
    error("two-subjects", "give either this or of")
}

pub(super) fn namespace_of_target() -> Diagnostic {
    error("two-subjects", "namespace goes with selector").with_help("write of: NAMESPACE/TYPE/NAME")
}

pub(super) fn bare_selector() -> Diagnostic {
    error("bare-selector", "labels stand in matchLabels")
        .with_help("write selector: {matchLabels: {app: web}}")
}

pub(super) fn no_counts(found: &Value) -> Diagnostic {
    let message = format!("expected counts, found {}", describe(found));
    error("wrong-type", message)
        .with_help("write [2, 2, 1] in any order, or {zone-a: 2, zone-b: 2} by domain")
}

pub(super) fn skew_over_max(skew: u32, max: u32) -> Diagnostic {
    error("impossible", format!("no skew is {skew} and at most {max}"))
}

pub(super) fn skew_of_counts(skew: u32, counted: u32) -> Diagnostic {
    error(
        "impossible",
        format!("the skew of these counts is {counted}, not {skew}"),
    )
}

pub(super) fn always_is_always(name: &str) -> Diagnostic {
    error(
        "always",
        format!("{name} means nothing in always: it holds at every instant"),
    )
    .with_help("put the expectation into a step")
}

// Variants.

pub(super) fn nested_variants() -> Diagnostic {
    error("nested-variants", "a variant has no variants")
}

pub(super) fn must_and_may() -> Diagnostic {
    error("must-and-may", "a variant either must fail or may fail")
}

pub(super) fn no_such_step(at: Span, times: Vec<Span>) -> Diagnostic {
    let times: Vec<String> = times.into_iter().map(span).collect();
    let message = format!("no step with expectations is at {}", span(at));
    match times.is_empty() {
        true => error("no-such-step", message),
        false => error("no-such-step", message)
            .with_help(format!("there are steps at {}", times.join(", "))),
    }
}

pub(super) fn no_replicas(found: &Value) -> Diagnostic {
    let message = format!(
        "expected a number of replicas, or a percentage such as 50%, found {}",
        describe(found)
    );
    error("wrong-type", message)
}

pub(super) fn several_such_steps(at: Span) -> Diagnostic {
    error(
        "several-such-steps",
        format!("several steps with expectations are at {}", span(at)),
    )
    .with_help("join them, or give them different times")
}

pub(super) fn in_variant(name: &str) -> String {
    format!("it is so in variant {name} only")
}
