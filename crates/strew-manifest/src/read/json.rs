//! JSON documents: values with their repeated keys; places are found by scanning.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::source::Span;
use super::tree::{Found, Occurrence};
use super::yaml::{KEY_LENGTH_MAX, REPEATED_MAX, TOO_DEEP, too_deep_message};
use crate::field::{FieldPath, PathSegment};

/// A document that was read.
pub(super) struct JsonDocument {
    pub(super) span: Span,
    pub(super) value: Value,
    /// Keys that occur again in their object; the last value counts.
    pub(super) repeated: Vec<FieldPath>,
    /// True if the value has only the first of its `items`; [`items`] reads them.
    pub(super) is_cut: bool,
}

/// Why a document, and everything after it in the part, cannot be read.
pub(super) struct JsonFault {
    pub(super) code: &'static str,
    pub(super) at: usize,
    pub(super) message: String,
}

/// The documents of `part`, one after another; the last item may be a fault.
pub(super) fn documents(
    text: &str,
    part: Span,
) -> impl Iterator<Item = Result<JsonDocument, JsonFault>> {
    each::<Tracked>(text, part)
}

/// As [`documents`], with the first element of a list `items` at the top and none of the others, which are checked and
/// not kept: the values of a large dump take ten times the memory of its text.
pub(super) fn outlines(
    text: &str,
    part: Span,
) -> impl Iterator<Item = Result<JsonDocument, JsonFault>> {
    each::<Outlined>(text, part)
}

fn each<'a, T: Deserialize<'a> + Into<Tracked> + 'a>(
    text: &'a str,
    part: Span,
) -> impl Iterator<Item = Result<JsonDocument, JsonFault>> + 'a {
    let json = &text[part.start..part.end];
    let mut stream = serde_json::Deserializer::from_str(json).into_iter::<T>();
    let mut start = 0;
    std::iter::from_fn(move || {
        let next = stream.next()?;
        Some(match next {
            Ok(read) => {
                let tracked: Tracked = read.into();
                let span = Span::new(start, stream.byte_offset()).shifted(part.start);
                start = stream.byte_offset();
                Ok(JsonDocument {
                    span,
                    value: tracked.value,
                    repeated: tracked.repeated,
                    is_cut: tracked.is_cut,
                })
            }
            Err(error) => Err(fault(json, part.start, &error)),
        })
    })
}

/// The elements of the list `items` of the document at `from`, which was read: one after another, each with its
/// repeated keys.
pub(super) fn items(text: &str, from: usize) -> impl Iterator<Item = (Value, Vec<FieldPath>)> {
    let steps = [PathSegment::Name(ITEMS.into())];
    let found = find(text, from, &steps, Occurrence::Last);
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: found.value.start,
    };
    let is_list = found.is_complete && scanner.enter(b'[');
    std::iter::from_fn(move || {
        if !is_list || !scanner.next_member(b']') {
            return None;
        }
        let rest = serde_json::Deserializer::from_str(&text[scanner.at..]);
        let mut stream = rest.into_iter::<Tracked>();
        let tracked = stream.next()?.ok()?;
        scanner.at += stream.byte_offset();
        Some((tracked.value, tracked.repeated))
    })
}

fn fault(json: &str, part_start: usize, error: &serde_json::Error) -> JsonFault {
    let line_start = match error.line() {
        0 | 1 => 0,
        line => json
            .match_indices('\n')
            .nth(line - 2)
            .map_or(0, |(at, _)| at + 1),
    };
    let at = (line_start + error.column().saturating_sub(1)).min(json.len());
    let at = if error.is_eof() {
        json.trim_end().len()
    } else {
        at
    };
    let text = error.to_string();
    let message = match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    };
    let (code, message) = match message.starts_with("recursion limit") {
        true => (TOO_DEEP, too_deep_message()),
        false => ("syntax", format!("not valid JSON: {message}")),
    };
    JsonFault {
        code,
        at: part_start + at,
        message,
    }
}

