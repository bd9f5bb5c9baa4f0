//! Runs kubectl against the lab's API server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use super::real::Network;

/// Our own kubectl with the administrator's kubeconfig.
pub struct Kubectl {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    /// The network in which the API server is, if not the machine's own.
    pub(super) network: Option<Network>,
}

impl Kubectl {
    /// The program; `kubectl` is its first argument.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The command with these arguments, for a caller that runs it itself.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match &self.network {
            Some(network) => network.command(&self.binary),
            None => Command::new(&self.binary),
        };
        command
            .arg("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("KUBECACHEDIR", self.folder.join("kubectl-cache"))
            // A person's own preferences must not change what a verb does.
            .env("KUBERC", "off")
            .current_dir(&self.folder);
        command
    }

    /// Runs it to its end; what it printed.
    ///
    /// # Errors
    /// With kubectl's own words if it failed.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output()?;
        said(arguments, output)
    }

    /// The same with `input` as its standard input (`-f -`).
    ///
    /// # Errors
    /// With kubectl's own words if it failed.
    pub fn run_with(&self, arguments: &[&str], input: &Value) -> anyhow::Result<String> {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut pipe = child.stdin.take().context("it was piped")?;
        // It reads all of its input before it writes more than a pipe holds.
        pipe.write_all(input.to_string().as_bytes())?;
        drop(pipe);
        said(arguments, child.wait_with_output()?)
    }

    /// `kubectl get KINDS -o json` over all namespaces: the objects.
    ///
    /// # Errors
    /// With kubectl's own words if it failed.
    pub fn objects(&self, kinds: &str) -> anyhow::Result<Vec<Value>> {
        let text = self.run(&["get", kinds, "--all-namespaces", "--output=json"])?;
        let mut list: Value = serde_json::from_str(&text)?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("kubectl get {kinds} printed no list"),
        }
    }
}

fn said(arguments: &[&str], output: Output) -> anyhow::Result<String> {
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("kubectl {}: {}", arguments.join(" "), why.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
