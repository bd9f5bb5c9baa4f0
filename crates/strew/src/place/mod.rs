//! `strew place`: clusters for Placements, from files.
//!
//! Reading order: [`fleet`] (what there is), `decide` (the machine, run until it rests), [`what_if`] (clusters that are
//! lost), [`text`] and [`why`] (for people), [`decisions`] and [`explanations`] (for programs).

mod decide;
mod decisions;
mod explanations;
mod fleet;
mod text;
mod what_if;
mod why;

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use strew_api::read::{Diagnostic, Severity, render};
use strew_model::Instant;

use decide::{Outcome, decide};
use fleet::Fleet;
use what_if::Loss;

use crate::arguments::Context;
use crate::failure::{EXIT_NO, Failure};
use crate::inputs::ReadArgs;
use crate::simulate::{Format, print_diagnostics, say_note, serialized};
use crate::text::count;
use crate::{inputs, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM place placement.yaml fleet/                 which clusters, and how do they spread?
  PROGRAM place placement.yaml fleet/ --explain       every score, the counts before each pick, and why not the others
  kubectl get placements,managedclusters,managedclustersets,managedclustersetbindings,addonplacementscores,placementdecisions -A -o json | PROGRAM place -
  PROGRAM place placement.yaml fleet/ --what-if lose=region/us-east
                                                      which clusters move when a region is lost?
  PROGRAM place placement.yaml fleet/ --what-if lose=east-1,east-2
  PROGRAM place placement.yaml fleet/ -o yaml         the PlacementDecisions
  PROGRAM place placement.yaml fleet/ --explain -o json
                                                      every number of --explain, as OCM's debug endpoint has it and more
  PROGRAM place placement.yaml fleet/ --at 2026-03-01T12:00:00Z
                                                      tolerations and scores as of that moment

Placements are decided in the order of namespace and name: each sees what the earlier ones got.
Without any ManagedClusterSet and binding in the files, every cluster may be chosen.

Exit codes: 0 done; 1 fewer clusters than asked for, or none; 2 wrong input, a Placement that is
misconfigured included; 3 something outside failed.";

/// Arguments of `strew place`.
#[derive(Args, Debug)]
pub(crate) struct PlaceArgs {
    /// Manifests or dumps: files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    files: Vec<String>,
    /// More files; the same as naming them as arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// Show the Placements of this namespace only
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<PlaceFormat>,
    /// Say why: the scores, the counts before each pick, what became of every cluster
    #[arg(long)]
    explain: bool,
    /// What would change: lose=KEY/VALUE (a label or claim) or lose=CLUSTER[,CLUSTER...]
    #[arg(long, value_name = "CHANGE", value_parser = what_if::words)]
    what_if: Vec<what_if::Words>,
    /// The moment at which tolerations and scores are judged [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Instant>,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceFormat {
    /// With each prioritizer's scores; nothing is cut
    Wide,
    /// A PlacementDecisionList; with --explain a PlacementExplanationList
    Json,
    /// The same as YAML
    Yaml,
}

impl PlaceFormat {
    fn for_programs(self) -> Option<Format> {
        match self {
            Self::Wide => None,
            Self::Json => Some(Format::Json),
            Self::Yaml => Some(Format::Yaml),
        }
    }
}

/// A time of `--at`.
fn moment(text: &str) -> Result<Instant, String> {
    let time: Option<Timestamp> = text.parse().ok();
    let nanos = time.and_then(|time| u64::try_from(time.as_nanosecond()).ok());
    nanos
        .map(Instant)
        .ok_or_else(|| "no time, as 2026-03-01T12:00:00Z is".to_owned())
}

/// The wall's clock, read here once: what decides is told.
fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "the shell reads the clock")]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

