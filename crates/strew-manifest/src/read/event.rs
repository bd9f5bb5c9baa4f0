//! What an Event says, in each of its versions.

use serde_json::{Map, Value};

use super::kind::DEFAULT_NAMESPACE;

/// What an Event of `v1` or of `events.k8s.io/v1` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The kind of the object that it is about; empty if there is none.
    pub kind: String,
    /// The namespace of that object; `default` if none is given.
    pub namespace: String,
    /// The name of that object.
    pub name: String,
    /// Its reason, as `FailedScheduling`.
    pub reason: String,
    /// Its text.
    pub message: String,
    /// How often it happened.
    pub count: u64,
    /// When it was last seen, as written; empty if that is not known.
    pub last: String,
}

impl EventRecord {
    /// What an object says; `None` if it is no Event.
    pub(super) fn of(kind: &str, fields: &Map<String, Value>) -> Option<Box<Self>> {
        if kind != "Event" {
            return None;
        }
        let text = |paths: &[&str]| {
            let found = first(fields, paths, Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let about = first(fields, &["involvedObject", "regarding"], Value::as_object);
        let about = |field: &str| Some(about?.get(field)?.as_str()?.to_owned());
        Some(Box::new(Self {
            kind: about("kind").unwrap_or_default(),
            namespace: about("namespace").unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned()),
            name: about("name").unwrap_or_default(),
            reason: text(&["reason"]),
            message: text(&["message", "note"]),
            count: first(
                fields,
                &["series.count", "count", "deprecatedCount"],
                Value::as_u64,
            )
            .unwrap_or(1),
            last: text(&[
                "series.lastObservedTime",
                "lastTimestamp",
                "deprecatedLastTimestamp",
                "eventTime",
                "metadata.creationTimestamp",
            ]),
        }))
    }
}

/// The first of some fields that has a value of a type.
fn first<'v, T>(
    fields: &'v Map<String, Value>,
    paths: &[&str],
    typed: impl Fn(&'v Value) -> Option<T>,
) -> Option<T> {
    let at = |path: &&str| match path.split_once('.') {
        Some((outer, inner)) => fields.get(outer)?.get(inner),
        None => fields.get(*path),
    };
    paths.iter().filter_map(at).find_map(typed)
}

#[cfg(test)]
mod tests {
    use crate::read::{Sources, read};

    #[test]
    fn an_event_is_kept_by_the_one_reading_of_its_file() {
        let mut sources = Sources::new();
        sources.add(
            "events.yaml",
            r#"
apiVersion: v1
kind: EventList
items:
- metadata: {name: a, namespace: shop, creationTimestamp: "2026-11-20T02:00:00Z"}
  involvedObject: {kind: Pod, name: web-1, namespace: shop}
  reason: FailedScheduling
  message: 0/3 nodes are available
  count: 7
  lastTimestamp: "2026-11-20T02:03:00Z"
---
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: b, creationTimestamp: "2026-11-20T02:01:00Z"}
regarding: {kind: Pod, name: web-2}
reason: Scheduled
note: assigned
eventTime: null
---
apiVersion: example.com/v1
kind: Game
metadata: {name: c}
reason: none
"#,
        );
        let reading = read(&sources);
        let objects = reading.objects.iter();
        let records = objects.map(|located| located.object.event());
        let text = |e: &super::EventRecord| {
            format!(
                "{}/{}/{} {} x{} {}: {}",
                e.kind, e.namespace, e.name, e.reason, e.count, e.last, e.message
            )
        };
        assert_eq!(
            records.map(|e| e.map(text)).collect::<Vec<_>>(),
            [
                Some("Pod/shop/web-1 FailedScheduling x7 2026-11-20T02:03:00Z: 0/3 nodes are available".to_owned()),
                Some("Pod/default/web-2 Scheduled x1 2026-11-20T02:01:00Z: assigned".to_owned()),
                None
            ]
        );
    }
}
