//! Reads kwok's records: the objects of second 0, then ResourcePatches.
//!
//! Source: kwok v0.7, `pkg/apis/action/v1alpha1` (fields), `pkg/kwokctl/etcd` (what is written, and how it is replayed)
//! and `pkg/kwokctl/recording` (relative times). A patch is a strategic merge patch against the object as it was last
//! recorded, and kwokctl looks that up by namespace and name alone: the first of two kinds with one name is a
//! `create`, the other a `patch` of it.

use serde_json::{Value, json};
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::{self, KindRow};
use strew_manifest::patch::{Schema, strategic};
use strew_manifest::read::RawDocument;
use strew_model::Span;

use super::diagnostics;
use super::history::{History, Making};
use super::input::Input;
use super::key::Key;
use super::simkube::LATEST;
use super::times;
use crate::format::diagnostics::negative;
use crate::format::problems::Problems;
use crate::format::value::{At, Fields};
use crate::format::vocabulary::{Form, Shape, fields, shape};

const API_VERSION: &str = "action.kwok.x-k8s.io/v1alpha1";
const KIND: &str = "ResourcePatch";

static PATCH: Shape = shape(
    "ResourcePatch",
    "What happened to an object.",
    fields! {
        "apiVersion" must: &Form::Text, "The version of the format.";
        "kind" must: &Form::Text, "The kind.";
        "resource" must: &Form::Shape(&RESOURCE), "Of which type.";
        "target" must: &Form::Shape(&TARGET), "Which object.";
        "durationNanosecond" must: &Form::Number, "When, from the first.";
        "method" must: &Form::Choice(METHODS), "What.";
        "template": &Form::Object, "The object, or the patch.";
    },
);

static RESOURCE: Shape = shape(
    "GroupVersionResource",
    "A type.",
    fields! {
        "group": &Form::Text, "Its group; none for the core.";
        "version" must: &Form::Text, "Its version.";
        "resource" must: &Form::Text, "Its plural name.";
    },
);

static TARGET: Shape = shape(
    "Target",
    "An object.",
    fields! {
        "name" must: &Form::Text, "Its name.";
        "namespace": &Form::Text, "Its namespace.";
    },
);

const METHODS: &[&str] = &["create", "patch", "delete"];

/// A change, read.
struct Change {
    at: Span,
    /// `None` if strew does not model the type.
    of: Option<&'static KindRow>,
    resource: String,
    namespace: Option<String>,
    name: String,
    /// An index into [`METHODS`].
    method: usize,
    template: Value,
    document: RawDocument,
}

/// Reads the record; returns the number of changes.
pub(super) fn read(input: &mut Input<'_>, history: &mut History) -> usize {
    let documents = std::mem::take(&mut input.documents);
    if documents.is_empty() {
        input.nothing("record");
    }
    let mut changes = Vec::new();
    for document in documents {
        let mut problems = Problems::default();
        let is_change = document.value["kind"] == KIND;
        let origin = document.origin.clone();
        if is_change {
            changes.extend(change(document, &mut problems));
        } else if changes.is_empty() {
            let mut value = document.value;
            times::put_in(&mut value);
            if let Some(object) = input.object(&value, &FieldPath::root(), &mut problems) {
                history.begin(&object);
            }
        } else {
            problems.add(&FieldPath::root(), diagnostics::late_object());
        }
        input.place(problems, &origin);
    }
    history.seal();
    // Changes of one watch may be recorded slightly late.
    changes.sort_by_key(|change| change.at);
    let n_changes = changes.len();
    for change in changes {
        let mut problems = Problems::default();
        tell(&change, input, history, &mut problems);
        input.place(problems, &change.document.origin);
    }
    n_changes
}

