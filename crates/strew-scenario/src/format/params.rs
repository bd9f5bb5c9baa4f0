//! Parameters: numbers for `${name}`.
//!
//! Parameters are replaced in every text value, but not in keys and not in `params` itself. A text that consists of
//! `${name}` becomes the number; inside a longer text the number's digits are inserted. `$${` stands for `${`. In the
//! scenario an unknown name is an error; in other documents it is kept, since a container's command may contain
//! `${HOME}`.

use std::collections::BTreeMap;

use serde_json::{Number, Value};
use strew_manifest::field::FieldPath;

use super::diagnostics;
use super::problems::Problems;
use super::value::At;

/// Numbers by name.
pub(super) type Params = BTreeMap<String, Number>;

/// Reads `params`.
pub(super) fn read(at: &At<'_>, problems: &mut Problems) -> Params {
    let mut params = Params::new();
    for (name, at) in at.entries(problems) {
        if !is_name(name) {
            problems.add_key(&at.path, diagnostics::bad_parameter(name));
        }
        match at.value {
            Value::Number(number) => {
                params.insert(name.to_owned(), number.clone());
            }
            other => problems.add(&at.path, diagnostics::wrong_type("a number", other)),
        }
    }
    params
}

/// Replaces parameters in the scenario's value at `path`; reports unknown names.
pub(super) fn put_in(
    value: &mut Value,
    path: &FieldPath,
    params: &Params,
    problems: &mut Problems,
) {
    let mut unknown = |path: &FieldPath, name: &str| {
        let known = params.keys().map(String::as_str);
        problems.add(path, diagnostics::unknown_parameter(name, known));
    };
    let mut putting = Putting {
        params,
        path: path.clone(),
        unknown: Some(&mut unknown),
    };
    putting.value(value);
}

/// Replaces parameters in another document; unknown names are kept.
pub(super) fn put_into_object(value: &mut Value, params: &Params) {
    if params.is_empty() {
        return;
    }
    let mut putting = Putting {
        params,
        path: FieldPath::root(),
        unknown: None,
    };
    putting.value(value);
}

/// Called with each name that has no number, and its place.
type OnUnknown<'a> = &'a mut dyn FnMut(&FieldPath, &str);

struct Putting<'a> {
    params: &'a Params,
    path: FieldPath,
    unknown: Option<OnUnknown<'a>>,
}

impl Putting<'_> {
    fn value(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = self.path.child_owned(name.clone());
                    self.below(path, value);
                }
            }
            Value::Array(elements) => {
                for (i, value) in elements.iter_mut().enumerate() {
                    let path = self.path.index(i);
                    self.below(path, value);
                }
            }
            Value::String(text) if text.contains("${") => *value = self.text(text),
            _ => {}
        }
    }

    fn below(&mut self, path: FieldPath, value: &mut Value) {
        let holds_text = matches!(value, Value::Object(_) | Value::Array(_) | Value::String(_));
        if holds_text {
            let above = std::mem::replace(&mut self.path, path);
            self.value(value);
            self.path = above;
        }
    }

    fn text(&mut self, text: &str) -> Value {
        let whole = text
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'));
        if let Some(number) = whole.and_then(|name| self.params.get(name)) {
            return Value::Number(number.clone());
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            if let Some(before) = before.strip_suffix('$') {
                out.push_str(before);
                // In other documents a text that is no parameter is kept as it is.
                out.push_str(if self.unknown.is_some() { "${" } else { "$${" });
                rest = after;
                continue;
            }
            out.push_str(before);
            let name = after.find('}').map(|end| &after[..end]);
            match name.and_then(|name| self.params.get(name)) {
                Some(number) => out.push_str(&number.to_string()),
                None => {
                    out.push_str("${");
                    rest = after;
                    if let Some(unknown) = &mut self.unknown {
                        unknown(&self.path, name.unwrap_or(after));
                    }
                    continue;
                }
            }
            rest = &after[name.map_or(0, |name| name.len() + 1)..];
        }
        out.push_str(rest);
        Value::String(out)
    }
}

fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_take_the_place_of_their_names() {
        let params = Params::from([
            ("n".to_owned(), Number::from(6)),
            ("half".to_owned(), Number::from_f64(0.5).unwrap()),
        ]);
        // The text, the result in a scenario, the result in another document.
        let cases = [
            (json!("${n}"), json!(6), json!(6)),
            (json!("${n}s"), json!("6s"), json!("6s")),
            (
                json!(["${half}", {"a": "x${n}y${n}"}]),
                json!([0.5, {"a": "x6y6"}]),
                json!([0.5, {"a": "x6y6"}]),
            ),
            (json!("$${n}"), json!("${n}"), json!("$${n}")),
            (json!("$n {n}"), json!("$n {n}"), json!("$n {n}")),
        ];
        for (value, in_scenario, in_object) in cases {
            let mut problems = Problems::default();
            let mut found = value.clone();
            put_in(&mut found, &FieldPath::root(), &params, &mut problems);
            assert_eq!((found, problems.found.len()), (in_scenario, 0), "{value}");
            let mut found = value.clone();
            put_into_object(&mut found, &params);
            assert_eq!(found, in_object, "{value}");
        }
    }

    #[test]
    fn a_name_without_a_number_is_told_in_a_scenario_and_stays_elsewhere() {
        let params = Params::from([("n".to_owned(), Number::from(6))]);
        for text in ["${m}", "a${HOME}b", "${", "${n"] {
            let mut problems = Problems::default();
            let mut value = json!(text);
            put_in(&mut value, &FieldPath::root(), &params, &mut problems);
            assert_eq!(problems.found.len(), 1, "{text}");
            let mut value = json!(text);
            put_into_object(&mut value, &params);
            assert_eq!(value, json!(text));
        }
    }
}
