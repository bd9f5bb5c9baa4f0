//! `strew diff`: what moved between two reports.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::arguments::Context;
use crate::failure::{EXIT_NO, Failure};
use crate::inputs;
use crate::report::{API_VERSION, KIND};
use crate::simulate::{Format, serialized};
use crate::terminal;
use crate::text::count;
use strew_view::natural_order::natural_order;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml -o json > before.json
  PROGRAM simulate shop.yaml --nodes 9 -o json > after.json
  PROGRAM diff before.json after.json               what moved, per workload, key and domain
  PROGRAM diff before.json after.json -o json | jq .items

Exit codes: 0 nothing moved; 1 something did; 2 no such reports; 3 a file could not be read.";

/// Arguments of `strew diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The report before: what strew simulate -o json wrote
    #[arg(value_name = "A.json")]
    before: String,
    /// The report after
    #[arg(value_name = "B.json")]
    after: String,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<DiffFormat>,
}

/// The values of `-o`.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum DiffFormat {
    /// Kind SimulationDiff
    Json,
    /// The same as YAML
    Yaml,
}

/// Where something is counted: the moment, and what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// `rollout/base seed 3 at 30m`, `story/base seed 0 deploy`; its parts in the order of the report.
    moment: Vec<Part>,
    /// `deployment/web by zone`
    what: String,
}

/// A part of a place: numbers in the order of the report, then its name.
type Part = (usize, String);

/// Each domain, or field, with its value.
type Values = BTreeMap<String, Value>;

#[derive(Serialize)]
struct Moved {
    moment: String,
    what: String,
    changes: Vec<Change>,
}

#[derive(Serialize)]
struct Change {
    of: String,
    before: Value,
    after: Value,
}

pub(crate) fn run(args: &DiffArgs, context: &Context) -> Result<u8, Failure> {
    let before = facts(&read(&args.before)?);
    let after = facts(&read(&args.after)?);
    let moved = compare(&before, &after);
    let text = match args.output {
        Some(format) => {
            let value =
                json!({"apiVersion": API_VERSION, "kind": "SimulationDiff", "items": moved});
            let format = match format {
                DiffFormat::Json => Format::Json,
                DiffFormat::Yaml => Format::Yaml,
            };
            serialized(&value, format)?
        }
        None if context.global.quiet => String::new(),
        None => written(&moved, context),
    };
    terminal::print(&text)?;
    Ok(if moved.is_empty() { 0 } else { EXIT_NO })
}

fn read(path: &str) -> Result<Value, Failure> {
    let inputs = inputs::read_one(path)?;
    let bytes = inputs.iter().flat_map(|input| &input.bytes);
    let bytes: Vec<u8> = bytes.copied().collect();
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|e| Failure::input(anyhow!(e).context(format!("{path} is no JSON"))))?;
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

/// Everything that is counted in a report.
fn facts(report: &Value) -> BTreeMap<Place, Values> {
    let mut facts = BTreeMap::new();
    for (number, scenario) in list(&report["scenarios"]).enumerate() {
        for (place, variant) in list(&scenario["variants"]).enumerate() {
            let name = format!("{}/{}", text(&scenario["name"]), text(&variant["name"]));
            for run in list(&variant["runs"]) {
                let seed = run["seed"].as_u64().unwrap_or(0);
                let seed_order = usize::try_from(seed).unwrap_or(usize::MAX);
                let moment = [
                    (number, String::new()),
                    (place, name.clone()),
                    (seed_order, format!("seed {seed}")),
                ];
                let always = json!([{"name": "always", "expectations": run["always"]}]);
                steps(&always, &moment, &mut facts);
                steps(&run["steps"], &moment, &mut facts);
            }
        }
    }
    facts
}

