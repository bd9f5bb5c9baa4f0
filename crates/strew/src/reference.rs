//! `strew __reference`: docs/commands.md and manual pages, made from the command line's own help.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use clap::{Arg, ArgAction, Command, ValueEnum};

use crate::schema::SchemaKind;
use crate::terminal;

/// The hidden command.
pub(crate) const WORD: &str = "__reference";

/// Prints the page that the words name, or writes manual pages into a folder; returns the exit code.
pub(crate) fn run(command: Command, words: &[OsString]) -> u8 {
    let page = match words {
        [what, folder] if what == "manual" => {
            return u8::from(manual(command, folder.as_ref()).is_err());
        }
        [what] if what == "schemas" => schemas(),
        [what] if what == "rules" => rules(),
        _ => page(command),
    };
    // The write fails only if the reader is gone.
    let _ = terminal::print(&page);
    0
}

/// The page: every command with its arguments and examples.
fn page(mut command: Command) -> String {
    command.build();
    let mut out = "# Commands\n\nMade from the command line by `cargo xtask gen`. `strew COMMAND --help` prints the same in a terminal.\n".to_owned();
    let commands: Vec<&Command> = shown(&command).collect();
    out.push_str("\n| command | what it does |\n|---|---|\n");
    for inner in &commands {
        let name = inner.get_name();
        let _ = writeln!(
            out,
            "| [`{name}`](#strew-{name}) | {} |",
            cell(&about(inner))
        );
    }
    out.push_str("\n## Global options\n\n");
    table(
        &mut out,
        command.get_arguments().filter(|arg| arg.is_global_set()),
    );
    for inner in commands {
        section(&mut out, inner, "strew");
    }
    out
}

/// Writes manual pages into a folder: `strew.1`, and one for each command.
fn manual(command: Command, folder: &Path) -> std::io::Result<()> {
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}

/// The page of schemas.
fn schemas() -> String {
    let mut out = "# Schemas\n\nMade from the code by `cargo xtask gen`. `strew schema KIND` prints a schema; the files are in `docs/schema`. An editor with the YAML language server takes one from a line at the top of a file: see [pipelines](pipelines.md#editors).\n\n| kind | what it is |\n|---|---|\n".to_owned();
    for kind in SchemaKind::value_variants() {
        let Some(value) = kind.to_possible_value() else {
            continue;
        };
        let name = value.get_name();
        let about = value.get_help().map(ToString::to_string);
        let about = cell(&about.unwrap_or_default());
        let _ = writeln!(out, "| [`{name}`](schema/{name}.json) | {about} |");
    }
    out
}

/// The page of rules.
fn rules() -> String {
    let mut out = "# Rules\n\nMade from the code by `cargo xtask gen`. `strew lint` applies these rules to files. Before it plays them, `strew simulate` applies those that read what is written; what the others try, its run shows. What the API server refuses is an error of both and has no row here. Rules whose names begin with `assumed-` are `strew simulate`'s, which needs what the files leave out; `strew lint` has a note on priority classes alone.\n\nA finding is a warning: a person should act. Where something may be meant so, it is a note. `strew simulate --fail-on warnings` fails on warnings; `strew lint` does in any case. Nothing is said about what is missing where the files cannot tell: a budget alone in a file may have its pods elsewhere.\n\n| rule | what it finds | why, and what to do |\n|---|---|---|\n".to_owned();
    for rule in strew_lint::RULES {
        let (what, why) = (cell(rule.what), cell(rule.why));
        let _ = writeln!(out, "| `{}` | {what} | {why} |", rule.code);
    }
    out
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let inner = command.get_subcommands();
    inner.filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default()
}

fn section(out: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    let _ = write!(
        out,
        "\n## {name}\n\n{}.\n",
        about(command).trim_end_matches('.')
    );
    let own = || {
        let all = command.get_arguments();
        all.filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && !is_of_clap(arg))
    };
    let mut headings: Vec<Option<&str>> = Vec::new();
    for arg in own() {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    // Arguments without a heading belong to the command itself.
    headings.sort_by_key(Option::is_some);
    for heading in headings {
        match heading {
            Some(heading) => {
                let _ = write!(out, "\n{heading}:\n\n");
            }
            None => out.push('\n'),
        }
        table(out, own().filter(|arg| arg.get_help_heading() == heading));
    }
    if let Some(more) = command.get_after_help() {
        let _ = write!(out, "\n```text\n{}\n```\n", more.to_string().trim_end());
    }
    for inner in shown(command) {
        section(out, inner, &name);
    }
}

/// Every command has these.
fn is_of_clap(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "help" | "version")
}

fn table<'a>(out: &mut String, args: impl Iterator<Item = &'a Arg>) {
    out.push_str("| argument | default | what it says |\n|---|---|---|\n");
    for arg in args {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            cell(&words(arg)),
            cell(&default(arg)),
            cell(&help(arg))
        );
    }
}

/// `` `-o`, `--output FORMAT` ``
fn words(arg: &Arg) -> String {
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let names = arg.get_value_names().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let value = match (takes_value, names.is_empty()) {
        (false, _) => String::new(),
        (true, true) => arg.get_id().as_str().to_uppercase(),
        (true, false) => names.join(" "),
    };
    let Some(long) = arg.get_long() else {
        return match arg.get_short() {
            Some(short) => format!("`-{short} {value}`"),
            None => format!("`{value}`"),
        };
    };
    let short = arg.get_short();
    let short = short.map_or(String::new(), |short| format!("`-{short}`, "));
    format!("{short}`{}`", format!("--{long} {value}").trim_end())
}

fn default(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let values = arg.get_default_values().iter();
    let values = values.map(|value| format!("`{}`", value.to_string_lossy()));
    values.collect::<Vec<_>>().join(", ")
}

fn help(arg: &Arg) -> String {
    let help = arg.get_help().map_or_else(String::new, ToString::to_string);
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set());
    let values = values.map(|value| match value.get_help() {
        Some(help) => format!("`{}`: {help}", value.get_name()),
        None => format!("`{}`", value.get_name()),
    });
    let values: Vec<String> = values.collect();
    match (arg.get_action().takes_values(), values.is_empty()) {
        (true, false) => format!("{help}. {}", values.join("; ")),
        _ => help,
    }
}

/// Text that stays in its table cell.
fn cell(text: &str) -> String {
    let text = text.replace('|', "\\|");
    let text = text.replace('<', "&lt;");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
