//! The texts that are read: each with a name and its bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use strew_manifest::read::{How, Sources};

/// A text with its name.
#[derive(Debug, Clone)]
pub struct Input {
    /// The name of its file, or another one, such as `<stdin>`.
    pub name: String,
    /// The text, in any encoding that YAML has.
    pub bytes: Vec<u8>,
    /// True if it was found in a folder, not named.
    pub is_found: bool,
    /// How it is read; the same for all inputs.
    pub how: Arc<How>,
}

impl Input {
    /// An input that was not found in a folder.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::made(name, bytes, How::default())
    }

    /// The same, read so.
    pub fn made(name: impl Into<String>, bytes: impl Into<Vec<u8>>, how: How) -> Self {
        Self {
            name: name.into(),
            bytes: bytes.into(),
            is_found: false,
            how: Arc::new(how),
        }
    }

    /// True if these bytes occur in it.
    pub fn holds(&self, needle: &[u8]) -> bool {
        self.bytes.windows(needle.len()).any(|part| part == needle)
    }

    /// The folder that it is in.
    pub fn folder(&self) -> PathBuf {
        let folder = Path::new(&self.name).parent();
        folder.map(Path::to_owned).unwrap_or_default()
    }

    /// Adds it to the sources.
    pub fn add_to(self, sources: &mut Sources) {
        sources.set_how((*self.how).clone());
        match self.is_found {
            true => sources.add_found(self.name, self.bytes),
            false => sources.add(self.name, self.bytes),
        };
    }
}

/// The texts as sources.
pub fn sources(inputs: Vec<Input>) -> Sources {
    let mut sources = Sources::new();
    inputs
        .into_iter()
        .for_each(|input| input.add_to(&mut sources));
    sources
}
