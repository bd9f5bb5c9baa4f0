//! Files in, objects and diagnostics out.

mod data;
mod hostile;
mod manifests;
mod others;

use strew_manifest::read::{Reading, Sources, read, render};

/// One file, named `in`.
fn sources_of(input: impl Into<Vec<u8>>) -> Sources {
    let mut sources = Sources::new();
    sources.add("in", input);
    sources
}

/// What was read: a line per object.
fn objects_text(reading: &Reading) -> String {
    let lines = reading.objects.iter().map(|located| {
        format!(
            "{} {}\n",
            located.object.api_version(),
            located.object.label()
        )
    });
    lines.collect()
}

/// A line per diagnostic: place, severity, code, message; then field and object, related places, help.
fn diagnostics_text(reading: &Reading, sources: &Sources) -> String {
    let mut text = String::new();
    for diagnostic in &reading.diagnostics {
        let place = diagnostic
            .place
            .map(|place| place.display(sources).to_string());
        let place = place.unwrap_or_default();
        text += &format!(
            "{place}: {}[{}]: {}\n",
            diagnostic.severity.name(),
            diagnostic.code,
            diagnostic.message
        );
        let path = diagnostic.path.as_ref().map(ToString::to_string);
        let path = path.unwrap_or_default();
        let object = diagnostic.object.as_deref().unwrap_or_default();
        if !path.is_empty() || !object.is_empty() {
            text += &format!("  in {object}: {path}\n");
        }
        for related in &diagnostic.related {
            text += &format!("  {}: {}\n", related.place.display(sources), related.label);
        }
        if let Some(help) = &diagnostic.help {
            text += &format!("  help: {help}\n");
        }
    }
    text
}

/// Reads one file and compares objects and diagnostics, `|` at a line's start shows where it begins.
#[track_caller]
fn check(input: impl Into<Vec<u8>>, expected: &str) {
    let sources = sources_of(input);
    let reading = read(&sources);
    let found = objects_text(&reading) + &diagnostics_text(&reading, &sources);
    // Rendering must survive whatever reading did.
    let _ = render(&reading.diagnostics, &sources, true);
    let expected = unindented(expected);
    assert!(found == expected, "expected:\n{expected}\nfound:\n{found}");
}

fn unindented(text: &str) -> String {
    let lines = text.lines().map(str::trim_start);
    let lines = lines.filter_map(|line| line.strip_prefix('|'));
    lines.map(|line| format!("{line}\n")).collect()
}
