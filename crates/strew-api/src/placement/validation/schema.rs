//! The rules of a CRD's schema, in the API server's words.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/validation`, v1.36.

use crate::field::{FieldError, FieldErrorKind, FieldPath};

/// Gathers what a schema refuses.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) errors: Vec<FieldError>,
}

/// A pattern: its text and its meaning.
pub(in crate::placement) struct Pattern {
    pub(in crate::placement) regex: &'static str,
    pub(super) matches: fn(&str) -> bool,
}

/// A label's key, or a claim's name.
pub(in crate::placement) const LABEL_KEY: Pattern = Pattern {
    regex: r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    matches: is_label_key,
};
/// A topology key: the same, written otherwise.
pub(in crate::placement) const TOPOLOGY_KEY: Pattern = Pattern {
    regex: r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
    matches: is_label_key,
};
/// The name of a decision group.
pub(in crate::placement) const GROUP_NAME: Pattern = Pattern {
    regex: "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$",
    matches: is_group_name,
};
/// The size of a decision group.
pub(in crate::placement) const GROUP_SIZE: Pattern = Pattern {
    regex: r"^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$",
    matches: is_group_size,
};
/// A short span of time.
pub(in crate::placement) const RATE_LIMIT: Pattern = Pattern {
    regex: "^[0-9]+[hms]$",
    matches: is_rate_limit,
};

/// The longest key: a subdomain, a slash, a name.
pub(in crate::placement) const KEY_MAX: usize = 316;
/// The effects of taints.
pub(in crate::placement) const EFFECTS: [&str; 3] = ["NoSelect", "PreferNoSelect", "NoSelectIfNew"];
/// How a set's clusters are found.
pub(in crate::placement) const SELECTOR_TYPES: [&str; 2] =
    ["ExclusiveClusterSetLabel", "LabelSelector"];
/// Spread constraints in a Placement.
pub(in crate::placement) const TERMS_MAX: usize = 8;
/// The longest name of a claim.
pub(in crate::placement) const CLAIM_NAME_MAX: usize = 253;
/// The longest value of a taint, toleration or claim.
pub(in crate::placement) const VALUE_MAX: usize = 1024;

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

fn is_label_key(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let label = |label: &str| {
        let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty()
            && label.bytes().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    prefix.is_none_or(|prefix| prefix.split('.').all(label)) && is_name(name)
}

fn is_name(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let at_end = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.bytes().all(inside) && at_end(bytes.first()) && at_end(bytes.last())
}

fn is_group_name(text: &str) -> bool {
    is_name(text) && (2..=63).contains(&text.len())
}

fn is_group_size(text: &str) -> bool {
    let is_number = |digits: &str| {
        !digits.starts_with('0') && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    match text.strip_suffix('%') {
        Some(percent) => is_number(percent) && (percent.len() <= 2 || percent == "100"),
        None => is_number(text),
    }
}

fn is_rate_limit(text: &str) -> bool {
    let digits = text.strip_suffix(['h', 'm', 's']).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}
