//! Prints what is wrong with the input: for people, and for programs.

use serde_json::json;
use strew_manifest::finding::Finding;
use strew_manifest::printable::printable_line;
use strew_manifest::read::{Diagnostic, Severity, Sources, render};

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, serialized};
use crate::{junit, report, sarif, terminal, text};

/// Prints errors for programs.
pub(crate) fn print_diagnostics(
    said: &[(Vec<Diagnostic>, &Sources)],
    output: Option<Format>,
) -> Result<(), Failure> {
    if output == Some(Format::Junit) {
        let each = said.iter().flat_map(|(all, sources)| {
            let errors = all.iter().filter(|d| d.severity == Severity::Error);
            errors.map(|error| render(std::slice::from_ref(error), sources, false))
        });
        return terminal::print(&junit::wrong_input(&each.collect::<Vec<_>>()));
    }
    if output == Some(Format::Sarif) {
        return terminal::print(&format!("{:#}\n", sarif::of_diagnostics(said)));
    }
    let Some(format) = output.filter(|format| format.is_for_programs()) else {
        return Ok(());
    };
    let each = said.iter();
    let items = each.flat_map(|(all, sources)| all.iter().map(|d| d.to_finding(sources)));
    let items: Vec<Finding> = items.collect();
    let list = json!({"apiVersion": report::API_VERSION, "kind": "Diagnostics", "items": items});
    terminal::print(&serialized(&list, format)?)
}

/// Prints diagnostics; each list has places in its own files. Returns true if there is an error.
pub(crate) fn say_diagnostics(said: &[(Vec<Diagnostic>, &Sources)], context: &Context) -> bool {
    say_problems(said, "simulated", context)
}

/// The same for other commands than simulate: `done` says what is not done because of errors.
pub(crate) fn say_problems(
    said: &[(Vec<Diagnostic>, &Sources)],
    done: &str,
    context: &Context,
) -> bool {
    let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
    let mut n_errors = 0;
    let mut texts = Vec::new();
    for (all, sources) in said {
        n_errors += all.iter().filter(is_error).count();
        let shown = all.iter().filter(|d| !context.quiet || is_error(d));
        let shown: Vec<Diagnostic> = shown.cloned().collect();
        if !shown.is_empty() {
            texts.push(render(&shown, sources, true));
        }
    }
    if texts.is_empty() {
        return false;
    }
    terminal::say(&texts.join("\n"));
    if n_errors > 0 {
        let error = context.terminal.styles.error;
        let errors = text::count(n_errors, "error");
        terminal::say(&format!(
            "\n{error}error{error:#}: nothing was {done}: {errors} in the input\n"
        ));
    }
    n_errors > 0
}

/// Prints a note.
pub(crate) fn say_note(note: &str, context: &Context) {
    if !context.quiet {
        let style = context.terminal.styles.warning;
        let note = printable_line(note);
        terminal::say(&format!("{style}note{style:#}: {note}\n"));
    }
}
