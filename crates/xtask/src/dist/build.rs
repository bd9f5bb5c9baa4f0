//! The published program: static, of no folder, with the list of its packages inside.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::Origin;
use super::bill::Bill;
use super::files::run;
use super::platform::HERE;
use xtask::top;

/// What the program is built for: this machine.
pub(super) const TARGET: &str = HERE.target;

/// The largest program that is wanted, in bytes. A larger one is published, and told.
const BYTES_WANTED: u64 = 40_000_000;

/// Where the list of packages is, by the convention of cargo-auditable.
const SECTION: &str = ".dep-v0";

/// Builds the program and adds the list of its packages; returns its path.
///
/// With a target, flags of the compiler reach neither build scripts nor procedural macros, which cannot be static. Paths
/// of this machine are replaced, in Rust and in C, so that every folder gives the same program, and C has one date.
pub(super) fn built(bill: &Bill, origin: &Origin) -> anyhow::Result<PathBuf> {
    let base = top().join("target");
    if HERE.os != "linux" {
        return plain(&base, origin);
    }
    let names = base.join("names.o");
    let source = top().join("deploy/static/names.c");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    std::fs::create_dir_all(&base)?;
    run(Command::new(compiler)
        .arg("-O2")
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&names))?;

    let hidden = [(top().to_owned(), "/strew"), (cargo_home()?, "/cargo")];
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    for (path, instead) in &hidden {
        let replaced = format!("{}={instead}", path.display());
        flags.push(format!("--remap-path-prefix={replaced}"));
    }
    let mut cargo = Command::new("cargo");
    let status = of_no_place_and_time(of_origin(&mut cargo, origin), &hidden)
        .args(["rustc", "--locked", "--profile=dist"])
        .args(["--package=strew", "--bin=strew"])
        .arg(format!("--target={TARGET}"))
        .arg("--target-dir")
        .arg(&base)
        .arg("--")
        .arg(format!("-Clink-arg={}", names.display()))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        .current_dir(top())
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "cargo rustc: {status}");
    let folder = base.join(TARGET).join("dist");
    let program = folder.join("strew-listed");
    add_list(&folder.join("strew"), bill, &program)?;
    check(&program)?;
    Ok(program)
}

/// Builds the program of another system, which links that system's own libraries.
fn plain(base: &Path, origin: &Origin) -> anyhow::Result<PathBuf> {
    let status = of_origin(&mut Command::new("cargo"), origin)
        .args(["build", "--locked", "--profile=dist", "--package=strew"])
        .arg("--target-dir")
        .arg(base)
        .current_dir(top())
        .status()
        .context("starting cargo")?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(base.join("dist").join(format!("strew{}", HERE.exe())))
}

/// Has the program tell the project's page and its own commit, as far as they are known.
fn of_origin<'a>(command: &'a mut Command, origin: &Origin) -> &'a mut Command {
    let told = [
        ("STREW_HOMEPAGE", &origin.homepage),
        ("STREW_COMMIT", &origin.commit),
    ];
    for (name, value) in told {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// The commit of the sources, if git knows it and no file differs from it.
pub(super) fn commit() -> Option<String> {
    let git = |words: &[&str]| {
        let done = Command::new("git").args(words).current_dir(top()).output();
        let done = done.ok().filter(|done| done.status.success())?;
        Some(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    };
    let is_changed = !git(&["status", "--porcelain"])?.is_empty();
    let commit = git(&["rev-parse", "HEAD"])?;
    (!is_changed).then_some(commit)
}

/// Has the C compilers that this command starts replace these paths, and take the beginning of 1970 for the date and the
/// time (`__DATE__`): mimalloc says when it was built.
fn of_no_place_and_time<'a>(
    command: &'a mut Command,
    hidden: &[(PathBuf, &str)],
) -> &'a mut Command {
    let flag = |(path, instead): &(PathBuf, &str)| {
        let map = format!("-ffile-prefix-map={}={instead}", path.display());
        format!("'{}'", map.replace('\'', "'\\''"))
    };
    let flags = hidden.iter().map(flag).collect::<Vec<_>>().join(" ");
    command
        .env("CFLAGS", &flags)
        .env("CXXFLAGS", &flags)
        // The flags are words of a shell: a folder's name may have a space.
        .env("CC_SHELL_ESCAPED_FLAGS", "1")
        .env("SOURCE_DATE_EPOCH", "0")
}

