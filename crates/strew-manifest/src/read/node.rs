//! A YAML document as a tree with places.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::source::Span;
use super::tree::{Found, Occurrence};
use crate::field::PathSegment;

/// A value and its place; subtrees with an anchor are shared.
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) content: Content,
    /// The number of values in it, with aliases followed.
    pub(super) size: usize,
    /// The number of levels below it, with aliases followed.
    pub(super) height: usize,
}

/// What a node is.
pub(super) enum Content {
    Scalar(Value),
    Sequence(Vec<Rc<Node>>),
    Mapping(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_span: Span,
    /// The key is a plain `<<`.
    pub(super) is_merge: bool,
    pub(super) value: Rc<Node>,
}

impl Node {
    pub(super) fn scalar(value: Value, span: Span) -> Self {
        Self {
            span,
            content: Content::Scalar(value),
            size: 1,
            height: 0,
        }
    }

    pub(super) fn collection(content: Content, span: Span) -> Self {
        let mut node = Self {
            span,
            content,
            size: 1,
            height: 0,
        };
        let (size, height) = node.children().fold((1usize, 0), |(size, height), child| {
            (
                size.saturating_add(child.size),
                height.max(child.height + 1),
            )
        });
        node.size = size;
        node.height = height;
        node
    }

    fn children(&self) -> impl Iterator<Item = &Node> {
        let (elements, entries): (&[Rc<Node>], &[Entry]) = match &self.content {
            Content::Scalar(_) => (&[], &[]),
            Content::Sequence(elements) => (elements, &[]),
            Content::Mapping(entries) => (&[], entries),
        };
        let values = entries.iter().map(|entry| &*entry.value);
        elements.iter().map(|element| &**element).chain(values)
    }

    /// The JSON value with aliases expanded; [`compose`](super::yaml::compose) has bounded depth and size.
    pub(super) fn to_value(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::Sequence(elements) => {
                elements.iter().map(|element| element.to_value()).collect()
            }
            Content::Mapping(entries) => {
                let mut fields = Map::with_capacity(entries.len());
                for entry in entries {
                    fields.insert(entry.key.clone(), entry.value.to_value());
                }
                Value::Object(fields)
            }
        }
    }

    /// The list `items` of a mapping.
    pub(super) fn items(&self) -> Option<&[Rc<Self>]> {
        let Content::Mapping(entries) = &self.content else {
            return None;
        };
        let (_, items) = entry(entries, "items", Occurrence::Last)?;
        match &items.content {
            Content::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The item of a list of lists: one index for each level.
    pub(super) fn item(&self, indexes: &[u32]) -> Option<&Self> {
        let (first, rest) = match indexes {
            [] => return Some(self),
            [first, rest @ ..] => (*first as usize, rest),
        };
        self.items()?.get(first)?.item(rest)
    }

    /// As [`to_value`](Self::to_value), with the first of [`items`](Self::items) only.
    pub(super) fn outline(&self) -> Value {
        let Content::Mapping(entries) = &self.content else {
            return self.to_value();
        };
        let value_of = |entry: &Entry| match &entry.value.content {
            Content::Sequence(items) if entry.key == "items" => {
                items.iter().take(1).map(|item| item.to_value()).collect()
            }
            _ => entry.value.to_value(),
        };
        let fields = entries.iter().map(|e| (e.key.clone(), value_of(e)));
        Value::Object(fields.collect())
    }

    /// As [`to_value`](Self::to_value), with `y` and `n` as texts, as in YAML 1.2; also as keys.
    pub(super) fn to_value_with_letters(&self, text: &str) -> Value {
        let letter = |span: Span| {
            let letter = text.get(span.start..span.end)?;
            matches!(letter, "y" | "Y" | "n" | "N").then(|| letter.to_owned())
        };
        match &self.content {
            Content::Scalar(value @ Value::Bool(_)) => {
                letter(self.span).map_or_else(|| value.clone(), Value::String)
            }
            Content::Scalar(value) => value.clone(),
            Content::Sequence(elements) => {
                let elements = elements.iter();
                elements.map(|e| e.to_value_with_letters(text)).collect()
            }
            Content::Mapping(entries) => {
                let mut fields = Map::with_capacity(entries.len());
                for entry in entries {
                    let key = letter(entry.key_span).unwrap_or_else(|| entry.key.clone());
                    fields.insert(key, entry.value.to_value_with_letters(text));
                }
                Value::Object(fields)
            }
        }
    }

    /// Follows `steps` from here.
    pub(super) fn find(&self, steps: &[PathSegment], which: Occurrence) -> Found {
        let mut node = self;
        let mut key = None;
        let mut n_found = 0;
        for step in steps {
            let child = match (step, &node.content) {
                (PathSegment::Index(index), Content::Sequence(elements)) => {
                    elements.get(*index).map(|element| (None, &**element))
                }
                (PathSegment::Name(name), Content::Mapping(entries)) => entry(entries, name, which),
                (PathSegment::Key(name), Content::Mapping(entries)) => entry(entries, name, which),
                _ => None,
            };
            let Some((child_key, child)) = child else {
                break;
            };
            key = child_key;
            node = child;
            n_found += 1;
        }
        let is_collection = !matches!(node.content, Content::Scalar(_));
        Found {
            key,
            value: node.shown(),
            is_collection,
            is_complete: n_found == steps.len(),
        }
    }

    /// A collection begins with its first key or element.
    fn shown(&self) -> Span {
        match &self.content {
            Content::Mapping(entries) => match entries.first() {
                Some(entry) if entry.key_span.start >= self.span.start => entry.key_span,
                _ => Span::new(self.span.start, self.span.start + 1),
            },
            Content::Sequence(_) => Span::new(self.span.start, self.span.start + 1),
            Content::Scalar(_) => self.span,
        }
    }
}

fn entry<'a>(
    entries: &'a [Entry],
    name: &str,
    which: Occurrence,
) -> Option<(Option<Span>, &'a Node)> {
    let mut matching = entries
        .iter()
        .filter(|entry| entry.key == name || is_letter(name, &entry.key));
    let entry = match which {
        Occurrence::First => matching.next(),
        Occurrence::Last => matching.next_back(),
    }?;
    Some((Some(entry.key_span), &entry.value))
}

/// True if a key that YAML 1.1 reads as `false` or `true` was written as this letter.
fn is_letter(name: &str, key: &str) -> bool {
    matches!((name, key), ("n" | "N", "false") | ("y" | "Y", "true"))
}
