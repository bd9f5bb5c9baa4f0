//! Why nothing could be read or played.

use strew_sim::Stuck;

/// Nothing could be read, or played.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The texts or the options are wrong.
    #[error("{message}")]
    Input {
        /// What is wrong.
        message: String,
        /// What to do instead.
        hint: Option<String>,
    },
    /// A run did not end.
    #[error("{name} could not be played")]
    Stuck {
        /// The run.
        name: String,
        /// Why.
        source: Stuck,
    },
    /// The log could not be written, or a result.
    #[error(transparent)]
    Outside(Box<dyn std::error::Error + Send + Sync>),
}

impl Failure {
    /// The texts or the options are wrong.
    pub fn input(message: impl Into<String>) -> Self {
        Self::Input {
            message: message.into(),
            hint: None,
        }
    }

    /// Something outside failed.
    pub fn outside(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Outside(error.into())
    }

    /// The same with a hint, if the input is wrong.
    #[must_use]
    pub fn with_hint(mut self, text: impl Into<String>) -> Self {
        if let Self::Input { hint, .. } = &mut self {
            *hint = Some(text.into());
        }
        self
    }
}
