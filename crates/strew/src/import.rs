//! `strew import`: turns a recording of a cluster into a Scenario.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use strew_scenario::import::{Imported, Recording, import};

use crate::context::Context;
use crate::diagnostics::{say_note, say_problems};
use crate::failure::Failure;
use crate::output::{Format, serialized};
use crate::{inputs, terminal};
use strew_suite::nodes::NodeArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM import simkube trace.json --nodes 30 --zones 3 -o shop.yaml
                                                    a SimKube trace, which tells no nodes
  PROGRAM import kwok record.yaml -o day.yaml       what kwokctl snapshot record has written
  PROGRAM import kwok record.yaml | PROGRAM simulate -

What people and foreign programs did becomes steps; what the simulated cluster does by itself
(status, the objects of its controllers) is left out, and a note counts it. A SimKube trace in
msgpack is made JSON by msgpack2json first.

Exit codes: 0 done; 2 wrong input or usage; 3 a file could not be read or written.";

/// Arguments of `strew import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The program that recorded it
    #[arg(value_name = "RECORDER")]
    recorder: Recorder,
    /// The recording, or - for standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Write the scenario into this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    #[command(flatten)]
    nodes: NodeArgs,
}

/// A tool that writes recordings.
#[derive(ValueEnum, Debug, Clone, Copy)]
enum Recorder {
    /// A trace of SimKube, as JSON
    Simkube,
    /// What kwokctl snapshot record writes
    Kwok,
}

pub(crate) fn run(args: &ImportArgs, context: &Context) -> Result<u8, Failure> {
    if Path::new(&args.file).is_dir() {
        return Err(Failure::input(anyhow!("{} is a folder", args.file))
            .with_hint("a recording is one file"));
    }
    let inputs = inputs::read_one(&args.file)?;
    if let Some(path) = &args.output {
        inputs::check_output(Path::new(path), &inputs)?;
    }
    let sources = inputs::sources(inputs);
    let recording = match args.recorder {
        Recorder::Simkube => Recording::SimKube,
        Recorder::Kwok => Recording::Kwok,
    };
    let mut imported = import(recording, &sources, &name_of(&args.file));
    let said = [(std::mem::take(&mut imported.diagnostics), &sources)];
    if say_problems(&said, "imported", context) {
        return Ok(2);
    }
    let (groups, note) = args.nodes.groups(imported.has_nodes)?;
    if !groups.is_empty() {
        imported.set_node_groups(groups);
    }
    for note in imported.notes.iter().chain(&note) {
        say_note(note, context);
    }
    let text = written(&imported)?;
    match &args.output {
        None => terminal::print(&text)?,
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {path}"))
            .map_err(Failure::outside)?,
    }
    Ok(0)
}

/// The stream, one document after another.
fn written(imported: &Imported) -> Result<String, Failure> {
    let documents = imported.objects.iter().chain([&imported.scenario]);
    let texts: Result<Vec<String>, Failure> = documents
        .map(|document| serialized(document, Format::Yaml))
        .collect();
    Ok(texts?.join("---\n"))
}

/// The file's name without its extension, as a valid object name.
fn name_of(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    let is_kept = |c: char| c.is_ascii_alphanumeric();
    let letters = stem.to_string_lossy().to_lowercase();
    let letters: String = letters
        .chars()
        .map(|c| if is_kept(c) { c } else { '-' })
        .take(60)
        .collect();
    match letters.trim_matches('-') {
        "" => "recording".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_named_after_its_file() {
        let cases = [
            (
                "a/dsb_social_network_trace.json",
                "dsb-social-network-trace",
            ),
            ("-", "recording"),
            ("Day 1.yaml", "day-1"),
            ("\u{e9}.yaml", "recording"),
        ];
        for (file, name) in cases {
            assert_eq!(name_of(file), name);
        }
    }
}