pub(crate) fn run(args: &PlaceArgs, context: &Context) -> Result<u8, Failure> {
    let names: Vec<String> = args.files.iter().chain(&args.filename).cloned().collect();
    let sources = inputs::sources(args.read.read(&names)?);
    let format = args.output.and_then(PlaceFormat::for_programs);
    let load = fleet::load(&sources);
    say(&load.diagnostics, &sources, context);
    for note in &load.notes {
        say_note(note, context);
    }
    let Some(fleet) = load.fleet else {
        print_diagnostics(&[(load.diagnostics, &sources)], format)?;
        let n = load.n_errors;
        return Err(Failure::input(anyhow::anyhow!(
            "nothing was decided: {} in the input",
            count(n, "error")
        )));
    };
    if fleet.placements.is_empty() {
        let error = anyhow::anyhow!("there is no Placement in the files");
        return Err(Failure::input(error)
            .with_hint("kind: Placement of cluster.open-cluster-management.io/v1beta1"));
    }
    check_namespace(args.namespace.as_deref(), &fleet)?;
    let loss = Loss::of(&args.what_if, &fleet)?;
    let at = args.at.unwrap_or_else(now);
    let before = decide(&fleet, at, None, None);
    let after = loss
        .as_ref()
        .map(|loss| decide(&fleet, at, Some(&before), Some(&loss.clusters)));
    let shown = after.as_ref().unwrap_or(&before);
    if args.at.is_none() && fleet.time_matters {
        say_note(
            &format!(
                "judged as of {}; --at asks about another moment",
                time_text(at)
            ),
            context,
        );
    }
    let is_shown = |namespace: &str| args.namespace.as_deref().is_none_or(|n| n == namespace);
    let text = match format {
        Some(format) if args.explain => {
            serialized(&explanations::list(&fleet, shown, &is_shown), format)?
        }
        Some(format) => serialized(&decisions::list(shown, &is_shown), format)?,
        None => {
            let look = text::Look {
                terminal: &context.terminal,
                wide: args.output == Some(PlaceFormat::Wide),
                explain: args.explain,
            };
            text::write(
                &fleet,
                &before,
                after.as_ref(),
                loss.as_ref(),
                &is_shown,
                &look,
            )
        }
    };
    terminal::print(&text)?;
    exit(shown, load.n_misconfigured, context)
}

/// Refuses a namespace in which no Placement is.
fn check_namespace(namespace: Option<&str>, fleet: &Fleet) -> Result<(), Failure> {
    let written = fleet.written.keys();
    let known: BTreeSet<&str> = written.map(|key| fleet.names.text(key.0)).collect();
    match namespace.filter(|namespace| !known.contains(namespace)) {
        None => Ok(()),
        Some(namespace) => {
            let error = anyhow::anyhow!("no Placement is in namespace {namespace}");
            let known: Vec<&str> = known.into_iter().collect();
            let hint = format!("there are Placements in {}", known.join(", "));
            Err(Failure::input(error).with_hint(hint))
        }
    }
}

/// A moment for people.
fn time_text(at: Instant) -> String {
    let time = Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn say(diagnostics: &[Diagnostic], sources: &strew_api::read::Sources, context: &Context) {
    let is_shown = |d: &&Diagnostic| !context.global.quiet || d.severity == Severity::Error;
    let shown: Vec<Diagnostic> = diagnostics.iter().filter(is_shown).cloned().collect();
    if !shown.is_empty() {
        terminal::say(&format!("{}\n", render(&shown, sources, true)));
    }
}

fn exit(outcome: &Outcome, n_misconfigured: usize, context: &Context) -> Result<u8, Failure> {
    if let Some((placement, set, why)) = outcome.broken() {
        let error = anyhow::anyhow!("{placement} was not decided: ManagedClusterSet {set}: {why}");
        return Err(Failure::input(error));
    }
    if n_misconfigured > 0 {
        let style = context.terminal.styles.error;
        let placements = count(n_misconfigured, "Placement");
        let are = if n_misconfigured == 1 { "is" } else { "are" };
        terminal::say(&format!(
            "{style}error{style:#}: {placements} {are} misconfigured\n"
        ));
        return Ok(2);
    }
    let all = outcome.decided.iter();
    let is_short = |decided: &decide::Decided| decided.is_short();
    Ok(if all.into_iter().any(is_short) {
        EXIT_NO
    } else {
        0
    })
}
