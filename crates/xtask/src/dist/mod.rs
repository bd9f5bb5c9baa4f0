//! The published files of a version: `cargo xtask dist`.
//!
//! An archive with the program, its licence and the notices of others, completions, manual pages, kubectl's completion
//! and the bill of materials; the bill by itself; a container image; checksums; and recipes of package managers. The same
//! program gives the same bytes on every machine and at any time: files are sorted, and owners, modes and times are
//! constants. Needs GNU tar, gzip and sha256sum, and for the build binutils and the static libraries of glibc (Debian's
//! libc6-dev).
//!
//! Reading order: this file, [`build`] (the program), [`bill`] (what it is made of), [`notices`] (what the licences of
//! others ask for), [`image`], [`platform`] (their names), [`recipes`], [`files`] (archives and digests).

mod bill;
mod build;
mod files;
mod image;
mod notices;
mod platform;
mod recipes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use self::bill::Bill;
use self::build::TARGET;
use self::image::About;
use self::platform::HERE;
use self::recipes::Published;
use xtask::top;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Dist {
    /// Pack this program as it is [default: build it with profile dist, static]
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The folder of the results
    #[arg(long, value_name = "FOLDER", default_value = "target/dist-files")]
    out: PathBuf,
    /// Build and pack nothing: write recipes and checksums of the archives that are there, of all platforms
    #[arg(long, requires = "url", conflicts_with = "binary")]
    recipes: bool,
    /// Where the archives will be: writes the recipes of package managers
    #[arg(long, value_name = "URL", requires = "homepage")]
    url: Option<String>,
    /// The project's page, which the program, the image and the recipes name; its last two parts are the owner and the
    /// name
    #[arg(long, value_name = "URL")]
    homepage: Option<String>,
    /// The name of the image, without a tag
    #[arg(long, value_name = "NAME", default_value = "localhost/strew")]
    image_name: String,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The program's path in the image.
const ENTRYPOINT: &str = "/usr/local/bin/strew";

/// The name of the bill of materials; tools know it by its ending.
const BILL: &str = "strew.cdx.json";

/// The name of the notices of others.
pub(crate) const NOTICES: &str = "THIRD-PARTY.txt";

/// The notices that belong to the program of the browser.
///
/// # Errors
/// cargo or rustc fails, or a file cannot be read.
pub(crate) fn notices_of_browser(target: &str) -> anyhow::Result<String> {
    notices::notices(&Bill::of_browser(target)?)
}

pub(crate) fn run(options: &Dist) -> anyhow::Result<ExitCode> {
    let out = top().join(&options.out);
    if !options.recipes {
        let origin = Origin {
            homepage: options.homepage.clone(),
            commit: build::commit(),
        };
        let bill = Bill::of(TARGET)?;
        let binary = match &options.binary {
            Some(binary) => binary.clone(),
            None => build::built(&bill, &origin)?,
        };
        pack(&binary, &bill, &origin, &options.image_name, &out)?;
    }
    if let (Some(url), Some(homepage)) = (&options.url, &options.homepage) {
        recipes::write(&out, &Published { url, homepage })?;
    }
    let sums = checksums(&out)?;
    print!("{sums}");
    println!("in {}", out.display());
    Ok(ExitCode::SUCCESS)
}

/// Writes the checksums of all files of the version that are in the folder; returns their text.
fn checksums(out: &Path) -> anyhow::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(out)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("strew-{VERSION}-")) {
            names.push(name);
        }
    }
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sums = files::sums(out, &names)?;
    fs::write(out.join("SHA256SUMS"), &sums)?;
    Ok(sums)
}

/// Where the sources come from, as far as it is known.
#[derive(Default)]
struct Origin {
    /// The project's page.
    homepage: Option<String>,
    /// The commit; `None` outside of git, and where files differ from it.
    commit: Option<String>,
}

/// Writes archive, image and bill into `out`.
fn pack(
    binary: &Path,
    bill: &Bill,
    origin: &Origin,
    image_name: &str,
    out: &Path,
) -> anyhow::Result<()> {
    let staged = out.join("staged");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    fs::create_dir_all(&staged)?;
    let texts = Texts {
        bill: bill.cyclonedx(),
        notices: notices::notices(bill)?,
    };
    archive(binary, &texts, &staged, &out.join(HERE.archive()))?;
    if HERE.os == "linux" {
        let image = About {
            name: &format!("{image_name}:{VERSION}"),
            version: VERSION,
            entrypoint: ENTRYPOINT,
            licence: "Apache-2.0",
            source: origin.homepage.as_deref(),
            revision: origin.commit.as_deref(),
        };
        packed_image(
            binary,
            &texts,
            &image,
            &staged,
            &out.join(HERE.file("oci.tar")),
        )?;
    }
    fs::remove_dir_all(&staged)?;
    fs::write(out.join(HERE.file("cdx.json")), &texts.bill)?;
    Ok(())
}

/// The texts that go with the program wherever it goes.
struct Texts {
    bill: String,
    notices: String,
}

impl Texts {
    /// Writes them, and strew's own licence, into a folder.
    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        fs::copy(top().join("LICENSE"), folder.join("LICENSE"))?;
        fs::write(folder.join(BILL), &self.bill)?;
        fs::write(folder.join(NOTICES), &self.notices)?;
        Ok(())
    }
}

