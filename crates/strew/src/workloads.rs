//! The arguments that choose workloads, as kubectl's do.

use clap::{Args, ValueEnum};
use strew_suite::label_query::LabelQuery;
use strew_suite::shown::Choice;

use crate::failure::Failure;

/// The values of `--fail-on` of commands that judge constraints.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "PascalCase")]
pub(crate) enum FailOn {
    Uneven,
}

/// The workloads that a command is about.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct WorkloadArgs {
    /// Only workloads of this namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Workloads of all namespaces; the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only workloads with these labels, or whose pods have them
    #[arg(short = 'l', long, value_name = "QUERY")]
    selector: Option<String>,
}

impl WorkloadArgs {
    /// The chosen workloads, of which at most `top` are shown.
    ///
    /// # Errors
    /// The selector is wrong.
    pub(crate) fn choice(&self, top: usize) -> Result<Choice, Failure> {
        let query = self.selector.as_deref().map(LabelQuery::parse);
        Ok(Choice {
            namespace: self.namespace.clone(),
            query: query.transpose()?,
            top,
        })
    }
}
