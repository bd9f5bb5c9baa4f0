//! `-l`: a label selector in kubectl's text form.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::failure::Failure;

/// A requirement for labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelQuery(Vec<Term>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl LabelQuery {
    /// Reads `app=web,tier!=db,env in (a,b),!legacy`.
    ///
    /// # Errors
    /// The text is no label selector.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        Self::of_flag("-l", text)
    }

    /// As [`parse`](Self::parse), for the value of another flag.
    ///
    /// # Errors
    /// The text is no label selector.
    pub fn of_flag(flag: &str, text: &str) -> Result<Self, Failure> {
        let terms = split(text).map(|part| term(part.trim()));
        let terms: Option<Vec<Term>> = terms.collect();
        terms.map(Self).ok_or_else(|| {
            Failure::input(format!("{flag} {text:?} is no label selector")).with_hint(format!(
                "for example: {flag} app=web,tier!=db or {flag} 'env in (a, b),!legacy'"
            ))
        })
    }

    /// The same as `matchExpressions` of a label selector.
    pub fn requirements(&self) -> Vec<Value> {
        let requirement = |term: &Term| match term {
            Term::In(key, values) => json!({"key": key, "operator": "In", "values": values}),
            Term::NotIn(key, values) => json!({"key": key, "operator": "NotIn", "values": values}),
            Term::Exists(key) => json!({"key": key, "operator": "Exists"}),
            Term::Absent(key) => json!({"key": key, "operator": "DoesNotExist"}),
        };
        self.0.iter().map(requirement).collect()
    }

    /// True if labels match.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|term| match term {
            Term::In(key, values) => labels.get(key).is_some_and(|v| values.contains(v)),
            Term::NotIn(key, values) => labels.get(key).is_none_or(|v| !values.contains(v)),
            Term::Exists(key) => labels.contains_key(key),
            Term::Absent(key) => !labels.contains_key(key),
        })
    }
}

/// The parts between commas outside of parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn term(text: &str) -> Option<Term> {
    let name = |text: &str| {
        let text = text.trim();
        let good = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        (!text.is_empty() && text.chars().all(good)).then(|| text.to_owned())
    };
    let value = |text: &str| match text.trim() {
        "" => Some(String::new()),
        text => name(text),
    };
    if let Some(list) = text.strip_suffix(')') {
        let (head, list) = list.split_once('(')?;
        let values: Option<Vec<String>> = list.split(',').map(value).collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        return match operator {
            "in" => Some(Term::In(name(key)?, values?)),
            "notin" => Some(Term::NotIn(name(key)?, values?)),
            _ => None,
        };
    }
    if let Some((key, wanted)) = text.split_once("!=") {
        return Some(Term::NotIn(name(key)?, vec![value(wanted)?]));
    }
    if let Some((key, wanted)) = text.split_once('=') {
        let wanted = wanted.strip_prefix('=').unwrap_or(wanted);
        return Some(Term::In(name(key)?, vec![value(wanted)?]));
    }
    match text.strip_prefix('!') {
        Some(key) => Some(Term::Absent(name(key)?)),
        None => Some(Term::Exists(name(text)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: [bool; 3]) {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect()
        };
        let sets = [
            labels(&[("app", "web")]),
            labels(&[("app", "db")]),
            labels(&[]),
        ];
        let query = LabelQuery::parse(query).unwrap();
        assert_eq!(
            sets.each_ref().map(|labels| query.matches(labels)),
            expected
        );
    }

    #[test]
    fn means_what_kubectl_means() {
        check("app=web", [true, false, false]);
        check("app==web", [true, false, false]);
        check("app!=web", [false, true, true]);
        check("app in (web, db)", [true, true, false]);
        check("app notin (web),app", [false, true, false]);
        check("!app", [false, false, true]);
    }

    #[test]
    fn is_written_as_a_label_selector() {
        let query = LabelQuery::parse("app=web,tier!=db,env in (a, b),!legacy,team").unwrap();
        let expected = json!([
            {"key": "app", "operator": "In", "values": ["web"]},
            {"key": "tier", "operator": "NotIn", "values": ["db"]},
            {"key": "env", "operator": "In", "values": ["a", "b"]},
            {"key": "legacy", "operator": "DoesNotExist"},
            {"key": "team", "operator": "Exists"},
        ]);
        assert_eq!(Value::from(query.requirements()), expected);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "a=b=c", "app in web", "a b", "app within (x)"] {
            assert!(LabelQuery::parse(text).is_err(), "{text}");
        }
    }
}
