//! `strew schema`: JSON schemas of what strew reads and writes, for editors and programs.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use strew_wire::placement;
use strew_wire::workloadspread::crd::workload_spread;
use strew_wire::workloadspread::registration::Reach;

use crate::context::Context;
use crate::failure::Failure;
use crate::{audit, defaults, diff, explain, explain_output, lint, rebalance, terminal};
use strew_suite::report;
use strew_suite::summary;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM schema                                  which kinds are there?
  PROGRAM schema scenario > scenario.schema.json
  PROGRAM schema workloadspread

In an editor with the YAML language server, the first line of a file names its schema:
  # yaml-language-server: $schema=scenario.schema.json";

/// Arguments of `strew schema`.
#[derive(Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The kind; without one, the kinds are listed
    kind: Option<SchemaKind>,
}

/// The kinds whose schema can be printed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaKind {
    /// Kind Scenario, which simulate plays
    Scenario,
    /// Kind SimulationReport, which simulate -o json writes
    Report,
    /// Kind SimulationSummary, which simulate --shard writes and merge adds up
    Summary,
    /// Kind SimulationDiff, which diff -o json writes
    Diff,
    /// Kind PodExplanation, which explain -o json writes
    Explanation,
    /// Kind PendingPods, which explain -o json writes without a name
    Pending,
    /// Kind Audit, which audit -o json writes
    Audit,
    /// Kind AuditAtOnce, which audit --at-once -o json writes
    Auditatonce,
    /// Kind AuditDiff, which diff -o json writes for two audits
    Auditdiff,
    /// Kind AuditList, which merge -o json writes for several audits
    Auditlist,
    /// Kind RebalancePlan, which rebalance -o json writes
    Rebalance,
    /// Kind DefaultsReport, which defaults -o json writes for a dump
    Defaults,
    /// Kind Diagnostics, which lint -o json writes
    Diagnostics,
    /// Kruise's WorkloadSpread
    Workloadspread,
    /// OCM's Placement
    Placement,
    /// OCM's PlacementDecision
    Placementdecision,
    /// OCM's ManagedCluster
    Managedcluster,
    /// OCM's ManagedClusterSet
    Managedclusterset,
    /// OCM's ManagedClusterSetBinding
    Managedclustersetbinding,
    /// OCM's AddOnPlacementScore
    Addonplacementscore,
}

/// Readers disagree on the meaning of a schema without this keyword.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

impl SchemaKind {
    /// The schema.
    pub(crate) fn schema(self) -> Value {
        let mut schema = self.of_types();
        without_formats_of_rust(&mut schema);
        schema
    }

    fn of_types(self) -> Value {
        match self {
            Self::Scenario => strew_scenario::format::schema(),
            Self::Report => report::schema(),
            Self::Summary => summary::schema(),
            Self::Diff => diff::schema(),
            Self::Explanation => explain_output::schema(),
            Self::Pending => explain::pending::schema(),
            Self::Audit => audit::schema(),
            Self::Auditatonce => audit::schema_at_once(),
            Self::Auditdiff => audit::compare::schema_of_diff(),
            Self::Auditlist => audit::compare::schema_of_list(),
            Self::Rebalance => rebalance::schema(),
            Self::Defaults => defaults::schema(),
            Self::Diagnostics => lint::schema(),
            Self::Workloadspread
            | Self::Placement
            | Self::Placementdecision
            | Self::Managedcluster
            | Self::Managedclusterset
            | Self::Managedclustersetbinding
            | Self::Addonplacementscore => self.of_definition(),
        }
    }

    /// The schema of a custom kind.
    fn of_definition(self) -> Value {
        let spread = workload_spread(&Reach::Service(String::new()));
        let mut definitions = [spread].into_iter().chain(placement::crd::all());
        let definition = definitions.find(|definition| {
            definition["spec"]["names"]["singular"].as_str() == Some(self.word().as_str())
        });
        definition.map_or(Value::Null, |definition| for_editors(&definition))
    }

    fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Removes formats such as `uint`, which only Rust knows: validators warn about them.
fn without_formats_of_rust(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let format = fields.get("format").and_then(Value::as_str);
            if format.is_some_and(|format| format.starts_with("uint")) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_formats_of_rust);
        }
        Value::Array(items) => items.iter_mut().for_each(without_formats_of_rust),
        _ => {}
    }
}

/// One schema of all versions of a definition.
fn for_editors(definition: &Value) -> Value {
    let spec = &definition["spec"];
    let (group, kind) = (&spec["group"], &spec["names"]["kind"]);
    let versions = spec["versions"].as_array().into_iter().flatten();
    let mut schemas: Vec<Value> = versions
        .map(|version| {
            let mut schema = version["schema"]["openAPIV3Schema"].clone();
            let (group, name) = (group.as_str(), version["name"].as_str());
            let api_version = [group.unwrap_or_default(), name.unwrap_or_default()].join("/");
            schema["properties"]["apiVersion"] = json!({"const": api_version});
            schema["properties"]["kind"] = json!({"const": kind});
            schema["properties"]["metadata"] = json!({"type": "object"});
            schema["required"] = json!(["apiVersion", "kind"]);
            schema
        })
        .collect();
    let mut schema = json!({"$schema": DIALECT, "title": kind});
    match (schemas.len(), &mut schema) {
        (1, Value::Object(fields)) => {
            if let Some(Value::Object(only)) = schemas.pop() {
                fields.extend(only);
            }
        }
        _ => schema["oneOf"] = schemas.into(),
    }
    schema
}

pub(crate) fn run(args: &SchemaArgs, _: &Context) -> Result<u8, Failure> {
    let text = match args.kind {
        Some(kind) => format!("{:#}\n", kind.schema()),
        None => SchemaKind::value_variants()
            .iter()
            .map(|kind| row(*kind))
            .collect(),
    };
    terminal::print(&text)?;
    Ok(0)
}

fn row(kind: SchemaKind) -> String {
    let value = kind.to_possible_value();
    let help = value.and_then(|value| value.get_help().map(ToString::to_string));
    format!("{:26}{}\n", kind.word(), help.unwrap_or_default())
}
