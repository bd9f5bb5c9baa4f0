//! Shared by the project's automation: where the project is, and Go ([`go`]). It compiles nothing of Kubernetes, so that
//! `cargo xtask ci` begins at once; what needs Kubernetes' types is in `xtask-lab`.

pub mod go;

use std::path::Path;

/// The project's top folder.
pub fn top() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("xtask lies in crates/ of the project")
}
