//! Archives and digests that are the same on every machine: GNU tar, gzip and sha256sum with fixed options.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Writes the entries `names` of a folder into a tar file: sorted, of no owner, of no time.
pub(super) fn tar(folder: &Path, names: &[&str], out: &Path) -> anyhow::Result<()> {
    let fixed = [
        "--create",
        "--format=ustar",
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--mode=u+rw,go=rX",
    ];
    let mut command = Command::new("tar");
    command.args(fixed).arg("--file").arg(out);
    command.arg("--directory").arg(folder).args(names);
    run(&mut command).map(drop)
}

/// Compresses a file; its name and time are not in the result.
pub(super) fn gzip(file: &Path, out: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("gzip");
    command.args(["--no-name", "--best", "--stdout"]).arg(file);
    command.stdout(File::create(out)?);
    let status = command.status().context("starting gzip")?;
    ensure!(status.success(), "gzip: {status}");
    Ok(())
}

/// Packs a folder as Windows unpacks it by itself. Python is on every machine that builds for Windows.
pub(super) fn zip(folder: &Path, name: &str, out: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("python3");
    command
        .args(["-m", "zipfile", "--create"])
        .arg(out)
        .arg(name);
    run(command.current_dir(folder)).map(drop)
}

/// Unpacks an archive of either kind.
pub(super) fn unpack(archive: &Path, folder: &Path) -> anyhow::Result<()> {
    let is_zip = archive.extension().is_some_and(|end| end == "zip");
    let (program, words): (&str, &[&str]) = match is_zip {
        true => ("python3", &["-m", "zipfile", "--extract"]),
        false => ("tar", &["--extract", "--gzip", "--file"]),
    };
    let mut command = Command::new(program);
    command.args(words).arg(archive);
    if !is_zip {
        command.arg("--directory");
    }
    run(command.arg(folder)).map(drop)
}

/// The lines of `sha256sum` about files of a folder.
pub(super) fn sums(folder: &Path, names: &[&str]) -> anyhow::Result<String> {
    run(Command::new("sha256sum").args(names).current_dir(folder))
}

/// The SHA-256 of a file, in hexadecimal.
pub(super) fn digest(file: &Path) -> anyhow::Result<String> {
    let line = run(Command::new("sha256sum").arg("--").arg(file))?;
    // The line of a name with odd characters begins with a backslash.
    let digest = line.trim_start_matches('\\').split(' ').next();
    digest
        .map(str::to_owned)
        .context("sha256sum printed nothing")
}

/// The digests of all files of a folder, sorted by name.
#[cfg(test)]
pub(super) fn digest_of_folder(folder: &Path) -> anyhow::Result<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<_>>()?;
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    sums(folder, &names)
}

/// Runs a command to its end; its output.
///
/// # Errors
/// With what it said if it cannot be started or fails.
pub(super) fn run(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.with_context(|| format!("starting {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{program}: {}\n{said}",
        output.status
    );
    String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))
}
