//! cargo for another platform.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use super::platform::Platform;
use super::tools::{Std, Tools};
use crate::dist;

/// What the program can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Features {
    /// Files only: the program of README's first command.
    Files,
    /// With the commands that reach a cluster or run in one.
    All,
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "the program that reads files",
            Self::All => "the program with all commands",
        })
    }
}

/// A program to build.
pub(super) struct Build<'a> {
    pub(super) top: &'a Path,
    pub(super) platform: Platform,
    pub(super) target: &'static str,
    pub(super) features: Features,
    /// The profile of cargo; `None`: that of tests.
    pub(super) profile: Option<&'static str>,
}

impl Build<'_> {
    /// Where everything of other platforms is, apart from ordinary builds.
    pub(super) fn folder(&self) -> PathBuf {
        self.top.join("target/platforms")
    }

    /// The built program.
    pub(super) fn program(&self) -> PathBuf {
        let exe = match self.platform {
            Platform::Windows => "strew.exe",
            Platform::Macos | Platform::LinuxArm64 => "strew",
            Platform::Browser => "strew.wasm",
        };
        let folder = self.folder().join(self.target);
        let folder = folder.join(self.profile.unwrap_or("debug"));
        folder.join(exe)
    }

    /// Builds it, or checks it where nothing runs it, and no profile asks for it.
    pub(super) fn run(&self, tools: &Tools) -> anyhow::Result<()> {
        let mut cargo = match tools.std {
            Std::Installed => Command::new("cargo"),
            Std::OfDebian => Command::new("/usr/bin/cargo"),
        };
        cargo.arg(match self.platform.runs() || self.profile.is_some() {
            true => "build",
            false => "check",
        });
        cargo.args(self.profile.map(|profile| format!("--profile={profile}")));
        if tools.std == Std::OfDebian {
            // Its cargo takes unstable options so; the libraries of rustup's compiler are no concern of it.
            cargo.arg("-Zbuild-std=std,panic_abort");
            cargo.env("RUSTC_BOOTSTRAP", "1");
            let linker = self.folder().join("linker");
            if self.platform == Platform::Browser {
                lenient_linker(&linker)?;
            }
            cargo.env("PATH", path_of_debian(&linker));
            for name in ["LD_LIBRARY_PATH", "RUSTUP_TOOLCHAIN", "RUSTC", "CARGO"] {
                cargo.env_remove(name);
            }
        }
        cargo
            .args(["--locked", "--target", self.target])
            .arg("--package=strew")
            .current_dir(self.top)
            .env("CARGO_TARGET_DIR", self.folder())
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        if self.features == Features::Files {
            cargo.arg("--no-default-features");
        }
        for (name, value) in self.compilers(tools)? {
            cargo.env(name, value);
        }
        let status = cargo.status()?;
        ensure!(status.success(), "cargo for {}: {status}", self.target);
        Ok(())
    }

    /// The variables that name the C compiler, the archiver and the linker.
    fn compilers(&self, tools: &Tools) -> anyhow::Result<Vec<(String, String)>> {
        let small = self.target.replace('-', "_");
        let large = small.to_uppercase();
        if self.platform == Platform::Browser {
            return Ok(linker_of_browser(&large, tools.std));
        }
        if self.platform != Platform::Macos {
            let linker = format!("CARGO_TARGET_{large}_LINKER");
            return Ok(vec![(linker, tools.compiler.join(" "))]);
        }
        let folder = self.folder().join("zig").join(self.target);
        fs::create_dir_all(&folder)?;
        let (cc, ar) = (folder.join("cc"), folder.join("ar"));
        script(&cc, &compiler_of_macos(&tools.compiler, self.target))?;
        script(&ar, &format!("exec {} ar \"$@\"", tools.compiler.join(" ")))?;
        Ok(vec![
            (format!("CC_{small}"), cc.display().to_string()),
            (format!("AR_{small}"), ar.display().to_string()),
            // Without Apple's tools nothing else says where its SDK would be.
            ("SDKROOT".to_owned(), "/".to_owned()),
        ])
    }
}

/// Where Debian has the library of C for WebAssembly.
const LIBRARY_OF_WASI: &str = "/usr/lib/wasm32-wasi";

/// What Rust's standard library asks of the library of C and Debian's lacks: threads, which this program never starts, and
/// names of files without links. The linker makes imports of them, and `web/play/wasi.ts` refuses each call.
const MISSING_IN_DEBIAN: &str = "\
pthread_attr_destroy
pthread_attr_init
pthread_attr_setstacksize
pthread_create
pthread_detach
pthread_join
realpath
";

/// The linker for the browser and what it gets: a stack as large as that of a program's first thread elsewhere, and,
/// without rustup, Debian's linker and library of C.
fn linker_of_browser(target: &str, std: Std) -> Vec<(String, String)> {
    let mut flags = "-Clink-arg=-zstack-size=8388608".to_owned();
    let mut variables = Vec::new();
    if std == Std::OfDebian {
        flags = format!(
            "-Clink-self-contained=no -Clink-arg={LIBRARY_OF_WASI}/crt1-command.o -Lnative={LIBRARY_OF_WASI} {flags}"
        );
        let linker = format!("CARGO_TARGET_{target}_LINKER");
        variables.push((linker, "wasm-ld".to_owned()));
    }
    variables.push((format!("CARGO_TARGET_{target}_RUSTFLAGS"), flags));
    variables
}

/// Writes a `wasm-ld` that calls Debian's with [`MISSING_IN_DEBIAN`] into `folder`.
fn lenient_linker(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let missing = folder.join("missing.txt");
    fs::write(&missing, MISSING_IN_DEBIAN)?;
    let body = format!(
        "exec /usr/bin/wasm-ld \"$@\" '--allow-undefined-file={}'",
        missing.display()
    );
    script(&folder.join("wasm-ld"), &body)
}

/// Debian's compilers before those of rustup, and `first` before them.
fn path_of_debian(first: &Path) -> std::ffi::OsString {
    let mut path = first.as_os_str().to_owned();
    path.push(":/usr/bin:");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// The body of a script that compiles C for macOS by zig, without the options of Apple's clang.
fn compiler_of_macos(zig: &[String], target: &str) -> String {
    let cpu = target.split('-').next().unwrap_or_default();
    format!(
        "before=
for word do
  shift
  case \"$before $word\" in
    '-isysroot '*|'-arch '*|*' -isysroot'|*' -arch'|*' --target='*|*' -mmacosx-version-min='*) ;;
    *) set -- \"$@\" \"$word\" ;;
  esac
  before=$word
done
exec {} cc -target {cpu}-macos \"$@\"",
        zig.join(" ")
    )
}

/// Writes a script of the shell that everybody may run.
pub(super) fn script(path: &Path, body: &str) -> anyhow::Result<()> {
    fs::write(path, format!("#!/bin/sh\n{body}\n"))?;
    dist::executable(path)
}
