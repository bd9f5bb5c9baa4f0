//! Files as the caller passed them in, and positions in them.

use std::fmt;
use std::path::Path;

use super::foreign;
use super::played_as::PlayedAs;

/// The input files of a command, in the order given.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
    how: How,
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct How {
    /// The command that reads manifests from standard input, for advice: `strew simulate -`.
    pub piped: String,
    /// The unknown kinds that are read as known ones.
    pub played_as: Vec<PlayedAs>,
}

impl Default for How {
    fn default() -> Self {
        Self {
            piped: "strew simulate -".to_owned(),
            played_as: Vec::new(),
        }
    }
}

/// Which file of a [`Sources`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// One file: a name to print, and its text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    name: String,
    /// With U+FFFD for bytes that are not UTF-8: for display only.
    text: String,
    /// The position of the first byte that is not UTF-8.
    invalid_at: Option<usize>,
    /// True if the file begins with the byte order mark of UTF-16.
    is_utf16: bool,
    /// Name and program of the packing of a compressed file.
    packing: Option<(&'static str, &'static str)>,
    /// True if it was found in a folder, not named by the user.
    is_found: bool,
}

/// A range of bytes in a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// The place of a value, for users and editors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: FileId,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The bytes; they never extend past the end of the line, and may be empty.
    pub span: Span,
}

impl Sources {
    /// Without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how the files are read.
    pub fn set_how(&mut self, how: How) {
        self.how = how;
    }

    /// How the files are read.
    pub fn how(&self) -> &How {
        &self.how
    }

    /// Adds a file. Any bytes are accepted: [`read`](super::read) reports what is no text.
    pub fn add(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> FileId {
        self.push(SourceFile::new(name.into(), bytes.into()))
    }

    /// Adds a file found in a folder. It may serve another purpose, so a file without any Kubernetes object is skipped
    /// with a warning.
    pub fn add_found(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> FileId {
        self.push(SourceFile {
            is_found: true,
            ..SourceFile::new(name.into(), bytes.into())
        })
    }

    fn push(&mut self, file: SourceFile) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(file);
        id
    }

    /// The file with this id.
    ///
    /// # Panics
    /// The id comes from another `Sources`.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// All files, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        (0..).map(FileId).zip(&self.files)
    }

    /// The place of `span` in a file, cut at the end of its first line.
    ///
    /// Cost: one pass over the text before it.
    pub fn place(&self, file: FileId, span: Span) -> Place {
        self.place_after(Cursor::default(), file, span).0
    }

    /// As [`place`](Self::place), counting from a known position; returns the new position too.
    pub(super) fn place_after(&self, known: Cursor, file: FileId, span: Span) -> (Place, Cursor) {
        let text = self.file(file).text();
        let start = floor_char_boundary(text, span.start);
        let cursor = known.advanced(text, start);
        let end = floor_char_boundary(text, span.end).max(start);
        let first_line = text[start..end].split('\n').next().unwrap_or_default();
        let place = Place {
            file,
            line: u32::try_from(cursor.n_lines + 1).unwrap_or(u32::MAX),
            column: u32::try_from(cursor.n_chars + 1).unwrap_or(u32::MAX),
            span: Span::new(start, start + first_line.trim_end().len()),
        };
        (place, cursor)
    }
}

/// A position in a file, with the lines and characters before it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) at: usize,
    /// Whole lines in the file.
    n_lines: usize,
    /// Characters on its line.
    n_chars: usize,
}

impl Cursor {
    /// Moves to `at`, which must not be smaller.
    fn advanced(self, text: &str, at: usize) -> Self {
        let between = &text[self.at..at];
        let between = match between.strip_prefix(BYTE_ORDER_MARK) {
            Some(content) if self.at == 0 => content,
            _ => between,
        };
        let n_lines = between.bytes().filter(|byte| *byte == b'\n').count();
        let (n_chars, line) = match between.rfind('\n') {
            Some(end) => (0, &between[end + 1..]),
            None => (self.n_chars, between),
        };
        Self {
            at,
            n_lines: self.n_lines + n_lines,
            n_chars: n_chars + line.chars().count(),
        }
    }
}

/// U+FEFF, which some editors write first; it is no part of the content.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';

impl SourceFile {
    fn new(name: String, bytes: Vec<u8>) -> Self {
        let packing = foreign::packing(&bytes);
        let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let (text, invalid_at) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let invalid_at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                (text, Some(invalid_at))
            }
        };
        Self {
            name,
            text,
            invalid_at,
            is_utf16,
            packing,
            is_found: false,
        }
    }

    /// The name to print: a path, or `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text; bytes that are no UTF-8 were replaced.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its path; `None` for standard input and objects of a live cluster.
    pub(super) fn path(&self) -> Option<&Path> {
        let is_file = self.name != "-" && !self.name.starts_with('<');
        is_file.then(|| Path::new(&self.name))
    }

    /// The folder that it is in.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.path().and_then(Path::parent)
    }

    pub(super) fn packing(&self) -> Option<(&'static str, &'static str)> {
        self.packing
    }

    pub(super) fn invalid_at(&self) -> Option<usize> {
        self.invalid_at
    }

    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }

    pub(super) fn is_utf16(&self) -> bool {
        self.is_utf16
    }
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    pub(super) fn shifted(self, by: usize) -> Self {
        Self::new(self.start + by, self.end + by)
    }
}

impl Place {
    /// `file:line:column`, as editors and terminals take it.
    pub fn display(self, sources: &Sources) -> impl fmt::Display + '_ {
        struct Shown<'a>(Place, &'a Sources);
        impl fmt::Display for Shown<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let Self(place, sources) = self;
                let name = sources.file(place.file).name();
                write!(f, "{name}:{}:{}", place.line, place.column)
            }
        }
        Shown(self, sources)
    }
}

/// The nearest start of a character at or before `at`.
pub(super) fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
