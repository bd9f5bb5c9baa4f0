//! What happens to pods while the webhook is registered and no replica answers.

use clap::ValueEnum;

/// The values of `--failure-policy`: the API's own words.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[value(rename_all = "PascalCase")]
pub(crate) enum FailurePolicy {
    /// Their creation is refused, and their controllers retry: limits hold
    Fail,
    /// They are created unchanged, in no subset
    Ignore,
}

impl FailurePolicy {
    /// Its value in the API.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}
