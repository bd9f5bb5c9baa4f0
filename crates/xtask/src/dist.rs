//! The published files of a version: `cargo xtask dist`.
//!
//! An archive with the program, its licence, completions, a manual page and kubectl's completion; the manifest for
//! krew; checksums. The same program gives the same bytes on every machine and at any time: files are sorted, and
//! owners, modes and times are constants. Needs GNU tar, gzip and sha256sum.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail, ensure};

use crate::ci::top;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Dist {
    /// Pack this program [default: build it with profile dist]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "target/dist-files")]
    out: PathBuf,
    /// Where the archive will be: writes the manifest for krew
    #[arg(long, value_name = "URL", requires = "homepage")]
    url: Option<String>,
    /// The project's page, for the same manifest
    #[arg(long, value_name = "URL")]
    homepage: Option<String>,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commands that have a section in the manual page.
const COMMANDS: &[&str] = &[
    "simulate",
    "explain",
    "lint",
    "merge",
    "sweep",
    "mcp",
    "diff",
    "import",
    "place",
    "snapshot",
    "scheduler",
    "controller",
    "webhook",
    "install",
    "uninstall",
    "schema",
    "completion",
    "version",
];

pub(crate) fn run(options: &Dist) -> anyhow::Result<ExitCode> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let out = top().join(&options.out);
    let files = pack(&binary, &out)?;
    if let (Some(url), Some(homepage)) = (&options.url, &options.homepage) {
        manifest(&out, url, homepage)?;
    }
    print!("{files}");
    println!("in {}", out.display());
    Ok(ExitCode::SUCCESS)
}

fn built() -> anyhow::Result<PathBuf> {
    let cargo = [
        "build",
        "--locked",
        "--profile",
        "dist",
        "--package",
        "strew",
    ];
    let status = Command::new("cargo")
        .args(cargo)
        .current_dir(top())
        .status()?;
    ensure!(status.success(), "cargo {}: {status}", cargo.join(" "));
    Ok(top().join("target/dist/strew"))
}

/// Writes archive and checksums into `out`; returns the checksums' text.
fn pack(binary: &Path, out: &Path) -> anyhow::Result<String> {
    let name = format!("strew-{VERSION}");
    let staged = out.join("staged");
    let folder = staged.join(&name);
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    fs::create_dir_all(folder.join("completions"))?;
    fs::create_dir_all(folder.join("man"))?;
    let copied = fs::copy(binary, folder.join("strew"));
    copied.with_context(|| format!("copying {}", binary.display()))?;
    fs::copy(top().join("LICENSE"), folder.join("LICENSE"))?;
    fs::copy(top().join("README.md"), folder.join("README.md"))?;
    let completion = "kubectl_complete-strew";
    fs::copy(
        top().join("deploy/krew").join(completion),
        folder.join(completion),
    )?;
    for (shell, file) in [
        ("bash", "strew.bash"),
        ("zsh", "_strew"),
        ("fish", "strew.fish"),
    ] {
        let script = said(binary, &["completion", shell])?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    fs::write(folder.join("man/strew.1"), manual(binary)?)?;
    for file in ["strew", completion] {
        fs::set_permissions(folder.join(file), PermissionsExt::from_mode(0o755))?;
    }
    let archive = archive_name();
    archived(&staged, &name, &out.join(&archive))?;
    fs::remove_dir_all(&staged)?;
    let sums = Command::new("sha256sum")
        .arg(&archive)
        .current_dir(out)
        .output()?;
    ensure!(sums.status.success(), "sha256sum: {}", sums.status);
    let sums = String::from_utf8(sums.stdout)?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

fn archive_name() -> String {
    format!("strew-{VERSION}-linux-amd64.tar.gz")
}

/// The archive contains nothing of this machine, and no current time.
fn archived(staged: &Path, name: &str, archive: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar")
        .args(["--create", "--format=ustar", "--sort=name", "--mtime=@0"])
        .args([
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=u+rw,go=rX",
        ])
        .arg("--directory")
        .arg(staged)
        .arg(name)
        .stdout(Stdio::piped())
        .spawn()
        .context("tar")?;
    let packed = tar.stdout.take().context("tar has an output")?;
    let zip = Command::new("gzip")
        .args(["--no-name", "--best"])
        .stdin(packed)
        .stdout(fs::File::create(archive)?)
        .status()
        .context("gzip")?;
    let status = tar.wait()?;
    ensure!(status.success(), "tar: {status}");
    ensure!(zip.success(), "gzip: {zip}");
    Ok(())
}

/// A manual page from the help of each command, unchanged.
fn manual(binary: &Path) -> anyhow::Result<String> {
    let mut page = format!(
        ".TH STREW 1 \"\" \"strew {VERSION}\"\n.SH NAME\nstrew \\- pods over failure domains\n.SH SYNOPSIS\n{}",
        preformatted(&said(binary, &["--help"])?)
    );
    for command in COMMANDS {
        let help = said(binary, &[command, "--help"])?;
        page += &format!(".SH {}\n{}", command.to_uppercase(), preformatted(&help));
    }
    Ok(page)
}

/// Text that roff shows unchanged.
fn preformatted(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}\n"),
            false => line + "\n",
        }
    });
    format!(".nf\n{}.fi\n", lines.collect::<String>())
}

