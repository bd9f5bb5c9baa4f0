//! Changes of the text of a file, at the place of a field: comments and layout stay.

use serde_json::{Map, Value};

use super::document::{Format, Origin};
use super::locator::Locator;
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

/// The changes of the text that set a field; `None` if the text has no place where they can be written. Of a value that
/// is there, only what differs is changed, so that comments in it stay. The caller reads the changed text again and
/// compares.
pub fn text_edits(
    sources: &Sources,
    locator: &mut Locator<'_>,
    origin: &Origin,
    edit: &Edit,
) -> Option<Vec<TextEdit>> {
    let root = locator.value(origin)?;
    let mut writer = Writer {
        text: sources.file(origin.file).text(),
        is_json: origin.document.format == Format::Json,
        locator,
        origin,
        root: &root,
        edits: Vec::new(),
    };
    writer.set(edit)?;
    Some(writer.edits)
}

/// Collects the changes of one object's text.
struct Writer<'w, 's> {
    text: &'w str,
    is_json: bool,
    locator: &'w mut Locator<'s>,
    origin: &'w Origin,
    root: &'w Value,
    edits: Vec<TextEdit>,
}

/// Where a field is written.
struct Written {
    key: Span,
    /// Where its value begins, with its bracket.
    opens: usize,
    value: Span,
    is_collection: bool,
}

