//! `strew place` and `strew explain placement/NAME` without files: they read a hub of the kubeconfig.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, anyhow, ensure};
use serde_json::Value;

use super::{bind_all, clusters_of, until_selected};
use crate::e2e::stage::Stage;
use xtask::top;

/// What both commands say of a hub whose controller is at rest equals the stored decisions. A loss is compared with
/// them, and nothing is written.
pub(crate) fn read(stage: &mut Stage) -> anyhow::Result<()> {
    let _controllers = stage.hub(1, &[])?;
    bind_all(stage)?;
    apply_example(stage, "fleet")?;
    apply_example(stage, "use-case-2")?;
    let held = until_selected(stage, "use-case-2", |got| got.len() == 4)?;
    let context = stage.kubectl().run(&["config", "current-context"])?;
    let context = format!("--context={}", context.trim());
    let namespace = format!("--namespace={}", stage.namespace);
    let place = |more: &[&str]| {
        let mut words = vec!["place", &*context, &*namespace];
        words.extend(more);
        stage.strew(&words)
    };
    let list: Value = serde_json::from_str(&place(&["--output=json"])?)?;
    let items = list["items"].as_array().into_iter().flatten();
    let decided: BTreeSet<String> = items.flat_map(clusters_of).map(str::to_owned).collect();
    ensure!(decided == held, "{decided:?}, and the hub has {held:?}");
    let text = place(&[])?;
    let explained = stage.strew(&["explain", "placement/use-case-2", &context, &namespace])?;
    for cluster in &held {
        ensure!(text.contains(cluster), "no {cluster} in\n{text}");
        ensure!(explained.contains(cluster), "no {cluster} in\n{explained}");
    }
    let first = held.first().map_or("", String::as_str);
    let lost = place(&[&format!("--what-if=lose={first}")])?;
    ensure!(lost.contains("1 gone, 1 new, 3 stay"), "{lost}");
    let after = until_selected(stage, "use-case-2", |got| got.len() == 4)?;
    ensure!(after == held, "{after:?}, and before {held:?}");
    // A context that the kubeconfig lacks is an error that names it.
    let other = stage.strew(&["place", "--context=elsewhere"]);
    let error = other.err().ok_or_else(|| anyhow!("--context is ignored"))?;
    ensure!(error.to_string().contains("elsewhere"), "{error}");
    Ok(())
}

fn apply_example(stage: &Stage, name: &str) -> anyhow::Result<()> {
    let path = top().join(format!("examples/placement/{name}.yaml"));
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    stage.apply_all(objects)
}
