//! YAML documents: composed from the parser's events into nodes that know their places.
//!
//! serde-saphyr decodes into types and stops at the first error; strew first needs values, with all repeated keys and
//! places. So this composes the events of its parser, granit-parser, under strew's own limits of depth and alias
//! expansion.

use std::collections::HashMap;
use std::rc::Rc;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, StrInput};
use serde_json::Value;

use super::foreign::TEMPLATE;
use super::node::{Content, Entry, Node};
use super::scalar;
use super::source::Span;
use crate::field::FieldPath;

/// The deepest nesting, with aliases followed; equal to serde_json's limit for JSON.
const DEPTH_MAX: usize = 127;

/// The code of a document nested deeper than that.
pub(super) const TOO_DEEP: &str = "too-deep";

/// The message for it, in both formats.
pub(super) fn too_deep_message() -> String {
    format!("nested deeper than {DEPTH_MAX} levels")
}

/// The most values that aliases and merges may add to a document: more than any manifest needs, few enough to be
/// harmless.
const ALIASED_MAX: usize = 100_000;

/// A document's tree, and the errors that do not make it unreadable.
pub(super) struct YamlDocument {
    pub(super) root: Rc<Node>,
    pub(super) faults: Vec<YamlFault>,
}

/// An error of the text.
pub(super) struct YamlFault {
    pub(super) code: &'static str,
    pub(super) span: Span,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
    /// The first place of a repeated key.
    pub(super) first: Option<Span>,
    /// The field, for a repeated key.
    pub(super) path: Option<FieldPath>,
}

/// Reads the document in `part`; spans count from the beginning of `text`.
///
/// # Errors
/// The error that makes the document unreadable.
pub(super) fn compose(text: &str, part: Span) -> Result<YamlDocument, YamlFault> {
    let yaml = &text[part.start..part.end];
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
        // YAML's limit of 1024 would refuse long keys that JSON, and so kubectl, accepts.
        simple_key_max_lookahead: KEY_LENGTH_MAX,
    };
    options.set_emit_comments(false);
    let mut composer = Composer {
        parser: Parser::new_from_str_with_options(yaml, options),
        yaml,
        offset: part.start,
        anchors: HashMap::new(),
        open: Vec::new(),
        n_values: 0,
        n_merged: 0,
        faults: Vec::new(),
    };
    let root = composer.document()?;
    Ok(YamlDocument {
        root,
        faults: composer.faults,
    })
}

/// The longest key in bytes, in both formats; no key of Kubernetes is longer than 317.
pub(super) const KEY_LENGTH_MAX: usize = 16 * 1024;

/// The most repeated keys recorded in one document, in both formats, since finding their places takes time.
pub(super) const REPEATED_MAX: usize = 20;

struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    yaml: &'a str,
    /// The position of `yaml` in the file.
    offset: usize,
    anchors: HashMap<usize, Rc<Node>>,
    open: Vec<Open>,
    n_values: usize,
    n_merged: usize,
    faults: Vec<YamlFault>,
}

/// A collection without its end.
struct Open {
    anchor: usize,
    start: usize,
    kind: OpenKind,
}

enum OpenKind {
    Sequence(Vec<Rc<Node>>),
    Mapping {
        entries: Vec<Entry>,
        /// A key whose value is not read yet: text, place, and whether it is a plain `<<`.
        key: Option<(String, Span, bool)>,
    },
}

