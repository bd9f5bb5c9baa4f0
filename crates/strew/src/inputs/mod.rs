//! Reads the files of the command line.

mod encoding;
mod reader;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use same_file::is_same_file;
use strew_manifest::quantity::Quantity;
use strew_manifest::read::{CHART_FILE, How, KUSTOMIZATION_FILES, PlayedAs};
pub(crate) use strew_suite::input::{Input, sources};

use crate::failure::Failure;
use crate::platform::path_text;
use reader::Reader;

/// The files of a directory, as in kubectl.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// The largest depth of folders; beyond it, links form a loop.
const DEPTH_MAX: usize = 64;

/// The largest number of bytes of all files, unless `--max-input` is given.
const BYTES_MAX: u64 = 256 << 20;

/// Kinds that are played as others.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct AsArgs {
    /// Play each object of a kind that strew does not know as a Deployment, StatefulSet, CloneSet, ReplicaSet or
    /// DaemonSet: with its replicas, selector and template; for example Rollout.argoproj.io=Deployment
    #[arg(long = "as", value_name = "KIND.GROUP=KIND")]
    played_as: Vec<PlayedAs>,
}

impl AsArgs {
    /// How files are read; `piped` is the command that reads manifests from standard input.
    pub(crate) fn how(&self, piped: String) -> How {
        How {
            piped,
            played_as: self.played_as.clone(),
        }
    }

    /// The arguments again, for suggested commands.
    pub(crate) fn to_args(&self) -> Vec<String> {
        let each = self.played_as.iter();
        each.flat_map(|played| ["--as".to_owned(), played.to_string()])
            .collect()
    }
}

/// The bound on bytes.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ReadArgs {
    /// Read folders with all folders below them, which is the default
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The largest size of all files together [default: 256Mi]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_input: Option<u64>,
}

impl ReadArgs {
    /// Reads every file in the given order; the files of a folder, and of the folders below it, by name. A file that
    /// occurs twice is read once.
    ///
    /// # Errors
    /// All files that cannot or must not be read.
    pub(crate) fn read(&self, names: &[String], how: How) -> Result<Vec<Input>, Failure> {
        let how = Arc::new(how);
        let mut reader = Reader::new(self.max_input.unwrap_or(BYTES_MAX), Arc::clone(&how));
        for name in names {
            if name == "-" {
                reader.standard_input();
                continue;
            }
            refuse_url(name, &how.piped)?;
            let path = Path::new(name);
            if path.is_dir() {
                for file in files_of(path)? {
                    reader.found(&file, path);
                }
            } else {
                reader.named(path);
            }
        }
        reader.finish()
    }

    /// The files that the names mean, in the given order; the files of a directory by name.
    ///
    /// # Errors
    /// A folder cannot be read, or has no file.
    pub(crate) fn names(&self, names: &[String]) -> Result<Vec<String>, Failure> {
        let mut files = Vec::new();
        for name in names {
            let path = Path::new(name);
            if name != "-" && path.is_dir() {
                let found = files_of(path)?;
                files.extend(found.iter().map(|file| path_text(file)));
            } else {
                files.push(name.clone());
            }
        }
        Ok(files)
    }

    /// The options that read the same files again.
    pub(crate) fn to_args(&self) -> Vec<String> {
        let max_input = self
            .max_input
            .map(|n| ["--max-input".to_owned(), n.to_string()]);
        max_input.into_iter().flatten().collect()
    }
}

/// A number of bytes as a quantity of Kubernetes: `256Mi`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let quantity = Quantity::parse(text).map_err(|error| error.to_string())?;
    u64::try_from(quantity.value()).map_err(|_| "less than zero".to_owned())
}

/// Reads one file.
///
/// # Errors
/// The file cannot or must not be read.
pub(crate) fn read_one(name: &str) -> Result<Vec<Input>, Failure> {
    ReadArgs::default().read(&[name.to_owned()], How::default())
}

/// Checks that a result does not overwrite one of its input files, by whatever name or link.
///
/// # Errors
/// It would overwrite one.
pub(crate) fn check_output(path: &Path, inputs: &[Input]) -> Result<(), Failure> {
    let is_output = |input: &&Input| is_same_file(path, &input.name).unwrap_or(false);
    match inputs.iter().find(is_output) {
        None => Ok(()),
        Some(input) => {
            let error = anyhow!(
                "{} would replace its own input {}",
                path.display(),
                input.name
            );
            Err(Failure::input(error).with_hint("write the result into another file"))
        }
    }
}

fn refuse_url(name: &str, piped: &str) -> Result<(), Failure> {
    match name.starts_with("http://") || name.starts_with("https://") {
        false => Ok(()),
        true => Err(Failure::input(anyhow!("strew reads no network: {name}"))
            .with_hint(format!("curl -sSL {name} | {piped}"))),
    }
}

/// The manifests of a folder and of the folders below it. Of a folder that is a chart or a kustomization only the file
/// that says so: the other files are no manifests yet.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = BTreeSet::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((next, depth)) = folders.pop() {
        let cannot = |error| {
            let error = anyhow::Error::new(error);
            Failure::outside(error.context(format!("cannot read folder {}", path_text(&next))))
        };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&next).map_err(cannot)? {
            paths.push(entry.map_err(cannot)?.path());
        }
        if let Some(file) = unrendered(&paths) {
            files.insert(file.clone());
            continue;
        }
        for path in paths {
            if path.is_dir() {
                if depth < DEPTH_MAX {
                    folders.push((path, depth + 1));
                }
            } else if is_manifest(&path) {
                files.insert(path);
            }
        }
    }
    if files.is_empty() {
        let what = path_text(folder);
        let error = anyhow!("no .yaml, .yml or .json file in {what} or a folder below it");
        return Err(Failure::input(error));
    }
    Ok(files.into_iter().collect())
}

/// The file that makes a folder of these entries a chart or a kustomization.
fn unrendered(paths: &[PathBuf]) -> Option<&PathBuf> {
    let mut names = std::iter::once(CHART_FILE).chain(KUSTOMIZATION_FILES);
    names.find_map(|name| {
        let mut paths = paths.iter();
        paths.find(|path| path.file_name() == Some(name.as_ref()) && path.is_file())
    })
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| EXTENSIONS.contains(&e))
}
