//! `strew diff`: what moved between two reports, or with a change of manifests.
//!
//! Reading order: `facts` (the values of a report), `manifests` (plays a change), `compare` (which values differ, and
//! whether that is better), `text` (the output for people).

mod compare;
mod facts;
mod manifests;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs::Input;
use crate::output::{Format, serialized};
use crate::world::WorldArgs;
use crate::{audit, terminal};
use compare::compare;
use facts::{facts, labels};
use strew_suite::label_query::LabelQuery;
use strew_suite::report::{API_VERSION, KIND};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml -o json > before.json
  PROGRAM simulate shop.yaml --nodes 9 -o json > after.json
  PROGRAM diff before.json after.json               better or worse, and what moved most
  PROGRAM diff before.json after.json --step deploy --by topology.kubernetes.io/zone --all
  PROGRAM diff before.json after.json -o json | jq .items
  PROGRAM diff old/ new/                            deploy old/, apply new/ to it: what moves?
  PROGRAM diff dump.json new/                       the same on a cluster
  PROGRAM diff monday.json tuesday.json             two audits (strew audit -o json): which verdicts are different

Only what both reports count is compared: a key that one of them does not count is named.
Of manifests, the first are deployed and the second applied to that cluster, as kubectl apply does: what they do not
touch stays where it is. Objects that are gone are deleted, unless the first files are a dump. What the API server
refuses of the change is named. Counts by domain are of a workload's pods of all revisions; a skew is that of the pods
that its constraint counts.
Exit codes: 0 nothing moved; 1 something did, or was refused; 2 wrong input, reports of different scenarios or workloads; 3 a file
could not be read.";

/// Arguments of `strew diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The first report, written by strew simulate -o json; or manifests or a dump, a file or a folder
    #[arg(value_name = "OLD")]
    before: String,
    /// The second report; or the changed manifests
    #[arg(value_name = "NEW")]
    after: String,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<DiffFormat>,
    /// Compare only the workloads of this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Compare only workloads with these labels, or whose pods have them
    #[arg(short = 'l', long, value_name = "QUERY")]
    selector: Option<String>,
    /// Compare only the step of this name
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// Compare only counts by this topology key
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    /// The number of changes to show per step, the worst ones
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Show as many of those that got better, the best ones, below the worst
    #[arg(long)]
    best: bool,
    /// Show all changes
    #[arg(long, conflicts_with = "top")]
    all: bool,
    #[command(flatten)]
    world: WorldArgs,
}

/// The workloads chosen by their labels.
struct ByLabels {
    query: LabelQuery,
    /// In one of the two reports.
    known: [BTreeMap<String, facts::Labels>; 2],
}

impl ByLabels {
    fn means(&self, place: &facts::Place) -> bool {
        let workload = place.workload();
        let labels = workload.into_iter().flat_map(|workload| {
            let known = self.known.iter();
            known.filter_map(move |known| known.get(workload)).flatten()
        });
        labels.into_iter().any(|labels| self.query.matches(labels))
    }
}

impl DiffArgs {
    fn means(&self, place: &facts::Place, by_labels: Option<&ByLabels>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| match wanted {
            None => true,
            Some(wanted) => found == Some(wanted.as_str()),
        };
        let step = place.moment.last().map(|(_, name)| name.as_str());
        is(&self.namespace, place.namespace.as_deref())
            && is(&self.step, step)
            && (self.by.is_none() || place.key == self.by)
            && by_labels.is_none_or(|by_labels| by_labels.means(place))
    }
}

/// The values of `-o`.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum DiffFormat {
    /// Kind SimulationDiff
    Json,
    /// The same as YAML
    Yaml,
}

pub(crate) fn run(args: &DiffArgs, context: &Context) -> Result<u8, Failure> {
    let (before, after) = (input(args, &args.before)?, input(args, &args.after)?);
    let (before, after) = match (before, after) {
        (Given::Report(before), Given::Report(after)) => (before, after),
        (Given::Manifests(before), Given::Manifests(after)) => {
            return of_manifests(args, [before, after], context);
        }
        (Given::Audit(before), Given::Audit(after)) => {
            let moved = audit::compare::moved(&before, &after)?;
            return audits(args, &moved, context);
        }
        (Given::Audit(_), _) | (_, Given::Audit(_)) => {
            let error = anyhow!("one file is an audit, and the other is none");
            let hint = "strew audit FILES -o json writes one";
            return Err(Failure::input(error).with_hint(hint));
        }
        (before, _) => {
            let (report, other) = match before {
                Given::Report(_) => (&args.before, &args.after),
                Given::Manifests(_) | Given::Audit(_) => (&args.after, &args.before),
            };
            let error = anyhow!("{report} is a report, and {other} is none");
            let hint = "two reports are compared, or two versions of manifests";
            return Err(Failure::input(error).with_hint(hint));
        }
    };
    let query = args.selector.as_deref().map(LabelQuery::parse);
    let by_labels = query.transpose()?.map(|query| ByLabels {
        query,
        known: [labels(&before), labels(&after)],
    });
    let facts = [facts(&before), facts(&after)];
    written(args, facts, by_labels.as_ref(), Told::default(), context)
}