impl Composer<'_> {
    /// Takes one step per event; the parser makes a bounded number of events per byte.
    fn document(&mut self) -> Result<Rc<Node>, YamlFault> {
        while let Some(next) = self.parser.next_event() {
            let (event, span) = next.map_err(|error| self.syntax(&error))?;
            let range = span.byte_range().unwrap_or(0..0);
            let span = Span::new(range.start, range.end).shifted(self.offset);
            let done = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    let tag = tag.as_deref().and_then(|tag| tag.core_suffix());
                    let is_plain = style == ScalarStyle::Plain;
                    self.scalar(&text, is_plain, anchor, tag, span)?
                }
                Event::SequenceStart(_, anchor, _) => {
                    self.begin(anchor, span, OpenKind::Sequence(Vec::new()))?;
                    None
                }
                Event::MappingStart(_, anchor, _) => {
                    let entries = Vec::new();
                    self.begin(anchor, span, OpenKind::Mapping { entries, key: None })?;
                    None
                }
                Event::SequenceEnd | Event::MappingEnd => self.end(span)?,
                Event::Alias(anchor) => self.alias(anchor, span)?,
                Event::StreamEnd => break,
                _ => None,
            };
            if let Some(root) = done {
                return self.only_document(root);
            }
        }
        Ok(Rc::new(Node::scalar(
            Value::Null,
            Span::new(self.offset, self.offset),
        )))
    }

    /// The rest of the part must be empty: its markers were removed, so more content is a syntax error.
    fn only_document(&mut self, root: Rc<Node>) -> Result<Rc<Node>, YamlFault> {
        while let Some(next) = self.parser.next_event() {
            let (event, span) = next.map_err(|error| self.syntax(&error))?;
            if matches!(event, Event::DocumentStart(..)) {
                let start = self.offset + span.byte_range().map_or(0, |range| range.start);
                let message = "not valid YAML: expected the end of the document";
                return Err(YamlFault::new(
                    "syntax",
                    Span::new(start, start + 1),
                    message,
                ));
            }
        }
        if root.size - self.n_values.min(root.size) > ALIASED_MAX {
            return Err(too_many_aliased(root.span));
        }
        Ok(root)
    }

    fn begin(&mut self, anchor: usize, span: Span, kind: OpenKind) -> Result<(), YamlFault> {
        if let Some(Open {
            kind: OpenKind::Mapping { key: None, .. },
            ..
        }) = self.open.last()
        {
            return Err(self.collection_as_key(span));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(span));
        }
        self.n_values += 1;
        let start = span.start;
        self.open.push(Open {
            anchor,
            start,
            kind,
        });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<Option<Rc<Node>>, YamlFault> {
        let Some(open) = self.open.pop() else {
            return Ok(None);
        };
        let content = match open.kind {
            OpenKind::Sequence(elements) => Content::Sequence(elements),
            OpenKind::Mapping { mut entries, .. } => {
                self.report_repeated(&entries);
                if entries.iter().any(|entry| entry.is_merge) {
                    entries = self.merge(entries)?;
                }
                Content::Mapping(entries)
            }
        };
        let node = Node::collection(content, Span::new(open.start, span.end));
        if node.height > DEPTH_MAX {
            return Err(too_deep(node.span));
        }
        self.place(node, open.anchor)
    }

    fn scalar(
        &mut self,
        text: &str,
        is_plain: bool,
        anchor: usize,
        tag: Option<&str>,
        span: Span,
    ) -> Result<Option<Rc<Node>>, YamlFault> {
        self.n_values += 1;
        let is_resolved = match tag {
            Some(tag) => matches!(tag, "int" | "float" | "bool" | "null"),
            None => is_plain,
        };
        let value = match is_resolved {
            true => scalar::resolve(text).unwrap_or_else(|| {
                self.faults.push(
                    YamlFault::new(
                        "no-number",
                        span,
                        format!("{text} can't be written in JSON"),
                    )
                    .with_help("quote it if it is meant as text"),
                );
                Value::Null
            }),
            false => Value::from(text),
        };
        let is_merge = is_plain && tag.is_none() && text == "<<";
        if let Some(key) = self.pending_key() {
            *key = Some((key_text(&value, text), span, is_merge));
            if anchor != 0 {
                let node = Node::scalar(value, span);
                self.anchors.insert(anchor, Rc::new(node));
            }
            return Ok(None);
        }
        self.place(Node::scalar(value, span), anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Option<Rc<Node>>, YamlFault> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            let message = "not valid YAML: an alias inside its own anchor";
            return Err(YamlFault::new("syntax", span, message));
        };
        if node.size > ALIASED_MAX {
            return Err(too_many_aliased(span));
        }
        if let Some(key) = self.pending_key() {
            let Content::Scalar(value) = &node.content else {
                return Err(self.collection_as_key(span));
            };
            *key = Some((key_text(value, ""), span, false));
            return Ok(None);
        }
        Ok(self.put(node))
    }

    fn pending_key(&mut self) -> Option<&mut Option<(String, Span, bool)>> {
        match self.open.last_mut() {
            Some(Open {
                kind: OpenKind::Mapping { key, .. },
                ..
            }) if key.is_none() => Some(key),
            _ => None,
        }
    }

    fn place(&mut self, node: Node, anchor: usize) -> Result<Option<Rc<Node>>, YamlFault> {
        let node = Rc::new(node);
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        Ok(self.put(node))
    }

    /// Adds a finished node to its parent; returns the root, which has none.
    fn put(&mut self, node: Rc<Node>) -> Option<Rc<Node>> {
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => return Some(node),
            Some(OpenKind::Sequence(elements)) => elements.push(node),
            Some(OpenKind::Mapping { entries, key }) => {
                if let Some((key, key_span, is_merge)) = key.take() {
                    entries.push(Entry {
                        key,
                        key_span,
                        is_merge,
                        value: node,
                    });
                }
            }
        }
        None
    }

    fn report_repeated(&mut self, entries: &[Entry]) {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
        for pair in order.windows(2) {
            let (first, again) = (&entries[pair[0]], &entries[pair[1]]);
            let is_repeated = first.key == again.key && !first.is_merge;
            if is_repeated && self.faults.len() < REPEATED_MAX {
                let message = repeated_key(&again.key);
                let mut fault = YamlFault::new("duplicate-key", again.key_span, message);
                fault.first = Some(first.key_span);
                fault.path = Some(self.path().child_owned(again.key.clone()));
                self.faults.push(fault);
            }
        }
    }

    /// The path of the current value.
    fn path(&self) -> FieldPath {
        let open = self.open.iter();
        open.fold(FieldPath::root(), |path, open| match &open.kind {
            OpenKind::Sequence(elements) => path.index(elements.len()),
            OpenKind::Mapping { key: None, .. } => path,
            OpenKind::Mapping {
                key: Some((key, ..)),
                ..
            } => path.child_owned(key.clone()),
        })
    }

    /// `<<: *defaults` adds the entries that do not exist yet.
    fn merge(&mut self, entries: Vec<Entry>) -> Result<Vec<Entry>, YamlFault> {
        let (merges, mut merged): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.is_merge);
        let mut known: HashMap<String, ()> =
            merged.iter().map(|entry| (entry.key.clone(), ())).collect();
        for merge in merges {
            let single = std::slice::from_ref(&merge.value);
            let defaults = match &merge.value.content {
                Content::Sequence(elements) => elements,
                _ => single,
            };
            for default in defaults {
                let Content::Mapping(defaults) = &default.content else {
                    let message = "the value of `<<` must be an object, or a list of objects";
                    return Err(YamlFault::new("syntax", merge.key_span, message));
                };
                self.n_merged += defaults.len();
                if self.n_merged > ALIASED_MAX {
                    return Err(too_many_aliased(merge.key_span));
                }
                for entry in defaults {
                    if known.insert(entry.key.clone(), ()).is_none() {
                        merged.push(entry.clone());
                    }
                }
            }
        }
        Ok(merged)
    }

    fn collection_as_key(&self, span: Span) -> YamlFault {
        let fault = YamlFault::new("syntax", span, "an object or a list can't be a key");
        self.or_template(fault)
    }

    fn syntax(&self, error: &granit_parser::ScanError) -> YamlFault {
        let marker = error.marker();
        let at = match marker.byte_offset() {
            Some(at) => at,
            None => byte_of_char(self.yaml, marker.index()),
        };
        let at = at.min(self.yaml.len()) + self.offset;
        let span = Span::new(at, at + 1);
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return too_deep(span);
        }
        let message = format!("not valid YAML: {}", error.info());
        self.or_template(YamlFault::new("syntax", span, message))
    }

    fn or_template(&self, fault: YamlFault) -> YamlFault {
        let at = (fault.span.start - self.offset).min(self.yaml.len());
        let at = super::source::floor_char_boundary(self.yaml, at);
        let line_start = self.yaml[..at].rfind('\n').map_or(0, |start| start + 1);
        let line_end = self.yaml[at..]
            .find('\n')
            .map_or(self.yaml.len(), |end| at + end);
        match self.yaml[line_start..line_end].contains("{{") {
            true => YamlFault {
                code: TEMPLATE,
                ..fault
            },
            false => fault,
        }
    }
}

fn byte_of_char(text: &str, index: usize) -> usize {
    text.char_indices()
        .nth(index)
        .map_or(text.len(), |(at, _)| at)
}

/// The message for a key that its object has already, in both formats.
pub(super) fn repeated_key(key: &str) -> String {
    format!("the key {key:?} is there twice")
}

fn too_deep(span: Span) -> YamlFault {
    YamlFault::new(TOO_DEEP, span, too_deep_message())
}

fn too_many_aliased(span: Span) -> YamlFault {
    let message = format!("aliases expand to more than {ALIASED_MAX} values");
    YamlFault::new("too-large", span, message)
}

/// Keys are strings in JSON: `1:` and `true:` become `"1"` and `"true"`.
fn key_text(value: &Value, text: &str) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => text.to_owned(),
        other => other.to_string(),
    }
}

impl YamlFault {
    fn new(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            span,
            message: message.into(),
            help: None,
            first: None,
            path: None,
        }
    }

    fn with_help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }
}
