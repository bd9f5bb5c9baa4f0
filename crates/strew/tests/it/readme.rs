//! The README shows the real output of commands.

use crate::{root, stderr, stdout, strew};

/// Stands for lines, or for the rest of a line, that the README leaves out.
const LEFT_OUT: &str = "…";

#[test]
fn every_output_in_the_readme_is_what_the_command_prints() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = readme.split("```text\n$ ").skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|b| b.split("```").next()).collect();
    assert!(blocks.len() > 5, "blocks that begin with a command");
    for block in blocks {
        let (command, shown) = block.split_once('\n').unwrap();
        let printed = run(command);
        if let Err(line) = matches(shown, &printed) {
            panic!("`{command}` does not print this line of README.md:\n{line}\nbut\n{printed}");
        }
    }
}

/// The output of a command on stdout, or on stderr if that is all; `sed 's/A/B/' FILE | strew …` is done here.
fn run(command: &str) -> String {
    let (input, command) = match command.split_once(" | ") {
        Some((edit, command)) => (edited(edit), command),
        None => (String::new(), command),
    };
    let arguments = command.strip_prefix("strew ").unwrap();
    let run = strew(arguments).stdin(input).assert();
    match stdout(&run) {
        results if results.is_empty() => stderr(&run),
        results => results,
    }
}

fn edited(sed: &str) -> String {
    let (expression, file) = sed.strip_prefix("sed '").unwrap().split_once("' ").unwrap();
    let [_, from, to, _] = expression.split('/').collect::<Vec<_>>()[..] else {
        panic!("s/A/B/: {expression}");
    };
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    text.replace(from, to)
}

/// Checks that the shown lines are printed in this order. Returns the first that is not.
fn matches<'a>(shown: &'a str, printed: &str) -> Result<(), &'a str> {
    let mut printed = printed.lines();
    let mut may_skip = false;
    for line in shown.lines() {
        if line == LEFT_OUT {
            may_skip = true;
            continue;
        }
        let is_it = |printed: &str| match line.strip_suffix(LEFT_OUT) {
            Some(begin) => printed.starts_with(begin),
            None => printed == line,
        };
        let found = match may_skip {
            true => printed.any(is_it),
            false => printed.next().is_some_and(is_it),
        };
        if !found {
            return Err(line);
        }
        may_skip = false;
    }
    match may_skip || printed.next().is_none() {
        true => Ok(()),
        false => Err("the end"),
    }
}

#[test]
fn a_line_that_is_not_printed_is_found() {
    let printed = "a 1\nb\nc\n";
    assert_eq!(matches("a …\n…\nc\n", printed), Ok(()));
    assert_eq!(matches("a 1\n…\n", printed), Ok(()));
    assert_eq!(matches("a 2\n…\n", printed), Err("a 2"));
    assert_eq!(matches("a 1\nc\n", printed), Err("c"));
    assert_eq!(matches("a 1\n", printed), Err("the end"));
}
