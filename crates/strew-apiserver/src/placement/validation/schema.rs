//! The rules of a CRD's schema, with the API server's messages.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/validation`, v1.36.

use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_wire::placement::schema::Pattern;

/// Collects violations of a schema.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) errors: Vec<FieldError>,
}

impl Schema {
    pub(super) fn required(&mut self, is_there: bool, path: &FieldPath) {
        if !is_there {
            self.errors.push(FieldError::required(path.clone(), ""));
        }
    }

    pub(super) fn pattern(&mut self, text: &str, pattern: &Pattern, path: &FieldPath) {
        if !(pattern.matches)(text) {
            let detail = format!("{path} in body should match '{}'", pattern.regex);
            self.errors
                .push(FieldError::invalid(path.clone(), text, detail));
        }
    }

    pub(super) fn one_of(&mut self, text: &str, choices: &[&str], path: &FieldPath) {
        if !choices.contains(&text) {
            let error = FieldError::not_supported(path.clone(), text, choices);
            self.errors.push(error);
        }
    }

    pub(super) fn length(&mut self, text: &str, max: usize, path: &FieldPath) {
        if text.chars().count() > max {
            let detail = format!("may not be more than {max} bytes");
            let kind = FieldErrorKind::TooLong;
            self.errors
                .push(FieldError::new(path.clone(), kind, detail));
        }
    }

    pub(super) fn not_empty(&mut self, text: &str, path: &FieldPath) {
        if text.is_empty() {
            let detail = format!("{path} in body should be at least 1 chars long");
            self.errors
                .push(FieldError::invalid(path.clone(), text, detail));
        }
    }

    pub(super) fn range(&mut self, number: i32, min: i32, max: i32, path: &FieldPath) {
        let (bound, words) = match number {
            n if n < min => (min, "greater"),
            n if n > max => (max, "less"),
            _ => return,
        };
        let detail = format!("{path} in body should be {words} than or equal to {bound}");
        self.errors
            .push(FieldError::invalid_raw(path.clone(), number, detail));
    }

    pub(super) fn at_most(&mut self, count: usize, max: usize, path: &FieldPath) {
        if count > max {
            let kind = FieldErrorKind::TooMany { count };
            let detail = format!("must have at most {max} items");
            self.errors
                .push(FieldError::new(path.clone(), kind, detail));
        }
    }

    pub(super) fn unique(&mut self, keys: &[&str], field: &'static str, path: &FieldPath) {
        for (i, key) in keys.iter().enumerate() {
            if keys[..i].contains(key) {
                let value = format!("{{{field:?}:{key:?}}}");
                let kind = FieldErrorKind::Duplicate { value };
                self.errors.push(FieldError::new(path.index(i), kind, ""));
            }
        }
    }
}
