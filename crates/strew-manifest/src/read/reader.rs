//! Reads files into objects.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::broken::Broken;
use super::diagnostic::{Diagnostic, Severity};
use super::document::{self, Document, Format, Origin};
use super::foreign::{self, TEMPLATE};
use super::head;
use super::json;
use super::pods::Makers;
use super::raw::RawDocument;
use super::reading::{Located, Reading};
use super::report::Report;
use super::source::{FileId, How, SourceFile, Sources, Span};
use super::yaml;
use crate::field::{FieldPath, PathSegment};
use crate::names::NameSource;
use crate::printable::make_printable;

/// Reads all files.
///
/// Objects with an error are returned separately. Callers that check them further must use [`Broken::follows`]: errors
/// that only follow from a misspelt field would mislead.
pub fn read(sources: &Sources) -> Reading {
    read_all(sources, None)
}

/// Reads only one of the files.
pub fn read_file(sources: &Sources, file: FileId) -> Reading {
    let mut reader = Reader::new(sources, None);
    reader.file(file, sources.file(file));
    reader.typeless(sources.file(file));
    reader.finish()
}

/// As [`read`], after `edit` has changed each object (parameters, patches). Items of lists are passed one by one.
/// Values that `edit` adds have no place in the files: problems in them are shown at the nearest field that has one.
pub fn read_edited(sources: &Sources, edit: &dyn Fn(&mut Value)) -> Reading {
    read_all(sources, Some(edit))
}

/// As [`read`], for files that are applied to a cluster: an object written by hand beside the one of the same name of a
/// dump is no duplicate, but a change of it, which [`Reading::applied`] has.
pub fn read_applying(sources: &Sources) -> Reading {
    let mut reader = Reader::new(sources, None);
    reader.applies = true;
    reader.all();
    reader.finish()
}

/// A change of objects before their check.
type Edit<'a> = Option<&'a dyn Fn(&mut Value)>;

fn read_all(sources: &Sources, edit: Edit<'_>) -> Reading {
    let mut reader = Reader::new(sources, None);
    reader.edit = edit;
    reader.all();
    reader.finish()
}

/// Reads all files without decoding objects; returns the documents, and the errors of their texts.
pub fn documents(sources: &Sources) -> (Vec<RawDocument>, Vec<Diagnostic>) {
    let mut reader = Reader::new(sources, Some(Vec::new()));
    for (id, file) in sources.iter() {
        reader.file(id, file);
    }
    (reader.raw.unwrap_or_default(), reader.report.finish())
}

/// Reads files one after the other.
pub(super) struct Reader<'a> {
    pub(super) sources: &'a Sources,
    pub(super) objects: Vec<Located>,
    pub(super) broken: Vec<Broken>,
    pub(super) report: Report<'a>,
    /// Documents of the current file without apiVersion and kind, with their errors.
    pub(super) typeless: Vec<(Origin, Diagnostic)>,
    /// The number of documents of the current file that are objects, or may be.
    pub(super) n_meant: usize,
    /// True if the rest of the current file is not read: what it is was reported.
    pub(super) is_told: bool,
    pub(super) known: HashMap<Identity, Seen>,
    /// True if objects written by hand change those of a dump.
    pub(super) applies: bool,
    /// Completes names that files leave to the API server.
    pub(super) names: NameSource,
    /// Objects whose controllers strew does not have.
    pub(super) makers: Makers,
    /// Collects documents that are no objects.
    pub(super) raw: Option<Vec<RawDocument>>,
    pub(super) edit: Edit<'a>,
}

/// Where objects of one identity were read.
#[derive(Default)]
pub(super) struct Seen {
    /// The object of a dump.
    pub(super) dumped: Option<Origin>,
    /// The object written by hand.
    pub(super) written: Option<Origin>,
}

/// The identity of an object: group, kind, namespace, name.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Identity(
    pub(super) String,
    pub(super) String,
    pub(super) Option<String>,
    pub(super) String,
);

impl<'a> Reader<'a> {
    fn new(sources: &'a Sources, raw: Option<Vec<RawDocument>>) -> Self {
        Self {
            sources,
            objects: Vec::new(),
            broken: Vec::new(),
            report: Report::new(sources),
            typeless: Vec::new(),
            n_meant: 0,
            is_told: false,
            known: HashMap::new(),
            applies: false,
            names: NameSource::new(0),
            makers: Makers::default(),
            raw,
            edit: None,
        }
    }
}

