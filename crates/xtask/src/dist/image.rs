//! A container image from scratch, as an OCI archive: a tar file with the image's layout, which containerd, podman,
//! buildah, skopeo and Docker read. Source: the OCI image specification 1.1.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use super::files;
use super::platform::HERE;

/// The user of the processes: not root, and without a name.
const USER: &str = "65532:65532";

/// The time of everything in the image.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// A blob of the layout.
struct Blob {
    media_type: &'static str,
    digest: String,
    size: u64,
}

impl Blob {
    fn descriptor(&self) -> Value {
        json!({
            "mediaType": self.media_type,
            "digest": format!("sha256:{}", self.digest),
            "size": self.size,
        })
    }
}

/// What is said of an image.
pub(super) struct About<'a> {
    /// Its name with a tag, for clients that import it.
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// The path of the program in the image.
    pub(super) entrypoint: &'a str,
    pub(super) licence: &'a str,
    /// The address of the sources.
    pub(super) source: Option<&'a str>,
    /// Their commit.
    pub(super) revision: Option<&'a str>,
}

/// Writes an image whose files are the entries `names` of the folder `root`. `scratch` is a folder that does not exist; it
/// is removed again.
pub(super) fn write(
    root: &Path,
    names: &[&str],
    about: &About<'_>,
    scratch: &Path,
    out: &Path,
) -> anyhow::Result<()> {
    let layout = Layout::new(scratch.to_owned())?;
    let layer = layout.layer(root, names)?;
    let config = layout.json(
        "application/vnd.oci.image.config.v1+json",
        &json!({
            "architecture": HERE.arch,
            "os": "linux",
            "created": CREATED,
            "config": {
                "User": USER,
                "Entrypoint": [about.entrypoint],
                "Labels": labels(about),
            },
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", layer.unpacked)]},
            "history": [{"created": CREATED, "created_by": "cargo xtask dist"}],
        }),
    )?;
    let manifest = layout.json(
        "application/vnd.oci.image.manifest.v1+json",
        &json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": [layer.blob.descriptor()],
        }),
    )?;
    let mut entry = manifest.descriptor();
    entry["platform"] = json!({"architecture": HERE.arch, "os": "linux"});
    // The tag alone for tools of OCI, the whole name for containerd.
    let tag = about.name.rsplit(':').next().unwrap_or_default();
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag,
        "io.containerd.image.name": about.name,
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    });
    fs::write(layout.folder.join("index.json"), index.to_string())?;
    let version = json!({"imageLayoutVersion": "1.0.0"});
    fs::write(layout.folder.join("oci-layout"), version.to_string())?;
    files::tar(&layout.folder, &["blobs", "index.json", "oci-layout"], out)?;
    fs::remove_dir_all(&layout.folder)?;
    Ok(())
}

/// The labels that OCI names; what is not known has none.
fn labels(about: &About<'_>) -> Value {
    let told = [
        ("title", Some("strew")),
        ("version", Some(about.version)),
        ("licenses", Some(about.licence)),
        ("source", about.source),
        ("revision", about.revision),
    ];
    let label = |(name, value): (&str, Option<&str>)| {
        Some((format!("org.opencontainers.image.{name}"), value?.into()))
    };
    Value::Object(told.into_iter().filter_map(label).collect())
}

/// A layer: as it is stored, and the digest of its tar file.
struct Layer {
    blob: Blob,
    unpacked: String,
}

/// The folder of an image.
struct Layout {
    folder: PathBuf,
}

impl Layout {
    fn new(folder: PathBuf) -> anyhow::Result<Self> {
        let layout = Self { folder };
        let blobs = layout.blobs();
        fs::create_dir_all(&blobs).with_context(|| format!("making {}", blobs.display()))?;
        Ok(layout)
    }

    fn blobs(&self) -> PathBuf {
        self.folder.join("blobs/sha256")
    }

