//! Workflows, issue forms and the action. actionlint and zizmor check them too, where they can be installed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{deny, expect_none, project, repository};

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&repository::read(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The YAML files of the forge, and the action.
fn files() -> Vec<String> {
    let names = repository::files().into_iter();
    let names = names.map(|path| path.display().to_string());
    let is_one = |name: &String| name.starts_with(".github/") && name.ends_with(".yml");
    let mut files: Vec<String> = names.filter(is_one).collect();
    assert!(files.len() > 4, "{files:?}");
    files.push("action.yml".to_owned());
    files
}

/// A tag can be moved by whoever owns the action.
#[test]
fn actions_of_others_are_pinned_by_digest() {
    let mut broken = Vec::new();
    let mut pins: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files() {
        for line in repository::read(&file).lines() {
            let Some((_, used)) = line.split_once("uses: ") else {
                continue;
            };
            let (name, pin) = used.split_once('@').unwrap_or((used, ""));
            let (digest, version) = pin.split_once(" # v").unwrap_or((pin, ""));
            let is_digest = digest.len() == 40 && digest.chars().all(|c| c.is_ascii_hexdigit());
            if !is_digest || version.is_empty() {
                broken.push(format!("{file}: {used}"));
            }
            let of_action = pins.entry(name.to_owned()).or_default();
            of_action.insert(pin.to_owned());
        }
    }
    assert!(pins.len() > 4, "actions are found: {pins:?}");
    let twice = pins.into_iter().filter(|(_, pins)| pins.len() > 1);
    broken.extend(twice.map(|(name, pins)| format!("{name}: {pins:?}")));
    expect_none(
        broken,
        "`uses: OWNER/NAME@COMMIT # vVERSION`, of one version everywhere.",
    );
}

#[test]
fn the_forge_runs_the_same_checks() {
    let steps = &yaml(".github/workflows/ci.yml")["jobs"]["check"]["steps"];
    let steps = steps.as_array().expect("a list");
    let has = |run: &str| steps.iter().any(|step| step["run"] == run);
    assert!(has("cargo xtask ci --all-tools"), "{steps:?}");
    let rust = project::package_field("rust-version");
    for file in ["ci", "release"] {
        let text = repository::read(format!(".github/workflows/{file}.yml"));
        let named: Vec<&str> = text.split("toolchain install ").skip(1).collect();
        assert!(!named.is_empty(), "{file}");
        assert!(named.iter().all(|t| t.starts_with(&rust)), "{file}: {rust}");
    }
}

#[test]
fn no_job_has_rights_that_it_does_not_name() {
    for file in ["ci", "release"] {
        let workflow = yaml(&format!(".github/workflows/{file}.yml"));
        assert_eq!(workflow["permissions"], serde_json::json!({}), "{file}");
        let jobs = workflow["jobs"].as_object().expect("jobs");
        for (name, job) in jobs {
            assert!(job["permissions"].is_object(), "{file}, {name}");
            assert!(job["timeout-minutes"].is_number(), "{file}, {name}");
        }
    }
}

/// Targets of Rust as archives are named.
const PLATFORMS: [(&str, &str); 6] = [
    ("x86_64-unknown-linux-gnu", "linux-amd64"),
    ("aarch64-unknown-linux-gnu", "linux-arm64"),
    ("x86_64-apple-darwin", "darwin-amd64"),
    ("aarch64-apple-darwin", "darwin-arm64"),
    ("x86_64-pc-windows-msvc", "windows-amd64"),
    // What a Linux machine can build.
    ("x86_64-pc-windows-gnu", "windows-amd64"),
];

#[test]
fn what_is_released_is_what_is_checked() {
    let matrix = &yaml(".github/workflows/release.yml")["jobs"]["build"]["strategy"]["matrix"];
    let built = matrix["include"].as_array().expect("a list");
    let built = built.iter().filter_map(|b| b["platform"].as_str());
    let built: BTreeSet<&str> = built.filter(|name| !name.ends_with("-again")).collect();
    let checked: BTreeSet<&str> = deny::targets()
        .iter()
        .filter_map(|target| PLATFORMS.iter().find(|(known, _)| known == target))
        .map(|(_, name)| *name)
        .collect();
    assert_eq!(built, checked, "the matrix of the release, and deny.toml");
}

#[test]
fn issue_forms_ask_for_what_repeats_an_answer() {
    let forms = files().into_iter();
    let forms = forms.filter(|f| f.contains("ISSUE_TEMPLATE") && !f.ends_with("config.yml"));
    for file in forms {
        let form = yaml(&file);
        for field in ["name", "description"] {
            assert!(form[field].is_string(), "{file}: {field}");
        }
        let body = form["body"].as_array().expect("a list");
        let ids: BTreeSet<&str> = body.iter().filter_map(|part| part["id"].as_str()).collect();
        assert_eq!(ids.len(), body.len(), "{file}: each question has an id");
        for part in body {
            assert!(part["attributes"]["label"].is_string(), "{file}: {part}");
        }
    }
}
