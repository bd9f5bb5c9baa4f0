//! `strew merge`: adds summaries of parts up to the summary of all seeds.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use strew_manifest::read::How;

use crate::audit::compare::Fleet;
use crate::context::Context;
use crate::destination;
use crate::diagnostics::say_note;
use crate::failure::{EXIT_NO, EXIT_OUTSIDE, Failure};
use crate::inputs::{self, ReadArgs};
use crate::output::{Format, serialized};
use crate::scenario::merging::{Added, Merged, Merger, summaries};
use crate::scenario::{SummaryFormat, write_summary};
use crate::terminal;
use crate::text::{count, drawn};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate scenarios/ --seeds 0..1000 --shard 0/2 --out shard-0.json      on one machine
  PROGRAM simulate scenarios/ --seeds 0..1000 --shard 1/2 --out shard-1.json      on another
  PROGRAM merge shard-0.json shard-1.json            what came of all seeds
  PROGRAM merge shards/ -o junit --out report.xml    all files of a folder
  PROGRAM merge shards/ -o summary > part.json       to be merged with others later
  PROGRAM merge eu.json us.json                      audits of several clusters, the worst first
  kubectl logs job/sweep-1 | PROGRAM merge -         of one pod; strew sweep --collect reads all

The sum equals that of one process, to the byte, in whatever order the parts come. A part that comes
twice counts once. Parts of other files, options or versions are refused.

Exit codes: 0 every step and expectation holds; 1 one failed; 2 a file is wrong; 3 a file could not be
read, or parts are missing.";

/// Arguments of `strew merge`.
#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    /// Summaries: files, folders, or - for standard input; a file may have several, one a line
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<MergeFormat>,
    /// Write the result into this file, completely or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum MergeFormat {
    /// Kind SimulationSummary in one line
    #[value(alias = "json")]
    Summary,
    /// A test case for each expectation, as CI systems read them
    Junit,
    /// A result for each expectation that broke, at its line, as code scanning reads them
    Sarif,
}

impl MergeFormat {
    fn of_summary(format: Option<Self>) -> SummaryFormat {
        match format {
            None => SummaryFormat::Text,
            Some(Self::Summary) => SummaryFormat::Summary,
            Some(Self::Junit) => SummaryFormat::Junit,
            Some(Self::Sarif) => SummaryFormat::Sarif,
        }
    }
}

pub(crate) fn run(args: &MergeArgs, context: &Context) -> Result<u8, Failure> {
    let mut merger = Merger::default();
    let mut fleet = Fleet::default();
    let mut n_summaries = 0;
    for name in args.read.names(&args.files)? {
        // One at a time: a sweep may have more parts than fit into memory.
        for input in args
            .read
            .read(std::slice::from_ref(&name), How::default())?
        {
            if let Some(out) = &args.out {
                inputs::check_output(out, std::slice::from_ref(&input))?;
            }
            if fleet.add(&input.name, &input.bytes)? {
                continue;
            }
            let summaries = summaries(&input.bytes);
            let n_here = summaries.len();
            for (n, summary) in summaries.into_iter().enumerate() {
                n_summaries += 1;
                let name = match n_here {
                    1 => input.name.clone(),
                    _ => format!("{} ({} of {n_here})", input.name, n + 1),
                };
                if let Added::Twice(first) = merger.add(&name, summary)? {
                    say_note(&format!("{name} is the same as {first}"), context);
                }
            }
        }
    }
    let format = MergeFormat::of_summary(args.output);
    if !fleet.is_empty() {
        if n_summaries > 0 {
            let error = anyhow!("some files are audits, and others are summaries");
            return Err(Failure::input(error).with_hint("merge them apart"));
        }
        return tell_clusters(&fleet, format, args.out.as_deref(), context);
    }
    let Some(merged) = merger.finish() else {
        return Err(Failure::input(anyhow!("no file has a summary")));
    };
    tell(&merged, format, args.out.as_deref(), context)
}

/// Writes the audits of several clusters.
///
/// # Errors
/// The format is for summaries only; it cannot be written.
pub(crate) fn tell_clusters(
    fleet: &Fleet,
    format: SummaryFormat,
    out: Option<&Path>,
    context: &Context,
) -> Result<u8, Failure> {
    let text = match format {
        SummaryFormat::Text => drawn(fleet.text(), &context.terminal),
        SummaryFormat::Summary => serialized(&fleet.list(), Format::Json)?,
        SummaryFormat::Junit | SummaryFormat::Sarif => {
            let error = anyhow!("audits of several clusters are text or -o json");
            return Err(Failure::input(error)
                .with_hint("strew audit -o junit and -o sarif write those of one"));
        }
    };
    destination::write(out, &text)?;
    Ok(if fleet.is_red() { EXIT_NO } else { 0 })
}

/// Writes the sum of all parts, and which parts are missing.
///
/// # Errors
/// It cannot be written.
pub(crate) fn tell(
    merged: &Merged,
    format: SummaryFormat,
    out: Option<&Path>,
    context: &Context,
) -> Result<u8, Failure> {
    let text = write_summary(&merged.summary, format, context)?;
    destination::write(out, &text)?;
    let is_whole = merged.missing.is_empty();
    if !is_whole {
        say_missing(merged, context);
    }
    Ok(match (merged.summary.is_red(), is_whole) {
        (true, _) => EXIT_NO,
        (false, false) => EXIT_OUTSIDE,
        (false, true) => 0,
    })
}

/// The number of parts that are named; more are counted.
const MISSING_MAX: usize = 10;

fn say_missing(merged: &Merged, context: &Context) {
    let styles = &context.terminal.styles;
    let (error, hint) = (styles.error, styles.hint);
    let named = merged.missing.iter().take(MISSING_MAX);
    let mut named: Vec<String> = named.cloned().collect();
    let n_more = merged.missing.len() - named.len();
    if n_more > 0 {
        named.push(count(n_more, "more"));
    }
    let named = named.join(", ");
    let mut text = format!("{error}error{error:#}: not all seeds were played: {named} missing\n");
    let command = &merged.summary.command;
    for shard in merged.missing_shards.iter().take(MISSING_MAX) {
        let program = context.program;
        text.push_str(&format!(
            "{hint}hint{hint:#}: {program} {command} --shard {shard} --out shard-{}.json\n",
            shard.index
        ));
    }
    terminal::say(&text);
}