struct Tracked {
    value: Value,
    repeated: Vec<FieldPath>,
    is_cut: bool,
}

impl Tracked {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, part: Part) -> Result<Self, D::Error> {
        let (mut repeated, mut is_cut) = (Vec::new(), false);
        let value = ValueSeed {
            repeated: &mut repeated,
            is_cut: &mut is_cut,
            part,
        }
        .deserialize(deserializer)?;
        Ok(Self {
            value,
            repeated: repeated.into_iter().map(path_of_reversed).collect(),
            is_cut,
        })
    }
}

impl<'de> Deserialize<'de> for Tracked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::read(deserializer, Part::Whole)
    }
}

/// A document without most of its items.
struct Outlined(Tracked);

impl From<Outlined> for Tracked {
    fn from(Outlined(tracked): Outlined) -> Self {
        tracked
    }
}

impl<'de> Deserialize<'de> for Outlined {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Tracked::read(deserializer, Part::Top).map(Self)
    }
}

/// How much of a value is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it.
    Whole,
    /// A document, of whose `items` the first is kept.
    Top,
    /// These items.
    Items,
}

fn path_of_reversed(steps: Vec<PathSegment>) -> FieldPath {
    let steps = steps.into_iter().rev();
    steps.fold(FieldPath::root(), |path, step| match step {
        PathSegment::Name(name) => path.child_owned(name.into_owned()),
        PathSegment::Key(key) => path.key(key),
        PathSegment::Index(index) => path.index(index),
    })
}

/// Builds a value and records repeated keys, which serde_json would drop silently. A path is assembled from its end
/// while the recursion unwinds, so it costs nothing if no key is repeated.
struct ValueSeed<'a> {
    repeated: &'a mut Vec<Vec<PathSegment>>,
    /// Set once items are left out.
    is_cut: &'a mut bool,
    part: Part,
}

impl ValueSeed<'_> {
    fn prepend(&mut self, known: usize, step: impl Fn() -> PathSegment) {
        for path in &mut self.repeated[known..] {
            path.push(step());
        }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        if self.part == Part::Items {
            // Its repeated keys are told when it is read with the others.
            let mut repeated = Vec::new();
            let first = ValueSeed {
                repeated: &mut repeated,
                is_cut: &mut false,
                part: Part::Whole,
            };
            elements.extend(access.next_element_seed(first)?);
            *self.is_cut = !elements.is_empty();
            while access.next_element_seed(Checked)?.is_some() {}
            return Ok(Value::Array(elements));
        }
        let mut known = self.repeated.len();
        while let Some(element) = access.next_element_seed(ValueSeed {
            repeated: self.repeated,
            is_cut: self.is_cut,
            part: Part::Whole,
        })? {
            self.prepend(known, || PathSegment::Index(elements.len()));
            known = self.repeated.len();
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        let mut known = self.repeated.len();
        while let Some(key) = access.next_key::<String>()? {
            check_length(key.len())?;
            if fields.contains_key(&key) && self.repeated.len() < REPEATED_MAX {
                self.repeated.push(Vec::new());
            }
            let is_items = self.part == Part::Top && key == ITEMS;
            if is_items {
                *self.is_cut = false;
            }
            let value = access.next_value_seed(ValueSeed {
                repeated: self.repeated,
                is_cut: self.is_cut,
                part: match is_items {
                    true => Part::Items,
                    false => Part::Whole,
                },
            })?;
            self.prepend(known, || PathSegment::Name(key.clone().into()));
            known = self.repeated.len();
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

fn check_length<E: Error>(key: usize) -> Result<(), E> {
    match key > KEY_LENGTH_MAX {
        true => Err(E::custom(format!(
            "a key is longer than {KEY_LENGTH_MAX} bytes"
        ))),
        false => Ok(()),
    }
}

/// Refuses what [`ValueSeed`] refuses, and keeps nothing.
struct Checked;

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while access.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(key) = access.next_key_seed(KeyLength)? {
            check_length(key)?;
            access.next_value_seed(Self)?;
        }
        Ok(())
    }
}

/// The number of bytes of a key.
struct KeyLength;

impl<'de> DeserializeSeed<'de> for KeyLength {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyLength {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, key: &str) -> Result<usize, E> {
        Ok(key.len())
    }
}

/// The field of a list that has its objects.
const ITEMS: &str = "items";

/// Follows `steps` from the value at `from`, in text that is valid JSON.
///
/// Cost: one pass over the values on the way, without allocation.
pub(super) fn find(text: &str, from: usize, steps: &[PathSegment], which: Occurrence) -> Found {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: from,
    };
    scanner.skip_space();
    let mut key = None;
    let mut n_found = 0;
    for step in steps {
        let here = scanner.at;
        let child = match step {
            PathSegment::Name(name) => scanner.field(name, which),
            PathSegment::Key(name) => scanner.field(name, which),
            PathSegment::Index(index) => scanner.element(*index).map(|at| (None, at)),
        };
        let Some((child_key, child_at)) = child else {
            scanner.at = here;
            break;
        };
        key = child_key;
        scanner.at = child_at;
        n_found += 1;
    }
    let start = scanner.at;
    let is_collection = matches!(scanner.peek(), Some(b'{' | b'['));
    if is_collection {
        // The opening bracket is enough for the place.
        scanner.at += 1;
    } else {
        scanner.skip_value();
    }
    Found {
        key,
        value: Span::new(start, scanner.at),
        is_collection,
        is_complete: n_found == steps.len(),
    }
}

