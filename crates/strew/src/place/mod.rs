//! `strew place`: clusters for Placements, from files.
//!
//! Reading order: [`fleet`] (the input), `decide` (a hub decides), [`what_if`] (changes), [`difference`] (what moves),
//! [`text`], [`summary`] and [`why`] (for people), [`page`] (`--html`), [`lists`] (for programs), [`each`] (the loss of
//! every topology in turn).

mod decide;
mod difference;
mod each;
mod fleet;
mod help;
pub(crate) mod lint;
mod lists;
pub(crate) mod page;
mod summary;
mod text;
mod what_if;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use strew_manifest::finding::Finding;
use strew_manifest::read::{Diagnostic, How, Severity, Sources, render};
use strew_model::Instant;
use strew_placement::explain::Detail;
use strew_plan::written::FleetVerb;
use strew_view::placement::{PlacementKey, PlacementView};

use decide::{Decided, Held};
use difference::{Difference, Reasons, Side};
use each::Loss;
use fleet::Fleet;
use what_if::Changed;
pub(crate) use what_if::help as what_if_help;

use crate::cluster::access::AccessArgs;
use crate::cluster::{self, Wanted};
use crate::context::Context;
use crate::diagnostics::{print_diagnostics, say_note};
use crate::failure::{EXIT_NO, Failure};
use crate::inputs::{Input, ReadArgs};
use crate::output::{Format, serialized};
use crate::text::count;
use crate::what_if::Asked;
use crate::{inputs, parts, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM place placement.yaml fleet/                 which clusters, and how do they spread?
  PROGRAM place placement.yaml fleet/ --explain       every score, the counts before each pick, and why not the others
  kubectl get placements,managedclusters,managedclustersets,managedclustersetbindings,addonplacementscores,placementdecisions -A -o json | PROGRAM place -
  PROGRAM place placement.yaml fleet/ --what-if lose=region/us-east
                                                      which clusters move when a region is lost?
  PROGRAM place placement.yaml fleet/ --what-if lose=east-1,east-2
  PROGRAM place placement.yaml fleet/ --what-if lose-each=region
                                                      every region lost in turn: who gets too few?
  PROGRAM place placement.yaml fleet/ --what-if edit=changed.yaml
                                                      a changed Placement beside the old
  PROGRAM place --context hub                         the hub of a kubeconfig's context, which is only read
  PROGRAM place placement.yaml fleet/ -o yaml         the PlacementDecisions
  PROGRAM place placement.yaml fleet/ --explain -o json
                                                      every number of --explain, as OCM's debug endpoint has it and more
  PROGRAM place placement.yaml fleet/ --html fleet.html
                                                      a page for a browser: the clusters by region and zone
  PROGRAM place placement.yaml fleet/ --at 2026-03-01T12:00:00Z
                                                      tolerations and scores as of that moment

Placements are decided in the order of namespace and name: each sees what the earlier ones got.
Where there are PlacementDecisions, what moves against them is shown.
Without any ManagedClusterSet and binding in manifests, every cluster may be chosen; the sets default and global of
OCM's registration are assumed. A hub, and a dump with sets, has the sets that it has, as for strew controller.

Exit codes: 0 done; 1 a Placement is not as asked for (a line with ✗): fewer clusters, none, or not spread so;
2 wrong input, a Placement that is misconfigured included; 3 something outside failed.";

/// Arguments of `strew place`.
#[derive(Args, Debug)]
pub(crate) struct PlaceArgs {
    /// Manifests or dumps: files, folders, or - for standard input; without any, the hub of the kubeconfig
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// More files; the same as naming them as arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    #[command(flatten)]
    read: ReadArgs,
    /// Show only the Placements of this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<PlaceFormat>,
    /// Explain: the scores, the counts before each pick, the verdict on every cluster
    #[arg(long)]
    explain: bool,
    #[arg(long, value_name = "CHANGE", value_parser = what_if::asked, help = what_if::help())]
    what_if: Vec<Asked<FleetVerb>>,
    /// The time at which tolerations and scores are judged [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Instant>,
    /// Write the Placements as one page for a browser, which needs no network: what is wrong, the clusters of each by its
    /// topologies, a map of the fleet
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// Only the Placements of this name.
    #[arg(skip)]
    only: Option<String>,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceFormat {
    /// With each prioritizer's scores; nothing is shortened
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

/// Parses `--at`.
fn moment(text: &str) -> Result<Instant, String> {
    let time: Option<Timestamp> = text.parse().ok();
    let nanos = time.and_then(|time| u64::try_from(time.as_nanosecond()).ok());
    nanos
        .map(Instant)
        .ok_or_else(|| "no time, as 2026-03-01T12:00:00Z is".to_owned())
}

/// The wall clock is read here, once: the deciding code gets the time as a value.
fn now() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "the shell reads the clock")]
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

pub(crate) fn run(args: &PlaceArgs, context: &Context) -> Result<u8, Failure> {
    let inputs = args.inputs(context)?;
    for output in args.html.iter().map(Path::new) {
        inputs::check_output(output, &inputs)?;
    }
    let sources = inputs::sources(inputs);
    let format = args.output.and_then(PlaceFormat::for_programs);
    let is_hub = args.files.is_empty() && args.filename.is_empty();
    let load = fleet::load(&sources, is_hub);
    say(&load.diagnostics, &sources, context);
    for note in &load.notes {
        say_note(note, context);
    }
    let Some(fleet) = load.fleet else {
        print_diagnostics("place", &[(load.diagnostics, &sources)], format)?;
        let n = load.n_errors;
        return Err(Failure::input(anyhow!(
            "nothing was decided: {} in the input",
            count(n, "error")
        )));
    };
    let found = load.diagnostics.iter().map(|d| d.to_finding(&sources));
    let findings = Finding::in_order(found.filter(Finding::is_warning_or_worse));
    drop(sources);
    check_shown(&fleet, args)?;
    let now = args.at.unwrap_or_else(now);
    if args.at.is_none() && fleet.time_matters() {
        let at = time_text(now);
        let note = format!("judged as of {at}; --at asks about another moment");
        say_note(&note, context);
    }
    let look = text::Look {
        terminal: &context.terminal,
        wide: args.output == Some(PlaceFormat::Wide),
        explain: args.explain,
    };
    match Answer::of(args, &fleet, now)? {
        Answer::Losses(_) if args.html.is_some() => {
            let error = anyhow!("--html shows one fleet, and lose-each has one for each loss");
            Err(Failure::input(error).with_hint("--what-if lose=KEY/VALUE shows one loss"))
        }
        Answer::Losses(losses) => {
            let text = match format {
                Some(format) => serialized(&with(&findings, json!(each::list(&losses))), format)?,
                None => each::write(&losses, fleet.placements.len(), &look),
            };
            terminal::print(&text)?;
            let is_trouble = losses.iter().any(Loss::is_trouble);
            Ok(if is_trouble { EXIT_NO } else { 0 })
        }
        Answer::Decided(decided, changed) => {
            let each = decided.iter();
            let each = each.map(|(decided, difference)| (decided, difference.as_ref()));
            let shown: Vec<text::Shown<'_>> = each
                .filter(|(decided, _)| args.shows(&decided.view.key()))
                .collect();
            if let Some(path) = &args.html {
                let about = page::About {
                    files: &args.names(),
                    fleet: changed.as_ref().map_or(&fleet, |changed| &changed.fleet),
                    changed: changed.as_deref(),
                    findings: &findings,
                };
                page::write(path, &shown, &about)?;
            }
            let text = match format {
                Some(format) => {
                    let changes: Vec<_> = shown.iter().filter_map(|shown| shown.1).collect();
                    let shown: Vec<&Decided> = shown.iter().map(|shown| shown.0).collect();
                    let list = lists::list(&shown, args.explain, &changes);
                    serialized(&with(&findings, list), format)?
                }
                None => text::write(&shown, &fleet, changed.as_deref(), &look),
            };
            terminal::print(&text)?;
            exit(&decided, &shown, &fleet, context)
        }
    }
}

/// A list with the warnings about the files, if there are any.
fn with(findings: &[Finding], mut list: Value) -> Value {
    if !findings.is_empty() {
        list["findings"] = json!(findings);
    }
    list
}

/// `strew explain placement/NAME`: the same for one Placement, with its reasons.
pub(crate) fn explain(
    name: &str,
    (files, read, access): (Vec<String>, ReadArgs, AccessArgs),
    namespace: Option<String>,
    output: Option<Format>,
    context: &Context,
) -> Result<u8, Failure> {
    let args = PlaceArgs {
        files,
        filename: Vec::new(),
        read,
        namespace,
        output: output.map(|format| match format {
            Format::Yaml => PlaceFormat::Yaml,
            _ => PlaceFormat::Json,
        }),
        explain: true,
        what_if: Vec::new(),
        at: None,
        html: None,
        access,
        only: Some(name.to_owned()),
    };
    run(&args, context)
}

impl PlaceArgs {
    /// The files; without any, the hub of the kubeconfig.
    fn inputs(&self, context: &Context) -> Result<Vec<Input>, Failure> {
        let names = self.names();
        if !names.is_empty() {
            let how = How {
                piped: format!("{} place -", context.program),
                ..How::default()
            };
            return self.read.read(&names, how);
        }
        let list = cluster::fetch_wanted(&self.access, Wanted::Hub, context.quiet)?;
        let bytes = list.to_string().into_bytes();
        Ok(vec![Input::made("<hub>", bytes, How::default())])
    }

    /// All files of the command line.
    fn names(&self) -> Vec<String> {
        [&self.files[..], &self.filename].concat()
    }

    /// True if a Placement is shown.
    fn shows(&self, (namespace, name): &PlacementKey) -> bool {
        self.namespace.as_ref().is_none_or(|n| n == namespace)
            && self.only.as_ref().is_none_or(|n| n == name)
    }

    /// The detail of a Placement's explanation.
    fn detail(&self, placement: &PlacementKey) -> Detail {
        match self.explain && self.shows(placement) {
            true => Detail::Everything,
            false => Detail::Outline,
        }
    }
}

enum Answer {
    /// All Placements, each with its difference from the clusters that it had, if it had any, and the changed fleet.
    Decided(Vec<(Decided, Option<Difference>)>, Option<Box<Changed>>),
    /// The loss of each topology of a key.
    Losses(Vec<Loss>),
}

impl Answer {
    fn of(args: &PlaceArgs, fleet: &Fleet, now: Instant) -> Result<Self, Failure> {
        let detail = |key: &PlacementKey| args.detail(key);
        if args.what_if.is_empty() {
            let held = fleet.stored();
            let mut decided = decide::decide(fleet, &held, now, Some(&detail));
            decide::explain_shortages(&mut decided, fleet, &held, now);
            let before = Before {
                fleet,
                held: &held,
                unchanged: None,
            };
            return Ok(Self::Decided(before.compared(decided, None), None));
        }
        let (held, unchanged) = decide::before(fleet, now);
        let before = Before {
            fleet,
            held: &held,
            unchanged: Some(unchanged.into_iter().map(|d| (d.view.key(), d)).collect()),
        };
        let changed = Changed::of(&args.what_if, fleet, now)?;
        if changed.each.is_empty() {
            let decided = decide::decide(&changed.fleet, &held, now, Some(&detail));
            let compared = before.compared(decided, Some(&changed));
            return Ok(Self::Decided(compared, Some(Box::new(changed))));
        }
        let mut losses = Vec::new();
        for key in &changed.each {
            for (value, clusters) in what_if::domains(key, &changed.fleet)? {
                let mut lost = changed.clone();
                lost.lose(&clusters);
                let mut decided = decide::decide(&lost.fleet, &held, now, None);
                decided.retain(|decided| args.shows(&decided.view.key()));
                let compared = before.compared(decided, Some(&lost));
                losses.push(Loss::of((key, &value), clusters.len(), compared));
            }
        }
        Ok(Self::Losses(losses))
    }
}

/// The clusters that Placements had.
struct Before<'a> {
    fleet: &'a Fleet,
    held: &'a Held,
    /// The result without a change; `None` if none was asked about.
    unchanged: Option<BTreeMap<PlacementKey, Decided>>,
}

