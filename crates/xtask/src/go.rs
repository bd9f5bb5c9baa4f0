//! The Go toolchain, and the programs that it builds from `e2e/controlplane`, `e2e/suite` and `e2e/descheduler`, cached
//! outside the repository.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, bail};

/// What to do where there is no compiler.
const NO_GO: &str = "a real control plane needs Go 1.26 (https://go.dev/dl)";

/// The folder of the control plane's module, from the project's top.
const CONTROL_PLANE: &str = "e2e/controlplane";

/// The release that is built, and what it says of itself: without a version the server calls itself v0.0.0, and
/// clients then pass over features.
const VERSION: &str = "v1.36.3";

/// The folder of the suite's module, from the project's top.
const SUITE: &str = "e2e/suite";

/// The folder of the descheduler's module, from the project's top. It follows libraries of a release of its own.
const DESCHEDULER: &str = "e2e/descheduler";

/// What is built of the modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// The control plane and kwok.
    ControlPlane,
    /// kubelet and kube-proxy, too.
    RealNodes,
    /// The program that holds a pod's namespaces, without libraries, for an image.
    Pause,
    /// Kubernetes' own end-to-end suite for scheduling.
    Suite,
    /// The program that the suite's pods run, without libraries, for an image.
    Agnhost,
    /// The descheduler, for comparisons.
    Descheduler,
}

impl Build {
    /// The module's folder, from the project's top.
    fn source(self) -> &'static str {
        match self {
            Self::ControlPlane | Self::RealNodes | Self::Pause => CONTROL_PLANE,
            Self::Suite | Self::Agnhost => SUITE,
            Self::Descheduler => DESCHEDULER,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ControlPlane => "controlplane",
            Self::RealNodes => "nodes",
            Self::Pause => "pause",
            Self::Suite => "suite",
            Self::Agnhost => "agnhost",
            Self::Descheduler => "descheduler",
        }
    }

    /// What `go build` is told beside flags of all builds.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::ControlPlane => &["."],
            Self::RealNodes => &["-tags=node", "."],
            Self::Pause => &["./pause"],
            Self::Suite | Self::Descheduler => &["."],
            Self::Agnhost => &["k8s.io/kubernetes/test/images/agnhost"],
        }
    }

    /// Whether it is built without C. The suite needs no C either, and shares packages with agnhost so.
    fn is_static(self) -> bool {
        matches!(self, Self::Pause | Self::Suite | Self::Agnhost)
    }
}

/// The path of a binary, which is built if no earlier run left one for these sources and this compiler.
///
/// # Errors
/// Without Go, without a home for caches, and if the build fails; go's own output is on the screen then.
pub fn binary(top: &Path, build: Build) -> anyhow::Result<PathBuf> {
    Compiling::start(top, build)?.finish()
}

/// A program that Go compiles beside what its owner does. The end of the value ends the compiler.
#[derive(Debug)]
pub struct Compiling {
    /// `None`: an earlier run left the program.
    compiler: Option<Child>,
    source: PathBuf,
    unfinished: PathBuf,
    binary: PathBuf,
}

impl Compiling {
    /// Starts the compiler if no earlier run left a program for these sources and this compiler.
    ///
    /// # Errors
    /// Without Go, and without a home for caches.
    pub fn start(top: &Path, build: Build) -> anyhow::Result<Self> {
        let source = top.join(build.source());
        let folder = cache()?.join(fingerprint(&source)?);
        let mut this = Self {
            compiler: None,
            source,
            // Beside its place and then renamed: a build that was cut off leaves nothing that looks whole.
            unfinished: folder.join(format!("unfinished-{}", std::process::id())),
            binary: folder.join(build.name()),
        };
        if this.binary.exists() {
            return Ok(this);
        }
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        eprintln!(
            "building {} (once; minutes) into {}",
            build.name(),
            folder.display()
        );
        let compiler = Command::new("go")
            .args(["build", "-trimpath", "-buildvcs=false"])
            .arg(format!("-ldflags={}", linker_flags()))
            .arg("-o")
            .arg(&this.unfinished)
            .args(build.arguments())
            .envs(build.is_static().then_some(("CGO_ENABLED", "0")))
            .current_dir(&this.source)
            .spawn()
            .context("starting go build: the control plane needs a Go toolchain")?;
        this.compiler = Some(compiler);
        Ok(this)
    }

