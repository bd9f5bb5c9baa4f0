//! Splits files into documents.

use super::source::{BYTE_ORDER_MARK, FileId, Span};

/// The place of an object: file, document, and item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: FileId,
    /// The document that holds the object.
    pub document: Document,
    /// The indexes through `items` of (nested) lists; empty for a document that is no list.
    pub items: Vec<u32>,
}

/// A document inside a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// How it is written.
    pub format: Format,
    /// Its bytes in the file.
    pub span: Span,
}

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Origin {
    /// A document as a whole.
    pub(super) fn document(file: FileId, document: Document) -> Self {
        let items = Vec::new();
        Self {
            file,
            document,
            items,
        }
    }

    /// Element `item` of the list at this place.
    pub(super) fn item(&self, item: usize) -> Self {
        let mut origin = self.clone();
        origin.items.push(u32::try_from(item).unwrap_or(u32::MAX));
        origin
    }
}

/// The parts of a file between lines that begin with `---` or `...`, without these markers.
///
/// YAML forbids such lines inside a document, also in block scalars, and JSON cannot contain them. So this split is
/// exact, and a broken document does not hide the following ones. A JSON part may contain several documents.
pub(super) fn parts(text: &str) -> Vec<Document> {
    let bytes = text.as_bytes();
    let mut start = match text.chars().next() {
        Some(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len_utf8(),
        _ => 0,
    };
    let mut spans = Vec::new();
    let mut line_start = start;
    loop {
        if is_marker(&bytes[line_start..]) {
            spans.push(Span::new(start, line_start));
            start = line_start + MARKER_LENGTH;
        }
        match text[line_start..].find(['\n', '\r']) {
            Some(found) => line_start += found + 1,
            None => break,
        }
    }
    spans.push(Span::new(start, text.len()));
    spans.retain(|span| !is_blank(&text[span.start..span.end]));
    let document = |span: Span| Document {
        format: format_of(&text[span.start..span.end]),
        span,
    };
    spans.into_iter().map(document).collect()
}

const MARKER_LENGTH: usize = 3;

fn is_marker(rest: &[u8]) -> bool {
    let is_separated = rest.get(MARKER_LENGTH).is_none_or(u8::is_ascii_whitespace);
    (rest.starts_with(b"---") || rest.starts_with(b"...")) && is_separated
}

/// True if the part has only comments and directives.
fn is_blank(part: &str) -> bool {
    part.split(['\n', '\r']).all(|line| {
        let content = line.trim();
        content.is_empty() || content.starts_with('#') || line.starts_with('%')
    })
}

/// JSON if the first characters allow nothing else: an unquoted key makes it YAML's flow style.
fn format_of(part: &str) -> Format {
    let content = part.trim_start();
    let inner = match content.as_bytes().first() {
        Some(b'{' | b'[') => content[1..].trim_start(),
        _ => return Format::Yaml,
    };
    match (content.as_bytes()[0], inner.as_bytes().first()) {
        (b'{', None | Some(b'"' | b'}')) => Format::Json,
        (b'[', None | Some(b'{' | b'[' | b']' | b'"')) => Format::Json,
        _ => Format::Yaml,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_stream_at_its_markers() {
        let cases: &[(&str, &[(&str, Format)])] = &[
            ("", &[]),
            ("# only a comment\n---\n\n---\n", &[]),
            ("a: 1", &[("a: 1", Format::Yaml)]),
            (
                "a: 1\n---\nb: 2\n",
                &[("a: 1\n", Format::Yaml), ("\nb: 2\n", Format::Yaml)],
            ),
            (
                "a: 1\r\n---\r\nb: 2",
                &[("a: 1\r\n", Format::Yaml), ("\r\nb: 2", Format::Yaml)],
            ),
            (
                "--- {\"a\": 1}\n...\n{b: 2}",
                &[(" {\"a\": 1}\n", Format::Json), ("\n{b: 2}", Format::Yaml)],
            ),
            ("a: |\n  ---\n ---", &[("a: |\n  ---\n ---", Format::Yaml)]),
            ("---a: 1", &[("---a: 1", Format::Yaml)]),
            (
                "\u{feff}{\"a\":1}{\"b\":2}",
                &[("{\"a\":1}{\"b\":2}", Format::Json)],
            ),
            ("%YAML 1.1\n---\na: 1", &[("\na: 1", Format::Yaml)]),
        ];
        for (text, expected) in cases {
            let found: Vec<(&str, Format)> = parts(text)
                .iter()
                .map(|part| (&text[part.span.start..part.span.end], part.format))
                .collect();
            assert_eq!(&found, expected, "{text:?}");
        }
    }
}
