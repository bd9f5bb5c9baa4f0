//! Runs the fuzz targets: `cargo xtask fuzz`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};

use xtask::top;

/// Seconds that one input may take before it counts as a hang.
const TIMEOUT_SECONDS: u32 = 10;

/// Memory that one input may take before it counts as a leak.
const MEMORY_MIB: u32 = 2048;

/// Bytes of one input at most: a real manifest's size.
const INPUT_BYTES_MAX: u32 = 16 << 10;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Fuzz {
    /// The target to run; all of fuzz/fuzz_targets without one
    target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Install cargo-fuzz first if it is not there
    #[arg(long)]
    install: bool,
}

/// Runs the targets one after another; exit code 1 if any found a fault.
pub(crate) fn run(options: &Fuzz) -> anyhow::Result<ExitCode> {
    ensure_tools(options.install)?;
    let known = targets()?;
    let wanted = match &options.target {
        None => known,
        Some(target) if known.contains(target) => vec![target.clone()],
        Some(target) => bail!(
            "no fuzz target is called {target:?}: there are {}",
            known.join(", ")
        ),
    };
    let mut found_any = false;
    for target in &wanted {
        found_any |= run_target(target, options.seconds)?;
    }
    Ok(match found_any {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Fuzzing needs instrumentation that only nightly compilers have.
fn ensure_tools(install: bool) -> anyhow::Result<()> {
    if !succeeds(nightly().arg("--version")) {
        bail!("fuzzing needs a nightly toolchain: rustup toolchain install nightly");
    }
    if succeeds(nightly().args(["fuzz", "--version"])) {
        return Ok(());
    }
    if !install {
        bail!(
            "fuzzing needs cargo-fuzz: cargo install --locked cargo-fuzz, or cargo xtask fuzz --install"
        );
    }
    let status = Command::new("cargo")
        .args(["install", "--locked", "cargo-fuzz"])
        .status()?;
    match status.success() {
        true => Ok(()),
        false => bail!("cargo-fuzz could not be installed"),
    }
}

fn nightly() -> Command {
    let mut command = Command::new("cargo");
    // The outer cargo's variables for its own toolchain must not reach the inner one.
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command.arg("+nightly").current_dir(top());
    command
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The names of all targets, sorted.
fn targets() -> anyhow::Result<Vec<String>> {
    let folder = top().join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "rs") {
            names.extend(path.file_stem().map(|s| s.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Whether the target found a fault. The fuzzer's output goes to a log beside the corpus.
fn run_target(target: &str, seconds: u32) -> anyhow::Result<bool> {
    let corpus = format!("fuzz/corpus/{target}");
    fs::create_dir_all(top().join(&corpus))?;
    build(target)?;
    let log = top().join(format!("fuzz/corpus/{target}.log"));
    let status = nightly()
        .args(["fuzz", "run", target, &corpus])
        .arg(format!("fuzz/seeds/{target}"))
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg("-print_final_stats=1")
        .args(dictionary(target))
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?)
        .status()?;
    let said = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let runs = said
        .lines()
        .find_map(|l| l.strip_prefix("stat::number_of_executed_units:"));
    let runs = runs.map_or("?", str::trim);
    if status.success() {
        println!("{target}: {runs} inputs in {seconds} s, no finding");
        return Ok(false);
    }
    match reproducer(&said) {
        Some(path) => {
            println!("{target}: FINDING after {runs} inputs");
            println!("  reproducer: {}", path.display());
            println!(
                "  again:      cargo +nightly fuzz run {target} {}",
                path.display()
            );
        }
        None => println!("{target}: stopped without a reproducer"),
    }
    println!("  log:        {}", log.display());
    Ok(true)
}

/// Builds a target before its run: compiler output goes to the screen, and its time does not count.
fn build(target: &str) -> anyhow::Result<()> {
    match nightly()
        .args(["fuzz", "build", target])
        .status()?
        .success()
    {
        true => Ok(()),
        false => bail!("fuzz target {target} does not build"),
    }
}

fn dictionary(target: &str) -> Option<String> {
    let path = top().join(format!("fuzz/dictionaries/{target}.txt"));
    path.exists().then(|| format!("-dict={}", path.display()))
}

/// The path of the input at which libFuzzer stopped, from its output.
fn reproducer(said: &str) -> Option<PathBuf> {
    let line = said
        .lines()
        .find_map(|l| l.split_once("Test unit written to "));
    line.map(|(_, path)| Path::new(path.trim()).to_owned())
}