    fn layer(&self, root: &Path, names: &[&str]) -> anyhow::Result<Layer> {
        let tar = self.folder.join("layer.tar");
        files::tar(root, names, &tar)?;
        let unpacked = files::digest(&tar)?;
        let packed = self.folder.join("layer.tar.gz");
        files::gzip(&tar, &packed)?;
        fs::remove_file(&tar)?;
        let blob = self.keep("application/vnd.oci.image.layer.v1.tar+gzip", &packed)?;
        Ok(Layer { blob, unpacked })
    }

    fn json(&self, media_type: &'static str, value: &Value) -> anyhow::Result<Blob> {
        let file = self.folder.join("blob.json");
        fs::write(&file, value.to_string())?;
        self.keep(media_type, &file)
    }

    /// Moves a file to where its digest says.
    fn keep(&self, media_type: &'static str, file: &Path) -> anyhow::Result<Blob> {
        let digest = files::digest(file)?;
        let size = file.metadata()?.len();
        fs::rename(file, self.blobs().join(&digest))?;
        Ok(Blob {
            media_type,
            digest,
            size,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::dist::tests::Scratch;

    const ABOUT: About<'_> = About {
        name: "localhost/strew:1.2.3",
        version: "1.2.3",
        entrypoint: "/usr/local/bin/strew",
        licence: "Apache-2.0",
        source: Some("https://example.com/someone/strew"),
        revision: None,
    };

    #[test]
    fn what_is_not_known_has_no_label() {
        let labels = labels(&ABOUT);
        let of = |name: &str| labels.get(format!("org.opencontainers.image.{name}"));
        assert_eq!(of("version"), Some(&"1.2.3".into()));
        assert_eq!(of("source").and_then(Value::as_str), ABOUT.source);
        assert_eq!(of("revision"), None);
    }

    /// From the index to the files of the layer, as a runtime goes: each blob is where its digest says, and whole.
    #[test]
    fn an_image_holds_what_its_index_says() {
        let folder = Scratch::new("image");
        let base = folder.path();
        fs::create_dir_all(base.join("root/usr/local/bin")).unwrap();
        fs::write(base.join("root/usr/local/bin/strew"), "program").unwrap();
        let archive = base.join("image.tar");
        write(
            &base.join("root"),
            &["usr"],
            &ABOUT,
            &base.join("scratch"),
            &archive,
        )
        .unwrap();
        let unpacked = base.join("unpacked");
        fs::create_dir(&unpacked).unwrap();
        let mut tar = Command::new("tar");
        files::run(
            tar.arg("--extract")
                .arg("--file")
                .arg(&archive)
                .arg("--directory")
                .arg(&unpacked),
        )
        .unwrap();
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().unwrap();
            let file = unpacked.join("blobs").join(digest.replacen(':', "/", 1));
            assert_eq!(format!("sha256:{}", files::digest(&file).unwrap()), digest);
            assert_eq!(
                file.metadata().unwrap().len(),
                descriptor["size"].as_u64().unwrap()
            );
            file
        };
        let json =
            |file: &Path| -> Value { serde_json::from_slice(&fs::read(file).unwrap()).unwrap() };
        let index = json(&unpacked.join("index.json"));
        let manifest = json(&blob(&index["manifests"][0]));
        let config = json(&blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["config"]["User"], USER);
        assert_eq!(
            config["config"]["Entrypoint"],
            json!(["/usr/local/bin/strew"])
        );
        let mut gunzip = Command::new("gzip");
        gunzip.args(["--decompress", "--stdout"]).arg(&layer);
        let tar = base.join("layer.tar");
        fs::write(&tar, gunzip.output().unwrap().stdout).unwrap();
        let diff = format!("sha256:{}", files::digest(&tar).unwrap());
        assert_eq!(config["rootfs"]["diff_ids"], json!([diff]));
        let list = files::run(Command::new("tar").arg("--list").arg("--file").arg(&tar)).unwrap();
        assert!(
            list.lines().any(|line| line == "usr/local/bin/strew"),
            "{list}"
        );
        assert!(!base.join("scratch").exists());
    }
}
