//! Shared by the project's automation: where the project is, and Go ([`go`]). It compiles nothing of Kubernetes, so that
//! `cargo xtask ci` begins at once; what needs Kubernetes' types is in `xtask-lab`.

pub mod go;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

/// The project's top folder.
pub fn top() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("xtask lies in crates/ of the project")
}

/// Set where the programs of the workspace stand as the tests were built: nothing builds them once more, with other
/// features of their dependencies.
pub const BUILT: &str = "XTASK_BUILT";

/// A program of the workspace: built now, unless [`BUILT`] says that it stands.
pub fn program(name: &str, is_optimized: bool) -> anyhow::Result<PathBuf> {
    if is_optimized || std::env::var_os(BUILT).is_none() {
        let mut cargo = Command::new("cargo");
        // Both packages: one alone has fewer features of its dependencies, and cargo would build these once more.
        let packages = ["--package", "strew", "--package", "xtask-lab"];
        cargo.args(["build", "--quiet", "--locked"]).args(packages);
        if is_optimized {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(top()).status()?;
        anyhow::ensure!(status.success(), "{name} cannot be built");
    }
    built(name, is_optimized)
}

/// A program of the workspace that stands already, in the folder of builds to which this program belongs.
pub fn built(name: &str, is_optimized: bool) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).context("this program's folder")?;
    let folder = target.join(if is_optimized { "release" } else { "debug" });
    let file = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    anyhow::ensure!(file.is_file(), "{} was not built", file.display());
    Ok(file)
}
