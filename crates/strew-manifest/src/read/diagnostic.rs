//! One problem of the input: message, place and help.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::source::Place;
use crate::field::{FieldError, FieldPath};
use crate::fix::Fix;

/// A problem of the input, for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the command can continue.
    pub severity: Severity,
    /// A stable name of the problem, for tools: `unknown-field`.
    pub code: &'static str,
    /// Its place, if it has one.
    pub place: Option<Place>,
    /// Kind, namespace and name of its object: `Deployment shop/web`.
    pub object: Option<String>,
    /// The field inside the object.
    pub path: Option<FieldPath>,
    /// The message: one sentence, lower case, no full stop.
    pub message: String,
    /// The numbers of the message, by name.
    pub numbers: Vec<(&'static str, i64)>,
    /// Further places.
    pub related: Vec<Related>,
    /// Advice.
    pub help: Option<String>,
    /// A change of the object that takes it away.
    pub fix: Option<Fix>,
}

/// The severity of a [`Diagnostic`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The input is wrong, and its object is not used; or what was asked for does not hold.
    Error,
    /// The answer holds, and yet a person should act: something was ignored, assumed, or is probably not meant.
    Warning,
    /// Nothing has to be done about it.
    Note,
}

/// A second place of a [`Diagnostic`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// The place.
    pub place: Place,
    /// What is at the place: `first defined here`.
    pub label: String,
}

impl Severity {
    /// `error`, `warning` or `note`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl Diagnostic {
    /// An error with a message only.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            place: None,
            object: None,
            path: None,
            message: message.into(),
            numbers: Vec::new(),
            related: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// A warning with a message only.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }

    /// A note with a message only.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            ..Self::error(code, message)
        }
    }

    /// A violated rule of the API server, in its words, with strew's advice.
    pub fn from_field_error(error: &FieldError, object: impl Into<String>, place: Place) -> Self {
        Self {
            path: Some(error.path.clone()),
            help: error.help.clone(),
            ..Self::error("invalid-field", error.to_string())
        }
        .about(object)
        .at(place)
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Sets the object.
    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    /// Sets the field.
    #[must_use]
    pub fn in_field(mut self, path: FieldPath) -> Self {
        self.path = Some(path);
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a further place.
    #[must_use]
    pub fn with_related(mut self, place: Place, label: impl Into<String>) -> Self {
        let label = label.into();
        self.related.push(Related { place, label });
        self
    }
}
