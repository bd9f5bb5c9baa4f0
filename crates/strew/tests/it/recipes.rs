//! The YAML of README and the book: each block is read by what it is for. The recipes of docs/scenarios.md are played,
//! and hold.

use crate::{root, strew};

/// The YAML code blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```yaml\n").skip(1);
    let texts = parts.map(|part| part.split("```").next().unwrap_or_default().to_owned());
    texts.collect()
}

#[test]
fn every_recipe_holds() {
    let page = std::fs::read_to_string(root().join("docs/scenarios.md")).unwrap();
    let blocks = blocks(&page);
    let (files, recipes) = blocks.split_first().unwrap();
    let head = files.strip_suffix("  timeline: []\n").unwrap();
    assert_eq!(recipes.len(), 12);
    for (number, recipe) in recipes.iter().enumerate() {
        let lines = recipe.lines().map(|line| format!("  {line}\n"));
        let scenario = format!("{head}{}", lines.collect::<String>());
        let run = strew("simulate -").stdin(scenario).output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{}: {text}{said}", number + 1);
    }
}

/// What reads a block.
enum Reader {
    /// Manifests for `strew lint`.
    Lint,
    /// The pod spec of a Deployment.
    PodSpec,
    /// The spec of a Job.
    Job,
    /// The spec of a Placement.
    Placement,
    /// The head of a Scenario.
    Scenario,
    /// `strew scheduler --validate-config`.
    Scheduler,
    /// Default constraints: `strew defaults`.
    Defaults,
    /// A workflow of GitHub, which gives inputs to the action.
    Action,
    /// A pipeline of GitLab, which sets variables of the template.
    Template,
    /// A configuration of pre-commit, which names hooks.
    Hooks,
    /// Labels or annotations of `strew.dev`.
    Annotation,
    /// A configuration of the API server: e2e gives it one.
    ApiServer,
}

/// By what stands in a block.
const READERS: &[(&str, Reader)] = &[
    ("kind: KubeSchedulerConfiguration", Reader::Scheduler),
    ("kind: PodTopologySpreadArgs", Reader::Defaults),
    ("topologySpreadConstraints:", Reader::PodSpec),
    ("on: pull_request", Reader::Action),
    ("include:", Reader::Template),
    ("repos:", Reader::Hooks),
    ("kind: Scenario", Reader::Scenario),
    ("  spreadPolicy:", Reader::Placement),
    ("strew.dev/replicas:", Reader::Annotation),
    ("apiserver.config.k8s.io", Reader::ApiServer),
    ("kind: Config\n", Reader::ApiServer),
    ("kind: ClusterRole", Reader::Lint),
    ("podFailurePolicy:", Reader::Job),
];

#[test]
fn every_yaml_block_is_read_by_what_it_is_for() {
    let mut n_read = 0;
    for page in crate::documents::pages() {
        // The examples of docs/lint.md are read by a test of strew-lint.
        if ["docs/scenarios.md", "docs/lint.md"].contains(&&*page) {
            continue;
        }
        for block in blocks(&std::fs::read_to_string(root().join(&page)).unwrap()) {
            let mut readers = READERS.iter().filter(|(what, _)| block.contains(what));
            let Some((_, reader)) = readers.next() else {
                panic!("{page}: nothing reads this block:\n{block}");
            };
            read(reader, &block).unwrap_or_else(|why| panic!("{page}: {why}\n{block}"));
            n_read += 1;
        }
    }
    assert_eq!(n_read, 14);
}

fn read(reader: &Reader, block: &str) -> Result<(), String> {
    let indented = |by: &str| {
        block
            .lines()
            .map(|line| format!("{by}{line}\n"))
            .collect::<String>()
    };
    match reader {
        Reader::Lint => runs("lint -", block),
        Reader::PodSpec => runs(
            "lint -",
            &format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 3\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers: [{{name: a, image: b}}]\n{}",
                indented("      ")
            ),
        ),
        Reader::Job => runs(
            "lint -",
            &format!(
                "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\n{block}  template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: b}}]}}}}\n"
            ),
        ),
        Reader::Placement => runs(
            "lint -",
            &format!(
                "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {{name: p, namespace: apps}}\nspec:\n{block}"
            ),
        ),
        Reader::Scenario => runs(
            "simulate -",
            &format!("{block}metadata: {{name: s}}\nspec: {{timeline: [{{at: 1s}}]}}\n"),
        ),
        Reader::Scheduler => runs("scheduler --validate-config --config -", block),
        Reader::Defaults => runs("defaults -", block),
        Reader::Action => names(block, "with:", "action.yml", &["  NAME:"]),
        Reader::Template => names(
            block,
            "variables:",
            "deploy/gitlab/strew.gitlab-ci.yml",
            &["    NAME:", "$NAME"],
        ),
        Reader::Hooks => names(block, "- id:", ".pre-commit-hooks.yaml", &["- id: NAME"]),
        Reader::Annotation => {
            let value: std::collections::BTreeMap<String, String> = parsed(block)?;
            let numbers = serde_json::from_str::<std::collections::BTreeMap<String, u32>>;
            let all = value.values().map(|text| numbers(text).map(drop));
            all.collect::<Result<(), _>>()
                .map_err(|error| error.to_string())
        }
        Reader::ApiServer => {
            let value: serde_json::Value = parsed(block)?;
            let fields = ["apiVersion", "kind"].map(|field| value[field].is_string());
            (fields == [true; 2])
                .then_some(())
                .ok_or("it has no kind".to_owned())
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(block: &str) -> Result<T, String> {
    serde_saphyr::from_str(block).map_err(|error| error.to_string())
}

/// Exit code 0, on this text.
fn runs(command: &str, text: &str) -> Result<(), String> {
    let run = strew(command).stdin(text.to_owned()).output();
    outcome(run.map_err(|error| error.to_string())?)
}

fn outcome(output: std::process::Output) -> Result<(), String> {
    let [said, printed] =
        [output.stderr, output.stdout].map(|text| String::from_utf8_lossy(&text).into_owned());
    match output.status.code() {
        Some(0) => Ok(()),
        code => Err(format!("exit code {code:?}: {printed}{said}")),
    }
}

/// The block is YAML, and each name below its line `head` (or after it) is in a file of the project in one of these
/// forms.
fn names(block: &str, head: &str, file: &str, forms: &[&str]) -> Result<(), String> {
    let _: serde_json::Value = parsed(block)?;
    let text = std::fs::read_to_string(root().join(file)).map_err(|error| error.to_string())?;
    let mut n_named = 0;
    let lines: Vec<&str> = block.lines().collect();
    for (number, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.trim().starts_with(head))
    {
        let depth = |line: &str| line.len() - line.trim_start().len();
        let below = lines
            .iter()
            .skip(number + 1)
            .take_while(|next| depth(next) > depth(line));
        let named: Vec<&str> = match line.trim().strip_prefix(head).map(str::trim) {
            Some(name) if !name.is_empty() => vec![name],
            _ => below
                .filter_map(|next| next.trim().split_once(':'))
                .map(|(name, _)| name)
                .collect(),
        };
        for name in named {
            // What a step of another action gets.
            if name == "fetch-depth" {
                continue;
            }
            n_named += 1;
            if !forms
                .iter()
                .any(|form| text.contains(&form.replace("NAME", name)))
            {
                return Err(format!("{file} does not know {name}"));
            }
        }
    }
    (n_named > 0)
        .then_some(())
        .ok_or_else(|| "it names nothing".to_owned())
}
