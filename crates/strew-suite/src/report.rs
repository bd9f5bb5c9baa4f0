//! The result of `strew simulate` for programs: kind `SimulationReport`, versioned, without any wall-clock time.
//!
//! One shape for every run, be it of the built-in story or of a Scenario; [`MomentValues`] is what a step tells of the
//! cluster.

mod runs;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use strew_manifest::finding::Finding;

use strew_view::values::{MaxSkew, MomentValues};

pub use runs::report;

use crate::summary::ReadSum;

/// The version of everything that strew writes for programs.
pub const API_VERSION: &str = "report.strew.dev/v1alpha1";

/// The kind of the report.
pub const KIND: &str = "SimulationReport";

/// `SimulationReport`: scenarios, their variants, and the runs of each, one a seed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SimulationReport")]
pub struct Report<'a> {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The kube-scheduler whose decisions these are.
    pub kubernetes: &'a str,
    /// Whose decisions: `1.36`, or `strew`.
    pub compat: &'a str,
    pub summary: Summary,
    /// What a person should know about the files, and about what came of them: errors first, then by place.
    #[schemars(with = "Vec<Finding>")]
    pub findings: Vec<Finding>,
    pub scenarios: Vec<ScenarioReport<'a>>,
}

/// All runs together.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Completed runs.
    pub runs: u64,
    pub held: u64,
    pub broken: u64,
    /// True if something failed: the exit code is 1.
    pub red: bool,
    /// The number of findings that fail the command with `--fail-on warnings`: those of the files, and warnings about
    /// steps that a change of a manifest prevents. Failed steps are counted by `broken`.
    pub warnings: usize,
    pub interrupted: bool,
}

/// A Scenario; the built-in story is one, whose file is `<story>`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioReport<'a> {
    pub file: &'a str,
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub story: Option<&'a str>,
    /// What was read of the files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read: Option<ReadSum>,
    pub variants: Vec<VariantReport<'a>>,
}

/// A variant; `base` is the scenario as written.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VariantReport<'a> {
    pub name: &'a str,
    /// `hold`, `fail` or `mayFail`.
    pub must: &'static str,
    /// `held`, `broken`, `brokeAsItMust`, `brokeNowhere`, `brokeAsItMay`, `unknown`, or `notJudged`: `--until` ended
    /// each run before anything was decided.
    pub result: &'static str,
    pub seeds: Vec<u64>,
    pub broken: u64,
    pub runs: Vec<RunReport<'a>>,
}

/// A variant with a seed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReport<'a> {
    pub seed: u64,
    pub held: bool,
    pub ended: String,
    pub always: Vec<ExpectationReport>,
    pub steps: Vec<StepReport<'a>>,
    /// The largest skew of each workload's own pods by key, at the end of any instant.
    #[schemars(with = "Vec<MaxSkew>")]
    pub max_skew: &'a [MaxSkew],
}

/// A step that began.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepReport<'a> {
    /// Its name in the scenario.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// When its verbs were done.
    pub began: String,
    /// When it ended; for a step that waits for rest, the last write.
    pub ended: String,
    /// `done`: it does not wait; `atRest`, `notAtRest`: it waited for rest; `cut`: the run was ended during the step.
    pub state: &'static str,
    /// `held`, `broken`, or `open`: the run was ended before everything was decided.
    pub verdict: &'static str,
    /// What failed, one sentence each; empty if the verdict is `held`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub why: Vec<String>,
    pub verbs: Vec<String>,
    /// The domains and nodes that were chosen when the step began, such as the lost zone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub chosen: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refused: Vec<RefusedReport>,
    pub expectations: Vec<ExpectationReport>,
    /// What a person should know of the step.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<Finding>,
    /// After a loss: what it did to each workload, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub losses: Vec<LossReport>,
    /// Pods that were deleted to make room for others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub preempted: Vec<PreemptedReport>,
    /// The cluster at the end of the step.
    #[serde(flatten)]
    pub moment: Option<&'a MomentValues>,
}

/// What a loss did to a workload.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LossReport {
    /// The workload: `deployment/web`.
    pub of: String,
    /// `LOST`, `OUTAGE`, `DEGRADED`, `SURVIVES` or `UNKNOWN`.
    pub verdict: &'static str,
    /// The pods that it asks for.
    pub wanted: u32,
    /// Its ready pods before the loss.
    pub before: u32,
    /// Its ready pods at rest.
    pub ready: u32,
    /// The fewest ready pods on the way.
    pub fewest: u32,
    /// The time with fewer ready pods than it asks for, in seconds.
    pub seconds_short: u64,
    /// The time without a ready pod, in seconds.
    pub seconds_none: u64,
    /// The PodDisruptionBudgets that select its pods.
    pub budgets: Vec<BudgetReport>,
    /// Why pods are missing at rest.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub cause: String,
    /// True if it is of a dump beside which something new comes: then its loss fails nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub of_dump: bool,
}

/// The healthy pods of a PodDisruptionBudget.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetReport {
    pub name: String,
    pub healthy: u32,
    /// The smaller of what it asks for, and what its workloads ask for.
    pub asks: u32,
}

/// A pod that was deleted to make room for another one.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptedReport {
    pub at: String,
    pub pod: String,
    pub namespace: String,
    /// Its workload, or the pod itself.
    pub of: String,
    /// The workload whose pod takes the place, or that pod.
    pub by: String,
}

/// A verb that was not done.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedReport {
    pub verb: String,
    pub why: String,
    pub breach: bool,
}

/// The result of an expectation.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpectationReport {
    pub text: String,
    pub held: bool,
    /// The run was ended before it was decided.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub open: bool,
    pub at: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub spread: Option<CountedReport>,
}

/// Pods by domain, as an expectation counted them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedReport {
    pub counts: BTreeMap<String, u32>,
    pub skew: u32,
}

/// The JSON schema of the report.
pub fn schema() -> Value {
    schemars::schema_for!(Report<'_>).to_value()
}
