//! Which crate may depend on which, as cargo sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::{DECIDING, expect_none, licence, repository};

/// Which crates of ours a crate may use, in tests too. A new arrow is its own commit, with its reason.
const ARROWS: &[(&str, &[&str])] = &[
    ("strew-model", &[]),
    ("strew-spread", &[]),
    ("strew-cluster", &["strew-model", "strew-spread"]),
    (
        "strew-scheduler",
        &["strew-model", "strew-spread", "strew-cluster"],
    ),
    // Changes of a cluster, decided again by the scheduler, and what its budgets allow.
    (
        "strew-plan",
        &[
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
            "strew-zones",
        ],
    ),
    // The cluster and the scheduler's filters for simulated scheduling: does a node of the subset take the pod now?
    (
        "strew-workloadspread",
        &[
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
        ],
    ),
    // The cluster and the scheduler's spread plans: which constraints pods have, and what these count.
    (
        "strew-keep",
        &[
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
        ],
    ),
    // Budgets by zone: facts of their own, of which a few fields of pods are enough.
    ("strew-zones", &["strew-model"]),
    // Clusters for a workload: topologies of clusters are tallied as those of nodes are; nodes and pods are no concern.
    ("strew-placement", &["strew-model", "strew-spread"]),
    // Texts and objects: it knows no machine.
    ("strew-manifest", &[]),
    // The scheduler for its configuration and requests; the spread arithmetic comes with it. Placement and
    // WorkloadSpread for their facts and effects, and CEL for what is asked about a cluster: one answer for simulation
    // and real cluster.
    (
        "strew-wire",
        &[
            "strew-manifest",
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
            "strew-placement",
            "strew-cel",
            "strew-workloadspread",
            "strew-keep",
            "strew-zones",
        ],
    ),
    // The embedded API server: objects, requests and patches of the wire, and nothing of what calls it. The cluster for
    // one question: which nodes a DaemonSet's pods may go to.
    (
        "strew-apiserver",
        &[
            "strew-model",
            "strew-cluster",
            "strew-manifest",
            "strew-wire",
        ],
    ),
    // Objects as the embedded server stores them, and what it answers. The cluster for one rule: which volume a claim
    // gets, which the volume controller and the scheduler must answer alike.
    (
        "strew-controllers",
        &[
            "strew-model",
            "strew-cluster",
            "strew-manifest",
            "strew-wire",
            "strew-apiserver",
        ],
    ),
    // One driver around every machine, below both worlds: the machines, and the wire that says what they hear and ask.
    (
        "strew-runtime",
        &[
            "strew-model",
            "strew-cluster",
            "strew-scheduler",
            "strew-placement",
            "strew-workloadspread",
            "strew-keep",
            "strew-zones",
            "strew-manifest",
            "strew-wire",
        ],
    ),
    // The world in virtual time: the machines of scheduler, placement and WorkloadSpread, their facts, and the store that
    // controllers write to.
    (
        "strew-sim",
        &[
            "strew-model",
            "strew-cluster",
            "strew-scheduler",
            "strew-placement",
            "strew-workloadspread",
            "strew-keep",
            "strew-zones",
            "strew-manifest",
            "strew-wire",
            "strew-apiserver",
            "strew-runtime",
            "strew-controllers",
        ],
    ),
    // The real API server: the machine, its vocabulary, and the wire that says what to ask for. It never sees the
    // simulation.
    (
        "strew-kube",
        &[
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
            "strew-placement",
            "strew-workloadspread",
            "strew-keep",
            "strew-zones",
            "strew-manifest",
            "strew-wire",
            "strew-runtime",
        ],
    ),
    // A moment of a cluster as plain values, from what an API server stores and its scheduler knows, and explanations
    // with the changes that plans suggest: nothing that runs. The names of Placements' conditions.
    (
        "strew-view",
        &[
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
            "strew-placement",
            "strew-plan",
            "strew-manifest",
            "strew-wire",
            "strew-apiserver",
        ],
    ),
    // Slow to build, so nothing of ours is below it.
    ("strew-cel", &[]),
    // The wire for the texts and objects of the stream, with their places; the model for time; plans for how taints and
    // labels are written, which steps have in common with `--what-if`.
    (
        "strew-scenario",
        &[
            "strew-model",
            "strew-spread",
            "strew-cluster",
            "strew-scheduler",
            "strew-plan",
            "strew-manifest",
            "strew-wire",
            "strew-apiserver",
            "strew-controllers",
            "strew-sim",
            "strew-view",
            "strew-cel",
        ],
    ),
    // Rules about objects: the engine for the counts, scenarios for what must be played. Nothing of it
    // counts by itself. Quotas are the API server's sums.
    (
        "strew-lint",
        &[
            "strew-model",
            "strew-cluster",
            "strew-scheduler",
            "strew-manifest",
            "strew-wire",
            "strew-apiserver",
            "strew-view",
            "strew-scenario",
        ],
    ),
    // From texts to a report, below every face: scenarios for what is played, the rules for what is found on the way,
    // WorkloadSpreads for the log of their ledgers. No files, no terminal, nothing of a cluster.
    (
        "strew-suite",
        &[
            "strew-model",
            "strew-scheduler",
            "strew-workloadspread",
            "strew-manifest",
            "strew-wire",
            "strew-cel",
            "strew-apiserver",
            "strew-sim",
            "strew-view",
            "strew-scenario",
            "strew-lint",
        ],
    ),
    ("strew", EVERY_LIBRARY),
    // Nothing of ours and nothing of Kubernetes: `cargo xtask ci` begins at once.
    ("xtask", &[]),
    ("xtask-lab", EVERY_LIBRARY),
];

