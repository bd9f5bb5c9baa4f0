//! Changes of the text of a file, at the place of a field: comments and layout stay.

use serde_json::Value;

use super::document::{Format, Origin};
use super::locator::Locator;
use super::raw::document_at;
use super::source::{FileId, Sources, Span};
use super::tree::Occurrence;
use crate::field::PathSegment;
use crate::fix::{Edit, flow};

/// A part of a file's text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextEdit {
    /// The file.
    pub file: FileId,
    /// The bytes that go; empty for an insertion.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// The change of the text that sets a field; `None` if the text has no place where it can be written on a line of its
/// own or beside another field. The caller reads the changed text again and compares.
pub fn text_edit(
    sources: &Sources,
    locator: &mut Locator<'_>,
    origin: &Origin,
    edit: &Edit,
) -> Option<TextEdit> {
    let steps = edit.steps();
    let (PathSegment::Name(_), above) = steps.split_last()? else {
        return None;
    };
    let root = document_at(sources, origin)?.value;
    // The deepest object on the way that is there, and what is written into it.
    let mut depth = above.len();
    while !at(&root, &above[..depth]).is_some_and(|value| value.is_object()) {
        depth = depth.checked_sub(1)?;
    }
    let mut value = edit.value.clone();
    for step in steps[depth + 1..].iter().rev() {
        let PathSegment::Name(name) = step else {
            return None;
        };
        value = Value::Object([(name.to_string(), value)].into_iter().collect());
    }
    let PathSegment::Name(name) = &steps[depth] else {
        return None;
    };
    let parent = &steps[..depth];
    let fields = at(&root, parent)?.as_object()?;
    let text = sources.file(origin.file).text();
    let mut find = |name: &str| {
        let mut path = parent.to_vec();
        path.push(PathSegment::Name(name.to_owned().into()));
        let found = locator.find(origin, &path, Occurrence::Last);
        Some((found.key?, found.value)).filter(|_| found.is_complete && !found.is_collection)
    };
    let is_json = origin.document.format == Format::Json;
    let written = match is_json {
        true => format!("\"{name}\": {value}"),
        false => format!("{name}: {}", flow(&value)),
    };
    let replaced = edit.replaces.as_deref().filter(|_| depth == above.len());
    if let Some(old) = replaced.or(fields.contains_key(&**name).then_some(&**name)) {
        let (key, value) = find(old)?;
        return Some(TextEdit {
            file: origin.file,
            span: Span::new(key.start, value.end),
            text: written,
        });
    }
    let (key, sibling) = fields.keys().find_map(|sibling| find(sibling))?;
    let line_start = text[..key.start].rfind('\n').map_or(0, |at| at + 1);
    let before = &text[line_start..key.start];
    let line_end = text[sibling.end..]
        .find('\n')
        .map_or(text.len(), |at| sibling.end + at);
    let is_own_line = before.chars().all(|c| c == ' ' || c == '-');
    let (at, text) = match (is_own_line, is_json) {
        (true, false) => {
            let line_end = match text[..line_end].ends_with('\r') {
                true => line_end - 1,
                false => line_end,
            };
            let newline = &text[line_end..]
                .get(..1)
                .map_or("\n", |c| if c == "\r" { "\r\n" } else { "\n" });
            let indent = " ".repeat(before.len());
            (line_end, format!("{newline}{indent}{written}"))
        }
        (true, true) => (sibling.end, format!(",\n{before}{written}")),
        (false, _) => (sibling.end, format!(", {written}")),
    };
    Some(TextEdit {
        file: origin.file,
        span: Span::new(at, at),
        text,
    })
}

fn at<'v>(root: &'v Value, steps: &[PathSegment]) -> Option<&'v Value> {
    steps.iter().try_fold(root, |value, step| match step {
        PathSegment::Name(name) => value.get(&**name),
        PathSegment::Key(name) => value.get(name),
        PathSegment::Index(index) => value.get(*index),
    })
}

/// The text of a file with these changes of it, which must not overlap; a change that overlaps an earlier one is left
/// out.
pub fn apply_text_edits(text: &str, edits: &[TextEdit]) -> String {
    let mut edits: Vec<&TextEdit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.span);
    let mut changed = String::with_capacity(text.len() + 64);
    let mut from = 0;
    for edit in edits {
        if edit.span.start < from {
            continue;
        }
        changed += &text[from..edit.span.start];
        changed += &edit.text;
        from = edit.span.end;
    }
    changed + &text[from..]
}
