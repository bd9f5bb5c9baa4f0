//! The errors of commands, with their exit codes.

use strew_sim::Stuck;

use crate::cluster;

/// The answer is no.
pub(crate) const EXIT_NO: u8 = 1;

/// The input or the arguments are wrong.
pub(crate) const EXIT_INPUT: u8 = 2;

/// An external failure.
pub(crate) const EXIT_OUTSIDE: u8 = 3;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: u8,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// The user's input is wrong.
    pub(crate) fn input(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: EXIT_INPUT,
            error: error.into(),
            hint: None,
        }
    }

    /// A file, a terminal or a disk failed.
    pub(crate) fn outside(error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit: EXIT_OUTSIDE,
            ..Self::input(error)
        }
    }

    /// A simulation did not end.
    pub(crate) fn stuck(stuck: Stuck) -> Self {
        match stuck {
            // A real cluster does the same: the answer is no.
            Stuck::Churn { .. } => Self {
                exit: EXIT_NO,
                ..Self::input(stuck)
            },
            stuck if stuck.is_of_input() => Self::input(stuck),
            stuck => Self::outside(stuck),
        }
    }

    /// The same failure with another description above it.
    #[must_use]
    pub(crate) fn context(mut self, text: String) -> Self {
        self.error = self.error.context(text);
        self
    }

    /// The same failure with a hint.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The error and its causes in one line, for callers that continue.
    pub(crate) fn in_a_line(&self) -> String {
        cluster::causes(self.error.as_ref()).join(": ")
    }

    /// True if the API server did not answer, and may answer later.
    #[cfg(feature = "cluster")]
    pub(crate) fn is_outage(&self) -> bool {
        strew_kube::connect::is_outage_in(self.error.chain())
    }

    /// The exit code of the command.
    pub(crate) fn exit(&self) -> u8 {
        self.exit
    }

    pub(crate) fn error(&self) -> &anyhow::Error {
        &self.error
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl From<strew_suite::failure::Failure> for Failure {
    fn from(failure: strew_suite::failure::Failure) -> Self {
        use strew_suite::failure::Failure as Of;
        match failure {
            Of::Input { message, hint } => Self {
                hint,
                ..Self::input(anyhow::Error::msg(message))
            },
            Of::Stuck { name, source } => {
                Self::stuck(source).context(format!("{name} could not be played"))
            }
            Of::Outside(error) => Self::outside(anyhow::Error::from_boxed(error)),
        }
    }
}
