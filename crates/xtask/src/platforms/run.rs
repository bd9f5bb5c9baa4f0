//! Runs programs of another platform.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::build::{Build, Features, script};
use super::platform::Platform;
use super::tools::Tools;
use crate::clients::done;

/// A program of another platform, with what runs it.
pub(super) struct Runner {
    platform: Platform,
    runner: PathBuf,
    program: PathBuf,
    /// Where wine keeps its registry, and scripts are written.
    folder: PathBuf,
}

/// Where Debian's cross compiler has the libraries of arm64.
const LIBRARIES_OF_ARM: &str = "/usr/aarch64-linux-gnu";

impl Runner {
    /// Copies the program, which another set of features would replace, and gives it what wine lacks.
    pub(super) fn new(build: &Build<'_>, tools: &Tools) -> anyhow::Result<Self> {
        let name = match build.features {
            Features::Files => "files",
            Features::All => "all",
        };
        let folder = build.folder().join(build.platform.name()).join(name);
        std::fs::create_dir_all(&folder)?;
        let built = build.program();
        let program = folder.join(built.file_name().context("a program has a name")?);
        std::fs::copy(&built, &program).with_context(|| format!("copying {}", built.display()))?;
        if build.platform == Platform::Windows {
            let library = folder.join("bcryptprimitives.dll");
            let source = build.top.join("crates/xtask/src/platforms/prng.c");
            let mut compile = Command::new(&tools.compiler[0]);
            compile.args(["-shared", "-o"]).arg(library).arg(source);
            done(compile.arg("-ladvapi32"))?;
        }
        let runner = Self {
            platform: build.platform,
            runner: tools.runner.clone().context("a program that runs others")?,
            program,
            folder,
        };
        // wine's first start makes its folder, and says so.
        done(&mut runner.command(&["version"]))?;
        Ok(runner)
    }

    /// The words and variables that start the program.
    fn start(&self) -> (Vec<&Path>, Vec<(&'static str, String)>) {
        match self.platform {
            Platform::Windows => {
                let prefix = self.folder.with_file_name("wine").display().to_string();
                let variables = vec![
                    ("WINEPREFIX", prefix),
                    ("WINEDEBUG", "-all".to_owned()),
                    // Neither .NET nor a browser: no questions at the first start.
                    ("WINEDLLOVERRIDES", "mscoree,mshtml=".to_owned()),
                ];
                (vec![&self.runner, &self.program], variables)
            }
            Platform::LinuxArm64 | Platform::Macos | Platform::Browser => {
                let words = vec![
                    self.runner.as_path(),
                    Path::new("-L"),
                    Path::new(LIBRARIES_OF_ARM),
                    &self.program,
                ];
                (words, Vec::new())
            }
        }
    }

    /// The program with these arguments.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let (words, variables) = self.start();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(arguments).envs(variables);
        command
    }

    /// The platform of the program.
    pub(super) fn platform(&self) -> Platform {
        self.platform
    }

    /// A script that runs the program with its own arguments.
    pub(super) fn script(&self) -> anyhow::Result<PathBuf> {
        let (words, variables) = self.start();
        let mut line = "exec env".to_owned();
        for (name, value) in variables {
            line += &format!(" {name}='{value}'");
        }
        for word in words {
            line += &format!(" '{}'", word.display());
        }
        let path = self.folder.join("strew");
        // A program of Linux has this name itself.
        let path = path.with_extension("sh");
        script(&path, &(line + " \"$@\""))?;
        Ok(path)
    }
}
