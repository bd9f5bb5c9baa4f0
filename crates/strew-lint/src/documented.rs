//! The examples of docs/lint.md: each rule finds what its example is about, and its fix takes it away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use strew_manifest::read::{KubeObject, RawDocument, Sources, documents, read};
use strew_model::Interner;
use strew_wire::config::{FeatureGates, Given, configure};

use crate::{Depth, Found, RULES, Scheduling, lint, lint_with_fixes};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lint.md");

/// The example of each rule: the YAML below its heading.
fn examples() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(Path::new(PAGE)).expect("docs/lint.md is there");
    let parts = page.split("\n### `").skip(1);
    let of_part = |part: &str| {
        let (code, rest) = part.split_once('`')?;
        let (_, rest) = rest.split_once("```yaml\n")?;
        let (yaml, _) = rest.split_once("```")?;
        Some((code.to_owned(), yaml.to_owned()))
    };
    parts.filter_map(of_part).collect()
}

/// The scheduler of the configuration in an example; kube-scheduler's own if it has none.
fn scheduling(text: &str) -> Scheduling {
    let mut sources = Sources::new();
    sources.add("example.yaml", text);
    let (documents, _) = documents(&sources);
    let is_meant = |d: &&RawDocument| d.value["kind"] == "KubeSchedulerConfiguration";
    let Some(document) = documents.iter().find(is_meant) else {
        return Scheduling::default();
    };
    let text = document.value.to_string();
    let mut alone = Sources::new();
    alone.add("scheduler.json", &*text);
    let (gates, mut names) = (FeatureGates::default(), Interner::new());
    let configuration = configure(Given::Files(&alone), &gates, &mut names);
    let configuration = configuration.expect("the configuration is valid");
    Scheduling::of(&configuration, names, text).expect("it has the default profile")
}

fn objects(text: &str) -> Vec<KubeObject> {
    let mut sources = Sources::new();
    sources.add("example.yaml", text);
    let reading = read(&sources);
    assert_eq!(reading.diagnostics, [], "{text}");
    let objects = reading.objects.into_iter();
    objects.map(|located| located.object).collect()
}

#[test]
fn every_rule_finds_its_example_and_nothing_else() {
    let examples = examples();
    let mut wrong = Vec::new();
    for rule in RULES.iter().filter(|rule| rule.check.is_some()) {
        let code = rule.code;
        let Some(example) = examples.get(code) else {
            wrong.push(format!("{code} has no example"));
            continue;
        };
        let objects = objects(example);
        let objects: Vec<&KubeObject> = objects.iter().collect();
        let found = lint_with_fixes(&objects, &scheduling(example));
        let codes: BTreeSet<&str> = found.iter().map(|found| found.code).collect();
        if !codes.contains(code) || codes.len() > 1 {
            let each = found
                .iter()
                .map(|f| format!("\n    {}: {}", f.code, f.message));
            wrong.push(format!("{code} finds{}", each.collect::<String>()));
        }
        let is_verified = |found: &Found| {
            let fix = found.fix.as_ref();
            fix.is_none_or(|fix| fix.verified.is_some())
        };
        if !found.iter().all(is_verified) {
            wrong.push(format!("{code} has a fix that was not tried"));
        }
    }
    assert!(wrong.is_empty(), "\n  {}", wrong.join("\n  "));
}

/// The rules whose examples have a fix.
const FIXED: [&str; 11] = [
    "autoscaler-min-below-domains",
    "budget-allows-none",
    "constraint-counts-none",
    "match-label-key-missing",
    "max-skew-allows-all",
    "one-domain-satisfies",
    "rollout-stuck",
    "rollout-uneven",
    "tainted-domain-counts",
    "topology-key-missing",
    "unselected-domain-counts",
];

#[test]
fn fixes_are_there_and_work() {
    let mut fixed = Vec::new();
    for (code, example) in examples() {
        let before = objects(&example);
        let before: Vec<&KubeObject> = before.iter().collect();
        let found = lint_with_fixes(&before, &scheduling(&example));
        let with_fix = found.iter().filter(|found| found.fix.is_some());
        for finding in with_fix.filter(|found| found.code == code) {
            let fix = finding.fix.as_ref().expect("it has a fix");
            let mut value = before[finding.object].to_json();
            assert!(fix.apply(&mut value), "{code}");
            let changed = KubeObject::of_json(value).expect("it is still an object");
            let mut after = before.clone();
            after[finding.object] = &changed;
            let left = lint(&after, false, Depth::Tried);
            assert!(left.iter().all(|left| left.code != code), "{code}");
            fixed.push(code.clone());
        }
    }
    assert_eq!(fixed, FIXED);
}