/// What a change of manifests moves.
fn of_manifests(
    args: &DiffArgs,
    inputs: [Vec<Input>; 2],
    context: &Context,
) -> Result<u8, Failure> {
    if args.selector.is_some() || args.step.is_some() {
        let error = anyhow!("--selector and --step choose in reports");
        let hint = "-n NAME chooses a namespace of manifests";
        return Err(Failure::input(error).with_hint(hint));
    }
    match manifests::changed(args, inputs, context)? {
        None => Ok(EXIT_INPUT),
        Some(changed) => {
            let manifests::Changed {
                facts,
                told,
                refused,
                wrong,
            } = changed;
            let told = Told {
                change: told,
                refused,
                wrong,
            };
            written(args, facts, None, told, context)
        }
    }
}

/// What comes before the difference; empty for two reports.
#[derive(Debug, Default)]
struct Told {
    /// The objects that the change touches, in a line.
    change: String,
    refused: Vec<manifests::Refusal>,
    /// What is wrong after the change, and was not before.
    wrong: Vec<String>,
}

/// Compares and prints; `told` comes first in the text.
fn written(
    args: &DiffArgs,
    [before, after]: [facts::Facts; 2],
    by_labels: Option<&ByLabels>,
    told: Told,
    context: &Context,
) -> Result<u8, Failure> {
    check_related(args, by_labels, &before, &after)?;
    let meant = |mut facts: facts::Facts| {
        facts.retain(|place, _| args.means(place, by_labels));
        facts
    };
    let difference = compare(&meant(before), &meant(after));
    let text = match args.output {
        Some(format) => {
            let mut value = json!({
                "apiVersion": API_VERSION,
                "kind": "SimulationDiff",
                "summary": difference.steps,
                "items": difference.moved,
            });
            if !told.refused.is_empty() {
                value["refused"] = json!(told.refused);
            }
            let format = match format {
                DiffFormat::Json => Format::Json,
                DiffFormat::Yaml => Format::Yaml,
            };
            serialized(&value, format)?
        }
        None if context.quiet => String::new(),
        None => {
            let shown = text::Shown {
                top: if args.all { usize::MAX } else { args.top },
                has_best: args.best,
            };
            let change = match told.change.as_str() {
                "" => String::new(),
                change => format!("{change}\n"),
            };
            let refused = text::refused(&told.refused, &told.wrong, context);
            change + &refused + &text::write(&difference, shown, context)
        }
    };
    terminal::print(&text)?;
    let is_same = difference.moved.is_empty() && told.refused.is_empty();
    Ok(if is_same { 0 } else { EXIT_NO })
}

/// `SimulationDiff`, as `-o json` writes it.
#[derive(schemars::JsonSchema)]
#[schemars(rename = "SimulationDiff", rename_all = "camelCase")]
#[expect(dead_code, reason = "the shape of a value")]
struct Written {
    api_version: String,
    kind: String,
    /// A summary of each step that both reports have.
    summary: Vec<compare::StepSummary>,
    /// The changes, step by step, the worst first.
    items: Vec<compare::Moved>,
    /// Objects of a change of manifests that the API server refuses; the rest of the change is applied.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    refused: Vec<manifests::Refusal>,
}

/// The JSON schema of the difference.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(Written).to_value()
}