const EVERY_LIBRARY: &[&str] = &[
    "strew-model",
    "strew-spread",
    "strew-cluster",
    "strew-scheduler",
    "strew-plan",
    "strew-workloadspread",
    "strew-placement",
    "strew-manifest",
    "strew-wire",
    "strew-apiserver",
    "strew-runtime",
    "strew-controllers",
    "strew-sim",
    "strew-cel",
    "strew-view",
    "strew-scenario",
    "strew-lint",
    "strew-suite",
    "strew-kube",
];

/// What the deciding crates may use from the registry.
const DECIDING_MAY_USE: [&str; 5] = [
    "rustc-hash",
    "indexmap",
    "fixedbitset",
    "smallvec",
    "thiserror",
];

#[test]
fn arrows_point_down_only() {
    let mut broken = Vec::new();
    for package in members() {
        let name = name(package);
        let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
            broken.push(format!("{name} has no line in ARROWS"));
            continue;
        };
        for dependency in ours(package) {
            // Both are automation: one begins at once, the other has Kubernetes' types.
            let is_own = (name, dependency) == ("xtask-lab", "xtask");
            if !allowed.contains(&dependency) && !is_own {
                broken.push(format!("{name} -> {dependency}"));
            }
        }
    }
    expect_none(
        broken,
        "An arrow that design and ARCHITECTURE.md do not have. Move the code to the crate that may know both sides;\n\
         if the arrow is right, add it to ARROWS here and to ARCHITECTURE.md, in a commit of its own.",
    );
}

#[test]
fn programs_build_no_schemas_of_kubernetes_types() {
    let mut broken = Vec::new();
    for package in members().filter(|package| name(package) != "xtask-lab") {
        let asked = dependencies(package).flat_map(|dependency| {
            let features = dependency["features"].as_array().into_iter().flatten();
            features.map(move |feature| (name(dependency), feature.as_str().unwrap_or_default()))
        });
        let with_schemas =
            asked.filter(|pair| matches!(pair, ("k8s-openapi", "schemars") | (_, "schemas")));
        broken.extend(with_schemas.map(|(on, _)| format!("{} -> {on}", name(package))));
    }
    expect_none(
        broken,
        "Schemas of Kubernetes' types are 5 MB of code and a minute of building: `cargo xtask gen` makes texts of them.",
    );
}

#[test]
fn deciding_crates_use_what_every_reader_can_check() {
    let mut broken = Vec::new();
    for package in members().filter(|p| DECIDING.contains(&name(p))) {
        let normal = dependencies(package).filter(|d| d["kind"].is_null());
        for dependency in normal.map(name) {
            if !DECIDING_MAY_USE.contains(&dependency) && !DECIDING.contains(&dependency) {
                broken.push(format!("{} -> {dependency}", name(package)));
            }
        }
    }
    expect_none(
        broken,
        "The deciding crates are pure and build in seconds: what needs this dependency belongs into strew-wire or \
         a shell,\nwith its result handed in as an argument.",
    );
}

#[test]
fn every_licence_is_one_we_may_ship() {
    let of_package = |package: &Value| {
        let expression = package["license"].as_str().unwrap_or("(none)");
        let name = name(package);
        (!licence::is_allowed(expression)).then(|| format!("{name}: {expression}"))
    };
    let broken = packages().iter().filter_map(of_package).collect();
    expect_none(
        broken,
        "Choose another crate; or, if a lawyer would agree, add the licence to deny.toml with the commit that \
         adds the crate.",
    );
}

/// Everything that a build on this machine uses, at its resolved version.
fn packages() -> &'static [Value] {
    static METADATA: OnceLock<Value> = OnceLock::new();
    let metadata = METADATA.get_or_init(metadata);
    metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages")
}

/// Only what this machine needs has been downloaded in a fresh clone: so only that is asked for.
fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
            "--filter-platform",
            &host(),
        ])
        .current_dir(repository::top())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc runs");
    let said = String::from_utf8(output.stdout).expect("rustc prints text");
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc tells its host").to_owned()
}

fn members() -> impl Iterator<Item = &'static Value> {
    packages().iter().filter(|p| p["source"].is_null())
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("it has a name")
}

fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().into_iter().flatten()
}

/// The crates of the workspace that each of them uses, tests aside.
pub(crate) fn uses() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let of = |package: &'static Value| {
        let normal = dependencies(package).filter(|d| d["kind"].is_null() && d["source"].is_null());
        (name(package), normal.map(name).collect())
    };
    members().map(of).collect()
}

/// The crates that each of ours needs with any features, tests aside.
pub(crate) fn requires() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let of = |package: &'static Value| {
        let always = |d: &&Value| d["kind"] != "dev" && d["optional"] == false;
        let required = dependencies(package).filter(always);
        (name(package), required.map(name).collect())
    };
    members().map(of).collect()
}

/// Dependencies on crates of the workspace, of any kind.
fn ours(package: &Value) -> impl Iterator<Item = &str> {
    dependencies(package)
        .filter(|d| d["source"].is_null())
        .map(name)
}
