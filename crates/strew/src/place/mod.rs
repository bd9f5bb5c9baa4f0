//! `strew place`: clusters for Placements, from files.
//!
//! Reading order: [`fleet`] (the input), `decide` (runs the machine until it rests), [`what_if`] (changes),
//! [`difference`] (what moves), [`text`], [`summary`] and [`why`] (for people), [`decisions`] and [`explanations`] (for
//! programs), [`each`] (the loss of every topology in turn).

mod decide;
mod decisions;
mod difference;
mod each;
mod explanations;
mod fleet;
mod help;
pub(crate) mod lint;
mod summary;
mod text;
mod what_if;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use strew_manifest::finding::Finding;
use strew_manifest::read::{Diagnostic, How, Severity, nearest, render};
use strew_model::{Instant, Interner, Symbol};
use strew_placement::explain::Detail;
use strew_placement::facts::placement::PlacementFact;

use decide::{Decided, Ground, Held, Outcome};
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
use crate::{inputs, terminal};

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
    what_if: Vec<what_if::Asked>,
    /// The time at which tolerations and scores are judged [default: now]
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Instant>,
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
    let sources = inputs::sources(args.inputs(context)?);
    let format = args.output.and_then(PlaceFormat::for_programs);
    let is_hub = args.files.is_empty() && args.filename.is_empty();
    let load = fleet::load(&sources, is_hub);
    say(&load.diagnostics, &sources, context);
    for note in &load.notes {
        say_note(note, context);
    }
    let Some(mut fleet) = load.fleet else {
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
    let at = args.at.unwrap_or_else(now);
    if args.at.is_none() && fleet.time_matters {
        say_note(
            &format!(
                "judged as of {}; --at asks about another moment",
                time_text(at)
            ),
            context,
        );
    }
    let answer = Answer::of(args, &mut fleet, at)?;
    let look = text::Look {
        terminal: &context.terminal,
        wide: args.output == Some(PlaceFormat::Wide),
        explain: args.explain,
    };
    if let Some(losses) = &answer.losses {
        let text = match format {
            Some(format) => serialized(&with(&findings, json!(each::list(losses))), format)?,
            None => each::write(losses, answer.outcome.decided.len(), &look),
        };
        terminal::print(&text)?;
        let is_trouble = losses.iter().any(Loss::is_trouble);
        return Ok(if is_trouble { EXIT_NO } else { 0 });
    }
    let outcome = &answer.outcome;
    let is_shown = |fact: &PlacementFact| args.shows(fact, &outcome.names);
    let changes = answer.differences.iter().flatten();
    let changes = changes.filter(|change| args.shows_named(&change.namespace, &change.name));
    let changes: Vec<&Difference> = changes.collect();
    let text = match format {
        Some(format) => {
            let list = match args.explain {
                true => json!(explanations::list(&fleet, outcome, &is_shown, &changes)),
                false => decisions::list(outcome, &is_shown, &changes),
            };
            serialized(&with(&findings, list), format)?
        }
        None => {
            let told = text::Told {
                fleet: &fleet,
                outcome,
                changed: answer.changed.as_ref(),
                differences: &answer.differences,
            };
            text::write(&told, &is_shown, &look)
        }
    };
    terminal::print(&text)?;
    exit(outcome, &fleet, args, context)
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
        access,
        only: Some(name.to_owned()),
    };
    run(&args, context)
}

