//! `apiVersion`, `kind` and metadata of an object, read before its kind is known.

use serde_json::{Map, Value};

use super::check::describe;
use super::kind::{DEFAULT_NAMESPACE, Kind};

/// Type and name of an object.
pub(super) struct Head {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// As written; see [`Head::namespace_of`].
    pub(super) namespace: Option<String>,
    /// Empty if there is none.
    pub(super) name: String,
    /// The beginning of a name that the API server completes; empty if there is none.
    pub(super) generate_name: String,
    /// True if it has a uid, which only an API server sets.
    pub(super) from_dump: bool,
}

/// The `apiVersion` and `kind` that a list implies for its items.
pub(super) type Lent<'a> = Option<(&'a str, &'a str)>;

/// What is wrong with the field `apiVersion` or `kind`.
pub(super) enum TypeFault {
    Missing(&'static str),
    Mistyped(&'static str, String),
}

impl Head {
    /// Reads the head of an object.
    ///
    /// # Errors
    /// The errors of `apiVersion` and `kind`.
    pub(super) fn of(fields: &Map<String, Value>, lent: Lent<'_>) -> Result<Self, Vec<TypeFault>> {
        let api_version = type_field(fields, "apiVersion", lent.map(|lent| lent.0));
        let kind = type_field(fields, "kind", lent.map(|lent| lent.1));
        let (api_version, kind) = match (api_version, kind) {
            (Ok(api_version), Ok(kind)) => (api_version, kind),
            (api_version, kind) => {
                return Err(api_version.err().into_iter().chain(kind.err()).collect());
            }
        };
        let metadata = fields.get("metadata");
        let text = |name| {
            let text = metadata?.get(name)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Ok(Self {
            api_version,
            kind,
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            generate_name: text("generateName").unwrap_or_default(),
            from_dump: text("uid").is_some(),
        })
    }

    /// The namespace of an object of this kind.
    pub(super) fn namespace_of(&self, kind: Kind) -> Option<String> {
        let named = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        kind.is_namespaced().then(|| named.to_owned())
    }
}

fn type_field(
    fields: &Map<String, Value>,
    name: &'static str,
    lent: Option<&str>,
) -> Result<String, TypeFault> {
    match fields.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::Null | Value::String(_)) | None => {
            lent.map(str::to_owned).ok_or(TypeFault::Missing(name))
        }
        Some(other) => {
            let message = format!("expected a string, found {}", describe(other));
            Err(TypeFault::Mistyped(name, message))
        }
    }
}

/// True if a document comes from an API server: it, or the first item of a list, has a uid.
pub(super) fn is_dump(value: &Value) -> bool {
    let has_uid = |value: &Value| value["metadata"]["uid"].is_string();
    has_uid(value) || has_uid(&value["items"][0])
}

const LIST: &str = "List";

/// True for a list of objects: `List` itself, or a kind named `…List` with items.
pub(super) fn is_list(kind: &str, fields: &Map<String, Value>) -> bool {
    let has_items = matches!(fields.get("items"), Some(Value::Array(_) | Value::Null));
    kind == LIST || (kind.ends_with(LIST) && has_items)
}

/// As [`is_list`], for a document.
pub(super) fn is_list_of_objects(value: &Value) -> bool {
    let fields = value.as_object();
    fields.is_some_and(|f| Head::of(f, None).is_ok_and(|head| is_list(&head.kind, f)))
}

/// The kind of a list's items: `Deployment` for `DeploymentList`, `None` for `List`.
pub(super) fn item_kind(list_kind: &str) -> Option<&str> {
    let kind = list_kind.strip_suffix(LIST)?;
    (!kind.is_empty()).then_some(kind)
}
