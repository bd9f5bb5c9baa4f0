//! Reads files into objects.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::broken::{Broken, Faults};
use super::check::{Fault, FaultKind, check, describe, shortened, unknown_field};
use super::diagnostic::{Diagnostic, Severity};
use super::document::{self, Document, Format, Origin};
use super::head::{self, Head, Lent, TypeFault};
use super::json;
use super::kind::{self, Kind, KubeObject, Meaning, OtherObject};
use super::nearest::nearest;
use super::raw::RawDocument;
use super::reading::{Located, Reading};
use super::report::Report;
use super::source::{FileId, SourceFile, Sources, Span};
use super::yaml;
use crate::field::{FieldPath, Step};
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

/// A change of objects before their check.
type Edit<'a> = Option<&'a dyn Fn(&mut Value)>;

fn read_all(sources: &Sources, edit: Edit<'_>) -> Reading {
    let mut reader = Reader::new(sources, None);
    reader.edit = edit;
    for (id, file) in sources.iter() {
        reader.file(id, file);
        reader.typeless(file);
    }
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

/// The most nested lists: `kubectl get` makes one level, tools that join dumps make two.
const LIST_DEPTH_MAX: usize = 4;

/// The most errors shown of one object, since each place costs a pass over it.
const OBJECT_ERRORS_MAX: usize = 100;

struct Reader<'a> {
    objects: Vec<Located>,
    broken: Vec<Broken>,
    report: Report<'a>,
    /// Documents of the current file without apiVersion and kind, with their errors.
    typeless: Vec<(Origin, Diagnostic)>,
    /// The number of documents of the current file that are objects, or may be.
    n_meant: usize,
    known: HashMap<Identity, Origin>,
    /// Collects documents that are no objects.
    raw: Option<Vec<RawDocument>>,
    edit: Edit<'a>,
}

/// The identity of an object: group, kind, namespace, name.
#[derive(PartialEq, Eq, Hash)]
struct Identity(String, String, Option<String>, String);

impl<'a> Reader<'a> {
    fn new(sources: &'a Sources, raw: Option<Vec<RawDocument>>) -> Self {
        Self {
            objects: Vec::new(),
            broken: Vec::new(),
            report: Report::new(sources),
            typeless: Vec::new(),
            n_meant: 0,
            known: HashMap::new(),
            raw,
            edit: None,
        }
    }
}

