//! Values: what expressions compute with.

use std::fmt;
use std::sync::Arc;

use kube_cel::cel;
use serde_json::Value as Json;

/// Keys under which a scenario's objects carry what people choose the names of.
const OPEN_MAPS: [&str; 3] = ["labels", "annotations", "domains"];

/// A value of an expression.
///
/// Lists, maps and texts are shared: a clone costs nothing, so a list of pods is built once and given to as many
/// expressions as there are.
///
/// ```
/// use strew_cel::Value;
///
/// let pods = Value::from_json(&serde_json::json!([{"name": "web-1", "labels": {"app": "web"}}]));
/// let again = pods.clone(); // shares everything
/// # drop(again);
/// ```
#[derive(Clone, Debug)]
pub struct Value(pub(crate) Val);

/// What a value is; matched over by evaluation only.
#[derive(Clone, Debug)]
pub(crate) enum Val {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<Vec<Val>>),
    Map(Arc<Map>),
    Optional(Option<Arc<Val>>),
    Type(&'static str),
    /// A quantity, address, URL, version, time or duration: only the library looks inside.
    Foreign(cel::Value),
}

/// Entries by key, in the order of keys, so that walking over a map is the same in every run.
#[derive(Debug)]
pub(crate) struct Map {
    entries: Vec<(Key, Val)>,
    /// Labels and their like: in a scenario, a key that is not there is a label that is not set.
    pub(crate) is_open: bool,
}

/// A key of a map. Whole numbers are one key whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i128),
    Text(Arc<str>),
}

impl Value {
    /// A value of JSON.
    ///
    /// Whole numbers become `int` (one beyond 64 bits with sign becomes `double`, as in Go's decoder), all others
    /// `double`; objects become maps. In the environment of scenarios, maps under the keys `labels`, `annotations`
    /// and `domains` are open: [`Environment::Scenario`](crate::Environment::Scenario) says what that means.
    #[must_use]
    pub fn from_json(json: &Json) -> Self {
        Self(Val::from_json(json, false))
    }

    /// A list of values, such as one list of pods made of many batches.
    #[must_use]
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Self(Val::List(Arc::new(
            items.into_iter().map(|v| v.0).collect(),
        )))
    }

    /// The texts of a list of texts; `None` for any other value.
    #[must_use]
    pub fn texts(&self) -> Option<Vec<String>> {
        let Val::List(items) = &self.0 else {
            return None;
        };
        let text = |item: &Val| match item {
            Val::Text(text) => Some(text.to_string()),
            _ => None,
        };
        items.iter().map(text).collect()
    }

    /// A point in time, in RFC 3339, such as `2026-01-02T03:04:05Z`; `None` for any other text.
    #[must_use]
    pub fn timestamp(text: &str) -> Option<Self> {
        crate::library::call("timestamp", &[Val::text(text)], false)
            .ok()
            .map(Self)
    }

    /// A span of time in nanoseconds.
    #[must_use]
    pub fn duration(ns: i64) -> Self {
        // By seconds and the rest: the library reads numbers as doubles, which hold 53 bits.
        let sign = if ns < 0 { "-" } else { "" };
        let ns = ns.unsigned_abs();
        let text = format!("{sign}{}s{}ns", ns / 1_000_000_000, ns % 1_000_000_000);
        let made = crate::library::call("duration", &[Val::text(&text)], false);
        Self(made.unwrap_or(Val::Null))
    }
}

impl Val {
    fn from_json(json: &Json, is_open: bool) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(b) => Self::Bool(*b),
            Json::Number(n) => match n.as_i64() {
                Some(n) => Self::Int(n),
                None => Self::Double(n.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(s) => Self::text(s),
            Json::Array(items) => {
                let items = items.iter().map(|item| Self::from_json(item, false));
                Self::List(Arc::new(items.collect()))
            }
            Json::Object(fields) => {
                let value = |key: &str, v| Self::from_json(v, OPEN_MAPS.contains(&key));
                let entries = fields
                    .iter()
                    .map(|(k, v)| (Key::Text(k.as_str().into()), value(k, v)));
                let mut map = Map::new(entries.collect());
                map.is_open = is_open;
                Self::Map(Arc::new(map))
            }
        }
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// The name of its type, as `type()` prints it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Foreign(cel::Value::Duration(_)) => "google.protobuf.Duration",
            Self::Foreign(cel::Value::Timestamp(_)) => "google.protobuf.Timestamp",
            Self::Foreign(_) => "a Kubernetes type",
        }
    }

    /// About how many bytes and entries it has; stops counting past `most`.
    pub(crate) fn size(&self, most: u64) -> u64 {
        match self {
            Self::Text(s) => s.len() as u64,
            Self::Bytes(b) => b.len() as u64,
            Self::List(items) => size_of_all(items.iter(), most),
            Self::Map(map) => size_of_all(map.entries.iter().map(|(_, v)| v), most),
            Self::Optional(Some(v)) => v.size(most),
            _ => 1,
        }
    }
}

fn size_of_all<'a>(items: impl Iterator<Item = &'a Val>, most: u64) -> u64 {
    let mut sum = 1;
    for item in items {
        if sum > most {
            break;
        }
        sum += 1 + item.size(most - sum);
    }
    sum
}

impl Map {
    /// The last of several entries with one key holds.
    pub(crate) fn new(mut entries: Vec<(Key, Val)>) -> Self {
        entries.reverse();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        entries.dedup_by(|(a, _), (b, _)| a == b);
        Self {
            entries,
            is_open: false,
        }
    }

    pub(crate) fn entries(&self) -> &[(Key, Val)] {
        &self.entries
    }

    pub(crate) fn text(&self, key: &str) -> Option<&Val> {
        let found = self.entries.binary_search_by(|(k, _)| match k {
            Key::Text(text) => text.as_ref().cmp(key),
            _ => std::cmp::Ordering::Less,
        });
        found.ok().map(|i| &self.entries[i].1)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Val> {
        let found = self.entries.binary_search_by(|(k, _)| k.cmp(key));
        found.ok().map(|i| &self.entries[i].1)
    }
}

impl Key {
    /// `None` for what can't be one.
    pub(crate) fn of(value: &Val) -> Option<Self> {
        match value {
            Val::Bool(b) => Some(Self::Bool(*b)),
            Val::Int(n) => Some(Self::Int(i128::from(*n))),
            Val::Uint(n) => Some(Self::Int(i128::from(*n))),
            // A double that is whole finds the entry of that number, as in cel-go.
            Val::Double(d) if d.fract() == 0.0 && d.abs() < 1e19 => Some(Self::Int(*d as i128)),
            Val::Text(text) => Some(Self::Text(text.clone())),
            _ => None,
        }
    }

    pub(crate) fn value(&self) -> Val {
        match self {
            Self::Bool(b) => Val::Bool(*b),
            Self::Int(n) => match i64::try_from(*n) {
                Ok(n) => Val::Int(n),
                Err(_) => Val::Uint(u64::try_from(*n).unwrap_or(u64::MAX)),
            },
            Self::Text(text) => Val::Text(text.clone()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(b) => write!(f, "{b}"),
            Self::Int(n) => write!(f, "{n}"),
            Self::Text(text) => write!(f, "'{text}'"),
        }
    }
}
