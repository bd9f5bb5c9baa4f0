//! `strew diff`: what moved between two reports.
//!
//! Reading order: `facts` (the values of a report), `compare` (which of them differ, and whether that is better),
//! `text` (the output for people).

mod compare;
mod facts;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use clap::Args;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure::{EXIT_NO, Failure};
use crate::inputs;
use crate::label_query::LabelQuery;
use crate::output::{Format, serialized};
use crate::report::{API_VERSION, KIND};
use crate::{audit, terminal};
use compare::compare;
use facts::{facts, labels};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml -o json > before.json
  PROGRAM simulate shop.yaml --nodes 9 -o json > after.json
  PROGRAM diff before.json after.json               better or worse, and what moved most
  PROGRAM diff before.json after.json --step deploy --by topology.kubernetes.io/zone --all
  PROGRAM diff before.json after.json -o json | jq .items
  PROGRAM diff monday.json tuesday.json             two audits (strew audit -o json): which verdicts are different

Only what both reports count is compared: a key that one of them does not count is named.
Exit codes: 0 nothing moved; 1 something did; 2 no reports, or of different scenarios; 3 a file could not be read.";

/// Arguments of `strew diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The first report, written by strew simulate -o json
    #[arg(value_name = "A.json")]
    before: String,
    /// The second report
    #[arg(value_name = "B.json")]
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
    /// Show all changes
    #[arg(long, conflicts_with = "top")]
    all: bool,
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
    let (before, after) = (parse(&args.before)?, parse(&args.after)?);
    if let Some(moved) = audit::compare::diff(&before, &after) {
        return audits(args, &moved?, context);
    }
    let (before, after) = (check(&args.before, before)?, check(&args.after, after)?);
    let query = args.selector.as_deref().map(LabelQuery::parse);
    let by_labels = query.transpose()?.map(|query| ByLabels {
        query,
        known: [labels(&before), labels(&after)],
    });
    let by_labels = by_labels.as_ref();
    let (before, after) = (facts(&before), facts(&after));
    check_related(args, by_labels, &before, &after)?;
    let meant = |mut facts: facts::Facts| {
        facts.retain(|place, _| args.means(place, by_labels));
        facts
    };
    let difference = compare(&meant(before), &meant(after));
    let text = match args.output {
        Some(format) => {
            let value = json!({
                "apiVersion": API_VERSION,
                "kind": "SimulationDiff",
                "summary": difference.steps,
                "items": difference.moved,
            });
            let format = match format {
                DiffFormat::Json => Format::Json,
                DiffFormat::Yaml => Format::Yaml,
            };
            serialized(&value, format)?
        }
        None if context.quiet => String::new(),
        None => {
            let top = if args.all { usize::MAX } else { args.top };
            text::write(&difference, top, context)
        }
    };
    terminal::print(&text)?;
    Ok(if difference.moved.is_empty() {
        0
    } else {
        EXIT_NO
    })
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
            let value = json!({"apiVersion": API_VERSION, "kind": "AuditDiff", "items": moved});
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

fn parse(path: &str) -> Result<Value, Failure> {
    let inputs = inputs::read_one(path)?;
    let bytes = inputs.iter().flat_map(|input| &input.bytes);
    let bytes: Vec<u8> = bytes.copied().collect();
    serde_json::from_slice(&bytes)
        .map_err(|e| Failure::input(anyhow!(e).context(format!("{path} is no JSON"))))
}

fn check(path: &str, value: Value) -> Result<Value, Failure> {
    let is_report = value["kind"] == KIND
        && value["apiVersion"] == API_VERSION
        && value["scenarios"].is_array();
    match is_report {
        true => Ok(value),
        false => {
            let error = anyhow!("{path} is no SimulationReport of {API_VERSION}");
            Err(Failure::input(error).with_hint("strew simulate FILES -o json writes one"))
        }
    }
}
