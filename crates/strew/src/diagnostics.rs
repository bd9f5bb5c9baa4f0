//! Prints what is wrong with the input: for people, and for programs.

use serde_json::{Value, json};
use strew_manifest::finding::Finding;
use strew_manifest::printable::printable_line;
use strew_manifest::read::{Diagnostic, Severity, Sources, render};

use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, serialized};
use crate::{junit, sarif, terminal, text};
pub(crate) use strew_suite::ready::findings;
use strew_suite::report;

/// Prints the errors of `command` for programs.
pub(crate) fn print_diagnostics(
    command: &str,
    said: &[(Vec<Diagnostic>, &Sources)],
    output: Option<Format>,
) -> Result<(), Failure> {
    let items: Vec<Finding> = findings(said).collect();
    match output {
        Some(Format::Junit) => {
            let each = said.iter().flat_map(|(all, sources)| {
                let errors = all.iter().filter(|d| d.severity == Severity::Error);
                errors.map(|error| render(std::slice::from_ref(error), sources, false))
            });
            let errors: Vec<String> = each.collect();
            terminal::print(&junit::wrong_input(command, &errors))
        }
        Some(Format::Sarif) => {
            let log = sarif::log(&sarif::of_findings(&items, first_file(said)));
            terminal::print(&format!("{log:#}\n"))
        }
        Some(format) if format.is_for_programs() => {
            terminal::print(&serialized(&list(&items), format)?)
        }
        _ => Ok(()),
    }
}

/// Prints why a command failed, for readers of test results and code scanning: a file without content would hide it.
/// The failure itself is printed in any case.
pub(crate) fn print_failure(
    command: &str,
    failure: &Failure,
    output: Option<Format>,
    first_file: &str,
) {
    let error = failure.in_a_line();
    let text = match output {
        Some(Format::Junit) => junit::wrong_input(command, &[error]),
        Some(Format::Sarif) => format!("{:#}\n", sarif::of_failure(&error, first_file)),
        _ => return,
    };
    // There is no way to report another error.
    let _ = terminal::print(&text);
}

/// Kind `Diagnostics`.
pub(crate) fn list(items: &[Finding]) -> Value {
    json!({"apiVersion": report::API_VERSION, "kind": "Diagnostics", "items": items})
}

/// The name of the first file.
fn first_file<'a>(said: &'a [(Vec<Diagnostic>, &'a Sources)]) -> &'a str {
    let mut files = said.iter().flat_map(|(_, sources)| sources.iter());
    files.next().map_or("", |(_, file)| file.name())
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
        let mut shown: Vec<Diagnostic> = shown.cloned().collect();
        worst_first(&mut shown);
        if !shown.is_empty() {
            texts.push(render(&shown, sources, true));
        }
    }
    let n_hidden = match context.quiet {
        true => said.iter().map(|(all, _)| warnings(all)).sum(),
        false => 0,
    };
    if n_hidden > 0 {
        let warning = context.terminal.styles.warning;
        let warnings = text::count(n_hidden, "warning");
        texts.push(format!(
            "{warning}warning{warning:#}: {warnings}, not shown (-q)\n"
        ));
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

/// Brings what is worst to the top of its file.
fn worst_first(diagnostics: &mut [Diagnostic]) {
    let file = |found: &Diagnostic| found.place.map(|place| place.file);
    let of_files = diagnostics.chunk_by_mut(|a, b| file(a) == file(b));
    of_files.for_each(|all| all.sort_by_key(|found| found.severity));
}

fn warnings(all: &[Diagnostic]) -> usize {
    let is_warning = |d: &&Diagnostic| d.severity == Severity::Warning;
    all.iter().filter(is_warning).count()
}

/// Prints a note.
pub(crate) fn say_note(note: &str, context: &Context) {
    if !context.quiet {
        let style = context.terminal.styles.warning;
        let note = printable_line(note);
        terminal::say(&format!("{style}note{style:#}: {note}\n"));
    }
}

#[cfg(test)]
mod tests {
    use strew_manifest::read::Span;

    use super::*;

    #[test]
    fn what_is_worst_is_at_the_top_of_its_file() {
        let mut sources = Sources::default();
        let files = ["a.yaml", "b.yaml"].map(|name| sources.add(name, "one\ntwo\n"));
        let at = |file: usize, start: usize| {
            sources.place(
                files[file],
                Span {
                    start,
                    end: start + 1,
                },
            )
        };
        let mut found = [
            Diagnostic::error("of a flag", ""),
            Diagnostic::note("1", "").at(at(0, 0)),
            Diagnostic::error("2", "").at(at(0, 4)),
            Diagnostic::warning("3", "").at(at(1, 0)),
            Diagnostic::error("4", "").at(at(1, 4)),
            Diagnostic::warning("5", "").at(at(1, 4)),
        ];
        worst_first(&mut found);
        assert_eq!(
            found.each_ref().map(|found| found.code),
            ["of a flag", "2", "1", "4", "3", "5"]
        );
    }
}