/// Refuses reports that have nothing in common, and filters that match nothing.
fn check_related(
    args: &DiffArgs,
    by_labels: Option<&ByLabels>,
    before: &facts::Facts,
    after: &facts::Facts,
) -> Result<(), Failure> {
    let moments: BTreeSet<&[facts::Part]> = after.keys().map(|place| &*place.moment).collect();
    let mut has_common = before.keys();
    let has_common = has_common.any(|place| moments.contains(&*place.moment));
    let both_empty = before.is_empty() && after.is_empty();
    if !both_empty && !has_common {
        let name = |facts: &facts::Facts| {
            let first = facts.keys().next();
            first.map_or("no step".to_owned(), facts::Place::moment)
        };
        let error = anyhow!("the reports have no step in common");
        return Err(Failure::input(error).with_hint(format!(
            "{} begins with {}, {} with {}: compare reports of one scenario, variant and seed",
            args.before,
            name(before),
            args.after,
            name(after)
        )));
    }
    let workloads = |facts: &facts::Facts| -> BTreeSet<(String, String)> {
        let places = facts.keys();
        let named = places
            .filter_map(|place| Some((place.namespace.clone()?, place.workload()?.to_owned())));
        named.collect()
    };
    let [before_of, after_of] = [workloads(before), workloads(after)];
    if !before_of.is_empty() && !after_of.is_empty() && before_of.is_disjoint(&after_of) {
        let name = |of: &BTreeSet<(String, String)>| {
            let first = of.first().map_or("", |(_, name)| name);
            match of.len() {
                1 => first.to_owned(),
                n => format!("{first} and {} more", n - 1),
            }
        };
        let error = anyhow!("the reports have no workload in common");
        return Err(Failure::input(error).with_hint(format!(
            "{} has {}, {} has {}: compare reports of the same workloads",
            args.before,
            name(&before_of),
            args.after,
            name(&after_of)
        )));
    }
    let mut all = before.keys().chain(after.keys());
    let asks =
        args.namespace.is_some() || args.step.is_some() || args.by.is_some() || by_labels.is_some();
    match asks && !all.any(|place| args.means(place, by_labels)) {
        true => Err(Failure::input(anyhow!(
            "the reports count nothing of these words: --namespace, --selector, --step, --by"
        ))),
        false => Ok(()),
    }
}

/// Tells what is different in two audits.
fn audits(
    args: &DiffArgs,
    moved: &[audit::compare::Moved],
    context: &Context,
) -> Result<u8, Failure> {
    if args.step.is_some() || args.by.is_some() || args.selector.is_some() {
        let error =
            anyhow!("--step, --by and --selector are for reports of simulate, not for audits");
        return Err(Failure::input(error));
    }
    let is_meant = |moved: &&audit::compare::Moved| {
        let namespace = match moved.of.split('/').collect::<Vec<_>>().as_slice() {
            [namespace, _, _] => (*namespace).to_owned(),
            _ => "default".to_owned(),
        };
        args.namespace
            .as_ref()
            .is_none_or(|wanted| *wanted == namespace)
    };
    let moved: Vec<_> = moved.iter().filter(is_meant).cloned().collect();
    let text = match args.output {
        Some(format) => {
            let value = audit::compare::AuditDiff::of(&moved);
            let format = match format {
                DiffFormat::Json => Format::Json,
                DiffFormat::Yaml => Format::Yaml,
            };
            serialized(&value, format)?
        }
        None if context.quiet => String::new(),
        None => crate::text::drawn(audit::compare::text(&moved), &context.terminal),
    };
    terminal::print(&text)?;
    Ok(if moved.is_empty() { 0 } else { EXIT_NO })
}

/// What an argument names.
enum Given {
    Report(Value),
    Manifests(Vec<Input>),
    Audit(Value),
}

/// Reads an argument.
///
/// # Errors
/// A file cannot be read, or is JSON of another kind that strew writes.
fn input(args: &DiffArgs, path: &str) -> Result<Given, Failure> {
    let inputs = args.world.inputs(&[path.to_owned()], String::new())?;
    let [only] = inputs.as_slice() else {
        return Ok(Given::Manifests(inputs));
    };
    let value: Option<Value> = serde_json::from_slice(&only.bytes).ok();
    let Some(value) = value.filter(is_result) else {
        return Ok(Given::Manifests(inputs));
    };
    if audit::compare::is_audit(&value) {
        return Ok(Given::Audit(value));
    }
    let is_report = value["kind"] == KIND
        && value["apiVersion"] == API_VERSION
        && value["scenarios"].is_array();
    match is_report {
        true => Ok(Given::Report(value)),
        false => {
            let error = anyhow!("{path} is no SimulationReport of {API_VERSION}");
            Err(Failure::input(error).with_hint("strew simulate FILES -o json writes one"))
        }
    }
}

/// True for what strew writes, and for JSON that is no object of Kubernetes.
fn is_result(value: &Value) -> bool {
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let group = API_VERSION.split('/').next().unwrap_or_default();
    value["kind"] == KIND || api_version.split('/').next() == Some(group)
}