fn steps(all: &Value, before: &[Part], facts: &mut BTreeMap<Place, Values>) {
    for (number, step) in list(all).enumerate() {
        let at = match text(&step["name"]) {
            "" => format!("at {}", text(&step["began"])),
            name => name.to_owned(),
        };
        let mut moment = before.to_vec();
        moment.push((number, at));
        let mut add = |what: String, values: Values| {
            let moment = moment.clone();
            let place = Place { moment, what };
            facts.entry(place).or_default().extend(values);
        };
        for workload in list(&step["workloads"]) {
            self::workload(workload, &mut add);
        }
        for expectation in list(&step["expectations"]) {
            let mut values = Values::new();
            values.insert("held".to_owned(), expectation["held"].clone());
            let spread = &expectation["spread"];
            values.extend(counts(&spread["counts"]));
            if let Some(skew) = spread.get("skew") {
                values.insert("skew".to_owned(), skew.clone());
            }
            add(text(&expectation["text"]).to_owned(), values);
        }
    }
}

fn workload(workload: &Value, add: &mut impl FnMut(String, Values)) {
    let of = match text(&workload["namespace"]) {
        "" | "default" => text(&workload["of"]).to_owned(),
        namespace => format!("{} -n {namespace}", text(&workload["of"])),
    };
    let mut values = Values::new();
    for field in ["replicas", "ready"] {
        values.insert(field.to_owned(), workload[field].clone());
    }
    let pending = list(&workload["pending"]).filter_map(|group| group["count"].as_u64());
    values.insert("Pending".to_owned(), pending.sum::<u64>().into());
    add(of.clone(), values);
    for spread in list(&workload["spread"]) {
        let mut values = counts(&spread["counts"]);
        values.insert("skew".to_owned(), spread["skew"].clone());
        add(format!("{of} by {}", text(&spread["by"])), values);
    }
}

/// Pods per domain.
fn counts(map: &Value) -> Values {
    let all = map.as_object().into_iter().flatten();
    let each = all.map(|(domain, n)| (format!("in {domain}"), n.clone()));
    each.collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn compare(before: &BTreeMap<Place, Values>, after: &BTreeMap<Place, Values>) -> Vec<Moved> {
    let mut places: Vec<&Place> = before.keys().chain(after.keys()).collect();
    places.sort();
    places.dedup();
    let empty = Values::new();
    let each = places.into_iter().filter_map(|place| {
        let before = before.get(place).unwrap_or(&empty);
        let after = after.get(place).unwrap_or(&empty);
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_by(|a, b| natural_order(a, b));
        names.dedup();
        let changes = names.into_iter().filter_map(|name| {
            // A domain that is not there holds no pod, unless nothing is known of the whole place.
            let is_domain = name.starts_with("in ");
            let of = |values: &Values| match values.get(name) {
                Some(value) => value.clone(),
                None if is_domain && !values.is_empty() => json!(0),
                None => Value::Null,
            };
            let (before, after) = (of(before), of(after));
            (before != after).then(|| Change {
                of: name.clone(),
                before,
                after,
            })
        });
        let changes: Vec<Change> = changes.collect();
        let words = place.moment.iter().map(|(_, name)| name.as_str());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        (!changes.is_empty()).then(|| Moved {
            moment: words.join(" "),
            what: place.what.clone(),
            changes,
        })
    });
    each.collect()
}

fn written(moved: &[Moved], context: &Context) -> String {
    let styles = &context.terminal.styles;
    let mut out = String::new();
    let mut last = None;
    for place in moved {
        if last != Some(&place.moment) {
            let title = styles.title;
            let _ = writeln!(out, "{title}{}{title:#}", place.moment);
            last = Some(&place.moment);
        }
        let each: Vec<String> = place.changes.iter().map(change).collect();
        let _ = writeln!(out, "  {}: {}", place.what, each.join(", "));
    }
    let n: usize = moved.iter().map(|place| place.changes.len()).sum();
    let _ = match n {
        0 => writeln!(out, "nothing moved"),
        n => writeln!(
            out,
            "{} in {}",
            count(n, "change"),
            count(moved.len(), "place")
        ),
    };
    match context.terminal.unicode {
        true => out,
        false => terminal::ascii(&out),
    }
}

/// `in zone-a 4 → 5 (+1)`
fn change(change: &Change) -> String {
    let word = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        value => value.to_string(),
    };
    let mut out = format!(
        "{} {} → {}",
        change.of,
        word(&change.before),
        word(&change.after)
    );
    if let (Some(before), Some(after)) = (change.before.as_i64(), change.after.as_i64()) {
        let _ = write!(out, " ({:+})", after - before);
    }
    out
}
