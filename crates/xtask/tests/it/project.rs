//! What a stranger looks for in a repository, and that it says the same in all places.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{expect_none, lock, repository};

/// Files that are found by their names: by people, by forges, by scanners.
const FILES: [&str; 14] = [
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "GOVERNANCE.md",
    "LICENSE",
    "README.md",
    "ROADMAP.md",
    "SECURITY-INSIGHTS.yml",
    "SECURITY.md",
    "action.yml",
    "deny.toml",
    "docs/security.md",
    "docs/versioning.md",
    "strew.openvex.json",
];

#[test]
fn a_stranger_finds_what_they_look_for() {
    let is_absent = |file: &&&str| !repository::top().join(file).is_file();
    let absent = FILES.iter().filter(is_absent);
    expect_none(
        absent.map(|file| (*file).to_owned()).collect(),
        "Write it: short and true.",
    );
}

/// A field of `[workspace.package]`.
pub(crate) fn package_field(name: &str) -> String {
    let text = repository::read("Cargo.toml");
    let (_, section) = text
        .split_once("[workspace.package]\n")
        .expect("Cargo.toml has [workspace.package]");
    let begin = format!("{name} = \"");
    let line = section.lines().find_map(|line| line.strip_prefix(&begin));
    let value = line.and_then(|line| line.strip_suffix('"'));
    value.expect("the field is a text").to_owned()
}

/// What stands before a version of strew in documents, recipes and workflows.
const BEFORE_VERSIONS: [&str; 5] = ["strew:", "strew-", "strew@", "strew v", "strew/v"];

/// Where other versions may stand: what was, and tests.
fn is_about_now(path: &Path) -> bool {
    let ends = |end: &str| path.extension().is_some_and(|e| e == end);
    let is_text = ends("md") || ends("yml") || ends("yaml") || ends("json") || ends("template");
    let is_other = ["crates", "vectors", "e2e", "scenarios", "fuzz", "web"];
    is_text && !is_other.iter().any(|folder| path.starts_with(folder))
}

/// Each version of strew that a text names.
fn versions(text: &str) -> impl Iterator<Item = &str> {
    let after = |before: &'static str| text.split(before).skip(1);
    let parts = BEFORE_VERSIONS.into_iter().flat_map(after);
    parts.filter_map(|part| {
        let end = part.find(|c: char| !c.is_ascii_digit() && c != '.');
        let version = part[..end.unwrap_or(part.len())].trim_end_matches('.');
        (version.matches('.').count() == 2).then_some(version)
    })
}

#[test]
fn documents_name_the_version_of_this_source() {
    let version = package_field("version");
    let mut broken = Vec::new();
    let mut n_named = 0;
    for path in repository::files().iter().filter(|p| is_about_now(p)) {
        // The changelog has all versions.
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        for named in versions(&repository::read(path)) {
            n_named += 1;
            if named != version {
                broken.push(format!("{}: {named}", path.display()));
            }
        }
    }
    assert!(n_named > 5, "versions are found: {n_named}");
    expect_none(
        broken,
        "A release changes the version in Cargo.toml and in all documents.",
    );
}

#[test]
fn versions_are_found_in_texts() {
    let text = "registry/strew:0.1.0, strew-0.2.10-linux-amd64.tar.gz strew@1.0.0. strew:latest";
    let found: Vec<&str> = versions(text).collect();
    assert_eq!(found, ["0.1.0", "0.2.10", "1.0.0"]);
}

#[test]
fn the_changelog_has_a_section_of_this_version() {
    let text = repository::read("CHANGELOG.md");
    let second = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .nth(1);
    let version = package_field("version");
    let second = second.unwrap_or_default();
    let date = second.strip_prefix(&format!("{version} - "));
    let is_date = date.is_some_and(|date| {
        date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-')
    });
    assert!(
        is_date,
        "after \"## Unreleased\" comes \"## {version} - YEAR-MONTH-DAY\", not \"## {second}\""
    );
}

#[test]
fn the_page_of_versions_names_what_is_built_and_tested() {
    let page = repository::read("docs/versioning.md");
    let control_plane = repository::read("e2e/controlplane/go.mod");
    let kubernetes = control_plane
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes v"))
        .expect("the control plane is Kubernetes");
    let chart = repository::read("deploy/charts/strew/Chart.yaml");
    let oldest = chart
        .lines()
        .find_map(|line| line.strip_prefix("kubeVersion: \">="))
        .and_then(|rest| rest.strip_suffix(".0-0\""))
        .expect("the chart has an oldest version");
    for (what, sentence) in [
        (
            "the decisions",
            format!("those of kube-scheduler v{kubernetes}"),
        ),
        ("the control plane", format!("on {kubernetes}. strew")),
        ("the oldest API server", format!("| {oldest} or newer |")),
        (
            "the compiler",
            format!("| {} or newer |", package_field("rust-version")),
        ),
        (
            "the version",
            format!("this page is about {}", package_field("version")),
        ),
    ] {
        assert!(
            page.contains(&sentence),
            "docs/versioning.md, {what}: {sentence}"
        );
    }
}

#[test]
fn a_vulnerability_that_is_not_present_is_of_a_crate_that_is_not_built() {
    let vex: Value = serde_json::from_str(&repository::read("strew.openvex.json")).expect("JSON");
    let built = lock::built();
    let product = format!("pkg:cargo/strew@{}", package_field("version"));
    let statements = vex["statements"].as_array().expect("a list");
    assert!(!statements.is_empty(), "OpenVEX wants a statement");
    for statement in statements {
        let of = &statement["products"][0];
        assert_eq!(of["@id"], product.as_str(), "{statement}");
        if statement["justification"] != "component_not_present" {
            continue;
        }
        for part in of["subcomponents"].as_array().expect("a list") {
            let url = part["@id"].as_str().unwrap_or_default();
            let name = url.strip_prefix("pkg:cargo/").unwrap_or_default();
            assert!(!name.is_empty() && !built.contains(name), "{url} is built");
        }
    }
}

#[test]
fn security_insights_name_files_that_are_there() {
    let text = repository::read("SECURITY-INSIGHTS.yml");
    let insights: Value = serde_saphyr::from_str(&text).expect("YAML");
    assert_eq!(
        insights["repository"]["license"]["expression"],
        package_field("license").as_str()
    );
    let named = text
        .lines()
        .filter_map(|line| line.split("/blob/main/").nth(1));
    let named: Vec<PathBuf> = named.map(PathBuf::from).collect();
    assert!(named.len() > 3, "files are named: {named:?}");
    let absent = named
        .iter()
        .filter(|f| !repository::top().join(f).is_file());
    expect_none(
        absent.map(|file| file.display().to_string()).collect(),
        "SECURITY-INSIGHTS.yml names them.",
    );
}
