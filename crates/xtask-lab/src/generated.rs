//! Files of the tree that are made from the code: `cargo xtask gen` writes them, and a test compares.

use std::path::Path;

use anyhow::Context;
use strew_wire::placement;
use strew_wire::workloadspread::crd;
use strew_wire::workloadspread::registration::Reach;

/// The namespace of strew's own controllers.
const NAMESPACE: &str = "strew-system";

/// Each generated file: its path from the top, and its text.
///
/// # Errors
/// A value that has no YAML form.
pub fn files() -> anyhow::Result<Vec<(String, String)>> {
    let mut definitions = vec![crd::made::workload_spread(&Reach::Service(
        NAMESPACE.to_owned(),
    ))];
    definitions.extend(placement::crd::made::all());
    let file = |definition: &serde_json::Value| {
        let name = definition["metadata"]["name"].as_str();
        let name = name.context("a definition has a name")?;
        let text = serde_saphyr::to_string(definition)?;
        Ok((format!("deploy/crds/{name}.yaml"), text))
    };
    let definitions = definitions.iter().map(file);
    let table = |path: &str, text: String| Ok((path.to_owned(), text));
    let tables = [
        table(
            "crates/strew-manifest/src/read/fields.txt",
            strew_manifest::read::field_table(),
        ),
        table(
            "crates/strew-wire/src/config/fields.txt",
            strew_wire::config::field_table(),
        ),
    ];
    definitions.chain(tables).collect()
}

/// Writes all generated files below `top`.
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