impl<'w> Writer<'w, '_> {
    fn set(&mut self, edit: &Edit) -> Option<()> {
        let steps = edit.steps();
        let (PathSegment::Name(_), above) = steps.split_last()? else {
            return None;
        };
        let root = self.root;
        // The deepest object on the way that is there, and what is written into it.
        let mut depth = above.len();
        while !at(root, &above[..depth]).is_some_and(|value| value.is_object()) {
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
        let fields = at(root, parent)?.as_object()?;
        let replaced = edit.replaces.as_deref();
        let replaced = replaced.filter(|old| depth == above.len() && fields.contains_key(*old));
        match (replaced, fields.get(&**name)) {
            (Some(_), Some(_)) => None,
            (Some(old), None) => self.replace(parent, old, name, &value),
            (None, Some(old)) => self.change(&child(parent, name), old, &value),
            (None, None) => self.insert(parent, fields, name, &value),
        }
    }

    /// Changes a value that is there into another one: as little of it as can be.
    fn change(&mut self, path: &[PathSegment], old: &Value, new: &Value) -> Option<()> {
        if old == new {
            return Some(());
        }
        let n_edits = self.edits.len();
        let parts = match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.change_fields(path, old, new),
            (Value::Array(old), Value::Array(new)) => self.change_items(path, old, new),
            (Value::Object(_) | Value::Array(_), _) => None,
            _ => match path.last()? {
                PathSegment::Index(_) => self.change_scalar(path, new),
                _ => None,
            },
        };
        if parts.is_some() {
            return parts;
        }
        self.edits.truncate(n_edits);
        let (PathSegment::Name(name), parent) = path.split_last()? else {
            return None;
        };
        self.replace(parent, name, name, new)
    }

    fn change_fields(
        &mut self,
        path: &[PathSegment],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Option<()> {
        if old.is_empty() || !old.keys().all(|key| new.contains_key(key)) {
            return None;
        }
        for (key, value) in new {
            match old.get(key) {
                Some(was) => self.change(&child(path, key), was, value)?,
                None => self.insert(path, old, key, value)?,
            }
        }
        Some(())
    }

    fn change_items(&mut self, path: &[PathSegment], old: &[Value], new: &[Value]) -> Option<()> {
        let more = new.get(old.len()..)?;
        let last = old.len().checked_sub(1)?;
        let item = |index: usize| {
            let mut path = path.to_vec();
            path.push(PathSegment::Index(index));
            path
        };
        for (index, was) in old.iter().enumerate() {
            self.change(&item(index), was, &new[index])?;
        }
        if more.is_empty() {
            return Some(());
        }
        let last = self.find(&item(last))?;
        if last.is_collection {
            return None;
        }
        let before = self.before(last.value.start);
        let more = more.iter().map(|value| self.flow(value));
        let is_own_line = !self.is_json && before.trim_start() == "- ";
        let (at, text): (usize, String) = match is_own_line {
            true => {
                let (end, newline) = self.line_end(last.value.end);
                let lines = more.map(|item| format!("{newline}{before}{item}"));
                (end, lines.collect())
            }
            false => (
                last.value.end,
                more.map(|item| format!(", {item}")).collect(),
            ),
        };
        self.write(Span::new(at, at), text);
        Some(())
    }

    fn change_scalar(&mut self, path: &[PathSegment], new: &Value) -> Option<()> {
        let found = self.find(path)?;
        if found.is_collection || found.value.is_empty() {
            return None;
        }
        let text = self.flow(new);
        self.write(found.value, text);
        Some(())
    }

    /// Writes a field in the place of another one, or of itself.
    fn replace(
        &mut self,
        parent: &[PathSegment],
        old: &str,
        name: &str,
        value: &Value,
    ) -> Option<()> {
        let found = self.find(&child(parent, old))?;
        let (end, indent) = match found.is_collection {
            true => self.end_of(&found)?,
            // The value of a key without one begins behind its colon.
            false if found.value.is_empty() => {
                let has_colon = self.text[found.key.end..].starts_with(':');
                (found.key.end + usize::from(has_colon), None)
            }
            false => (found.value.end, None),
        };
        let text = match indent.filter(|_| is_nested(value) && !self.is_json) {
            Some(indent) => {
                let (_, newline) = self.line_end(found.key.end);
                let mut lines = vec![format!("{name}:")];
                block(value, indent, &mut lines);
                lines.join(newline)
            }
            None => self.member(name, value),
        };
        self.write(Span::new(found.key.start, end), text);
        Some(())
    }

    /// Writes a field beside others.
    fn insert(
        &mut self,
        parent: &[PathSegment],
        fields: &Map<String, Value>,
        name: &str,
        value: &Value,
    ) -> Option<()> {
        let written = self.member(name, value);
        if fields.is_empty() {
            let found = self.find(parent)?;
            let (end, indent) = self.end_of(&found)?;
            let is_flow = indent.is_none();
            let span = Span::new(found.opens, end);
            is_flow.then(|| self.write(span, format!("{{{written}}}")))?;
            return Some(());
        }
        let siblings: Vec<Written> = { fields.keys() }
            .filter_map(|sibling| self.find(&child(parent, sibling)))
            .collect();
        let behind = siblings
            .iter()
            .find(|s| !s.is_collection && !s.value.is_empty());
        if let Some(sibling) = behind {
            let before = self.before(sibling.key.start);
            let (at, text) = match (is_own_line(before), self.is_json) {
                (true, false) => {
                    let (end, newline) = self.line_end(sibling.value.end);
                    let indent = " ".repeat(before.len());
                    (end, format!("{newline}{indent}{written}"))
                }
                (true, true) => (sibling.value.end, format!(",\n{before}{written}")),
                (false, _) => (sibling.value.end, format!(", {written}")),
            };
            self.write(Span::new(at, at), text);
            return Some(());
        }
        // Behind a collection there may be comments that belong to it: the new field comes before the first one.
        let first = siblings.first()?.key.start;
        let before = self.before(first);
        let text = match (is_own_line(before), self.is_json) {
            (true, false) => {
                let (_, newline) = self.line_end(first);
                format!("{written}{newline}{}", " ".repeat(before.len()))
            }
            (true, true) => format!("{written},\n{before}"),
            (false, _) => format!("{written}, "),
        };
        self.write(Span::new(first, first), text);
        Some(())
    }

    fn write(&mut self, span: Span, text: String) {
        self.edits.push(TextEdit {
            file: self.origin.file,
            span,
            text,
        });
    }

    fn find(&mut self, path: &[PathSegment]) -> Option<Written> {
        let found = self.locator.find(self.origin, path, Occurrence::Last);
        let text = self.text;
        let opens = found.key.map_or(found.value.start, |key| {
            let rest = text[key.end..].trim_start_matches([':', ' ']);
            text.len() - rest.len()
        });
        found.is_complete.then(|| Written {
            key: found.key.unwrap_or(found.value),
            opens,
            value: found.value,
            is_collection: found.is_collection,
        })
    }

    fn flow(&self, value: &Value) -> String {
        match self.is_json {
            true => value.to_string(),
            false => flow(value),
        }
    }

    fn member(&self, name: &str, value: &Value) -> String {
        match self.is_json {
            true => format!("\"{name}\": {value}"),
            false => format!("{name}: {}", flow(value)),
        }
    }

    /// The text of its line before a position.
    fn before(&self, at: usize) -> &'w str {
        let start = self.text[..at].rfind('\n').map_or(0, |end| end + 1);
        &self.text[start..at]
    }

    /// The end of the line of a position, and how lines end there.
    fn line_end(&self, at: usize) -> (usize, &'static str) {
        let end = self.text[at..].find('\n');
        let end = end.map_or(self.text.len(), |n| at + n);
        match self.text[..end].ends_with('\r') {
            true => (end - 1, "\r\n"),
            false => (end, "\n"),
        }
    }

    /// The end of a collection; in block style with the column of what is in it.
    fn end_of(&self, found: &Written) -> Option<(usize, Option<usize>)> {
        if self.text[found.opens..].starts_with(['{', '[']) {
            return Some((end_of_flow(self.text, found.opens)?, None));
        }
        let column = self.before(found.key.start).len();
        let (mut end, _) = self.line_end(found.key.end);
        let mut indent = None;
        let mut at = end;
        while let Some(next) = self.text[at..].find('\n').map(|n| at + n + 1) {
            let (line_end, _) = self.line_end(next);
            let line = &self.text[next..line_end];
            let content = line.trim_start();
            at = line_end;
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let own = line.len() - content.len();
            let is_item = content == "-" || content.starts_with("- ");
            let first = *indent.get_or_insert(own);
            if own < column || own < first || (own == column && !is_item) {
                break;
            }
            end = line_end;
        }
        // Nothing was found below the key, or another field was.
        let indent = indent.filter(|_| end > self.line_end(found.key.end).0)?;
        Some((end, Some(indent)))
    }
}

