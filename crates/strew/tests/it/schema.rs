//! `strew schema`, and the published files that it writes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{json, root, stdout, strew};

/// The listed kinds.
fn kinds() -> Vec<String> {
    let listed = stdout(&strew("schema").assert().code(0));
    let words = listed
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned());
    words.collect()
}

/// `SNAPSHOTS=overwrite` writes them again.
#[test]
fn each_schema_is_published() {
    let folder = root().join("docs/schema");
    let mut expected = BTreeSet::new();
    for kind in kinds() {
        let schema = stdout(&strew(&format!("schema {kind}")).assert().code(0));
        let file = format!("{kind}.json");
        let path = folder.join(&file);
        if std::env::var_os("SNAPSHOTS").is_some_and(|how| how == "overwrite") {
            std::fs::write(&path, &schema).unwrap();
        }
        assert_eq!(schema, std::fs::read_to_string(&path).unwrap(), "{file}");
        expected.insert(file);
    }
    assert_eq!(expected.len(), 13, "{expected:?}");
    let files = std::fs::read_dir(&folder).unwrap();
    let found: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected);
    // The older flags of simulate print the same.
    let old = stdout(&strew("simulate --schema report").assert().code(0));
    assert_eq!(old, stdout(&strew("schema report").assert().code(0)));
}

/// The fields of a value that its schema does not name.
fn unknown(value: &Value, schema: &Value, whole: &Value, path: &str, found: &mut Vec<String>) {
    let mut shapes = vec![schema];
    let mut fields: Vec<(&String, &Value)> = Vec::new();
    let mut of_items = None;
    let mut is_open = false;
    while let Some(shape) = shapes.pop() {
        if let Some(name) = shape["$ref"].as_str() {
            shapes.push(whole.pointer(name.trim_start_matches('#')).unwrap());
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            shapes.extend(shape[word].as_array().into_iter().flatten());
        }
        fields.extend(shape["properties"].as_object().into_iter().flatten());
        of_items = of_items.or(shape.get("items"));
        let others = &shape["additionalProperties"];
        is_open |=
            shape == &Value::Bool(true) || !matches!(others, Value::Null | Value::Bool(false));
        is_open |= shape
            .as_object()
            .is_some_and(|shape| shape.keys().all(|k| k == "description"));
    }
    match value {
        Value::Object(_) if is_open => {}
        Value::Object(object) => {
            for (name, value) in object {
                let path = format!("{path}.{name}");
                let named: Vec<&Value> = fields
                    .iter()
                    .filter(|(n, _)| *n == name)
                    .map(|(_, schema)| *schema)
                    .collect();
                match named[..] {
                    [] => found.push(path),
                    [schema] => unknown(value, schema, whole, &path, found),
                    // Variants share the name.
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            for (item, schema) in items.iter().zip(std::iter::repeat_n(of_items, items.len())) {
                if let Some(schema) = schema {
                    unknown(item, schema, whole, path, found);
                }
            }
        }
        _ => {}
    }
}

/// The report, the difference and the explanation have only fields of their schemas.
#[test]
fn what_is_written_is_in_the_schema() {
    let report = |zones: u32, file: &str| {
        let args = format!("simulate examples/shop.yaml --zones {zones} --nodes 12 -o json");
        let run = strew(&args).assert();
        let path = std::env::temp_dir().join(format!("strew-schema-{}-{file}", std::process::id()));
        std::fs::write(&path, &run.get_output().stdout).unwrap();
        (path, json(&run))
    };
    let ((first, before), (second, _)) = (report(3, "a.json"), report(2, "b.json"));
    let diff = format!("diff {} {} -o json", first.display(), second.display());
    let diff = json(&strew(&diff).assert().code(1));
    let summary = "simulate examples/scenarios/rollout.yaml --seeds 2 --shard 0/2";
    let summary = json(&strew(summary).assert().code(0));
    let mut written = vec![("report", before), ("diff", diff), ("summary", summary)];
    for args in [
        "explain deployment/web examples/tight.yaml -o json",
        "explain pod/db-0 examples/shop.yaml --nodes 12 -o json",
    ] {
        written.push(("explanation", json(&strew(args).assert())));
    }
    for (kind, value) in written {
        let schema = json(&strew(&format!("schema {kind}")).assert().code(0));
        let mut found = Vec::new();
        unknown(&value, &schema, &schema, kind, &mut found);
        assert_eq!(found, [""; 0]);
        // The check finds an unknown field.
        let mut wrong = value.clone();
        wrong["surely"] = Value::Null;
        unknown(&wrong, &schema, &schema, kind, &mut found);
        assert_eq!(found, [format!("{kind}.surely")]);
    }
    for file in [first, second] {
        std::fs::remove_file(file).unwrap();
    }
}