impl Reader<'_> {
    fn finish(self) -> Reading {
        Reading {
            objects: self.objects,
            broken: self.broken,
            diagnostics: self.report.finish(),
        }
    }

    fn file(&mut self, id: FileId, file: &SourceFile) {
        let text = file.text();
        if let Some((at, message)) = not_text(file) {
            let error = Diagnostic::error("not-text", message);
            let error = error.with_help("strew reads YAML and JSON in UTF-8");
            return self.report.add_at(id, Span::new(at, at + 1), error);
        }
        let parts = document::parts(text);
        if parts.is_empty() {
            let warning = Diagnostic::warning("no-objects", "there is nothing in this file");
            return self.report.add_at(id, Span::new(0, 0), warning);
        }
        for part in parts {
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
        match typeless.first() {
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
        for next in json::documents(text, part) {
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
            let format = Format::Json;
            let span = read.span;
            let origin = Origin::document(file, Document { format, span });
            make_printable(&mut read.value);
            let severity = severity_in(&read.value);
            read.repeated.dedup();
            for path in read.repeated {
                let diagnostic = repeated_key(&path);
                self.report.add(severity, |locator| {
                    let first = locator.first_key_place(&origin, &path);
                    let diagnostic = diagnostic.with_related(first, FIRST_HERE);
                    diagnostic
                        .at(locator.key_place(&origin, &path))
                        .in_field(path)
                });
            }
            self.object(read.value, &origin, None);
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
        let mut value = composed.root.to_value();
        make_printable(&mut value);
        for fault in composed.faults {
            let severity = match fault.first {
                Some(_) => severity_in(&value),
                None => Severity::Error,
            };
            self.yaml_fault(file, fault, severity);
        }
        self.report.remember(file, part, composed.root);
        self.object(value, &Origin::document(file, part), None);
    }

    fn yaml_fault(&mut self, file: FileId, fault: yaml::YamlFault, severity: Severity) {
        let mut diagnostic = Diagnostic::error(fault.code, fault.message);
        diagnostic.help = fault.help.map(str::to_owned);
        diagnostic.path = fault.path;
        self.report.add(severity, |locator| {
            if let Some(first) = fault.first {
                let first = locator.place_of_span(file, first);
                diagnostic = diagnostic.with_related(first, FIRST_HERE);
            }
            diagnostic.at(locator.place_of_span(file, fault.span))
        });
    }

    fn object(&mut self, value: Value, origin: &Origin, lent: Lent<'_>) {
        if let Some(raw) = &mut self.raw {
            let origin = origin.clone();
            return raw.push(RawDocument { value, origin });
        }
        self.n_meant += usize::from(!value.is_null());
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null if origin.items.is_empty() => return,
            other => return self.report_no_object(&other, origin),
        };
        let head = match Head::of(&fields, lent) {
            Ok(head) => head,
            Err(faults) => return self.report_no_type(&fields, origin, faults),
        };
        if head::is_list(&head.kind, &fields) {
            return self.list(fields, origin, &head);
        }
        let fields = self.edited(fields);
        match kind::meaning(&head.api_version, &head.kind) {
            Meaning::Known(kind) => self.known_object(kind, fields, origin, head),
            Meaning::WrongVersion(kind) => self.report_version(kind, origin, &head),
            Meaning::Misspelt(kind) => {
                let Head {
                    api_version,
                    kind: name,
                    ..
                } = &head;
                let message = format!(
                    "{api_version} has no kind {}, did you mean {:?}?",
                    shortened(name),
                    kind.name(),
                );
                let path = FieldPath::root().child("kind");
                self.report
                    .add_in(origin, path, Diagnostic::error("unknown-kind", message));
            }
            Meaning::Other => self.other_object(origin, head),
        }
    }

    /// The fields after the caller's edit.
    fn edited(&self, fields: Map<String, Value>) -> Map<String, Value> {
        let Some(edit) = self.edit else {
            return fields;
        };
        let mut value = Value::Object(fields);
        edit(&mut value);
        match value {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    fn report_no_type(
        &mut self,
        fields: &Map<String, Value>,
        origin: &Origin,
        faults: Vec<TypeFault>,
    ) {
        let mut missing = Vec::new();
        for fault in faults {
            match fault {
                TypeFault::Missing(name) => missing.push(name),
                TypeFault::Mistyped(name, message) => {
                    let error = Diagnostic::error("wrong-type", message);
                    self.report
                        .add_in(origin, FieldPath::root().child(name), error);
                }
            }
        }
        let Some(first) = missing.first() else {
            return;
        };
        let message = match missing.len() {
            1 => format!("{first} is missing"),
            _ => "no Kubernetes object: apiVersion and kind are missing".to_owned(),
        };
        let mut error = Diagnostic::error("no-type", message);
        let meant = missing.iter().find_map(|name| {
            let keys = fields.keys().map(String::as_str);
            nearest(name, keys).map(|key| format!("{} should be {name:?}", shortened(key)))
        });
        error.help = meant;
        if missing.len() > 1 && error.help.is_none() && origin.items.is_empty() {
            self.n_meant -= 1;
            return self.typeless.push((origin.clone(), error));
        }
        self.report
            .add_in(origin, FieldPath::root().child(first), error);
    }

    fn list(&mut self, mut fields: Map<String, Value>, origin: &Origin, head: &Head) {
        if origin.items.len() >= LIST_DEPTH_MAX {
            let message = format!("lists are nested deeper than {LIST_DEPTH_MAX} levels");
            return self.report.add_in(
                origin,
                FieldPath::root(),
                Diagnostic::error(yaml::TOO_DEEP, message),
            );
        }
        for name in fields
            .keys()
            .filter(|name| !LIST_FIELDS.contains(&name.as_str()))
        {
            let path = FieldPath::root().child_owned(name.clone());
            let error = unknown_field(name, nearest(name, LIST_FIELDS));
            let error = error.about(head.kind.as_str());
            self.report.add_key(origin, path, error);
        }
        let item_kind = head::item_kind(&head.kind);
        let lent = item_kind.map(|kind| (head.api_version.as_str(), kind));
        match fields.remove("items") {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.object(item, &origin.item(index), lent);
                }
            }
            Some(other) => {
                let message = format!("expected a list, found {}", describe(&other));
                let error = Diagnostic::error("wrong-type", message).about(head.kind.as_str());
                self.report
                    .add_in(origin, FieldPath::root().child("items"), error);
            }
        }
    }

    fn known_object(
        &mut self,
        kind: Kind,
        fields: Map<String, Value>,
        origin: &Origin,
        head: Head,
    ) {
        let mut value = Value::Object(fields);
        // The decoder requires a string, but a list may imply the type of an item with `null`.
        value["apiVersion"] = kind.api_version().into();
        value["kind"] = kind.name().into();
        let namespace = head.namespace_of(kind);
        let label = kind::label(kind.name(), namespace.as_deref(), &head.name);
        let faults = check(kind.schema(), &mut value);
        let found = self.admit_fields(kind, &label, faults, origin, &head);
        // A misspelt name, or one of another type, was reported as such.
        let name_path = FieldPath::root().child("metadata.name");
        let is_name_told = found.as_ref().is_some_and(|f| f.is_unsure(&name_path));
        let has_name = is_name_told || self.admit_name(kind, &label, origin, &head);
        let is_only = self.admit_identity(&label, kind.name(), namespace, origin, &head);
        let is_good = found.is_none() && has_name && is_only;
        let object = match kind.decode(value) {
            Ok(object) => object,
            // The rest was reported; beyond a hundred thousand faults, not all are removed.
            Err(_) if !is_good => return,
            // The check accepted what the decoder refuses. This is a defect of strew, and is reported.
            Err(error) => {
                let message = format!("can't be read as a {}: {error}", kind.name());
                let error = Diagnostic::error("undecodable", message).about(label);
                return self.report.add_in(origin, FieldPath::root(), error);
            }
        };
        let located = Located {
            object,
            origin: origin.clone(),
            from_dump: head.from_dump,
        };
        if is_good {
            return self.objects.push(located);
        }
        let mut faults = found.unwrap_or_default();
        if !has_name {
            faults.unsure(name_path);
        }
        self.broken.push(Broken { located, faults });
    }

    /// Reports the faults; `None` if one of them is an error.
    fn admit_fields(
        &mut self,
        kind: Kind,
        label: &str,
        faults: Vec<Fault>,
        origin: &Origin,
        head: &Head,
    ) -> Option<Faults> {
        let mut n_errors = 0;
        let mut noted = Faults::default();
        for fault in faults {
            let is_unknown = matches!(fault.kind, FaultKind::Unknown { .. });
            if is_unknown && head.from_dump {
                self.pass_over_field(kind, label, origin, fault);
                continue;
            }
            n_errors += 1;
            if n_errors > OBJECT_ERRORS_MAX {
                noted = Faults::too_many();
                self.report.leave_out(Severity::Error);
                continue;
            }
            match is_unknown {
                true => noted.unknown(&fault.path, fault.kind.meant(kind.schema())),
                false => noted.unsure(fault.path.clone()),
            }
            self.report.add(Severity::Error, |locator| {
                let place = match is_unknown {
                    true => locator.key_place(origin, &fault.path),
                    false => locator.place(origin, &fault.path),
                };
                let error = fault.kind.diagnostic(kind.schema());
                error.about(label).in_field(fault.path).at(place)
            });
        }
        (n_errors > 0).then_some(noted)
    }

    fn admit_name(&mut self, kind: Kind, label: &str, origin: &Origin, head: &Head) -> bool {
        let is_generated = kind == Kind::Pod && head.has_generated_name;
        if !head.name.is_empty() || is_generated {
            return true;
        }
        let path = FieldPath::root().child("metadata.name");
        let error = Diagnostic::error("no-name", "metadata.name is missing");
        self.report.add_in(origin, path, error.about(label));
        false
    }

    fn admit_identity(
        &mut self,
        label: &str,
        kind: &str,
        namespace: Option<String>,
        origin: &Origin,
        head: &Head,
    ) -> bool {
        if head.name.is_empty() {
            return true;
        }
        let group = kind::group_of(&head.api_version).to_owned();
        let identity = Identity(group, kind.to_owned(), namespace, head.name.clone());
        let Some(first) = self.known.get(&identity) else {
            self.known.insert(identity, origin.clone());
            return true;
        };
        let first = first.clone();
        let path = FieldPath::root().child("metadata.name");
        let error = Diagnostic::error("duplicate-object", format!("{label} is there twice"));
        let error = error.about(label);
        self.report.add(Severity::Error, |locator| {
            let error = error.with_related(locator.place(&first, &path), FIRST_HERE);
            error.at(locator.place(origin, &path)).in_field(path)
        });
        false
    }

    fn other_object(&mut self, origin: &Origin, head: Head) {
        let label = kind::label(&head.kind, head.namespace.as_deref(), &head.name);
        let namespace = head.namespace.clone();
        if !self.admit_identity(&label, &head.kind, namespace, origin, &head) {
            return;
        }
        let other = OtherObject {
            api_version: head.api_version,
            kind: head.kind,
            namespace: head.namespace,
            name: head.name,
        };
        self.objects.push(Located {
            object: KubeObject::Other(Box::new(other)),
            origin: origin.clone(),
            from_dump: head.from_dump,
        });
    }

    fn pass_over_field(&mut self, kind: Kind, label: &str, origin: &Origin, fault: Fault) {
        let field = format!("{} {}", kind.name(), schema_path(&fault.path));
        self.report.pass_over(field, origin, |field| {
            let mut warning = fault.kind.diagnostic(kind.schema());
            warning.severity = Severity::Warning;
            warning.message = format!("{}: {field} was passed over", warning.message);
            warning.about(label).in_field(fault.path)
        });
    }

    fn report_version(&mut self, kind: Kind, origin: &Origin, head: &Head) {
        let Head { api_version, .. } = head;
        let (name, served) = (kind.name(), kind.api_version());
        let whose = kind.whose();
        let message = format!("{whose} has no {name} in {}", shortened(api_version));
        let namespace = head.namespace_of(kind);
        let label = kind::label(name, namespace.as_deref(), &head.name);
        let path = FieldPath::root().child("apiVersion");
        // A budget says which pods may be evicted, not where pods go: old charts need not be refused for theirs.
        if head.from_dump || kind == Kind::PodDisruptionBudget {
            let message = format!("{message}: it was passed over");
            let key = format!("{name} {api_version}");
            return self.report.pass_over(key, origin, |_| {
                let warning = Diagnostic::warning("unknown-version", message);
                warning.about(label).in_field(path)
            });
        }
        let error = Diagnostic::error("unknown-version", message).about(label);
        let error = error.with_help(format!("use apiVersion: {served}"));
        self.report.add_in(origin, path, error);
    }

    fn report_no_object(&mut self, value: &Value, origin: &Origin) {
        let message = format!("expected a Kubernetes object, found {}", describe(value));
        let mut error = Diagnostic::error("no-object", message);
        if value.is_array() {
            error = error.with_help("give each object a document of its own, or use `kind: List`");
        }
        self.report.add_in(origin, FieldPath::root(), error);
    }
}

const LIST_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];
const FIRST_HERE: &str = "first here";

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
        Some(Step::Name(name)) => name,
        _ => "",
    };
    Diagnostic::error("duplicate-key", yaml::repeated_key(key))
}

/// The path with its indexes left out: `spec.containers[].imagee`.
fn schema_path(path: &FieldPath) -> String {
    let mut text = String::new();
    for step in path.steps() {
        match step {
            Step::Name(name) if text.is_empty() => text.push_str(name),
            Step::Name(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Index(_) => text.push_str("[]"),
            Step::Key(_) => text.push_str("[*]"),
        }
    }
    text
}
