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
    let json = &text[part.start..part.end];
    let mut stream = serde_json::Deserializer::from_str(json).into_iter::<Tracked>();
    let mut start = 0;
    std::iter::from_fn(move || {
        let next = stream.next()?;
        Some(match next {
            Ok(tracked) => {
                let span = Span::new(start, stream.byte_offset()).shifted(part.start);
                start = stream.byte_offset();
                Ok(JsonDocument {
                    span,
                    value: tracked.value,
                    repeated: tracked.repeated,
                })
            }
            Err(error) => Err(fault(json, part.start, &error)),
        })
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
}

impl<'de> Deserialize<'de> for Tracked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut repeated = Vec::new();
        let value = ValueSeed {
            repeated: &mut repeated,
        }
        .deserialize(deserializer)?;
        let repeated = repeated.into_iter().map(path_of_reversed).collect();
        Ok(Self { value, repeated })
    }
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
        let mut known = self.repeated.len();
        while let Some(element) = access.next_element_seed(ValueSeed {
            repeated: self.repeated,
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
            if key.len() > KEY_LENGTH_MAX {
                let message = format!("a key is longer than {KEY_LENGTH_MAX} bytes");
                return Err(A::Error::custom(message));
            }
            if fields.contains_key(&key) && self.repeated.len() < REPEATED_MAX {
                self.repeated.push(Vec::new());
            }
            let value = access.next_value_seed(ValueSeed {
                repeated: self.repeated,
            })?;
            self.prepend(known, || PathSegment::Name(key.clone().into()));
            known = self.repeated.len();
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

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
