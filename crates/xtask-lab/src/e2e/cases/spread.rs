//! Spreading, as the KEPs describe it.

use anyhow::ensure;
use serde_json::json;

use crate::e2e::stage::{Stage, name_of, node_of};

/// Two API servers of one cluster, of which one does not merge the keys yet.
pub(super) fn before_the_merge(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("before-the-merge.yaml")?;
    let gate = "MatchLabelKeysInPodTopologySpreadSelectorMerge".to_owned();
    let (older, url) = stage.lab.start_other_server(&[(gate, false)], &[])?;
    let file = stage.file("before-the-merge.pods.yaml");
    let file = format!("--filename={}", file.display());
    stage.run(&["create", &file, &format!("--server={url}")])?;
    drop(older);
    let stored = stage.get("pod/with-keys")?;
    let constraint = &stored["spec"]["topologySpreadConstraints"][0];
    ensure!(
        constraint["labelSelector"] == json!({"matchLabels": {"app": "web"}})
            && constraint["matchLabelKeys"] == json!(["revision"]),
        "it was merged after all: {constraint}"
    );
    let _scheduler = stage.scheduler(&[])?;
    // Both pods may go to n-1 alone, where a pod of the revision before is. Only one of the two counts by revision.
    let pods = stage.until_placed(2, 1)?;
    let is_placed = |name| {
        pods.iter()
            .any(|p| name_of(p) == name && node_of(p) == Some("n-1"))
    };
    ensure!(is_placed("with-keys"), "counted with the revision before");
    Ok(())
}
