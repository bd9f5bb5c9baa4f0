//! The formats of results, and text for programs.

use clap::ValueEnum;
use serde::Serialize;
use strew_suite::serialized::Notation;

use crate::failure::Failure;

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// All domains, all nodes, all reasons
    Wide,
    /// Kind SimulationReport
    Json,
    /// The same as YAML
    Yaml,
    /// Only names: of workloads, or of a scenario's variants
    Name,
    /// For scenarios: a test case for each expectation, for CI systems
    Junit,
    /// For scenarios: a result for each expectation that broke, at its line, for code scanning
    Sarif,
    /// Kind SimulationSummary in one line: the results of all seeds, summed; strew merge adds summaries up
    Summary,
}

impl Format {
    pub(crate) fn is_for_programs(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// Text for programs: YAML, or else JSON.
pub(crate) fn serialized(value: &impl Serialize, format: Format) -> Result<String, Failure> {
    let notation = match format {
        Format::Yaml => Notation::Yaml,
        _ => Notation::Json,
    };
    Ok(strew_suite::serialized::serialized(value, notation)?)
}