impl PlaceArgs {
    /// The files; without any, the hub of the kubeconfig.
    fn inputs(&self, context: &Context) -> Result<Vec<Input>, Failure> {
        let names: Vec<String> = self.files.iter().chain(&self.filename).cloned().collect();
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

    /// True if a Placement is shown.
    fn shows(&self, placement: &PlacementFact, names: &Interner) -> bool {
        self.shows_named(names.text(placement.namespace), names.text(placement.name))
    }

    fn shows_named(&self, namespace: &str, name: &str) -> bool {
        self.namespace.as_deref().is_none_or(|n| n == namespace)
            && self.only.as_deref().is_none_or(|n| n == name)
    }

    /// The detail of a Placement's explanation.
    fn detail(&self, placement: &PlacementFact, names: &Interner) -> Option<Detail> {
        let is_shown = self.shows(placement, names);
        let detail = match self.explain {
            true => Detail::Everything,
            false => Detail::Outline,
        };
        is_shown.then_some(detail)
    }
}

/// The result, and the state that it is compared with.
struct Answer {
    outcome: Outcome,
    changed: Option<Changed>,
    /// By Placement.
    differences: Vec<Option<Difference>>,
    /// The loss of each topology of a key, if it was asked for.
    losses: Option<Vec<Loss>>,
}

impl Answer {
    fn of(args: &PlaceArgs, fleet: &mut Fleet, now: Instant) -> Result<Self, Failure> {
        let stored = fleet.stored();
        if args.what_if.is_empty() {
            let outcome = {
                let names = &fleet.names;
                let wanted = |fact: &PlacementFact| args.detail(fact, names);
                decide::decide(&fleet.ground(now), &stored, &wanted)
            };
            let clusters = difference::clusters(&fleet.facts);
            let comparison = Comparison {
                before: &clusters,
                after: &clusters,
                held: &stored,
                touched: &BTreeMap::new(),
                unchanged: None,
            };
            let differences = comparison.of(&outcome);
            return Ok(Self {
                outcome,
                changed: None,
                differences,
                losses: None,
            });
        }
        let (held, unchanged) = decide::before(&fleet.ground(now), &stored);
        let facts_before = fleet.facts.clone();
        let before = difference::clusters(&facts_before);
        fleet.names = unchanged.names.clone();
        let changed = Changed::of(&args.what_if, fleet, now)?;
        let wanted = |fact: &PlacementFact| args.detail(fact, &fleet.names);
        if !changed.each.is_empty() {
            let world = Losses {
                args,
                fleet,
                now,
                held: &held,
                unchanged: &unchanged,
                before: &before,
            };
            let losses = world.of(&changed)?;
            return Ok(Self {
                outcome: unchanged,
                changed: None,
                differences: Vec::new(),
                losses: Some(losses),
            });
        }
        let ground = Ground {
            facts: &changed.facts,
            placements: &changed.placements,
            ..fleet.ground(now)
        };
        let outcome = decide::decide(&ground, &held, &wanted);
        let comparison = Comparison {
            before: &before,
            after: &difference::clusters(&changed.facts),
            held: &held,
            touched: &changed.touched,
            unchanged: Some(&unchanged),
        };
        let differences = comparison.of(&outcome);
        Ok(Self {
            outcome,
            differences,
            changed: Some(changed),
            losses: None,
        })
    }
}

/// The loss of every topology of a key, one at a time.
struct Losses<'a> {
    args: &'a PlaceArgs,
    fleet: &'a Fleet,
    now: Instant,
    held: &'a Held,
    unchanged: &'a Outcome,
    before: &'a difference::Clusters<'a>,
}

impl Losses<'_> {
    fn of(&self, changed: &Changed) -> Result<Vec<Loss>, Failure> {
        let mut losses = Vec::new();
        for key in &changed.each {
            let names = &self.fleet.names;
            for (value, clusters) in what_if::domains(key, &changed.facts, names)? {
                let mut lost = changed.clone();
                lost.lose(&clusters);
                losses.push(self.one((key, &value), clusters.len(), &lost));
            }
        }
        Ok(losses)
    }

    fn one(&self, domain: (&str, &str), n: usize, lost: &Changed) -> Loss {
        let ground = Ground {
            facts: &lost.facts,
            placements: &lost.placements,
            ..self.fleet.ground(self.now)
        };
        let outcome = decide::decide(&ground, self.held, &|_| None);
        let comparison = Comparison {
            before: self.before,
            after: &difference::clusters(&lost.facts),
            held: self.held,
            touched: &lost.touched,
            unchanged: Some(self.unchanged),
        };
        let args = self.args;
        let differences = comparison.of(&outcome).into_iter().flatten();
        let differences = differences.filter(|d| args.shows_named(&d.namespace, &d.name));
        let differences = differences.collect();
        let decided = outcome.decided.iter();
        let shown = decided.filter(|d| args.shows(&d.fact, &outcome.names));
        let shown: Vec<_> = shown.map(|d| (outcome.label(d), d)).collect();
        Loss::of(domain, n, &shown, differences)
    }
}

/// The previous clusters, compared with the result.
struct Comparison<'a> {
    before: &'a difference::Clusters<'a>,
    after: &'a difference::Clusters<'a>,
    held: &'a Held,
    touched: &'a BTreeMap<Symbol, &'static str>,
    unchanged: Option<&'a Outcome>,
}

