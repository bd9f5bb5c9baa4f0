//! Finds the places of fields when a diagnostic needs them, so that correct input costs nothing.

use std::rc::Rc;

use serde_json::Value;

use super::document::{Document, Format, Origin};
use super::json;
use super::node::Node;
use super::source::{Cursor, FileId, Place, Sources, Span};
use super::tree::{Found, Occurrence};
use super::yaml;
use crate::field::{FieldPath, PathSegment};
use crate::printable::make_printable;

/// Finds the places of fields; caches the last document, since questions about one document follow each other.
pub struct Locator<'a> {
    sources: &'a Sources,
    last: Option<(FileId, Document, Outline)>,
    /// The last position with a known line, from which counting continues.
    cursor: Option<(FileId, Cursor)>,
}

/// What is cached of a document.
enum Outline {
    /// The positions of the elements of the top-level `items`; the rest is scanned.
    Json { items: Vec<usize> },
    /// The whole tree; `None` if the text is invalid.
    Yaml(Option<Rc<Node>>),
}

impl<'a> Locator<'a> {
    /// A locator in these files.
    pub fn new(sources: &'a Sources) -> Self {
        Self {
            sources,
            last: None,
            cursor: None,
        }
    }

    /// Caches the tree of a document that was just read.
    pub(super) fn remember(&mut self, file: FileId, document: Document, root: Rc<Node>) {
        self.last = Some((file, document, Outline::Yaml(Some(root))));
    }

    /// The place of a field's value, or of its nearest existing ancestor.
    ///
    /// Cost: parses the document again, unless the previous question was about it too; then scans the object.
    pub fn place(&mut self, origin: &Origin, path: &FieldPath) -> Place {
        let span = self.find(origin, path.steps(), Occurrence::Last).shown();
        self.place_of_span(origin.file, span)
    }

    /// The place of a field's key, if the field itself is the mistake.
    pub fn key_place(&mut self, origin: &Origin, path: &FieldPath) -> Place {
        let span = self
            .find(origin, path.steps(), Occurrence::Last)
            .shown_key();
        self.place_of_span(origin.file, span)
    }

    /// The place of the first of several equal keys.
    pub(super) fn first_key_place(&mut self, origin: &Origin, path: &FieldPath) -> Place {
        let span = self
            .find(origin, path.steps(), Occurrence::First)
            .shown_key();
        self.place_of_span(origin.file, span)
    }

    /// The place of bytes in a file; fast if places are requested in order.
    pub(super) fn place_of_span(&mut self, file: FileId, span: Span) -> Place {
        let known = self.cursor.filter(|(known_file, _)| *known_file == file);
        let known = known.map(|(_, cursor)| cursor);
        let known = known.filter(|cursor| cursor.at <= span.start);
        let (place, cursor) = self
            .sources
            .place_after(known.unwrap_or_default(), file, span);
        self.cursor = Some((file, cursor));
        place
    }

    pub(super) fn find(
        &mut self,
        origin: &Origin,
        steps: &[PathSegment],
        which: Occurrence,
    ) -> Found {
        let text = self.sources.file(origin.file).text();
        let mut path = Vec::with_capacity(2 * origin.items.len() + steps.len());
        for item in &origin.items {
            path.push(PathSegment::Name(ITEMS.into()));
            path.push(PathSegment::Index(*item as usize));
        }
        path.extend_from_slice(steps);
        let document_start = origin.document.span.start;
        match self.outline(origin.file, origin.document) {
            Outline::Yaml(Some(root)) => root.find(&path, which),
            Outline::Yaml(None) => Found {
                key: None,
                value: Span::new(document_start, document_start + 1),
                is_collection: true,
                is_complete: false,
            },
            Outline::Json { items } => {
                let first_item = origin.items.first().map(|item| *item as usize);
                match first_item.and_then(|item| items.get(item)) {
                    Some(start) => json::find(text, *start, &path[2..], which),
                    None => json::find(text, document_start, &path, which),
                }
            }
        }
    }

    /// The object at `origin`, as its text gives it; `None` if that cannot be read, which was reported when it was read
    /// first.
    ///
    /// Cost: the object, if the previous question was about its document too.
    pub fn value(&mut self, origin: &Origin) -> Option<Value> {
        let text = self.sources.file(origin.file).text();
        let document = origin.document;
        let mut value = match self.outline(origin.file, document) {
            Outline::Yaml(root) => root.as_ref()?.item(&origin.items)?.to_value(),
            Outline::Json { items } => {
                let (start, inner) = match origin.items.split_first() {
                    Some((first, inner)) => (*items.get(*first as usize)?, inner),
                    None => (document.span.start, &[][..]),
                };
                let part = Span::new(start, document.span.end);
                let mut value = json::documents(text, part).next()?.ok()?.value;
                for item in inner {
                    value = value.get_mut(ITEMS)?.get_mut(*item as usize)?.take();
                }
                value
            }
        };
        make_printable(&mut value);
        Some(value)
    }

    fn outline(&mut self, file: FileId, document: Document) -> &Outline {
        let last = self.last.take();
        let last = last.filter(|(f, d, _)| (*f, *d) == (file, document));
        let text = self.sources.file(file).text();
        let last = last.unwrap_or_else(|| (file, document, Outline::of(text, document)));
        &self.last.insert(last).2
    }
}

const ITEMS: &str = "items";

impl Outline {
    fn of(text: &str, document: Document) -> Self {
        match document.format {
            Format::Json => Self::Json {
                items: json::elements(
                    text,
                    document.span.start,
                    &[PathSegment::Name(ITEMS.into())],
                ),
            },
            Format::Yaml => {
                let composed = yaml::compose(text, document.span);
                Self::Yaml(composed.ok().map(|document| document.root))
            }
        }
    }
}

/// The place of a field's value, or of its nearest existing ancestor. For several places, use a [`Locator`].
pub fn locate(sources: &Sources, origin: &Origin, path: &FieldPath) -> Place {
    Locator::new(sources).place(origin, path)
}
