//! Reads files within bounds: a folder may hold files of a stranger.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use strew_manifest::printable::printable_line;
use strew_manifest::read::How;

use super::Input;
use super::encoding::{as_utf8, is_utf16};
use crate::failure::Failure;
use crate::platform::{is_of_shell, path_text, real_path};

/// The number of bytes that are read at a time.
const BLOCK: u64 = 1 << 16;

/// Why a file was not read.
enum Refusal {
    /// The operating system refused it.
    Outside(io::Error),
    /// strew refuses it.
    Input(String),
}

/// Reads files until their total size reaches the bound.
pub(super) struct Reader {
    bytes_max: u64,
    bytes_left: u64,
    how: Arc<How>,
    inputs: Vec<Input>,
    refused: Vec<(String, Refusal)>,
    /// The real paths of the files that were read.
    read: BTreeSet<PathBuf>,
    /// True if standard input was read.
    stdin_is_read: bool,
}

impl Reader {
    pub(super) const fn new(bytes_max: u64, how: Arc<How>) -> Self {
        Self {
            how,
            bytes_max,
            bytes_left: bytes_max,
            inputs: Vec::new(),
            refused: Vec::new(),
            read: BTreeSet::new(),
            stdin_is_read: false,
        }
    }

    /// Reads standard input, only the first time.
    pub(super) fn standard_input(&mut self) {
        if !std::mem::replace(&mut self.stdin_is_read, true) {
            let stdin = io::stdin().lock();
            self.take("<stdin>".to_owned(), stdin, false);
        }
    }

    /// Reads a file of the command line.
    pub(super) fn named(&mut self, path: &Path) {
        self.file(path, None);
    }

    /// Reads a file found in a folder.
    pub(super) fn found(&mut self, path: &Path, folder: &Path) {
        self.file(path, Some(folder));
    }

    fn file(&mut self, path: &Path, folder: Option<&Path>) {
        let name = printable_line(&path_text(path)).into_owned();
        match self.open(path, folder) {
            Ok(Some(file)) => self.take(name, file, folder.is_some()),
            Ok(None) if folder.is_none() => self.name(path),
            Ok(None) => {}
            Err(refusal) => self.refused.push((name, refusal)),
        }
    }

    /// Counts a file that was found in a folder before as named.
    fn name(&mut self, path: &Path) {
        let real = real_path(path).ok();
        let is_it = |input: &&mut Input| real_path(Path::new(&input.name)).ok() == real;
        if let Some(input) = self.inputs.iter_mut().find(is_it) {
            input.is_found = false;
        }
    }

    /// Opens a file; `None` if it was read before.
    fn open(&mut self, path: &Path, folder: Option<&Path>) -> Result<Option<File>, Refusal> {
        // The type is checked before opening: opening a named pipe waits for its writer.
        let metadata = path.metadata().map_err(Refusal::Outside)?;
        if metadata.is_file() {
            let real = real_path(path).map_err(Refusal::Outside)?;
            if let Some(folder) = folder {
                let folder = real_path(folder).map_err(Refusal::Outside)?;
                if !real.starts_with(folder) {
                    let text = format!("it links to {}, outside of the folder", path_text(&real));
                    return Err(Refusal::Input(text));
                }
            }
            if !self.read.insert(real) {
                return Ok(None);
            }
        } else if folder.is_some() || !is_of_shell(path) {
            let text = "it is no regular file (standard input is read as -)";
            return Err(Refusal::Input(text.to_owned()));
        }
        File::open(path).map(Some).map_err(Refusal::Outside)
    }

    /// Reads the whole file within the bounds. A NUL ends reading early, since text has none but in UTF-16.
    fn take(&mut self, name: String, from: impl Read, is_found: bool) {
        let mut from = from.take(self.bytes_left.saturating_add(1));
        let mut bytes = Vec::new();
        let read = loop {
            let before = bytes.len();
            match from.by_ref().take(BLOCK).read_to_end(&mut bytes) {
                Ok(0) => break Ok(()),
                Ok(_) if bytes[before..].contains(&0) && !is_utf16(&bytes) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(Refusal::Outside(error)),
            }
        };
        let read = read.and_then(|()| {
            let left = self.bytes_left.checked_sub(bytes.len() as u64);
            left.ok_or_else(|| {
                self.bytes_left = 0;
                Refusal::Input(self.too_large())
            })
        });
        match read {
            Ok(left) => {
                self.bytes_left = left;
                self.inputs.push(Input {
                    name,
                    bytes: as_utf8(bytes),
                    is_found,
                    how: Arc::clone(&self.how),
                });
            }
            Err(refusal) => self.refused.push((name, refusal)),
        }
    }

    fn too_large(&self) -> String {
        let max = self.bytes_max;
        let what = match self.inputs.is_empty() {
            true => "it has",
            false => "with the files before it, it has",
        };
        format!("{what} more than {max} bytes (--max-input allows more)")
    }

    /// The contents, or all errors.
    pub(super) fn finish(self) -> Result<Vec<Input>, Failure> {
        let mut refused = self.refused;
        let Some((name, refusal)) = refused.pop() else {
            return Ok(self.inputs);
        };
        if refused.is_empty() {
            return Err(match refusal {
                Refusal::Outside(error) => {
                    let error = anyhow::Error::new(error).context(format!("cannot read {name}"));
                    Failure::outside(error)
                }
                Refusal::Input(text) => Failure::input(anyhow!("cannot read {name}: {text}")),
            });
        }
        refused.push((name, refusal));
        let is_outside = |(_, refusal): &(String, Refusal)| matches!(refusal, Refusal::Outside(_));
        let is_outside = refused.iter().any(is_outside);
        let mut text = format!("cannot read {} files:", refused.len());
        for (name, refusal) in &refused {
            let why: &dyn std::fmt::Display = match refusal {
                Refusal::Outside(error) => error,
                Refusal::Input(why) => why,
            };
            text.push_str(&format!("\n  {name}: {why}"));
        }
        Err(match is_outside {
            true => Failure::outside(anyhow!(text)),
            false => Failure::input(anyhow!(text)),
        })
    }
}
