//! The diagnostics of recordings, one function each.

use strew_manifest::read::{Diagnostic, shortened};

fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, message)
}

pub(super) fn no_recording(what: &str) -> Diagnostic {
    error("no-recording", format!("there is no {what} in it"))
}

pub(super) fn msgpack() -> Diagnostic {
    error("msgpack", "this is msgpack, which strew does not read")
        .with_help("msgpack2json -i trace.mp -o trace.json makes JSON of it")
}

pub(super) fn surplus() -> Diagnostic {
    error(
        "second-trace",
        "a trace is one document, and this is another",
    )
}

pub(super) fn trace_version(found: u32) -> Diagnostic {
    error(
        "unknown-version",
        format!("strew reads version 2 of SimKube's traces, not {found}"),
    )
}

pub(super) fn record_version(found: &str) -> Diagnostic {
    let message = format!("unknown version {} of ResourcePatch", shortened(found));
    error("unknown-version", message)
        .with_help("strew reads action.kwok.x-k8s.io/v1alpha1, which kwokctl writes since 0.6")
}

pub(super) fn out_of_range(what: &str) -> Diagnostic {
    error("out-of-range", format!("{what} is out of range"))
        .with_help("a scenario lasts ten years at most")
}

pub(super) fn not_whole(what: &str) -> Diagnostic {
    error("wrong-type", format!("expected {what}"))
}

pub(super) fn bad_name(name: &str) -> Diagnostic {
    let message = format!("{} is no name of an object", shortened(name));
    error("bad-name", message)
}

pub(super) fn other_object(found: &str, target: &str) -> Diagnostic {
    error(
        "other-object",
        format!("the template is {found}, and the target {target}"),
    )
}

pub(super) fn not_patched(why: &str) -> Diagnostic {
    error(
        "not-patched",
        format!("the patch cannot be carried out: {why}"),
    )
}

pub(super) fn late_object() -> Diagnostic {
    Diagnostic::warning(
        "late-object",
        "an object after the first ResourcePatch is passed over, as kwokctl replay does",
    )
}