/// The archive for people: one folder with everything.
fn archive(binary: &Path, texts: &Texts, staged: &Path, out: &Path) -> anyhow::Result<()> {
    let name = format!("strew-{VERSION}");
    let folder = staged.join(&name);
    let completion = "kubectl_complete-strew";
    program(binary, &folder.join(format!("strew{}", HERE.exe())))?;
    texts.write(&folder)?;
    fs::copy(top().join("README.md"), folder.join("README.md"))?;
    program(
        &top().join("deploy/recipes").join(completion),
        &folder.join(completion),
    )?;
    // docs/start.md and pipelines name them.
    program(
        &top().join("deploy/pipeline/strew-check.sh"),
        &folder.join("strew-check.sh"),
    )?;
    copied(&top().join("examples"), &folder.join("examples"))?;
    fs::create_dir(folder.join("completions"))?;
    for (shell, file) in [
        ("bash", "strew.bash"),
        ("zsh", "_strew"),
        ("fish", "strew.fish"),
    ] {
        let script = said(binary, &["completion", shell])?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    let manual = folder.join("man");
    fs::create_dir(&manual)?;
    said(
        binary,
        &["__reference", "manual", &manual.to_string_lossy()],
    )?;
    if HERE.os == "windows" {
        return files::zip(staged, &name, out);
    }
    let tar = staged.join("archive.tar");
    files::tar(staged, &[&name], &tar)?;
    files::gzip(&tar, out)?;
    fs::remove_file(&tar)?;
    Ok(())
}

/// The image: the program and its texts, and nothing else.
fn packed_image(
    binary: &Path,
    texts: &Texts,
    about: &About<'_>,
    staged: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let root = staged.join("root");
    program(binary, &root.join(ENTRYPOINT.trim_start_matches('/')))?;
    texts.write(&root.join("usr/share/doc/strew"))?;
    image::write(&root, &["usr"], about, &staged.join("image"), out)
}

/// Copies a program, which everybody may run.
fn program(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    executable(to)
}

/// Lets everybody run a file, where files have such a mode.
pub(crate) fn executable(file: &Path) -> anyhow::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    #[cfg(windows)]
    let _ = file;
    Ok(())
}

/// Copies a folder with all folders below it.
fn copied(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()?.is_dir() {
            true => copied(&from, &to)?,
            false => fs::copy(&from, &to).map(drop)?,
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder that goes with the test.
    pub(super) struct Scratch(PathBuf);

    impl Scratch {
        pub(super) fn new(name: &str) -> Self {
            let folder = format!("strew-dist-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        pub(super) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    /// A program of this machine.
    pub(super) fn in_path(name: &str) -> PathBuf {
        let path = std::env::var_os("PATH").unwrap();
        let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
        files.find(|file| file.is_file()).unwrap()
    }

    /// A program that answers as strew does, and takes no time to build.
    fn stand_in(folder: &Path) -> PathBuf {
        let file = folder.join("program");
        let script = "#!/bin/sh
echo \"of $*\"
case \"$2\" in manual) touch \"$3/strew.1\" \"$3/strew-simulate.1\" ;; esac
";
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o700)).unwrap();
        file
    }

    #[test]
    fn packed_twice_it_is_the_same_and_has_everything() {
        let folder = Scratch::new("pack");
        let binary = stand_in(folder.path());
        let bill = Bill::of(TARGET).unwrap();
        let name = "localhost/strew";
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        pack(&binary, &bill, &Origin::default(), name, &a).unwrap();
        let first = checksums(&a).unwrap();
        // Another time, and another mode of the program.
        let later = fs::File::options().append(true).open(&binary).unwrap();
        later
            .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1))
            .unwrap();
        drop(later);
        fs::set_permissions(&binary, PermissionsExt::from_mode(0o777)).unwrap();
        pack(&binary, &bill, &Origin::default(), name, &b).unwrap();
        let second = checksums(&b).unwrap();
        assert_eq!(first, second);
        assert_eq!(first.lines().count(), 3, "{first}");
        let mut tar = Command::new("tar");
        let list = files::run(
            tar.args(["--list", "--verbose", "--file"])
                .arg(a.join(HERE.archive())),
        )
        .unwrap();
        for (mode, file) in [
            ("-rwxr-xr-x 0/0", "strew"),
            ("-rwxr-xr-x 0/0", "kubectl_complete-strew"),
            ("-rw-r--r-- 0/0", "LICENSE"),
            ("-rw-r--r-- 0/0", BILL),
            ("-rw-r--r-- 0/0", NOTICES),
            ("-rw-r--r-- 0/0", "completions/strew.bash"),
            ("-rw-r--r-- 0/0", "completions/_strew"),
            ("-rw-r--r-- 0/0", "completions/strew.fish"),
            ("-rw-r--r-- 0/0", "man/strew.1"),
            ("-rw-r--r-- 0/0", "man/strew-simulate.1"),
            ("-rw-r--r-- 0/0", "examples/shop.yaml"),
            ("-rwxr-xr-x 0/0", "strew-check.sh"),
        ] {
            let path = format!("strew-{VERSION}/{file}");
            let line = list.lines().find(|line| line.ends_with(&path));
            assert!(
                line.is_some_and(|line| line.starts_with(mode)),
                "{path}: {list}"
            );
        }
    }
}