impl Before<'_> {
    /// The results of Placements, each with its difference from the clusters that it had, if it had any.
    fn compared(
        &self,
        decided: Vec<Decided>,
        changed: Option<&Changed>,
    ) -> Vec<(Decided, Option<Difference>)> {
        let each = decided.into_iter().map(|decided| {
            let difference = self.difference(&decided.view, changed);
            (decided, difference)
        });
        each.collect()
    }

    fn difference(&self, view: &PlacementView, changed: Option<&Changed>) -> Option<Difference> {
        let key = view.key();
        let before = PlacementView {
            decisions: self.held.get(&key)?.clone(),
            ..PlacementView::default()
        };
        let before = Side {
            view: &before,
            clusters: &self.fleet.clusters,
        };
        let fleet = changed.map_or(self.fleet, |changed| &changed.fleet);
        let after = Side {
            view,
            clusters: &fleet.clusters,
        };
        let untouched = BTreeMap::new();
        let unchanged = self.unchanged.as_ref().and_then(|all| all.get(&key));
        let reasons = Reasons {
            touched: changed.map_or(&untouched, |changed| &changed.touched),
            unchanged: unchanged.map(|d| d.view.clusters().map(|(name, _)| name).collect()),
        };
        Some(Difference::of(before, after, &reasons))
    }
}