impl Comparison<'_> {
    /// By Placement; `None` if it held no cluster.
    fn of(&self, outcome: &Outcome) -> Vec<Option<Difference>> {
        let unchanged = self.unchanged.iter().flat_map(|outcome| &outcome.decided);
        let unchanged: BTreeMap<(Symbol, Symbol), &Decided> = unchanged
            .map(|decided| ((decided.fact.namespace, decided.fact.name), decided))
            .collect();
        let one = |decided: &Decided| {
            let key = (decided.fact.namespace, decided.fact.name);
            let held = self.held.get(&key)?;
            let replicas = decide::replicas(held);
            let held = held.iter().flat_map(|d| d.decisions.iter());
            let before = Side {
                held: held.map(|d| d.cluster).collect(),
                replicas,
                clusters: self.before,
            };
            let after = Side {
                held: decided.clusters().map(|(cluster, _)| cluster).collect(),
                replicas: decided.replicas(),
                clusters: self.after,
            };
            let unchanged = unchanged.get(&key);
            let reasons = Reasons {
                touched: self.touched,
                unchanged: unchanged.map(|d| d.clusters().map(|(c, _)| c).collect()),
            };
            let names = &outcome.names;
            Some(Difference::of(
                &decided.fact,
                &before,
                &after,
                &reasons,
                names,
            ))
        };
        outcome.decided.iter().map(one).collect()
    }
}

/// Checks that there is something to show.
fn check_shown(fleet: &Fleet, args: &PlaceArgs) -> Result<(), Failure> {
    if fleet.placements.is_empty() {
        let error = anyhow!("there is no Placement in the files");
        return Err(Failure::input(error)
            .with_hint("kind: Placement of cluster.open-cluster-management.io/v1beta1"));
    }
    let mut all = fleet.placements.iter();
    if all.any(|placement| args.shows(placement, &fleet.names)) {
        return Ok(());
    }
    let all = fleet.placements.iter();
    let (asked, known): (&str, BTreeSet<&str>) = match (&args.namespace, &args.only) {
        (Some(namespace), None) => (
            namespace.as_str(),
            all.map(|p| fleet.names.text(p.namespace)).collect(),
        ),
        (_, only) => (
            only.as_deref().unwrap_or_default(),
            all.map(|p| fleet.names.text(p.name)).collect(),
        ),
    };
    let error = match (&args.namespace, &args.only) {
        (Some(namespace), Some(name)) => {
            anyhow!("there is no Placement {name:?} in namespace {namespace:?}")
        }
        (_, Some(name)) => anyhow!("there is no Placement {name:?}"),
        _ => anyhow!("there is no Placement in namespace {asked:?}"),
    };
    let hint = match nearest(asked, known.iter().copied()) {
        Some(meant) => format!("did you mean {meant}?"),
        None => {
            let some: Vec<&str> = known.into_iter().take(10).collect();
            format!("there are {}", some.join(", "))
        }
    };
    Err(Failure::input(error).with_hint(hint))
}

/// A time as text.
fn time_text(at: Instant) -> String {
    let time = Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn say(diagnostics: &[Diagnostic], sources: &strew_manifest::read::Sources, context: &Context) {
    let is_shown = |d: &&Diagnostic| !context.quiet || d.severity == Severity::Error;
    let shown: Vec<Diagnostic> = diagnostics.iter().filter(is_shown).cloned().collect();
    if !shown.is_empty() {
        terminal::say(&format!("{}\n", render(&shown, sources, true)));
    }
}

/// The exit code, for the Placements that are shown.
fn exit(
    outcome: &Outcome,
    fleet: &Fleet,
    args: &PlaceArgs,
    context: &Context,
) -> Result<u8, Failure> {
    if let Some((placement, set, why)) = outcome.broken() {
        let error = anyhow!("{placement} was not decided: ManagedClusterSet {set}: {why}");
        return Err(Failure::input(error));
    }
    let shown = outcome.decided.iter();
    let shown: Vec<&Decided> = shown
        .filter(|d| args.shows(&d.fact, &outcome.names))
        .collect();
    let misconfigured = |d: &&&Decided| {
        let key = (d.fact.namespace, d.fact.name);
        fleet.misconfigured.contains(&key)
    };
    let n_misconfigured = shown.iter().filter(misconfigured).count();
    if n_misconfigured > 0 {
        let style = context.terminal.styles.error;
        let placements = count(n_misconfigured, "Placement");
        let are = if n_misconfigured == 1 { "is" } else { "are" };
        terminal::say(&format!(
            "{style}error{style:#}: {placements} {are} misconfigured\n"
        ));
        return Ok(2);
    }
    Ok(match shown.iter().any(|d| summary::is_trouble(d)) {
        true => EXIT_NO,
        false => 0,
    })
}
