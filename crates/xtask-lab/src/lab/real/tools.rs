//! What must be installed for real nodes, asked before anything is started.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, ensure};

/// Where Debian's package puts network plugins.
pub(super) const PLUGINS: &str = "/usr/lib/cni";

/// A program, how it is asked whether it is there, and the package of Debian that has it.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("containerd", "--version", "containerd"),
    ("ctr", "--version", "containerd"),
    ("runc", "--version", "runc"),
    ("buildah", "--version", "buildah"),
    ("nft", "--version", "nftables"),
    ("ip", "-V", "iproute2"),
    ("nsenter", "--version", "util-linux"),
];

/// An error that names everything that is missing, and the command that installs it.
pub(super) fn check() -> anyhow::Result<()> {
    ensure!(cfg!(target_os = "linux"), "real nodes need Linux");
    let id = Command::new("id").arg("-u").output()?;
    ensure!(
        id.stdout.trim_ascii() == b"0",
        "real nodes need root: network namespaces, mounts and cgroups"
    );
    let programs = PROGRAMS.iter().filter(|(program, version, _)| {
        let asked = Command::new(program).arg(version).output();
        !asked.is_ok_and(|output| output.status.success())
    });
    let mut missing: Vec<&str> = programs.map(|(_, _, package)| *package).collect();
    if !Path::new(PLUGINS).join("bridge").exists() {
        missing.push("containernetworking-plugins");
    }
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "real nodes need {0}: apt-get install --no-install-recommends {0}",
        missing.join(" ")
    );
}
