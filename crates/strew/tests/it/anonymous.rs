//! An anonymized dump decides as the dump itself.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::{json, stderr, strew};

/// The dump without names, and each name that was replaced.
fn anonymized(of: &str, test: &str) -> (PathBuf, BTreeMap<String, String>) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("anonymous-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (file, names) = (folder.join("public.json"), folder.join("names.json"));
    let run = strew(&format!("snapshot {of} --anonymize --names"));
    run.arg(&names).arg("--file").arg(&file).assert().code(0);
    let names = std::fs::read_to_string(names).unwrap();
    (file, serde_json::from_str(&names).unwrap())
}

/// The value with names replaced, and without sentences, selectors, digests and names of files.
fn renamed(value: &Value, names: &BTreeMap<String, String>) -> Value {
    let name = |text: &str| {
        let text = without_digest(text);
        if let Some(new) = names.get(&text) {
            return new.clone();
        }
        // `db-0`, `deployment/web`.
        if let Some((name, number)) = text.rsplit_once('-')
            && let Some(new) = names.get(name)
        {
            return format!("{new}-{number}");
        }
        let parts = text
            .split('/')
            .map(|part| names.get(part).map_or(part, String::as_str));
        parts.collect::<Vec<_>>().join("/")
    };
    match value {
        Value::String(text) if text.contains([' ', ':', '=']) => Value::Null,
        Value::String(text) => name(text).into(),
        Value::Array(items) => items.iter().map(|item| renamed(item, names)).collect(),
        Value::Object(map) => {
            let fields = map
                .iter()
                .filter(|(key, _)| !["inputs", "files", "file"].contains(&key.as_str()));
            let fields = fields.map(|(key, value)| (name(key), renamed(value, names)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// The name of a pod or a ReplicaSet without the digest of its template, which names are a part of, and what is drawn.
fn without_digest(text: &str) -> String {
    let mut parts: Vec<&str> = text.split('-').collect();
    let is_drawn = |part: &&str, length: std::ops::RangeInclusive<usize>| {
        length.contains(&part.len())
            && part
                .bytes()
                .all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b))
    };
    if parts.len() > 2 && parts.last().is_some_and(|part| is_drawn(part, 5..=5)) {
        parts.pop();
    }
    if parts.len() > 1 && parts.last().is_some_and(|part| is_drawn(part, 7..=10)) {
        parts.pop();
    }
    parts.join("-")
}

/// Says where two values differ first.
fn assert_alike(path: &str, one: &Value, other: &Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys =
                |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(one), keys(other), "{path}");
            for (key, value) in one {
                assert_alike(&format!("{path}.{key}"), value, &other[key]);
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len(), "{path}");
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                assert_alike(&format!("{path}[{index}]"), one, other);
            }
        }
        _ => assert_eq!(one, other, "{path}"),
    }
}

#[test]
fn pending_pods_have_the_same_causes() {
    let (public, names) = anonymized("examples/tight.yaml", "tight");
    assert_eq!(names["web"].chars().next(), Some('x'), "{names:?}");
    let text = std::fs::read_to_string(&public).unwrap();
    assert!(!text.contains("\"web"), "{text}");
    let of = |file: &str, workload: &str| {
        json(&strew(&format!("explain deployment/{workload} {file} -o json")).assert())
    };
    let one = renamed(&of("examples/tight.yaml", "web"), &names);
    let other = renamed(
        &of(public.to_str().unwrap(), &names["web"]),
        &BTreeMap::new(),
    );
    assert_alike("", &one, &other);
}

#[test]
fn losses_have_the_same_verdicts_and_spreads_are_equal() {
    for command in ["audit", "simulate --until deploy"] {
        let (public, names) = anonymized("examples/shop.yaml", command.split(' ').next().unwrap());
        let of = |file: &str| json(&strew(&format!("{command} {file} --seed 3 -o json")).assert());
        let one = renamed(&of("examples/shop.yaml"), &names);
        let other = renamed(&of(public.to_str().unwrap()), &BTreeMap::new());
        assert_alike(command, &one, &other);
    }
}

#[test]
fn a_list_of_names_alone_is_refused() {
    let run = strew("snapshot examples/tight.yaml --names names.json").assert();
    let said = stderr(&run.code(2));
    assert!(said.contains("--anonymize"), "{said}");
}