fn change(document: RawDocument, problems: &mut Problems) -> Option<Change> {
    let at = At::root(&document.value);
    let version = document.value["apiVersion"].as_str();
    if let Some(version) = version.filter(|version| *version != API_VERSION) {
        let path = at.path.child("apiVersion");
        problems.add(&path, diagnostics::record_version(version));
        return None;
    }
    let fields = at.fields(&PATCH, problems)?;
    fields.required("apiVersion", problems)?;
    let resource = fields.required("resource", problems);
    let resource = resource.and_then(|at| at.fields(&RESOURCE, problems));
    let target = fields.required("target", problems);
    let target = target.and_then(|at| at.fields(&TARGET, problems));
    let at = time(&fields, problems);
    let method = fields.required("method", problems);
    let method = method.and_then(|at| at.choice(METHODS, problems))?;
    let template = match METHODS[method] {
        "delete" => Value::Null,
        _ => {
            let mut template = fields.required("template", problems)?.value.clone();
            times::put_in(&mut template);
            template
        }
    };
    let (resource, target) = (resource?, target?);
    let text = |fields: &Fields<'_>, name, problems: &mut Problems| {
        let text = fields.get(name).and_then(|at| at.text(problems));
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let group = text(&resource, "group", problems);
    let plural = resource.required("resource", problems);
    let plural = plural.and_then(|at| at.name(problems))?.to_owned();
    let name = target.required("name", problems);
    let name = name.and_then(|at| at.name(problems))?.to_owned();
    let namespace = text(&target, "namespace", problems);
    let of = kinds::KINDS.iter().find(|known| {
        let is_named =
            known.plural == plural && known.group == group.as_deref().unwrap_or_default();
        is_named && known.short.is_some() && is_modelled(known)
    });
    let (at, resource) = (
        at?,
        match group {
            Some(group) => format!("{plural}.{group}"),
            None => plural,
        },
    );
    Some(Change {
        at,
        of,
        resource,
        namespace,
        name,
        method,
        template,
        document,
    })
}

/// Not all types with a name are.
fn is_modelled(of: &KindRow) -> bool {
    Schema::of_kind(of.kind).is_some() && of.kind != "Lease"
}

fn time(fields: &Fields<'_>, problems: &mut Problems) -> Option<Span> {
    let at = fields.required("durationNanosecond", problems)?;
    let error = match (at.value.as_u64(), at.value.as_i64()) {
        (Some(nanos), _) if nanos <= LATEST => return Some(Span(nanos)),
        (Some(_), _) => diagnostics::out_of_range("the time"),
        (None, Some(_)) => negative(at.value),
        (None, None) => diagnostics::not_whole("a whole number of nanoseconds"),
    };
    problems.add(&at.path, error);
    None
}

fn tell(change: &Change, input: &mut Input<'_>, history: &mut History, problems: &mut Problems) {
    let Some(of) = change.of else {
        return history.left_out.unmodelled(&change.resource);
    };
    let namespace = change.namespace.as_deref().unwrap_or("default");
    let key = Key {
        of,
        namespace: of.is_namespaced.then(|| namespace.to_owned()),
        name: change.name.clone(),
    };
    let path = FieldPath::root().child("template");
    let whole = match METHODS[change.method] {
        "delete" => return history.delete(change.at, &key),
        "create" => change.template.clone(),
        _ => match patched(change, &key, history) {
            None => return history.left_out.n_unknown += 1,
            Some(Ok(whole)) => whole,
            Some(Err(why)) => {
                return problems.add(&path, diagnostics::not_patched(&why));
            }
        },
    };
    let Some(object) = input.object(&whole, &path, problems) else {
        return;
    };
    match Key::of(&object) {
        Some(found) if found == key => history.set(change.at, &object, Making::Create),
        _ => {
            let error = diagnostics::other_object(&object.label(), &key.target());
            problems.add(&path, error);
        }
    }
}

/// The object after the patch; `None` if the recording does not hold the object.
fn patched(change: &Change, key: &Key, history: &History) -> Option<Result<Value, String>> {
    let base = history.whole(key);
    let base = base.or_else(|| history.namesake(key.namespace.as_deref(), &key.name))?;
    let schema = Schema::of_kind(key.of.kind)?;
    let mut whole = match strategic::patch(schema, base, &change.template) {
        Ok(whole) => whole,
        Err(error) => return Some(Err(error.to_string())),
    };
    if whole["kind"] != key.of.kind {
        whole["kind"] = json!(key.of.kind);
    }
    Some(Ok(whole))
}
