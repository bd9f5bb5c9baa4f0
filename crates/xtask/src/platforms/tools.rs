//! What this machine has for a platform, and what it lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::platform::{Need, Platform};

/// Where the standard library of a target comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Std {
    /// The toolchain has it: `rustup target add TARGET`.
    Installed,
    /// It is compiled from Debian's sources, by Debian's cargo.
    OfDebian,
}

/// Debian's cargo and sources of the standard library.
const DEBIAN: [&str; 3] = [
    "/usr/bin/cargo",
    "/usr/bin/rustc",
    "/usr/lib/rustlib/src/rust/library/Cargo.lock",
];

/// What links for the browser, beside them. rustup's standard library for it brings its own.
const DEBIAN_OF_BROWSER: [&str; 2] = ["/usr/bin/wasm-ld", "/usr/lib/wasm32-wasi/libc.a"];

/// The tools of a platform.
pub(super) struct Tools {
    pub(super) std: Std,
    /// The C compiler: a program, or zig with its first words.
    pub(super) compiler: Vec<String>,
    /// What runs a program of the platform; `None` if nothing does.
    pub(super) runner: Option<PathBuf>,
}

impl Tools {
    /// # Errors
    /// What is missing, each with the command that installs it.
    pub(super) fn of(platform: Platform, top: &Path) -> Result<Self, Vec<String>> {
        let mut missing = Vec::new();
        let mut programs = Vec::new();
        for need in platform.needs() {
            match found(need) {
                Some(program) => programs.push(program),
                None => missing.push(format!(
                    "{} is not installed: {}",
                    need.programs[0], need.install
                )),
            }
        }
        let std = std_of(platform, top);
        if std.is_none() {
            missing.push(format!(
                "there is no standard library: rustup target add {}, or apt-get install rustc-web cargo-web rust-web-src{}",
                platform.targets().join(" "),
                match platform {
                    Platform::Browser => " lld wasi-libc",
                    _ => "",
                }
            ));
        }
        let zig = (platform == Platform::Macos).then(zig);
        if zig == Some(None) {
            missing.push("zig is not installed: python3 -m pip install ziglang".to_owned());
        }
        let (Some(std), true) = (std, missing.is_empty()) else {
            return Err(missing);
        };
        let mut programs = programs.into_iter();
        let compiler = programs.next().map(|c| vec![c.display().to_string()]);
        Ok(Self {
            std,
            compiler: compiler.or(zig.flatten()).unwrap_or_default(),
            runner: programs.next(),
        })
    }
}

fn found(need: &Need) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // An absolute name takes the place of the folder.
    let places = |name: &&str| folders.iter().map(|f| f.join(name)).find(|f| f.is_file());
    need.programs.iter().find_map(places)
}

fn std_of(platform: Platform, top: &Path) -> Option<Std> {
    let is_installed = platform.targets().iter().all(|target| {
        let mut rustc = Command::new("rustc");
        rustc.args(["--print=target-libdir", "--target", target]);
        let printed = rustc.current_dir(top).output();
        let folder = printed.ok().filter(|o| o.status.success());
        let folder = folder.and_then(|o| String::from_utf8(o.stdout).ok());
        folder.is_some_and(|folder| Path::new(folder.trim()).is_dir())
    });
    let more = match platform {
        Platform::Browser => &DEBIAN_OF_BROWSER[..],
        _ => &[],
    };
    let mut files = DEBIAN.iter().chain(more);
    let is_debian = files.all(|file| Path::new(file).is_file());
    match (is_installed, is_debian) {
        (true, _) => Some(Std::Installed),
        (false, true) => Some(Std::OfDebian),
        (false, false) => None,
    }
}

/// The words that start zig.
fn zig() -> Option<Vec<String>> {
    let ways: [&[&str]; 2] = [&["zig"], &["python3", "-m", "ziglang"]];
    let is_there = |words: &&[&str]| {
        let mut command = Command::new(words[0]);
        let run = command.args(&words[1..]).arg("version").output();
        run.is_ok_and(|run| run.status.success())
    };
    let words = ways.into_iter().find(is_there)?;
    Some(words.iter().map(|&word| word.to_owned()).collect())
}
