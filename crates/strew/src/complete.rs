//! `strew __complete WORDS`: completions of the last word, for `kubectl strew <TAB>`.
//!
//! kubectl runs the executable `kubectl_complete-strew`, which runs this, and reads cobra's protocol: one candidate per
//! line, its description after a tab, and last a colon with a directive.

use std::ffi::OsString;

use clap::{Arg, Command};

/// The hidden command.
pub(crate) const WORD: &str = "__complete";

/// Cobra's directives: with or without completing files.
const WITH_FILES: &str = ":0";
const NO_FILES: &str = ":4";

/// The completions for these words after the program's name; the last one is incomplete.
pub(crate) fn answer(mut command: Command, words: &[OsString]) -> String {
    command.build();
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let mut current = &command;
    // The flag whose value comes next.
    let mut flag: Option<&Arg> = None;
    for word in before {
        if flag.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            flag = of_word(current, word).filter(|arg| arg.get_action().takes_values());
        } else if let Some(inner) = current.find_subcommand(word) {
            current = inner;
        }
    }
    let (candidates, directive) = match flag {
        Some(flag) => values(flag),
        None if last.starts_with('-') => (flags(current), NO_FILES),
        None if current.has_subcommands() => (subcommands(current), NO_FILES),
        None => current
            .get_positionals()
            .next()
            .map_or((Vec::new(), WITH_FILES), values),
    };
    let fitting = candidates.iter().filter(|(name, _)| name.starts_with(last));
    let lines = fitting.map(|(name, about)| match about.is_empty() {
        true => format!("{name}\n"),
        false => format!("{name}\t{about}\n"),
    });
    lines.collect::<String>() + directive + "\n"
}

/// A candidate with its description.
type Candidate = (String, String);

/// The flag that a word names without its value.
fn of_word<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let mut all = command.get_arguments();
    match word.strip_prefix("--") {
        Some(long) => all.find(|arg| arg.get_long() == Some(long)),
        None => {
            let mut letters = word.chars().skip(1);
            let (letter, rest) = (letters.next(), letters.next());
            all.find(|arg| rest.is_none() && letter.is_some() && arg.get_short() == letter)
        }
    }
}

fn values(arg: &Arg) -> (Vec<Candidate>, &'static str) {
    let possible = arg.get_possible_values();
    let directive = if possible.is_empty() {
        WITH_FILES
    } else {
        NO_FILES
    };
    let shown = possible.iter().filter(|value| !value.is_hide_set());
    let each = shown.map(|value| {
        let about = value
            .get_help()
            .map_or_else(String::new, ToString::to_string);
        (value.get_name().to_owned(), first_line(&about))
    });
    (each.collect(), directive)
}

fn flags(command: &Command) -> Vec<Candidate> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let each = shown.filter_map(|arg| {
        let about = arg.get_help().map_or_else(String::new, ToString::to_string);
        Some((format!("--{}", arg.get_long()?), first_line(&about)))
    });
    each.collect()
}

fn subcommands(command: &Command) -> Vec<Candidate> {
    let shown = command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set());
    let each = shown.map(|inner| {
        let about = inner
            .get_about()
            .map_or_else(String::new, ToString::to_string);
        (inner.get_name().to_owned(), first_line(&about))
    });
    each.collect()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
