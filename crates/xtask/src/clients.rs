//! Calls `strew mcp` with the official clients of the Model Context Protocol: `cargo xtask clients`.
//!
//! The clients come from their registries by the ordinary tools, into a folder below `target`. They judge each result
//! by the tool's `outputSchema`, as an assistant's program does.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::ValueEnum;

/// The exit code if a client cannot be installed.
pub(crate) const NOT_INSTALLED: u8 = 69;

/// An official client.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// The package `mcp` of Python
    Python,
    /// The package `@modelcontextprotocol/sdk` of npm
    Typescript,
}

/// Installs the clients where they are not yet, and makes each call of `e2e/mcp/calls.json` with them.
///
/// Exit code 1 if a call failed, [`NOT_INSTALLED`] if a client cannot be installed.
pub(crate) fn run(top: &Path, clients: &[Client]) -> anyhow::Result<ExitCode> {
    let clients = match clients {
        [] => Client::value_variants(),
        clients => clients,
    };
    let strew = xtask::program("strew", false)?;
    for client in clients {
        let folder = top.join("target/mcp-clients").join(format!("{client:?}"));
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        if let Err(why) = client.install(&folder) {
            println!("{client:?}: not run: the client cannot be installed: {why:#}");
            return Ok(ExitCode::from(NOT_INSTALLED));
        }
        let status = client
            .call(&strew, top, &folder)
            .current_dir(top)
            .status()?;
        if !status.success() {
            println!("{client:?}: a call failed");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Client {
    fn install(self, folder: &Path) -> anyhow::Result<()> {
        match self {
            Self::Python => {
                done(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
                done(Command::new(python(folder)).args(["-m", "pip", "install", "--quiet", "mcp"]))
            }
            Self::Typescript => done(
                Command::new("npm")
                    .args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"])
                    .arg(folder)
                    .arg("@modelcontextprotocol/sdk@1"),
            ),
        }
    }

    fn call(self, program: &Path, top: &Path, folder: &Path) -> Command {
        let scripts = top.join("e2e/mcp");
        match self {
            Self::Python => {
                let mut command = Command::new(python(folder));
                command.arg(scripts.join("client.py")).arg(program).arg(top);
                command
            }
            Self::Typescript => {
                let mut command = Command::new("node");
                command
                    .arg(scripts.join("client.mjs"))
                    .arg(program)
                    .arg(top);
                command.arg(folder.join("node_modules"));
                command
            }
        }
    }
}

fn python(folder: &Path) -> PathBuf {
    folder.join("bin/python3")
}

/// Runs a command to its end.
pub(crate) fn done(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
