//! The format of scenarios, from files.

#![allow(clippy::unwrap_used)]

mod bad;
mod e2e;
mod examples;
mod import;
mod judged;
#[macro_use]
mod library;
mod losses;
mod mutated;
mod placements;
mod played;
mod rebalanced;
mod rest;
mod rounds;
mod schema;
mod variants;
mod view;
mod workloadspreads;

use strew_manifest::read::{Sources, render};
use strew_scenario::format::{Loaded, load};

/// A text as the only file.
fn loaded(text: &str) -> (Sources, Loaded) {
    let mut sources = Sources::new();
    sources.add("in.yaml", text);
    let loaded = load(&sources);
    (sources, loaded)
}

/// A text that has nothing wrong.
#[track_caller]
fn good(text: &str) -> Loaded {
    let (sources, loaded) = loaded(text);
    assert!(
        loaded.diagnostics.is_empty(),
        "{}",
        render(&loaded.diagnostics, &sources, false)
    );
    loaded
}

const MIN_DOMAINS: &str = include_str!("../cases/min-domains.yaml");
const ROLLOUT: &str = include_str!("../cases/rollout.yaml");
const ELASTIC: &str = include_str!("../cases/elastic.yaml");

/// A scenario with this spec, after a deployment and a node.
fn with_spec(spec: &str) -> String {
    let indented: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    format!("{STREAM}spec:\n{indented}")
}

const STREAM: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {z: za, rack: r1}}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: test}
"#;
