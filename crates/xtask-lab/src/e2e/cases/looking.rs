//! Commands that only read: `strew explain` and `strew snapshot` on a cluster.

use std::fs;

use anyhow::{anyhow, ensure};
use serde_json::{Value, json};

use crate::e2e::stage::Stage;

/// A value that must not get into a snapshot.
const SECRET: &str = "hunter2";

/// [`SECRET`] in base 64, as Secrets hold it.
const SECRET_IN_BASE_64: &str = "aHVudGVyMg";

/// `explain` reports a cluster without nodes, and a refused pod with its sum. A snapshot of the cluster gives the same
/// answers later.
pub(super) fn look(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply_all(vec![
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "kept"},
            "stringData": {"password": SECRET},
        }),
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "lonely", "annotations": {"example.com/note": SECRET}},
            "spec": {"schedulerName": "strew", "containers": [{
                "name": "web",
                "image": "web",
                "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
            }]},
        }),
    ])?;
    let lonely = explained(stage, &["pod/lonely"])?;
    expect(&lonely, &["no nodes available to schedule pods"])?;
    stage.apply("messages.yaml")?;
    let refused = explained(stage, &["pod/refused"])?;
    expect(
        &refused,
        &[
            "0/5 nodes are available: 1 Insufficient cpu",
            "Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1",
            "2 + 1 - 0 = 3 > 1",
        ],
    )?;
    // The cluster has nodes, so `explain` ignores a requested shape.
    let shaped = explained(stage, &["pod/refused", "--zones=3"]);
    let error = shaped.err().ok_or_else(|| anyhow!("--zones is ignored"))?;
    expect(&error.to_string(), &["there are none to shape"])?;
    let answer: Value =
        serde_json::from_str(&explained(stage, &["pod/refused", "--output=json"])?)?;
    ensure!(
        answer["metadata"]["name"] == "refused",
        "no answer for programs: {answer}"
    );
    let snapshot = stage.strew(&["snapshot"])?;
    expect(&snapshot, &["lonely", "refused", "no-zone"])?;
    for secret in [SECRET, SECRET_IN_BASE_64] {
        ensure!(!snapshot.contains(secret), "the snapshot holds {secret}");
    }
    let file = stage.lab.folder().join("snapshot.json");
    fs::write(&file, snapshot)?;
    let file = file.display().to_string();
    let namespace = format!("--namespace={}", stage.namespace);
    let later = stage.strew(&["explain", "pod/refused", &namespace, &file])?;
    ensure!(
        later == refused,
        "of the snapshot:\n{later}\nof the cluster:\n{refused}"
    );
    Ok(())
}

fn explained(stage: &Stage, words: &[&str]) -> anyhow::Result<String> {
    let namespace = format!("--namespace={}", stage.namespace);
    let mut all = vec!["explain", &namespace];
    all.extend(words);
    stage.strew(&all)
}

fn expect(text: &str, parts: &[&str]) -> anyhow::Result<()> {
    for part in parts {
        ensure!(text.contains(part), "no {part:?} in\n{text}");
    }
    Ok(())
}
