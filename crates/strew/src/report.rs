//! The result of `strew simulate` for programs: kind `SimulationReport`, versioned, without any wall-clock time.
//!
//! One shape for every run, be it of the built-in story or of a Scenario; [`MomentValues`] is what a step tells of the
//! cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use strew_manifest::finding::Finding;

use strew_view::values::{MaxSkew, MomentValues};

use crate::scenario::summary::ReadSum;

/// The version of everything that strew writes for programs.
pub(crate) const API_VERSION: &str = "report.strew.dev/v1alpha1";

/// The kind of the report.
pub(crate) const KIND: &str = "SimulationReport";

/// `SimulationReport`: scenarios, their variants, and the runs of each, one a seed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SimulationReport")]
pub(crate) struct Report<'a> {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    /// The kube-scheduler whose decisions these are.
    pub(crate) kubernetes: &'a str,
    /// Whose decisions: `1.36`, or `strew`.
    pub(crate) compat: &'a str,
    pub(crate) summary: Summary,
    /// What a person should know about the files, and about what came of them: errors first, then by place.
    #[schemars(with = "Vec<Finding>")]
    pub(crate) findings: Vec<Finding>,
    pub(crate) scenarios: Vec<ScenarioReport<'a>>,
}

/// All runs together.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary {
    /// Completed runs.
    pub(crate) runs: u64,
    pub(crate) held: u64,
    pub(crate) broken: u64,
    /// True if something failed: the exit code is 1.
    pub(crate) red: bool,
    /// The number of findings that are warnings or errors; with `--fail-on warnings` they fail the command.
    pub(crate) warnings: usize,
    pub(crate) interrupted: bool,
}

/// A Scenario; the built-in story is one, whose file is `<story>`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScenarioReport<'a> {
    pub(crate) file: &'a str,
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) story: Option<&'a str>,
    /// What was read of the files.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) read: Option<ReadSum>,
    pub(crate) variants: Vec<VariantReport<'a>>,
}

/// A variant; `base` is the scenario as written.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VariantReport<'a> {
    pub(crate) name: &'a str,
    /// `hold`, `fail` or `mayFail`.
    pub(crate) must: &'static str,
    /// `held`, `broken`, `brokeAsItMust`, `brokeNowhere`, `brokeAsItMay` or `unknown`.
    pub(crate) result: &'static str,
    pub(crate) seeds: Vec<u64>,
    pub(crate) broken: u64,
    pub(crate) runs: Vec<RunReport<'a>>,
}

/// A variant with a seed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunReport<'a> {
    pub(crate) seed: u64,
    pub(crate) held: bool,
    pub(crate) ended: String,
    pub(crate) always: Vec<ExpectationReport>,
    pub(crate) steps: Vec<StepReport<'a>>,
    /// The largest skew of each workload's own pods by key, at the end of any instant.
    #[schemars(with = "Vec<MaxSkew>")]
    pub(crate) max_skew: &'a [MaxSkew],
}

/// A step that began.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepReport<'a> {
    /// Its name in the scenario.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// When its verbs were done.
    pub(crate) began: String,
    /// When it ended; for a step that waits for rest, the last write.
    pub(crate) ended: String,
    /// `done`: it does not wait; `atRest`, `notAtRest`: it waited for rest; `cut`: the run was ended during the step.
    pub(crate) state: &'static str,
    /// `held`, `broken`, or `open`: the run was ended before everything was decided.
    pub(crate) verdict: &'static str,
    /// What failed, one sentence each; empty if the verdict is `held`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) why: Vec<String>,
    pub(crate) verbs: Vec<String>,
    /// The domains and nodes that were chosen when the step began, such as the lost zone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) chosen: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) refused: Vec<RefusedReport>,
    pub(crate) expectations: Vec<ExpectationReport>,
    /// What a person should know of the step.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) findings: Vec<Finding>,
    /// After a loss: what it did to each workload, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) losses: Vec<LossReport>,
    /// Pods that were deleted to make room for others.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) preempted: Vec<PreemptedReport>,
    /// The cluster at the end of the step.
    #[serde(flatten)]
    pub(crate) moment: Option<&'a MomentValues>,
}

/// What a loss did to a workload.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LossReport {
    /// The workload: `deployment/web`.
    pub(crate) of: String,
    /// `LOST`, `OUTAGE`, `DEGRADED`, `SURVIVES` or `UNKNOWN`.
    pub(crate) verdict: &'static str,
    /// The pods that it asks for.
    pub(crate) wanted: u32,
    /// Its ready pods before the loss.
    pub(crate) before: u32,
    /// Its ready pods at rest.
    pub(crate) ready: u32,
    /// The fewest ready pods on the way.
    pub(crate) fewest: u32,
    /// The time with fewer ready pods than it asks for, in seconds.
    pub(crate) seconds_short: u64,
    /// The time without a ready pod, in seconds.
    pub(crate) seconds_none: u64,
    /// The PodDisruptionBudgets that select its pods.
    pub(crate) budgets: Vec<BudgetReport>,
    /// Why pods are missing at rest.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(crate) cause: String,
    /// True if it is of a dump beside which something new comes: then its loss fails nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) of_dump: bool,
}

/// The healthy pods of a PodDisruptionBudget.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BudgetReport {
    pub(crate) name: String,
    pub(crate) healthy: u32,
    /// The smaller of what it asks for, and what its workloads ask for.
    pub(crate) asks: u32,
}

/// A pod that was deleted to make room for another one.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreemptedReport {
    pub(crate) at: String,
    pub(crate) pod: String,
    pub(crate) namespace: String,
    /// Its workload, or the pod itself.
    pub(crate) of: String,
    /// The workload whose pod takes the place, or that pod.
    pub(crate) by: String,
}

/// A verb that was not done.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RefusedReport {
    pub(crate) verb: String,
    pub(crate) why: String,
    pub(crate) breach: bool,
}

/// The result of an expectation.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExpectationReport {
    pub(crate) text: String,
    pub(crate) held: bool,
    /// The run was ended before it was decided.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub(crate) open: bool,
    pub(crate) at: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(crate) why: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) spread: Option<CountedReport>,
}

/// Pods by domain, as an expectation counted them.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CountedReport {
    pub(crate) counts: BTreeMap<String, u32>,
    pub(crate) skew: u32,
}

/// The JSON schema of the report.
pub(crate) fn schema() -> Value {
    schemars::schema_for!(Report<'_>).to_value()
}
