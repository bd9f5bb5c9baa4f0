//! Files named on the command line, read.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use strew_api::read::Sources;

use crate::failure::Failure;

/// What a directory gives, as with kubectl.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

/// Folders inside folders; more is a loop of links.
const DEPTH_MAX: usize = 64;

/// A file that was read.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// It was found in a folder; nobody named it.
    pub(crate) is_found: bool,
}

impl Input {
    /// Whether these bytes are somewhere in it.
    pub(crate) fn holds(&self, needle: &[u8]) -> bool {
        self.bytes.windows(needle.len()).any(|part| part == needle)
    }

    /// Puts it among the sources.
    pub(crate) fn add_to(self, sources: &mut Sources) {
        match self.is_found {
            true => sources.add_found(self.name, self.bytes),
            false => sources.add(self.name, self.bytes),
        };
    }
}

/// Reads every file, in the order given; those of a directory by name.
pub(crate) fn read(names: &[String], recursive: bool) -> Result<Sources, Failure> {
    Ok(sources(read_each(names, recursive)?))
}

/// The files as sources.
pub(crate) fn sources(inputs: Vec<Input>) -> Sources {
    let mut sources = Sources::new();
    inputs
        .into_iter()
        .for_each(|input| input.add_to(&mut sources));
    sources
}

/// The same, each by itself.
pub(crate) fn read_each(names: &[String], recursive: bool) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    let mut failed = Vec::new();
    let mut stdin_is_read = false;
    for name in names {
        if name == "-" {
            if !std::mem::replace(&mut stdin_is_read, true) {
                let mut bytes = Vec::new();
                let read = std::io::stdin().lock().read_to_end(&mut bytes);
                read.context("cannot read standard input")
                    .map_err(Failure::outside)?;
                inputs.push(Input {
                    name: "<stdin>".to_owned(),
                    bytes,
                    is_found: false,
                });
            }
            continue;
        }
        refuse_url(name)?;
        let path = Path::new(name);
        let is_found = path.is_dir();
        let files = match is_found {
            true => files_of(path, recursive)?,
            false => vec![path.to_owned()],
        };
        for file in files {
            match std::fs::read(&file) {
                Ok(bytes) => inputs.push(Input {
                    name: file.display().to_string(),
                    bytes,
                    is_found,
                }),
                Err(error) => failed.push((file, error)),
            }
        }
    }
    match failed.len() {
        0 => Ok(inputs),
        1 => {
            let (file, error) = failed.swap_remove(0);
            let error =
                anyhow::Error::new(error).context(format!("cannot read {}", file.display()));
            Err(Failure::outside(error))
        }
        _ => {
            let each = failed
                .iter()
                .map(|(file, error)| format!("\n  {}: {error}", file.display()));
            Err(Failure::outside(anyhow!(
                "cannot read {} files:{}",
                failed.len(),
                each.collect::<String>()
            )))
        }
    }
}

fn refuse_url(name: &str) -> Result<(), Failure> {
    match name.starts_with("http://") || name.starts_with("https://") {
        false => Ok(()),
        true => Err(Failure::input(anyhow!("strew reads no network: {name}"))
            .with_hint(format!("curl -sSL {name} | strew simulate -"))),
    }
}

fn files_of(folder: &Path, recursive: bool) -> Result<Vec<PathBuf>, Failure> {
    let mut files = BTreeSet::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((next, depth)) = folders.pop() {
        let cannot = |error| {
            let error = anyhow::Error::new(error);
            Failure::outside(error.context(format!("cannot read folder {}", next.display())))
        };
        for entry in std::fs::read_dir(&next).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            if path.is_dir() {
                if recursive && depth < DEPTH_MAX {
                    folders.push((path, depth + 1));
                }
            } else if is_manifest(&path) {
                files.insert(path);
            }
        }
    }
    if files.is_empty() {
        let what = folder.display();
        let failure = Failure::input(anyhow!("no .yaml, .yml or .json file in {what}"));
        return Err(match recursive {
            true => failure,
            false => failure.with_hint("-R looks into the folders below, too"),
        });
    }
    Ok(files.into_iter().collect())
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| EXTENSIONS.contains(&e))
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,@%+=".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