/// The positions of the elements of the list at `steps`.
pub(super) fn elements(text: &str, from: usize, steps: &[PathSegment]) -> Vec<usize> {
    let found = find(text, from, steps, Occurrence::Last);
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: found.value.start,
    };
    let mut starts = Vec::new();
    if found.is_complete && scanner.enter(b'[') {
        while scanner.next_member(b']') {
            starts.push(scanner.at);
            scanner.skip_value();
        }
    }
    starts
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn enter(&mut self, open: u8) -> bool {
        let enters = self.peek() == Some(open);
        self.at += usize::from(enters);
        enters
    }

    /// Moves to the next element or key, past a comma; returns false at `close`.
    fn next_member(&mut self, close: u8) -> bool {
        self.skip_space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_space();
        }
        self.peek().is_some_and(|byte| byte != close)
    }

    fn field(&mut self, name: &str, which: Occurrence) -> Option<(Option<Span>, usize)> {
        let mut found = None;
        if !self.enter(b'{') {
            return None;
        }
        while self.next_member(b'}') {
            let start = self.at;
            self.skip_string();
            let key = Span::new(start, self.at);
            self.skip_space();
            self.at += 1;
            self.skip_space();
            if self.is_key(key, name) {
                found = Some((Some(key), self.at));
                if which == Occurrence::First {
                    break;
                }
            }
            self.skip_value();
        }
        found
    }

    fn is_key(&self, key: Span, name: &str) -> bool {
        let quoted = &self.bytes[key.start..key.end];
        if !quoted.contains(&b'\\') {
            return quoted.get(1..quoted.len().saturating_sub(1)) == Some(name.as_bytes());
        }
        serde_json::from_slice::<String>(quoted).is_ok_and(|key| key == name)
    }

    fn element(&mut self, index: usize) -> Option<usize> {
        if !self.enter(b'[') {
            return None;
        }
        for _ in 0..index {
            if !self.next_member(b']') {
                return None;
            }
            self.skip_value();
        }
        self.next_member(b']').then_some(self.at)
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn skip_value(&mut self) {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' if depth == 0 => break,
                _ if depth == 0 => self.skip_word(),
                _ => self.at += 1,
            }
            if depth == 0 {
                break;
            }
        }
    }

    /// A number, `true`, `false` or `null`.
    fn skip_word(&mut self) {
        let is_end =
            |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b'}' | b']' | b':');
        while self.peek().is_some_and(|byte| !is_end(byte)) {
            self.at += 1;
        }
    }
}