fn cargo_home() -> anyhow::Result<PathBuf> {
    let of = |name| env::var_os(name).map(PathBuf::from);
    let home = of("CARGO_HOME").or_else(|| Some(of("HOME")?.join(".cargo")));
    home.context("set HOME or CARGO_HOME")
}

/// Copies a program and adds the list of its packages, which tools such as `cargo audit bin` read. It is not loaded when
/// the program runs.
fn add_list(program: &Path, bill: &Bill, out: &Path) -> anyhow::Result<()> {
    let list = out.with_extension("list");
    std::fs::write(&list, bill.auditable()?)?;
    let mut objcopy = Command::new("objcopy");
    objcopy
        .arg(format!("--add-section={SECTION}={}", list.display()))
        .arg(format!("--set-section-flags={SECTION}=noload,readonly"))
        .arg(program)
        .arg(out);
    run(&mut objcopy)?;
    std::fs::remove_file(&list)?;
    Ok(())
}

/// An error if the program needs a loader, and so libraries. Tells if it is larger than wanted.
fn check(program: &Path) -> anyhow::Result<()> {
    let mut readelf = Command::new("readelf");
    let headers = run(readelf.args(["--program-headers", "--wide"]).arg(program))?;
    ensure!(
        !headers.contains("INTERP"),
        "the program is not static:\n{headers}"
    );
    let bytes = program.metadata()?.len();
    if bytes > BYTES_WANTED {
        println!("the program has {bytes} bytes; at most {BYTES_WANTED} are wanted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::dist::tests::{Scratch, in_path};

    #[test]
    fn the_list_of_packages_can_be_read_from_the_program() {
        let folder = Scratch::new("list");
        let bill = Bill::of(TARGET).unwrap();
        let program = folder.path().join("with");
        add_list(&in_path("true"), &bill, &program).unwrap();
        let section = folder.path().join("section");
        let mut objcopy = Command::new("objcopy");
        objcopy
            .arg(format!("--dump-section={SECTION}={}", section.display()))
            .arg(&program)
            .arg(folder.path().join("copy"));
        run(&mut objcopy).unwrap();
        let mut text = String::new();
        let packed = std::fs::File::open(&section).unwrap();
        flate2::read::ZlibDecoder::new(packed)
            .read_to_string(&mut text)
            .unwrap();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        let packages = list["packages"].as_array().unwrap();
        assert!(packages.iter().any(|p| p["name"] == "rustls"), "{text}");
        run(&mut Command::new(&program)).unwrap();
    }

    /// Before, two builds of one minute were equal, and no others.
    #[test]
    fn c_knows_neither_the_folder_nor_the_time() {
        let folder = Scratch::new("c d");
        let source = folder.path().join("a.c");
        let object = folder.path().join("a.o");
        std::fs::write(&source, "const char a[] = __DATE__ __TIME__ __FILE__;").unwrap();
        let mut compile = Command::new("sh");
        // As the crate cc splits them.
        compile.args([
            "-c",
            "eval \"set -- $CFLAGS -c '$0' -o '$1'\"; ${CC:-cc} \"$@\"",
        ]);
        compile.args([&source, &object]);
        let hidden = [(folder.path().to_owned(), "/strew")];
        run(of_no_place_and_time(&mut compile, &hidden)).unwrap();
        let bytes = std::fs::read(&object).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("Jan  1 197000:00:00/strew/a.c"), "{text}");
    }

    #[test]
    fn a_program_that_needs_a_loader_is_not_published() {
        let error = check(&in_path("true")).unwrap_err().to_string();
        assert!(error.starts_with("the program is not static"), "{error}");
    }
}
