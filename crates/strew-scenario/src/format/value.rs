//! Reads values of the document step by step and reports every mistake.

use serde_json::Value;
use strew_manifest::duration::GoDuration;
use strew_manifest::field::FieldPath;
use strew_model::Span;

use super::diagnostics;
use super::problems::Problems;
use super::ratio::Ratio;
use super::vocabulary::Shape;

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct At<'v> {
    pub(crate) value: &'v Value,
    pub(crate) path: FieldPath,
}

/// An object that has known fields only.
#[derive(Debug)]
pub(crate) struct Fields<'v> {
    at: At<'v>,
    shape: &'static Shape,
}

/// The longest time in a scenario: ten years, in nanoseconds.
const SPAN_MAX: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

impl<'v> At<'v> {
    pub(crate) fn root(value: &'v Value) -> Self {
        let path = FieldPath::root();
        Self { value, path }
    }

    /// The fields of an object; reports fields that it should not have.
    pub(crate) fn fields(
        &self,
        shape: &'static Shape,
        problems: &mut Problems,
    ) -> Option<Fields<'v>> {
        let Some(object) = self.value.as_object() else {
            problems.add(&self.path, diagnostics::wrong_type("an object", self.value));
            return None;
        };
        for name in object.keys().filter(|name| shape.field(name).is_none()) {
            let path = self.path.child_owned(name.clone());
            problems.add_key(&path, diagnostics::unknown(shape, name));
        }
        let at = self.clone();
        Some(Fields { at, shape })
    }

    /// The elements of a list.
    pub(crate) fn list(&self, problems: &mut Problems) -> Vec<At<'v>> {
        match self.value {
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                elements
                    .map(|(i, value)| At {
                        value,
                        path: self.path.index(i),
                    })
                    .collect()
            }
            other => {
                problems.add(&self.path, diagnostics::wrong_type("a list", other));
                Vec::new()
            }
        }
    }

    /// The elements of a list, or a single value as the only element. Reports an empty list.
    pub(crate) fn one_or_many(&self, problems: &mut Problems) -> Vec<At<'v>> {
        match self.value {
            Value::Array(elements) if elements.is_empty() => {
                problems.add(&self.path, diagnostics::empty_list());
                Vec::new()
            }
            Value::Array(_) => self.list(problems),
            _ => vec![self.clone()],
        }
    }

    /// The entries of an object with keys of the user's choice, in order. Reports an object without entries.
    pub(crate) fn entries(&self, problems: &mut Problems) -> Vec<(&'v str, At<'v>)> {
        let Some(object) = self.value.as_object() else {
            problems.add(&self.path, diagnostics::wrong_type("an object", self.value));
            return Vec::new();
        };
        let entries = object.iter().map(|(key, value)| {
            let path = self.path.key(key.clone());
            (key.as_str(), At { value, path })
        });
        entries.collect()
    }

    pub(crate) fn text(&self, problems: &mut Problems) -> Option<&'v str> {
        let text = self.value.as_str();
        if text.is_none() {
            problems.add(&self.path, diagnostics::wrong_type("a string", self.value));
        }
        text
    }

    /// A text that is not empty.
    pub(crate) fn name(&self, problems: &mut Problems) -> Option<&'v str> {
        let text = self.text(problems)?;
        if text.is_empty() {
            problems.add(&self.path, diagnostics::empty_text());
            return None;
        }
        Some(text)
    }

    pub(crate) fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        let value = self.value.as_bool();
        if value.is_none() {
            problems.add(&self.path, diagnostics::wrong_type("a boolean", self.value));
        }
        value
    }

    /// A whole number, 0 or more.
    pub(crate) fn count(&self, problems: &mut Problems) -> Option<u32> {
        if let Some(count) = self.value.as_u64().and_then(|n| u32::try_from(n).ok()) {
            return Some(count);
        }
        let error = match self.value.as_f64() {
            Some(number) if number < 0.0 => diagnostics::negative(self.value),
            Some(number) if number > f64::from(u32::MAX) => diagnostics::huge_count(self.value),
            _ => diagnostics::wrong_type("an integer", self.value),
        };
        problems.add(&self.path, error);
        None
    }

    /// A duration, or a moment since the start.
    pub(crate) fn span(&self, problems: &mut Problems) -> Option<Span> {
        if self.value.as_u64() == Some(0) {
            return Some(Span(0));
        }
        let Some(text) = self.value.as_str() else {
            problems.add(&self.path, diagnostics::no_duration(self.value));
            return None;
        };
        match span_of(text) {
            Ok(span) => Some(span),
            Err(error) => {
                problems.add(&self.path, error);
                None
            }
        }
    }

    pub(crate) fn ratio(&self, problems: &mut Problems) -> Option<Ratio> {
        let number = self.value.as_number().map(ToString::to_string);
        let ratio = number.as_deref().and_then(Ratio::parse);
        if ratio.is_none() {
            problems.add(&self.path, diagnostics::no_ratio(self.value));
        }
        ratio
    }

    /// One of these names, as its index.
    pub(crate) fn choice(&self, names: &[&'static str], problems: &mut Problems) -> Option<usize> {
        let text = self.text(problems)?;
        let found = names.iter().position(|name| *name == text);
        if found.is_none() {
            problems.add(&self.path, diagnostics::no_choice(text, names));
        }
        found
    }
}

impl<'v> Fields<'v> {
    /// The field, if it exists and is not `null`.
    pub(crate) fn get(&self, name: &'static str) -> Option<At<'v>> {
        debug_assert!(self.shape.field(name).is_some(), "{name} is no known field");
        let value = self.at.value.get(name).filter(|value| !value.is_null())?;
        let path = self.at.path.child(name);
        Some(At { value, path })
    }

    /// The field; reports its absence.
    pub(crate) fn required(&self, name: &'static str, problems: &mut Problems) -> Option<At<'v>> {
        let field = self.get(name);
        if field.is_none() {
            problems.add(&self.at.path, diagnostics::missing(name));
        }
        field
    }

    /// The known fields that are present, in their order.
    pub(crate) fn present(&self) -> impl Iterator<Item = (&'static str, At<'v>)> {
        let entries = self.at.value.as_object().into_iter().flatten();
        entries.filter_map(|(name, value)| {
            let name = self.shape.field(name)?.name;
            let path = self.at.path.child(name);
            (!value.is_null()).then_some((name, At { value, path }))
        })
    }

    pub(crate) fn path(&self) -> &FieldPath {
        &self.at.path
    }

    pub(crate) fn value(&self) -> &'v Value {
        self.at.value
    }
}

/// A duration in Go's format, at most ten years.
pub(crate) fn span_of(text: &str) -> Result<Span, strew_manifest::read::Diagnostic> {
    let huge = || diagnostics::huge_span(text);
    let Some(duration) = GoDuration::parse(text) else {
        // Go refuses durations that do not fit 64 bits; the format of such a text is right.
        let is_written_right = text.len() > 10
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text.ends_with(['h', 'm', 's']);
        return Err(match is_written_right {
            true => huge(),
            false => diagnostics::no_duration(&Value::from(text)),
        });
    };
    if duration < GoDuration::ZERO {
        return Err(diagnostics::negative(&Value::from(text)));
    }
    match duration.nanos() {
        nanos if nanos > SPAN_MAX => Err(huge()),
        nanos => Ok(Span(nanos)),
    }
}
