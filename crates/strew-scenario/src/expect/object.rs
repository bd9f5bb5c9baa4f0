//! Claims about a part of an object, as in kuttl: every field of the claim must match, other fields are ignored.

use serde_json::Value;
use strew_apiserver::object::{Kind, Object};

use super::{Present, Verdict};

/// Judges a claim: the object of that name matches; without a name, at least one object of that kind and those labels.
pub fn judge(present: &dyn Present, partial: &Value) -> Verdict {
    let text = |key: &str| partial[key].as_str().unwrap_or_default();
    let kind = Kind::of_group(text("apiVersion"), text("kind"));
    let name = partial["metadata"]["name"].as_str();
    let namespace = partial["metadata"]["namespace"].as_str();
    let is_meant = |object: &Object| {
        let own = &object.meta().name;
        let namespace = match &*own.namespace {
            "" => true,
            own => own == namespace.unwrap_or("default") || (name.is_none() && namespace.is_none()),
        };
        object.kind() == kind && namespace && name.is_none_or(|name| *own.name == *name)
    };
    let tables = present.server().tables();
    let all = tables.all_of(&kind);
    let mut nearest: Option<String> = None;
    for object in all.iter().filter(|object| is_meant(object)) {
        match difference(partial, &object.to_json(), "") {
            None => return Verdict::new(true, String::new()),
            Some(text) => {
                nearest.get_or_insert(format!("{}: {text}", object.key()));
            }
        }
    }
    Verdict::new(
        false,
        nearest.unwrap_or_else(|| format!("there is no such {kind}")),
    )
}

/// The first difference between a value and the partial one, as text; `None` if every field matches.
fn difference(partial: &Value, found: &Value, path: &str) -> Option<String> {
    match (partial, found) {
        (Value::Object(partial), Value::Object(found)) => {
            partial.iter().find_map(|(key, wanted)| {
                let path = match path {
                    "" => key.clone(),
                    path => format!("{path}.{key}"),
                };
                // Null and absent are equal.
                difference(wanted, found.get(key).unwrap_or(&Value::Null), &path)
            })
        }
        (Value::Array(partial), Value::Array(found)) => {
            if partial.len() != found.len() {
                let (wanted, found) = (partial.len(), found.len());
                return Some(format!("{path} has {found} elements, not {wanted}"));
            }
            let pairs = partial.iter().zip(found).enumerate();
            pairs
                .map(|(i, (wanted, found))| difference(wanted, found, &format!("{path}[{i}]")))
                .find_map(|difference| difference)
        }
        (wanted, found) if equal(wanted, found) => None,
        // Fields with the value 0 are often left out.
        (Value::Number(wanted), Value::Null) if wanted.as_i64() == Some(0) => None,
        (Value::Object(wanted), Value::Null) if wanted.is_empty() => None,
        (wanted, Value::Null) => Some(format!("{path} is missing, not {wanted}")),
        (wanted, found) => Some(format!("{path} is {found}, not {wanted}")),
    }
}

fn equal(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_must_be_there() {
        let found = json!({"status": {"replicas": 3, "conditions": [{"type": "Available", "status": "True"}]}});
        for (partial, expected) in [
            (json!({"status": {"replicas": 3}}), None),
            (
                json!({"status": {"replicas": 4}}),
                Some("status.replicas is 3, not 4"),
            ),
            (json!({"status": {"updatedReplicas": 0}}), None),
            (
                json!({"status": {"readyReplicas": 3}}),
                Some("status.readyReplicas is missing, not 3"),
            ),
            (
                json!({"status": {"conditions": [{"status": "True"}]}}),
                None,
            ),
            (
                json!({"status": {"conditions": []}}),
                Some("status.conditions has 1 elements, not 0"),
            ),
            (json!({"status": {"paused": null}}), None),
        ] {
            let difference = difference(&partial, &found, "");
            assert_eq!(difference.as_deref(), expected, "{partial}");
        }
    }
}