/// True if only spaces and dashes of lists are before a field.
fn is_own_line(before: &str) -> bool {
    before.chars().all(|c| c == ' ' || c == '-')
}

fn child(parent: &[PathSegment], name: &str) -> Vec<PathSegment> {
    let mut path = parent.to_vec();
    path.push(PathSegment::Name(name.to_owned().into()));
    path
}

/// Behind the bracket that closes the one at `start`.
fn end_of_flow(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text[start..].char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), c) => {
                if c == open {
                    quote = None;
                }
            }
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(start + at + 1);
                }
            }
            (None, _) => {}
        }
    }
    None
}

/// The lines of a collection in YAML's block style.
fn block(value: &Value, indent: usize, lines: &mut Vec<String>) {
    let spaces = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = flow(&Value::String(key.clone()));
                match is_nested(value) {
                    true => {
                        lines.push(format!("{spaces}{key}:"));
                        block(value, indent + 2, lines);
                    }
                    false => lines.push(format!("{spaces}{key}: {}", flow(value))),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let first = lines.len();
                match item {
                    Value::Object(fields) if !fields.is_empty() => {
                        block(item, indent + 2, lines);
                        lines[first].replace_range(indent..=indent, "-");
                    }
                    other => lines.push(format!("{spaces}- {}", flow(other))),
                }
            }
        }
        other => lines.push(format!("{spaces}{}", flow(other))),
    }
}

/// True for a collection that has something in it.
fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
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
    edits.sort();
    // Two findings may have the same fix.
    edits.dedup();
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
