//! A finding: one thing that a person should know about their files, or about what came of them.
//!
//! Reading, playing, judging and linting make findings; every format writes them. A finding is a plain value: it has no
//! reference to the files or to the simulation that it is about.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::Advice;
use crate::fix::Fix;
use crate::read::{Diagnostic, Place, Severity, Sources};

/// One thing that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    /// The rule: a stable name, for tools: `unknown-field`.
    pub code: String,
    /// Whether it fails the command.
    pub severity: Severity,
    /// Kind, namespace and name of its object: `Deployment shop/web`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The path of the field inside the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Where the object, or its field, is written; `None` if it is in no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<FilePlace>,
    /// The numbers that the message is made of, by their names: `pods`, `maxSkew`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub numbers: BTreeMap<String, i64>,
    /// The message: one sentence, lower case, no full stop.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// What the help is about, for programs; `None` for most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
    /// A change of the object that takes the finding away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// Other places that are related.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedPlace>,
}

/// A place in a file; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilePlace {
    /// The name of the file, as the user gave it.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// Another place, with what is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RelatedPlace {
    /// What is there: `first defined here`.
    pub label: String,
    /// The place.
    pub place: FilePlace,
}

impl Finding {
    /// A finding with a message only.
    pub fn new(severity: Severity, code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            severity,
            object: None,
            field: None,
            place: None,
            numbers: BTreeMap::new(),
            message: message.into(),
            help: None,
            advice: None,
            fix: None,
            related: Vec::new(),
        }
    }

    /// The findings without repetitions, in the order in which every format writes them: errors first, then by place;
    /// those without a place last.
    pub fn in_order(findings: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut all: Vec<Self> = findings.into_iter().collect();
        all.sort_by(|a, b| a.key().cmp(&b.key()));
        all.dedup();
        all
    }

    /// Every field, so that equal findings are neighbours.
    fn key(&self) -> impl Ord + '_ {
        let texts = (&self.object, &self.field, &self.code, &self.message);
        let more = (&self.numbers, &self.help, &self.related);
        (
            self.severity,
            self.place.is_none(),
            &self.place,
            texts,
            more,
        )
    }

    /// True if a person should act: an error or a warning.
    pub fn is_warning_or_worse(&self) -> bool {
        self.severity <= Severity::Warning
    }

    /// The finding in a line: `web.yaml:3:5: warning[unknown-key]: Deployment shop/web: …`.
    pub fn line(&self) -> String {
        let place = self.place.as_ref();
        let place = place.map_or(String::new(), |at| {
            format!("{}:{}:{}: ", at.file, at.line, at.column)
        });
        let object = self.object.as_ref();
        let object = object.map_or(String::new(), |object| format!("{object}: "));
        let (severity, code, message) = (self.severity.name(), &self.code, &self.message);
        format!("{place}{severity}[{code}]: {object}{message}")
    }

    /// Sets the object.
    #[must_use]
    pub fn about(mut self, object: impl Into<String>) -> Self {
        self.object = Some(object.into());
        self
    }

    /// Sets the place.
    #[must_use]
    pub fn at(mut self, place: FilePlace) -> Self {
        self.place = Some(place);
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn with_number(mut self, name: &str, number: i64) -> Self {
        self.numbers.insert(name.to_owned(), number);
        self
    }

    /// Sets the help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the advice, with its help; `None` takes both away.
    pub fn advise(&mut self, advice: Option<Advice>) {
        self.advice = advice;
        self.help = advice.map(|advice| advice.help().to_owned());
    }
}

impl Diagnostic {
    /// The diagnostic as a finding, with the names of its files.
    pub fn to_finding(&self, sources: &Sources) -> Finding {
        let place = |place: Place| FilePlace {
            file: sources.file(place.file).name().to_owned(),
            line: place.line,
            column: place.column,
        };
        let related = self.related.iter().map(|related| RelatedPlace {
            label: related.label.clone(),
            place: place(related.place),
        });
        let numbers = self.numbers.iter();
        let numbers = numbers.map(|(name, number)| ((*name).to_owned(), *number));
        Finding {
            code: self.code.to_owned(),
            severity: self.severity,
            object: self.object.clone(),
            field: self.path.as_ref().map(ToString::to_string),
            place: self.place.map(place),
            numbers: numbers.collect(),
            message: self.message.clone(),
            help: self.help.clone(),
            advice: None,
            fix: self.fix.clone(),
            related: related.collect(),
        }
    }
}
