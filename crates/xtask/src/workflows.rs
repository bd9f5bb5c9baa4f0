//! Checks `.github` and `action.yml` with actionlint and zizmor: `cargo xtask workflows`.
//!
//! Both come from their registries by the ordinary tools, at fixed versions, into a folder below `target`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::ValueEnum;

use crate::clients::{NOT_INSTALLED, done};

/// The version of zizmor: a newer one may find more.
const ZIZMOR: &str = "zizmor==1.32.0";

/// A linter of workflows.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linter {
    /// Syntax, types and shell: needs Go; `.github/tools/go.mod` has its version
    Actionlint,
    /// Rights, pins and injections: needs Python
    Zizmor,
}

/// Installs the linters where they are not yet, and runs them.
///
/// Exit code 1 if one found something, [`NOT_INSTALLED`] if one cannot be installed.
pub(crate) fn run(top: &Path, linters: &[Linter]) -> anyhow::Result<ExitCode> {
    let linters = match linters {
        [] => Linter::value_variants(),
        linters => linters,
    };
    let folder = top.join("target/linters");
    for linter in linters {
        let program = match linter.installed(top, &folder) {
            Ok(program) => program,
            Err(why) => {
                println!("{linter:?}: not run: it cannot be installed: {why:#}");
                return Ok(ExitCode::from(NOT_INSTALLED));
            }
        };
        let mut command = Command::new(program);
        if *linter == Linter::Zizmor {
            // Questions about actions of others need the network, and a token.
            command.args(["--offline", "--no-progress", "."]);
        }
        if !command.current_dir(top).status()?.success() {
            println!("{linter:?}: found something");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Linter {
    /// The program, installed below `folder` where it is not there yet.
    fn installed(self, top: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
        match self {
            Self::Actionlint => {
                let package = "github.com/rhysd/actionlint/cmd/actionlint";
                let mut build = Command::new("go");
                build.args(["build", "-o"]).arg(folder.join("actionlint"));
                done(build.arg(package).current_dir(top.join(".github/tools")))?;
                Ok(folder.join("actionlint"))
            }
            Self::Zizmor => {
                let venv = folder.join("python");
                let python = venv.join("bin/python3");
                if !python.exists() {
                    done(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
                }
                done(Command::new(python).args(["-m", "pip", "install", "--quiet", ZIZMOR]))?;
                Ok(venv.join("bin/zizmor"))
            }
        }
    }
}