    /// The program's path, once it is there.
    ///
    /// # Errors
    /// If the build failed; go's own output is on the screen then.
    pub fn finish(mut self) -> anyhow::Result<PathBuf> {
        if let Some(compiler) = &mut self.compiler {
            if !compiler.wait()?.success() {
                bail!("go build failed in {}", self.source.display());
            }
            fs::rename(&self.unfinished, &self.binary)?;
        }
        Ok(self.binary.clone())
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        let Some(compiler) = &mut self.compiler else {
            return;
        };
        // No effect on one that has ended.
        let _ = compiler.kill();
        let _ = compiler.wait();
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Without symbols, and with the version.
fn linker_flags() -> String {
    let mut parts = VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
    let version = "-X k8s.io/component-base/version";
    format!(
        "-s -w {version}.gitVersion={VERSION} {version}.gitMajor={major} {version}.gitMinor={minor}"
    )
}

/// Where caches of this user lie.
fn cache() -> anyhow::Result<PathBuf> {
    let of = |name| {
        env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let base = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    let base = base.context("no folder for caches: set XDG_CACHE_HOME or HOME")?;
    Ok(base.join("strew/e2e"))
}

/// Names the build: the module's files, the flags and the compiler.
fn fingerprint(source: &Path) -> anyhow::Result<String> {
    let mut hash = Fnv::new();
    hash.write(&go_version(source)?);
    hash.write(linker_flags().as_bytes());
    let mut files: Vec<PathBuf> = fs::read_dir(source)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        hash.write(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.write(&fs::read(file).with_context(|| format!("reading {}", file.display()))?);
    }
    Ok(hash.to_string())
}

/// Whether Go is here, in a version that builds the control plane.
///
/// # Errors
/// Says what is missing and where to get it.
pub fn check_go(top: &Path) -> anyhow::Result<()> {
    go_version(&top.join(CONTROL_PLANE)).map(drop)
}

/// What Go says of itself in the module's folder, where it obeys go.mod: a Go that is too old fails, or fetches a newer
/// one.
fn go_version(source: &Path) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("go")
        .arg("version")
        .current_dir(source)
        .output()
        .context("`go` cannot be started")
        .context(NO_GO)?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{NO_GO}: {}", error.trim());
    }
    Ok(output.stdout)
}

/// FNV-1a with 64 bits: names contents, for the eyes of this project only.
pub struct Fnv(u64);

impl Fnv {
    /// Of nothing yet.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "made in two places")]
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Goes on with these bytes, and marks where they end.
    pub fn write(&mut self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes();
        for byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl std::fmt::Display for Fnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[test]
fn the_modules_are_of_the_release_that_the_binary_says() {
    let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let staging = VERSION.replacen("v1.", "v0.", 1);
    for source in [CONTROL_PLANE, SUITE] {
        let module = fs::read_to_string(top.join(source).join("go.mod")).unwrap();
        for line in [
            format!("\tk8s.io/kubernetes {VERSION}\n"),
            format!("\tk8s.io/kubectl => k8s.io/kubectl {staging}\n"),
        ] {
            assert!(module.contains(&line), "{source}/go.mod lacks {line:?}");
        }
        let replaced = module.lines().filter(|line| line.contains(" => "));
        let other: Vec<&str> = replaced.filter(|line| !line.ends_with(&staging)).collect();
        assert_eq!(other, [""; 0]);
    }
}

#[test]
fn the_binary_says_which_release_it_is() {
    let flags = linker_flags();
    for part in ["gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"] {
        assert!(flags.contains(part), "{flags}");
    }
}

#[test]
fn other_contents_have_another_name() {
    let name = |parts: &[&str]| {
        let mut hash = Fnv::new();
        parts.iter().for_each(|part| hash.write(part.as_bytes()));
        hash.to_string()
    };
    assert_eq!(name(&["ab", "c"]), name(&["ab", "c"]));
    assert_ne!(name(&["ab", "c"]), name(&["a", "bc"]));
    assert_ne!(name(&["ab"]), name(&["ba"]));
}
