//! Rows of JSON by key, and what changed between two states.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

/// Rows of JSON, each with a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<String, Arc<str>>);

impl Rows {
    /// Sets the row of a key.
    pub fn set(&mut self, key: impl Into<String>, row: &Value) {
        self.0.insert(key.into(), row.to_string().into());
    }

    /// All rows: `{"rows": {KEY: ROW}}`.
    pub fn whole(&self) -> String {
        let mut text = String::from("{\"rows\":");
        write(&mut text, self.0.iter());
        text.push('}');
        text
    }

    /// What makes these rows of those before: `{"set": {KEY: ROW}, "gone": [KEY]}`; `None` if they are equal.
    pub fn since(&self, before: &Self) -> Option<String> {
        let is_new = |(key, row): &(&String, &Arc<str>)| before.0.get(*key) != Some(*row);
        let set: Vec<_> = self.0.iter().filter(is_new).collect();
        let gone = before.0.keys().filter(|key| !self.0.contains_key(*key));
        let gone: Vec<Value> = gone.map(|key| key.as_str().into()).collect();
        if set.is_empty() && gone.is_empty() {
            return None;
        }
        let mut text = String::from("{\"set\":");
        write(&mut text, set.into_iter());
        text.push_str(",\"gone\":");
        text.push_str(&Value::Array(gone).to_string());
        text.push('}');
        Some(text)
    }
}

fn write<'r>(text: &mut String, rows: impl Iterator<Item = (&'r String, &'r Arc<str>)>) {
    text.push('{');
    for (n, (key, row)) in rows.enumerate() {
        let comma = if n > 0 { "," } else { "" };
        // Writing to a String does not fail.
        let _ = write!(text, "{comma}{}:{row}", Value::from(key.as_str()));
    }
    text.push('}');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(all: &[(&str, u32)]) -> Rows {
        let mut rows = Rows::default();
        all.iter()
            .for_each(|(key, n)| rows.set(*key, &json!({"n": n})));
        rows
    }

    #[test]
    fn a_change_makes_the_later_rows_of_the_earlier_ones() {
        let before = rows(&[("a", 1), ("b \"quoted\"", 2), ("c", 3)]);
        let after = rows(&[("b \"quoted\"", 5), ("c", 3), ("d", 4)]);
        let change: Value = serde_json::from_str(&after.since(&before).unwrap()).unwrap();
        let expected = json!({"set": {"b \"quoted\"": {"n": 5}, "d": {"n": 4}}, "gone": ["a"]});
        assert_eq!(change, expected);
        assert_eq!(after.since(&after.clone()), None);
        let whole: Value = serde_json::from_str(&after.whole()).unwrap();
        assert_eq!(whole["rows"]["d"], json!({"n": 4}));
    }
}
