//! The Go toolchain, which builds Kubernetes' programs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// What to do where there is no compiler.
const NO_GO: &str = "a real control plane needs Go 1.26 (https://go.dev/dl)";

/// The folder of the control plane's module, from the project's top.
pub const CONTROL_PLANE: &str = "e2e/controlplane";

/// Whether Go is here, in a version that builds the control plane.
///
/// # Errors
/// Says what is missing and where to get it.
pub fn check_go(top: &Path) -> anyhow::Result<()> {
    go_version(&top.join(CONTROL_PLANE)).map(drop)
}

/// What Go says of itself in the module's folder, where it obeys go.mod: a Go that is too old fails, or fetches a newer
/// one.
pub fn go_version(source: &Path) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("go")
        .arg("version")
        .current_dir(source)
        .output()
        .context("`go` cannot be started")
        .context(NO_GO)?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{NO_GO}: {}", error.trim());
    }
    Ok(output.stdout)
}