/// Checks that there is something to show.
fn check_shown(fleet: &Fleet, args: &PlaceArgs) -> Result<(), Failure> {
    if fleet.placements.is_empty() {
        let error = anyhow!("there is no Placement in the files");
        return Err(Failure::input(error)
            .with_hint("kind: Placement of cluster.open-cluster-management.io/v1beta1"));
    }
    if fleet.placements.keys().any(|key| args.shows(key)) {
        return Ok(());
    }
    let all = fleet.placements.keys();
    let (asked, known): (&str, BTreeSet<&str>) = match (&args.namespace, &args.only) {
        (Some(namespace), None) => (namespace.as_str(), all.map(|(ns, _)| &**ns).collect()),
        (_, only) => (
            only.as_deref().unwrap_or_default(),
            all.map(|(_, name)| &**name).collect(),
        ),
    };
    let error = match (&args.namespace, &args.only) {
        (Some(namespace), Some(name)) => {
            anyhow!("there is no Placement {name:?} in namespace {namespace:?}")
        }
        (_, Some(name)) => anyhow!("there is no Placement {name:?}"),
        _ => anyhow!("there is no Placement in namespace {asked:?}"),
    };
    Err(Failure::input(error).with_hint(parts::instead(asked, known)))
}

/// A time as text.
fn time_text(at: Instant) -> String {
    let time = Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn say(diagnostics: &[Diagnostic], sources: &Sources, context: &Context) {
    let is_shown = |d: &&Diagnostic| !context.quiet || d.severity == Severity::Error;
    let shown: Vec<Diagnostic> = diagnostics.iter().filter(is_shown).cloned().collect();
    if !shown.is_empty() {
        terminal::say(&format!("{}\n", render(&shown, sources, true)));
    }
}

/// The exit code, for the Placements that are shown.
fn exit(
    all: &[(Decided, Option<Difference>)],
    shown: &[text::Shown<'_>],
    fleet: &Fleet,
    context: &Context,
) -> Result<u8, Failure> {
    for (decided, _) in all {
        if let Some(why) = decided.why.as_ref().filter(|why| !why.is_decided)
            && !decided.view.is_ignored()
        {
            let (placement, error) = (decided.view.label(), why.result.error.as_deref());
            let error = error.unwrap_or_default();
            let error = anyhow!("{placement} was not decided: {error}");
            return Err(Failure::input(error));
        }
    }
    let keys = shown.iter().map(|(decided, _)| decided.view.key());
    let n_misconfigured = keys.filter(|key| fleet.misconfigured.contains(key)).count();
    if n_misconfigured > 0 {
        let style = context.terminal.styles.error;
        let placements = count(n_misconfigured, "Placement");
        let are = if n_misconfigured == 1 { "is" } else { "are" };
        terminal::say(&format!(
            "{style}error{style:#}: {placements} {are} misconfigured\n"
        ));
        return Ok(2);
    }
    let mut views = shown.iter().map(|(decided, _)| &decided.view);
    Ok(match views.any(PlacementView::is_trouble) {
        true => EXIT_NO,
        false => 0,
    })
}
