//! `strew schema`, and the published files that it writes.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::Value;

use crate::{json, root, stderr, stdout, strew};

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
    assert_eq!(expected.len(), 20, "{expected:?}");
    let files = std::fs::read_dir(&folder).unwrap();
    let found: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(found, expected);
    // The older flags of simulate print the same.
    let old = stdout(&strew("simulate --schema report").assert().code(0));
    assert_eq!(old, stdout(&strew("schema report").assert().code(0)));
}

/// Forbids fields that the schema does not name: readers may ignore them, but what strew writes has none.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
                fields.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Judges values by the schema of a kind.
struct Judge {
    kind: &'static str,
    validator: Validator,
}

impl Judge {
    fn of(kind: &'static str) -> Self {
        let mut schema = json(&strew(&format!("schema {kind}")).assert().code(0));
        close(&mut schema);
        let validator = jsonschema::validator_for(&schema).unwrap();
        Self { kind, validator }
    }

    /// The mistakes of a value, each with its place.
    fn mistakes(&self, value: &Value) -> Vec<String> {
        let errors = self.validator.iter_errors(value);
        let told = errors.map(|error| format!("{}: {error}", error.instance_path()));
        told.map(|text| text.chars().take(300).collect()).collect()
    }

    /// Adds what is wrong with the result of a command.
    fn judge(&self, args: &str, wrong: &mut Vec<String>) -> Value {
        let run = strew(args).assert();
        let text = stdout(&run);
        let value: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args}: {e}\n{}", stderr(&run)));
        let found = self.mistakes(&value).into_iter().take(3);
        wrong.extend(found.map(|what| format!("{} of `{args}`: {what}", self.kind)));
        value
    }
}

/// The files with objects below a folder, without those that are wrong on purpose.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root())
                .unwrap()
                .to_string_lossy()
                .into_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if name.ends_with(".yaml") => found.push(name),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// Every report validates: of the examples, and of the scenarios up to their first minute.
#[test]
fn every_report_is_of_its_schema() {
    let judge = Judge::of("report");
    let all: Vec<String> = [files("examples"), files("scenarios")].concat();
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = all.chunks(all.len().div_ceil(n_threads));
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let threads = each.map(|files| {
            let judge = &judge;
            scope.spawn(move || {
                let mut wrong = Vec::new();
                for file in files {
                    let args = format!("simulate {file} --seed 1 --until 1m -o json -q");
                    let run = strew(&args).assert();
                    // Placements and parts of scenarios have nothing to simulate.
                    if run.get_output().status.code() != Some(2) {
                        judge.judge(&args, &mut wrong);
                    }
                }
                wrong
            })
        });
        let threads: Vec<_> = threads.collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(wrong, [""; 0]);
    assert!(all.len() > 100, "{all:?}");
}

/// A dump with a Pending pod of which the cluster recorded why.
const RECORDED: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "1", "labels": {"kubernetes.io/hostname": "n"}},
   "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]}},
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default", "uid": "2"},
   "spec": {"containers": [{"name": "m", "image": "x", "resources": {"requests": {"cpu": "2"}}}]},
   "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
     "message": "0/1 nodes are available: 1 Insufficient cpu.", "lastTransitionTime": "2026-11-01T00:00:00Z"}]}}
]}"#;

/// The whole story, explanations, differences, summaries and findings validate.
#[test]
fn every_result_is_of_its_schema() {
    let temporary = |file: &str, value: &Value| {
        let path = std::env::temp_dir().join(format!("strew-schema-{}-{file}", std::process::id()));
        std::fs::write(&path, value.to_string()).unwrap();
        path
    };
    let mut wrong = Vec::new();
    let report = Judge::of("report");
    let shop =
        |zones: u32| format!("simulate examples/shop.yaml --zones {zones} --nodes 12 -o json");
    let first = temporary("a.json", &report.judge(&shop(3), &mut wrong));
    let second = temporary("b.json", &report.judge(&shop(2), &mut wrong));
    for file in [
        "mis",
        "ci-01-pdb-wrong-namespace",
        "51-values-the-api-server-refuses",
    ] {
        let file = format!("crates/strew/tests/cases/{file}/in.yaml");
        Judge::of("diagnostics").judge(&format!("lint {file} -o json"), &mut wrong);
        if !file.contains("51") {
            report.judge(&format!("simulate {file} -o json"), &mut wrong);
        }
    }
    let wrong_input =
        "simulate crates/strew/tests/cases/51-values-the-api-server-refuses/in.yaml -o json";
    Judge::of("diagnostics").judge(wrong_input, &mut wrong);
    Judge::of("diagnostics").judge("lint examples -o json", &mut wrong);

    for file in ["returned", "two-workloads", "full"] {
        let file = format!("crates/strew/tests/cases/rebalance/{file}.yaml");
        Judge::of("rebalance").judge(&format!("rebalance {file} -o json"), &mut wrong);
    }

    let policy = "crates/strew/tests/cases/default-policy";
    for file in ["defaults", "soft"] {
        let report = format!("defaults {policy}/{file}.yaml {policy}/dump.yaml -o json");
        Judge::of("defaults").judge(&report, &mut wrong);
    }

    let diff = format!("diff {} {} -o json", first.display(), second.display());
    Judge::of("diff").judge(&diff, &mut wrong);

    let summary = Judge::of("summary");
    let sweep = "simulate examples/scenarios/rollout.yaml --seeds 4";
    let parts = ["0/2", "1/2"].map(|shard| {
        let part = summary.judge(&format!("{sweep} --shard {shard}"), &mut wrong);
        temporary(&format!("{}.json", &shard[..1]), &part)
    });
    let merge = format!(
        "merge {} {} -o summary",
        parts[0].display(),
        parts[1].display()
    );
    summary.judge(&merge, &mut wrong);

    let explanation = Judge::of("explanation");
    for args in [
        "explain deployment/web examples/tight.yaml -o json",
        "explain pod/db-0 examples/shop.yaml --nodes 12 -o json",
        "explain deployment/web crates/strew/tests/cases/mis/in.yaml --nodes 12 -o json",
        "explain deployment/web examples/tight.yaml --what-if minDomains=topology.kubernetes.io/zone:2 -o json",
    ] {
        explanation.judge(args, &mut wrong);
    }
    let dump = temporary("dump.json", &serde_json::from_str(RECORDED).unwrap());
    let recorded = format!("explain pod/p {} -o json", dump.display());
    let recorded = explanation.judge(&recorded, &mut wrong);
    assert!(recorded["recorded"]["condition"].is_object(), "{recorded}");
    let decisions = Judge::of("placementdecision");
    let place = json(
        &strew("place examples/placement/fleet.yaml examples/placement/use-case-1.yaml -o json")
            .assert(),
    );
    for item in place["items"].as_array().unwrap() {
        wrong.extend(decisions.mistakes(item));
    }
    assert_eq!(wrong, [""; 0]);
    // The judge finds an unknown field, and a missing one.
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(&first).unwrap()).unwrap();
    value["findings"] = serde_json::json!([{"code": "x", "surely": 1}]);
    assert_eq!(
        report.mistakes(&value).len(),
        3,
        "{:?}",
        report.mistakes(&value)
    );
    for file in [first, second, dump].into_iter().chain(parts) {
        std::fs::remove_file(file).unwrap();
    }
}
