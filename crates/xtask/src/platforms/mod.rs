//! Builds strew for other platforms on a Linux machine, and runs it there: `cargo xtask platforms`.
//!
//! Windows programs run under wine, those of arm64 under qemu. For macOS everything is checked, its C code compiled, but
//! not linked: that needs Apple's SDK. The program of the browser is checked here, and built by [`program_of_browser`].
//! Reading order: this file, [`platform`] (what each one needs), [`tools`] (what is installed), [`build`] (cargo), [`run`] (programs of another platform), [`calls`] (what they must answer).

mod build;
mod calls;
mod platform;
mod run;
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use self::build::{Build, Features};
pub(crate) use self::platform::{Platform, TARGET_OF_BROWSER};
use self::run::Runner;
use self::tools::Tools;
use crate::clients::{NOT_INSTALLED, done};

/// Options of `cargo xtask platforms`.
#[derive(clap::Args)]
pub(crate) struct Platforms {
    /// Which platforms; all without one
    platforms: Vec<Platform>,
    /// Only the program of README's first command, which reads files
    #[arg(long)]
    files_only: bool,
    /// Build nothing: call the programs that were built before
    #[arg(long)]
    built: bool,
    /// Do not play the cases of crates/strew/tests/cases
    #[arg(long)]
    no_cases: bool,
}

/// Builds or checks, and calls what was built.
///
/// Exit code 1 if a platform failed, [`NOT_INSTALLED`] if one could not be tried.
pub(crate) fn run(top: &Path, options: &Platforms) -> anyhow::Result<ExitCode> {
    let platforms = match options.platforms.as_slice() {
        [] => <Platform as clap::ValueEnum>::value_variants(),
        platforms => platforms,
    };
    let mut outcomes = Vec::new();
    for platform in platforms {
        let name = platform.name();
        let outcome = match Tools::of(*platform, top) {
            Err(missing) => Outcome::NotRun(missing),
            Ok(tools) => match tried(top, *platform, &tools, options) {
                Ok(()) => Outcome::Passed,
                Err(error) => Outcome::Failed(error),
            },
        };
        println!("{name}: {}", outcome.text(*platform));
        outcomes.push(outcome);
    }
    let has = |is: fn(&Outcome) -> bool| outcomes.iter().any(is);
    Ok(match () {
        () if has(|o| matches!(o, Outcome::Failed(_))) => ExitCode::FAILURE,
        () if has(|o| matches!(o, Outcome::NotRun(_))) => ExitCode::from(NOT_INSTALLED),
        () => ExitCode::SUCCESS,
    })
}

/// What came of a platform.
enum Outcome {
    Passed,
    Failed(anyhow::Error),
    /// What is missing, with the command that installs it.
    NotRun(Vec<String>),
}

impl Outcome {
    fn text(&self, platform: Platform) -> String {
        match self {
            Self::Passed if platform.runs() => "built, and it answers as it must".to_owned(),
            Self::Passed => "checked; not linked, not run".to_owned(),
            Self::Failed(error) => format!("FAILED: {error:#}"),
            Self::NotRun(missing) => format!("not run: {}", missing.join("; ")),
        }
    }
}

fn tried(top: &Path, platform: Platform, tools: &Tools, options: &Platforms) -> anyhow::Result<()> {
    let all = match options.files_only || platform == Platform::Browser {
        true => &[Features::Files][..],
        false => &[Features::Files, Features::All],
    };
    for features in all {
        for target in platform.targets() {
            let build = Build {
                top,
                platform,
                target,
                features: *features,
                profile: None,
            };
            println!("{}: {target}, {features}", platform.name());
            if !options.built {
                build.run(tools)?;
            }
            if !platform.runs() {
                continue;
            }
            let runner = Runner::new(&build, tools)?;
            calls::check(top, &runner, *features)?;
            if *features == Features::Files && !options.no_cases {
                cases(top, &runner)?;
            }
        }
    }
    Ok(())
}

/// Builds the program of the browser with the profile `browser`, and returns its path; with `is_built` it was built
/// before.
///
/// # Errors
/// It does not build.
///
/// Inside: what is missing, each with the command that installs it.
pub(crate) fn program_of_browser(
    top: &Path,
    is_built: bool,
) -> anyhow::Result<Result<PathBuf, Vec<String>>> {
    let platform = Platform::Browser;
    let build = Build {
        top,
        platform,
        target: TARGET_OF_BROWSER,
        features: Features::Files,
        profile: Some("browser"),
    };
    if !is_built {
        match Tools::of(platform, top) {
            Err(missing) => return Ok(Err(missing)),
            Ok(tools) => build.run(&tools)?,
        }
    }
    Ok(Ok(build.program()))
}

/// Plays the cases of strew's tests with the program of the platform.
fn cases(top: &Path, runner: &Runner) -> anyhow::Result<()> {
    let script = runner.script()?;
    let mut test = Command::new("cargo");
    test.args([
        "test",
        "--locked",
        "--package=strew",
        "--test=it",
        "cases::",
    ])
    .current_dir(top)
    .env("STREW_PROGRAM", script);
    done(&mut test)
}