impl Reader<'_> {
    pub(super) fn how(&self) -> &How {
        self.sources.how()
    }

    fn all(&mut self) {
        for (id, file) in self.sources.iter() {
            self.file(id, file);
            self.typeless(file);
        }
    }

    fn finish(mut self) -> Reading {
        let both = self.known.values().filter(|seen| seen.dumped.is_some());
        let written: Vec<&Origin> = both.filter_map(|seen| seen.written.as_ref()).collect();
        let is_written = |located: &mut Located| written.contains(&&located.origin);
        let applied = match written.is_empty() {
            true => Vec::new(),
            false => self.objects.extract_if(.., is_written).collect(),
        };
        let makers = std::mem::take(&mut self.makers);
        for (origin, warning) in makers.warnings(&self.objects) {
            self.report
                .add_in(&origin, FieldPath::root().child("kind"), warning);
        }
        Reading {
            applied,
            objects: self.objects,
            broken: self.broken,
            diagnostics: self.report.finish(),
        }
    }

    fn file(&mut self, id: FileId, file: &SourceFile) {
        let text = file.text();
        self.is_told = false;
        if let Some(packing) = file.packing() {
            let error = foreign::packed(file, packing);
            return self.report.add_at(id, Span::new(0, 0), error);
        }
        if let Some((at, message)) = not_text(file) {
            let error = Diagnostic::error("not-text", message);
            let error = error.with_help("strew reads YAML and JSON in UTF-8");
            return self.report.add_at(id, Span::new(at, at + 1), error);
        }
        let foreign = foreign::of_file(file, &self.how().piped);
        if let Some(error) = foreign.filter(|_| self.raw.is_none()) {
            let end = text.find('\n').unwrap_or(text.len());
            return self.report.add_at(id, Span::new(0, end), error);
        }
        let parts = document::parts(text);
        if parts.is_empty() {
            let warning = Diagnostic::warning("no-objects", "there is nothing in this file");
            return self.report.add_at(id, Span::new(0, 0), warning);
        }
        for part in parts {
            if self.is_told {
                return;
            }
            match part.format {
                Format::Json => self.json(id, text, part.span),
                Format::Yaml => self.yaml(id, text, part),
            }
        }
    }

    /// A folder may contain other data, so a file without any object is ignored.
    fn typeless(&mut self, file: &SourceFile) {
        let typeless = std::mem::take(&mut self.typeless);
        let n_meant = std::mem::take(&mut self.n_meant);
        let values = foreign::values(file, &self.how().piped).filter(|_| n_meant == 0);
        match typeless.first() {
            Some((origin, _))
                if !file.is_found()
                    && let Some(error) = values =>
            {
                self.report.add_in(origin, FieldPath::root(), error);
            }
            Some((origin, _)) if n_meant == 0 && file.is_found() => {
                let message = "no Kubernetes object in this file: it was passed over";
                let warning = Diagnostic::warning("no-objects", message);
                self.report.add(Severity::Warning, |locator| {
                    warning.at(locator.place(origin, &FieldPath::root()))
                });
            }
            _ => {
                for (origin, error) in typeless {
                    let path = FieldPath::root().child("apiVersion");
                    self.report.add_in(&origin, path, error);
                }
            }
        }
    }

    fn json(&mut self, file: FileId, text: &str, part: Span) {
        for next in json::outlines(text, part) {
            let mut read = match next {
                Ok(read) => read,
                Err(fault) => {
                    self.n_meant += 1;
                    let error = Diagnostic::error(fault.code, fault.message);
                    return self
                        .report
                        .add_at(file, Span::new(fault.at, fault.at + 1), error);
                }
            };
            let is_list = self.raw.is_none() && head::is_list_of_objects(&read.value);
            if read.is_cut
                && !is_list
                && let Some(Ok(whole)) = json::documents(text, read.span).next()
            {
                read.value = whole.value;
                read.repeated = whole.repeated;
            }
            let format = Format::Json;
            let span = read.span;
            let origin = Origin::document(file, Document { format, span });
            make_printable(&mut read.value);
            let severity = severity_in(&read.value);
            self.repeated(read.repeated, &origin, severity);
            match read.value {
                Value::Object(fields) if read.is_cut && is_list => {
                    let path = |index| FieldPath::root().child("items").index(index);
                    let items = json::items(text, span.start).enumerate();
                    self.list_of(&fields, &origin, |reader, lent| {
                        for (index, (mut item, repeated)) in items {
                            make_printable(&mut item);
                            let repeated = repeated.iter().map(|inner| path(index).join(inner));
                            reader.repeated(repeated.collect(), &origin, severity);
                            reader.object(item, &origin.item(index), lent);
                        }
                    });
                }
                value => self.object(value, &origin, None),
            }
        }
    }

    /// Reports keys that occur again in their object.
    fn repeated(&mut self, mut paths: Vec<FieldPath>, origin: &Origin, severity: Severity) {
        paths.dedup();
        for path in paths {
            let diagnostic = repeated_key(&path);
            self.report.add(severity, |locator| {
                let first = locator.first_key_place(origin, &path);
                let diagnostic = diagnostic.with_related(first, FIRST_HERE);
                diagnostic
                    .at(locator.key_place(origin, &path))
                    .in_field(path)
            });
        }
    }

    fn yaml(&mut self, file: FileId, text: &str, part: Document) {
        let composed = match yaml::compose(text, part.span) {
            Ok(composed) => composed,
            Err(fault) => {
                self.n_meant += 1;
                return self.yaml_fault(file, fault, Severity::Error);
            }
        };
        let mut value = composed.root.outline();
        let is_list = self.raw.is_none() && head::is_list_of_objects(&value);
        let items = composed.root.items().filter(|_| is_list);
        if items.is_none() {
            value = composed.root.to_value();
        }
        make_printable(&mut value);
        for fault in composed.faults {
            let severity = match fault.first {
                Some(_) => severity_in(&value),
                None => Severity::Error,
            };
            self.yaml_fault(file, fault, severity);
        }
        if self.is_told {
            return;
        }
        let root = Rc::clone(&composed.root);
        self.report.remember(file, part, root);
        let origin = Origin::document(file, part);
        match (value, items) {
            (Value::Object(fields), Some(items)) => {
                self.list_of(&fields, &origin, |reader, lent| {
                    for (index, item) in items.iter().enumerate() {
                        let mut item = item.to_value();
                        make_printable(&mut item);
                        reader.object(item, &origin.item(index), lent);
                    }
                });
            }
            (value, _) => self.object(value, &origin, None),
        }
    }

    fn yaml_fault(&mut self, file: FileId, fault: yaml::YamlFault, severity: Severity) {
        if self.is_told {
            return;
        }
        let mut diagnostic = Diagnostic::error(fault.code, fault.message);
        diagnostic.help = fault.help.map(str::to_owned);
        if fault.code == TEMPLATE {
            let (message, help) = foreign::template(self.sources.file(file), &self.how().piped);
            diagnostic = Diagnostic::error(TEMPLATE, message).with_help(help);
            self.is_told = true;
        }
        diagnostic.path = fault.path;
        self.report.add(severity, |locator| {
            if let Some(first) = fault.first {
                let first = locator.place_of_span(file, first);
                diagnostic = diagnostic.with_related(first, FIRST_HERE);
            }
            diagnostic.at(locator.place_of_span(file, fault.span))
        });
    }
}

pub(super) const FIRST_HERE: &str = "first here";

/// Where and why a file is no text.
fn not_text(file: &SourceFile) -> Option<(usize, String)> {
    if file.is_utf16() {
        return Some((0, "this file is UTF-16".to_owned()));
    }
    if let Some(at) = file.invalid_at() {
        return Some((at, format!("byte {at} is not UTF-8: this is no text file")));
    }
    // The YAML parser takes it as the end of the text.
    let at = file.text().find('\0')?;
    Some((at, format!("byte {at} is NUL: this is no text file")))
}

/// The severity of a minor mistake: a dump cannot be changed, so there it is a warning.
fn severity_in(value: &Value) -> Severity {
    match head::is_dump(value) {
        true => Severity::Warning,
        false => Severity::Error,
    }
}

fn repeated_key(path: &FieldPath) -> Diagnostic {
    let key = match path.steps().last() {
        Some(PathSegment::Name(name)) => name,
        _ => "",
    };
    Diagnostic::error("duplicate-key", yaml::repeated_key(key))
}
