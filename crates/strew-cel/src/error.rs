//! What goes wrong: in a text, and in an evaluation.

use thiserror::Error;

/// A field or key that is not there, and those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What lacks it: `a pod`, or a part of the expression, such as `o.status`.
    pub of: String,
    /// The field or key as written.
    pub name: String,
    /// The fields or keys that there are.
    pub known: Vec<String>,
}

/// Why a text is no expression of its environment, with the place.
///
/// Prints as cel-go does, without the picture: `ERROR: <input>:1:1: undeclared reference to 'x' (in container '')`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("ERROR: <input>:{line}:{column}: {message}")]
pub struct CompileError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes from the beginning of the text: at a character's first byte, or at the end.
    pub offset: usize,
    /// The line of the place, from 1.
    pub line: usize,
    /// The column of the place in characters, from 1.
    pub column: usize,
    /// `Some` if a pod or node of a scenario has no such field.
    pub unknown: Option<Box<Unknown>>,
}

impl CompileError {
    pub(crate) fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let offset = text.floor_char_boundary(offset);
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Self {
            message: message.into(),
            offset,
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            unknown: None,
        }
    }

    /// An error at a line and column, both from 1, as the parser tells them; what lies outside is moved inside.
    pub(crate) fn at(text: &str, line: isize, column: isize, message: impl Into<String>) -> Self {
        let line = usize::try_from(line - 1).unwrap_or(0);
        let column = usize::try_from(column - 1).unwrap_or(0);
        let mut start = 0;
        for whole in text.split_inclusive('\n').take(line) {
            start += whole.len();
        }
        let rest = &text[start..];
        let offset = rest
            .char_indices()
            .nth(column)
            .map_or(rest.len(), |(i, _)| i);
        Self::new(text, start + offset, message)
    }

    /// The whole message of OCM's placement controller, with cel-go's picture of the place in `text`:
    /// `compilation failed: ERROR: <input>:1:1: …`, the line, and a mark below.
    #[must_use]
    pub fn as_ocm(&self, text: &str) -> String {
        let line = text.lines().nth(self.line - 1).unwrap_or_default();
        let dots = ".".repeat(self.column - 1);
        format!("compilation failed: {self}\n | {line}\n | {dots}^")
    }
}

/// Why an evaluation has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}{}", said(.subjects))]
pub struct EvalError {
    /// What kind of failure it is.
    pub kind: EvalErrorKind,
    /// What failed, naming the part of the expression and the key or function.
    pub message: String,
    /// Which elements were looked at, innermost first: `p is default/web-1`. Only those that have a name.
    pub subjects: Vec<String>,
    /// `Some` if a map has no such key.
    pub unknown: Option<Box<Unknown>>,
}

/// The kinds of failures of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvalErrorKind {
    /// A map has no such key, a list no such index, an optional no value.
    NoSuchKey,
    /// An operator or function does not take values of these types.
    NoSuchOverload,
    /// A variable that the environment declares has not been given.
    NoSuchVariable,
    /// A function or an operator refused its arguments: division by zero, overflow, text that can't be parsed.
    Refused,
    /// The expression's result is not a bool.
    NotBool,
    /// The evaluation was stopped because it cost too much.
    Cost,
}

impl EvalError {
    pub(crate) fn new(kind: EvalErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            subjects: Vec::new(),
            unknown: None,
        }
    }

    pub(crate) fn overload(what: &str, types: &[&'static str]) -> Self {
        let message = format!("no such overload: {what} applied to ({})", types.join(", "));
        Self::new(EvalErrorKind::NoSuchOverload, message)
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(EvalErrorKind::Refused, message)
    }

    /// Whether no other part of the expression can make up for it.
    pub(crate) fn is_final(&self) -> bool {
        self.kind == EvalErrorKind::Cost
    }
}

fn said(subjects: &[String]) -> String {
    match subjects {
        [] => String::new(),
        some => format!(", where {}", some.join(" and ")),
    }
}