/// The output of the program, in an environment without a width and colours.
fn said(binary: &Path, args: &[&str]) -> anyhow::Result<String> {
    let run = Command::new(binary)
        .args(args)
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .output();
    let run = run.with_context(|| format!("running {}", binary.display()))?;
    if !run.status.success() {
        bail!("{} {}: {}", binary.display(), args.join(" "), run.status);
    }
    Ok(String::from_utf8(run.stdout)?)
}

/// The manifest for krew, from deploy/krew/strew.yaml.template.
fn manifest(out: &Path, url: &str, homepage: &str) -> anyhow::Result<()> {
    let template = fs::read_to_string(top().join("deploy/krew/strew.yaml.template"))?;
    let sums = fs::read_to_string(out.join("SHA256SUMS"))?;
    let sum = sums.split(' ').next().unwrap_or_default();
    let uri = format!("{}/{}", url.trim_end_matches('/'), archive_name());
    fs::write(
        out.join("strew.yaml"),
        filled(&template, &uri, homepage, sum),
    )?;
    Ok(())
}

fn filled(template: &str, uri: &str, homepage: &str, sum: &str) -> String {
    let lines = template.lines().filter(|line| !line.starts_with('#'));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("@VERSION@", VERSION)
        .replace("@URI@", uri)
        .replace("@HOMEPAGE@", homepage)
        .replace("@SHA256@", sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that answers as strew does, and takes no time to build.
    fn stand_in(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let file = folder.join("program");
        fs::write(&file, "#!/bin/sh\necho \"of $*\"\necho '.dot \\ back'\n").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o700)).unwrap();
        file
    }

    #[test]
    fn packed_twice_it_is_the_same_and_has_everything() {
        let folder = std::env::temp_dir().join(format!("strew-dist-{}", std::process::id()));
        let binary = stand_in(&folder);
        let first = pack(&binary, &folder.join("a")).unwrap();
        // Another time, and another mode of the program.
        let later = fs::File::options().append(true).open(&binary).unwrap();
        later
            .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1))
            .unwrap();
        drop(later);
        fs::set_permissions(&binary, PermissionsExt::from_mode(0o777)).unwrap();
        let second = pack(&binary, &folder.join("b")).unwrap();
        assert_eq!(first, second);
        let list = Command::new("tar")
            .arg("--list")
            .arg("--verbose")
            .arg("--file")
            .arg(folder.join("a").join(archive_name()))
            .output()
            .unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        for (mode, file) in [
            ("-rwxr-xr-x 0/0", "strew"),
            ("-rwxr-xr-x 0/0", "kubectl_complete-strew"),
            ("-rw-r--r-- 0/0", "LICENSE"),
            ("-rw-r--r-- 0/0", "completions/strew.bash"),
            ("-rw-r--r-- 0/0", "completions/_strew"),
            ("-rw-r--r-- 0/0", "completions/strew.fish"),
            ("-rw-r--r-- 0/0", "man/strew.1"),
        ] {
            let path = format!("strew-{VERSION}/{file}");
            let line = list.lines().find(|line| line.ends_with(&path));
            assert!(
                line.is_some_and(|line| line.starts_with(mode)),
                "{path}: {list}"
            );
        }
        manifest(
            &folder.join("a"),
            "https://example.com/v/",
            "https://example.com",
        )
        .unwrap();
        let manifest = fs::read_to_string(folder.join("a/strew.yaml")).unwrap();
        let sum = first.split(' ').next().unwrap();
        assert!(manifest.contains(&format!("sha256: {sum}\n")), "{manifest}");
        assert!(manifest.contains(&format!("uri: https://example.com/v/{}\n", archive_name())));
        assert!(!manifest.contains('@'), "{manifest}");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// krew's own rules: its index refuses a manifest that breaks them.
    #[test]
    fn the_manifest_keeps_the_rules_of_krew() {
        let template = fs::read_to_string(top().join("deploy/krew/strew.yaml.template")).unwrap();
        let text = filled(
            &template,
            "https://example.com/a.tar.gz",
            "https://example.com",
            &"0".repeat(64),
        );
        let manifest: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(
            manifest["apiVersion"],
            "krew.googlecontainertools.github.com/v1alpha2"
        );
        assert_eq!(manifest["metadata"]["name"], "strew");
        let spec = &manifest["spec"];
        assert_eq!(spec["version"], format!("v{VERSION}"));
        assert!(spec["shortDescription"].as_str().unwrap().len() <= 50);
        let lines = spec["description"].as_str().unwrap().lines();
        assert!(lines.clone().count() > 1 && lines.clone().all(|line| line.len() <= 80));
        let platform = &spec["platforms"][0];
        assert_eq!(platform["bin"], "kubectl-strew");
        let files = platform["files"].as_array().unwrap();
        let has = |file: &str| {
            files
                .iter()
                .any(|f| f["from"].as_str().unwrap().ends_with(file))
        };
        assert!(has("/strew") && has("/LICENSE") && has("/kubectl_complete-strew"));
    }

    #[test]
    fn a_manual_shows_what_roff_would_take_for_a_request() {
        assert_eq!(
            preformatted(".dot \\ a-b\n"),
            ".nf\n\\&.dot \\e a\\-b\n.fi\n"
        );
    }
}
