//! Reads the objects of documents.

use serde_json::{Map, Value};

use super::broken::{Broken, Faults};
use super::check::{Fault, FaultKind, check, describe, shortened, unknown_field};
use super::diagnostic::{Diagnostic, Severity};
use super::document::Origin;
use super::foreign;
use super::head::{self, Head, Lent, TypeFault};
use super::kind::{self, Kind, KubeObject, OtherObject};
use super::meaning::{Meaning, meaning};
use super::nearest::nearest;
use super::played_as;
use super::pods;
use super::raw::RawDocument;
use super::reader::{FIRST_HERE, Identity, Reader};
use super::reading::Located;
use super::yaml;
use crate::field::{FieldPath, PathSegment};

/// The most nested lists: `kubectl get` makes one level, tools that join dumps make two.
const LIST_DEPTH_MAX: usize = 4;

/// The most errors shown of one object, since each place costs a pass over it.
const OBJECT_ERRORS_MAX: usize = 100;

const LIST_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "items"];

impl Reader<'_> {
    pub(super) fn object(&mut self, value: Value, origin: &Origin, lent: Lent<'_>) {
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
        let Some((fields, head)) = self.played(fields, origin, head) else {
            return;
        };
        let meaning = meaning(&head.api_version, &head.kind);
        match meaning {
            Meaning::Known(kind) => self.known_object(kind, fields, origin, head),
            Meaning::Other => {
                let file = self.sources.file(origin.file);
                match foreign::of_document(&fields, file, &self.how().piped) {
                    Some(error) => self.report.add_in(origin, FieldPath::root(), error),
                    None => self.other_object(&fields, origin, head),
                }
            }
            mistaken => self.report_meaning(&mistaken, fields, origin, &head),
        }
    }

    /// The object as the known kind that it is played as; `None` if it has an error, which is reported.
    fn played(
        &mut self,
        fields: Map<String, Value>,
        origin: &Origin,
        head: Head,
    ) -> Option<(Map<String, Value>, Head)> {
        let sources = self.sources;
        let all = &sources.how().played_as;
        if all.is_empty() {
            return Some((fields, head));
        }
        let mut value = Value::Object(fields);
        if let Some(kind) = played_as::unknown_target(&value, all) {
            let label = kind::label(&head.kind, head.namespace.as_deref(), &head.name);
            let message = format!(
                "kind {kind} is none that is known by name: the webhook refuses it, unless the white list has it, however it is played here"
            );
            let warning = Diagnostic::warning("unknown-target-kind", message).about(label);
            let help = "annotate the WorkloadSpread with strew.dev/any-kind: \"true\", or put the kind into the white list";
            let path = FieldPath::root().child("spec.targetRef");
            self.report.add_in(origin, path, warning.with_help(help));
        }
        played_as::rename(&mut value, all);
        let Value::Object(fields) = value else {
            return None;
        };
        let mut meant = all.iter();
        let Some(alias) = meant.find(|alias| alias.is_of(&head.api_version, &head.kind)) else {
            return Some((fields, head));
        };
        let kind = kind::kind_in_group(&head.api_version, &head.kind);
        let target = alias.target();
        let path = FieldPath::root().child("kind");
        let Some(played) = alias.play(fields) else {
            let message = format!("{kind} has no spec.template: it cannot be played as a {target}");
            let error = Diagnostic::error("not-playable", message);
            self.report.add_in(origin, path, error);
            return None;
        };
        let left_out = match played.left_out.as_slice() {
            [] => String::new(),
            fields => format!(", without {}", fields.join(", ")),
        };
        let message = format!("{kind} is played as a {target}{left_out}");
        let label = kind::label(&kind, head.namespace.as_deref(), &head.name);
        self.report.pass_over(message.clone(), origin, |_| {
            let note = Diagnostic::note("played-as", message);
            note.about(label).in_field(path)
        });
        let head = Head::of(&played.fields, None).ok()?;
        Some((played.fields, head))
    }

    fn report_meaning(
        &mut self,
        meaning: &Meaning,
        fields: Map<String, Value>,
        origin: &Origin,
        head: &Head,
    ) {
        let Some((path, mut error)) = meaning.mistake(&head.api_version, &head.kind) else {
            return;
        };
        if let Meaning::WrongVersion(kind) = meaning {
            let namespace = head.namespace_of(*kind);
            error = error.about(kind::label(kind.name(), namespace.as_deref(), &head.name));
            if head.from_dump {
                let message = format!("{}: it was passed over", error.message);
                let key = format!("{} {}", kind.name(), head.api_version);
                return self.report.pass_over(key, origin, |_| Diagnostic {
                    severity: Severity::Warning,
                    message,
                    help: None,
                    ..error.in_field(path)
                });
            }
            self.report_renamed(*kind, fields, origin, head);
        }
        self.report.add_in(origin, path, error);
    }

    /// Reports the fields of an earlier version that have another name in the served one.
    fn report_renamed(
        &mut self,
        kind: Kind,
        fields: Map<String, Value>,
        origin: &Origin,
        head: &Head,
    ) {
        let namespace = head.namespace_of(kind);
        let label = kind::label(kind.name(), namespace.as_deref(), &head.name);
        for fault in check(kind.schema(), &mut Value::Object(fields)) {
            if let Some(now) = renamed(kind, &fault) {
                let mut error = fault.kind.diagnostic(kind.schema()).about(label.clone());
                error.help = Some(now);
                self.report.add_key(origin, fault.path, error);
            }
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
        let file = self.sources.file(origin.file);
        if let Some(error) = foreign::of_document(fields, file, &self.how().piped) {
            return self.report.add_in(origin, FieldPath::root(), error);
        }
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
        if !self.begin_list(&fields, origin, head) {
            return;
        }
        let lent = lent_by(head);
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

    /// Reads a list, whose items `read` passes to [`object`](Self::object) one by one: so that only one of them is a
    /// value at a time.
    pub(super) fn list_of(
        &mut self,
        fields: &Map<String, Value>,
        origin: &Origin,
        read: impl FnOnce(&mut Self, Lent<'_>),
    ) {
        self.n_meant += 1;
        if let Ok(head) = Head::of(fields, None)
            && self.begin_list(fields, origin, &head)
        {
            read(self, lent_by(&head));
        }
    }

    /// Reports what is wrong with a list beside its items; false if these are not read.
    fn begin_list(&mut self, fields: &Map<String, Value>, origin: &Origin, head: &Head) -> bool {
        if origin.items.len() >= LIST_DEPTH_MAX {
            let message = format!("lists are nested deeper than {LIST_DEPTH_MAX} levels");
            let error = Diagnostic::error(yaml::TOO_DEEP, message);
            self.report.add_in(origin, FieldPath::root(), error);
            return false;
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
        true
    }

    fn known_object(
        &mut self,
        kind: Kind,
        fields: Map<String, Value>,
        origin: &Origin,
        mut head: Head,
    ) {
        let mut value = Value::Object(fields);
        // The decoder requires a string, but a list may imply the type of an item with `null`.
        value["apiVersion"] = kind.api_version().into();
        value["kind"] = kind.name().into();
        if head.name.is_empty() && !head.generate_name.is_empty() {
            head.name = self.names.generate(&head.generate_name);
            value["metadata"]["name"] = head.name.as_str().into();
        }
        let namespace = head.namespace_of(kind);
        let label = kind::label(kind.name(), namespace.as_deref(), &head.name);
        let faults = check(kind.schema(), &mut value);
        leave_out_managers(&mut value);
        let found = self.admit_fields(kind, &label, faults, origin, &head);
        // A misspelt name, or one of another type, was reported as such.
        let name_path = FieldPath::root().child("metadata.name");
        let is_name_told = found.as_ref().is_some_and(|f| f.is_unsure(&name_path));
        let has_name = is_name_told || self.admit_name(&label, origin, &head);
        let is_only = self.admit_identity(&label, kind.name(), namespace, origin, &head);
        let is_good = found.is_none() && has_name && is_only;
        let is_playable = value.as_object().is_some_and(pods::is_playable);
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
        if matches!(located.object, KubeObject::AdvancedStatefulSet(_)) {
            self.makers.add(&located.object, origin, is_playable);
        }
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
                let mut error = fault.kind.diagnostic(kind.schema());
                error.help = renamed(kind, &fault).or(error.help);
                error.about(label).in_field(fault.path).at(place)
            });
        }
        (n_errors > 0).then_some(noted)
    }

    fn admit_name(&mut self, label: &str, origin: &Origin, head: &Head) -> bool {
        if !head.name.is_empty() {
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
        let seen = self.known.entry(identity).or_default();
        let (own, other) = match head.from_dump {
            true => (&mut seen.dumped, &seen.written),
            false => (&mut seen.written, &seen.dumped),
        };
        let (first, is_change) = match (&*own, other) {
            (Some(first), _) => (first.clone(), false),
            (None, Some(first)) if !self.applies => (first.clone(), true),
            _ => {
                *own = Some(origin.clone());
                return true;
            }
        };
        let path = FieldPath::root().child("metadata.name");
        let error = Diagnostic::error("duplicate-object", format!("{label} is there twice"));
        let mut error = error.about(label);
        let files = [first.file, origin.file].map(|id| self.sources.file(id));
        if is_change {
            let help = "one is of a dump: strew simulate applies the other one to it, unless a Scenario is there, \
                        which has steps for that";
            error = error.with_help(help);
        } else if files.iter().all(|file| file.is_found()) && files[0].folder() != files[1].folder()
        {
            error = error
                .with_help("folders below a named one are read, too: name one of the two folders");
        }
        self.report.add(Severity::Error, |locator| {
            let error = error.with_related(locator.place(&first, &path), FIRST_HERE);
            error.at(locator.place(origin, &path)).in_field(path)
        });
        false
    }

    fn other_object(&mut self, fields: &Map<String, Value>, origin: &Origin, mut head: Head) {
        if head.name.is_empty() && !head.generate_name.is_empty() {
            head.name = self.names.generate(&head.generate_name);
        }
        let namespace = head.namespace.clone();
        let kind = kind::kind_in_group(&head.api_version, &head.kind);
        let label = kind::label(&kind, namespace.as_deref(), &head.name);
        if !self.admit_identity(&label, &head.kind, namespace, origin, &head) {
            return;
        }
        let from_dump = head.from_dump;
        let other = OtherObject::of(head, fields);
        let makes_pods = other.makes_pods;
        let object = KubeObject::Other(Box::new(other));
        if makes_pods {
            self.makers.add(&object, origin, pods::is_playable(fields));
        }
        self.objects.push(Located {
            object,
            origin: origin.clone(),
            from_dump,
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

    fn report_no_object(&mut self, value: &Value, origin: &Origin) {
        let message = format!("expected a Kubernetes object, found {}", describe(value));
        let mut error = Diagnostic::error("no-object", message);
        if value.is_array() {
            error = error.with_help("give each object a document of its own, or use `kind: List`");
        }
        self.report.add_in(origin, FieldPath::root(), error);
    }
}

/// Takes `managedFields` away, which are a third of a dump and which nothing reads.
fn leave_out_managers(value: &mut Value) {
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.shift_remove("managedFields");
    }
}

/// What a list implies for its items.
fn lent_by(head: &Head) -> Lent<'_> {
    head::item_kind(&head.kind).map(|kind| (head.api_version.as_str(), kind))
}

/// Fields of earlier versions that have another name in the served one.
const RENAMED: [(Kind, &str, &str); 2] = [
    (
        Kind::Placement,
        "spec.prioritizerPolicy.configurations[].name",
        "scoreCoordinate: {type: BuiltIn, builtIn: NAME}",
    ),
    (
        Kind::HorizontalPodAutoscaler,
        "spec.metrics[].resource.targetAverageUtilization",
        "target: {type: Utilization, averageUtilization: N}",
    ),
];

/// What the served version has in place of a field of an earlier one.
fn renamed(kind: Kind, fault: &Fault) -> Option<String> {
    if !matches!(fault.kind, FaultKind::Unknown { .. }) {
        return None;
    }
    let path = schema_path(&fault.path);
    let mut all = RENAMED.iter();
    let (_, _, now) = all.find(|(of, old, _)| *of == kind && *old == path)?;
    Some(format!("{} has {now} in its place", kind.api_version()))
}

/// The path with its indexes left out: `spec.containers[].imagee`.
fn schema_path(path: &FieldPath) -> String {
    let mut text = String::new();
    for step in path.steps() {
        match step {
            PathSegment::Name(name) if text.is_empty() => text.push_str(name),
            PathSegment::Name(name) => {
                text.push('.');
                text.push_str(name);
            }
            PathSegment::Index(_) => text.push_str("[]"),
            PathSegment::Key(_) => text.push_str("[*]"),
        }
    }
    text
}
