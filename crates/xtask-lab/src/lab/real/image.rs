//! Images without a registry: made of files from scratch, and imported by each node's containerd.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::network::run;

/// An image as an archive, which containerd imports.
pub(super) struct Image {
    /// `localhost/…`: no registry has it.
    pub(super) name: String,
    pub(super) archive: PathBuf,
}

impl Image {
    /// An image of one program, and the libraries that it is linked with.
    pub(super) fn of_program(program: &Path, name: &str, folder: &Path) -> anyhow::Result<Self> {
        let base = folder.join(format!("image-{name}"));
        let root = base.join("root");
        let place = root.join("bin").join(name);
        copy(program, &place)?;
        for library in libraries(program)? {
            copy(&library, &root.join(library.strip_prefix("/")?))?;
        }
        let file = base.join("Containerfile");
        let text =
            format!("FROM scratch\nCOPY root/ /\nUSER 65532:65532\nENTRYPOINT [\"/bin/{name}\"]\n");
        fs::write(&file, text)?;
        let image = Self {
            name: format!("localhost/{name}:lab"),
            archive: folder.join(format!("{name}.tar")),
        };
        let buildah = || {
            let mut command = Command::new("buildah");
            // In a namespace without other images, which goes with the folder.
            command
                .arg("--root")
                .arg(base.join("images"))
                .arg("--runroot")
                .arg(base.join("run"))
                .arg("--storage-driver=vfs");
            command
        };
        run(buildah()
            .args([
                "bud",
                "--isolation=chroot",
                "--quiet",
                "--tag",
                &image.name,
                "--file",
            ])
            .arg(&file)
            .arg(&base))?;
        let archive = format!("docker-archive:{}:{}", image.archive.display(), image.name);
        run(buildah().args(["push", "--quiet", &image.name, &archive]))?;
        fs::remove_dir_all(&base)?;
        Ok(image)
    }
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let folder = to.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder)?;
    fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    Ok(())
}

/// The libraries of a program, the loader among them; none of one that is linked statically.
fn libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output()?;
    let text = String::from_utf8(output.stdout)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains("not a dynamic executable"), "ldd: {said}");
        return Ok(Vec::new());
    }
    let words = text
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(words.map(PathBuf::from).collect())
}
