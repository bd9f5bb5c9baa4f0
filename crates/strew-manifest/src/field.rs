//! Field paths and field errors, in the API server's own form.
//!
//! Source: `k8s.io/apimachinery/pkg/util/validation/field`, v1.36.

use std::borrow::Cow;
use std::fmt;

/// The path of a value inside an object: `spec.topologySpreadConstraints[0].minDomains`.
#[derive(Debug, Clone, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub struct FieldPath(Vec<PathSegment>);

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathSegment {
    /// A field of an object, printed `.name`.
    Name(Cow<'static, str>),
    /// An element of a list, printed `[0]`.
    Index(usize),
    /// An entry of a map, printed `[key]`.
    Key(String),
}

impl FieldPath {
    /// The path of the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// This path, then the field `name`; dots in `name` are read as further steps.
    #[must_use]
    pub fn child(&self, name: &'static str) -> Self {
        let mut path = self.clone();
        for part in name.split('.') {
            path.0.push(PathSegment::Name(Cow::Borrowed(part)));
        }
        path
    }

    /// This path, then the field `name`, which was read from a document.
    #[must_use]
    pub fn child_owned(&self, name: String) -> Self {
        self.with(PathSegment::Name(Cow::Owned(name)))
    }

    /// This path, then element `index`.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.with(PathSegment::Index(index))
    }

    /// This path, then the map entry `key`.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.with(PathSegment::Key(key.into()))
    }

    /// The path of the parent; the root's parent is the root.
    #[must_use]
    pub fn parent(&self) -> Self {
        let n_steps = self.0.len().saturating_sub(1);
        Self(self.0[..n_steps].to_vec())
    }

    /// This path, then `below`.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        Self([self.steps(), below.steps()].concat())
    }

    /// The steps from the root.
    pub fn steps(&self) -> &[PathSegment] {
        &self.0
    }

    fn with(&self, step: PathSegment) -> Self {
        let mut path = self.clone();
        path.0.push(step);
        path
    }
}

impl From<&[PathSegment]> for FieldPath {
    fn from(steps: &[PathSegment]) -> Self {
        Self(steps.to_vec())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                PathSegment::Name(name) if i == 0 => f.write_str(name)?,
                PathSegment::Name(name) => write!(f, ".{name}")?,
                PathSegment::Index(index) => write!(f, "[{index}]")?,
                PathSegment::Key(key) => write!(f, "[{key}]")?,
            }
        }
        Ok(())
    }
}

/// The kind of an error, with the API server's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// `Required value`
    Required,
    /// `Invalid value: VALUE`
    Invalid {
        /// The value as the API server prints it: strings quoted.
        value: String,
    },
    /// `Unsupported value: VALUE: supported values: …`
    NotSupported {
        /// The value as the API server prints it.
        value: String,
    },
    /// `Duplicate value: VALUE`
    Duplicate {
        /// The value as the API server prints it.
        value: String,
    },
    /// `Not found: VALUE`
    NotFound {
        /// The value as the API server prints it.
        value: String,
    },
    /// `Forbidden`
    Forbidden,
    /// `Internal error`: whether the value is valid cannot be decided.
    Internal,
    /// `Too long`
    TooLong,
    /// `Too many: COUNT`
    TooMany {
        /// The number of elements.
        count: usize,
    },
}

/// An error of one field; `Display` is the API server's text to the letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field.
    pub path: FieldPath,
    /// The kind of the error.
    pub kind: FieldErrorKind,
    /// The violated rule; may be empty.
    pub detail: String,
    /// strew's own advice, not part of the API server's text.
    pub help: Option<String>,
}

impl FieldError {
    /// The field is missing or empty.
    pub fn required(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(path, FieldErrorKind::Required, detail)
    }

    /// A string value breaks a rule.
    pub fn invalid(path: FieldPath, value: &str, detail: impl Into<String>) -> Self {
        Self::invalid_raw(path, format!("{value:?}"), detail)
    }

    /// A value that is no string (a number, a whole object) breaks a rule.
    pub fn invalid_raw(
        path: FieldPath,
        value: impl fmt::Display,
        detail: impl Into<String>,
    ) -> Self {
        let value = value.to_string();
        Self::new(path, FieldErrorKind::Invalid { value }, detail)
    }

    /// The value is none of the allowed ones, which are listed in the order given.
    pub fn not_supported(path: FieldPath, value: &str, supported: &[&str]) -> Self {
        let listed: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let value = format!("{value:?}");
        Self::new(
            path,
            FieldErrorKind::NotSupported { value },
            format!("supported values: {}", listed.join(", ")),
        )
    }

    /// The value occurs twice.
    pub fn duplicate(path: FieldPath, value: &str) -> Self {
        let value = format!("{value:?}");
        Self::new(path, FieldErrorKind::Duplicate { value }, "")
    }

    /// The value names something that is not there.
    pub fn not_found(path: FieldPath, value: &str) -> Self {
        let value = format!("{value:?}");
        Self::new(path, FieldErrorKind::NotFound { value }, "")
    }

    /// The field may not be set here.
    pub fn forbidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self::new(path, FieldErrorKind::Forbidden, detail)
    }

    /// An error of any kind.
    pub fn new(path: FieldPath, kind: FieldErrorKind, detail: impl Into<String>) -> Self {
        Self {
            path,
            kind,
            detail: detail.into(),
            help: None,
        }
    }

    /// The error with advice from strew.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.steps().is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        match &self.kind {
            FieldErrorKind::Required => f.write_str("Required value")?,
            FieldErrorKind::Invalid { value } => write!(f, "Invalid value: {value}")?,
            FieldErrorKind::NotSupported { value } => write!(f, "Unsupported value: {value}")?,
            FieldErrorKind::Duplicate { value } => write!(f, "Duplicate value: {value}")?,
            FieldErrorKind::NotFound { value } => write!(f, "Not found: {value}")?,
            FieldErrorKind::Forbidden => f.write_str("Forbidden")?,
            FieldErrorKind::Internal => f.write_str("Internal error")?,
            FieldErrorKind::TooLong => f.write_str("Too long")?,
            FieldErrorKind::TooMany { count } => write!(f, "Too many: {count}")?,
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_the_api_server_does() {
        let constraint = FieldPath::root()
            .child("spec.topologySpreadConstraints")
            .index(0);
        let cases = [
            (
                FieldError::invalid_raw(
                    constraint.child("maxSkew"),
                    0,
                    "must be greater than zero",
                ),
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
            ),
            (
                FieldError::not_supported(
                    constraint.child("whenUnsatisfiable"),
                    "Nope",
                    &["DoNotSchedule", "ScheduleAnyway"],
                ),
                "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Nope\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
            ),
            (
                FieldError::required(constraint.child("topologyKey"), "can not be empty"),
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
            ),
            (
                FieldError::invalid(
                    FieldPath::root().child("spec.nodeSelector").key("a b"),
                    "a b",
                    "no",
                ),
                "spec.nodeSelector[a b]: Invalid value: \"a b\": no",
            ),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }
}
