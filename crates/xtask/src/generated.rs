//! Files of the tree that are made from the code: `cargo xtask gen` writes them, and a test compares.

use std::path::Path;

use anyhow::Context;
use strew_api::workloadspread::crd;

/// Where strew's own controllers run.
const NAMESPACE: &str = "strew-system";

/// The Service of strew's webhooks.
const SERVICE: &str = "strew-webhook";

/// Each file's path from the top, and its text.
///
/// # Errors
/// A value that has no YAML form.
pub fn files() -> anyhow::Result<Vec<(&'static str, String)>> {
    let spread = crd::workload_spread(NAMESPACE, SERVICE);
    Ok(vec![(
        "deploy/crds/workloadspreads.apps.kruise.io.yaml",
        serde_saphyr::to_string(&spread)?,
    )])
}

/// Writes all of them below `top`.
///
/// # Errors
/// A file that cannot be written.
pub fn write(top: &Path) -> anyhow::Result<()> {
    for (path, text) in files()? {
        let path = top.join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
