//! Label selectors over labels of the wire.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::object::Pairs;

/// A parsed label selector; without requirements it selects everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

impl Selection {
    /// Parses a selector; `None` if an operator is unknown.
    pub fn of(wire: &LabelSelector) -> Option<Self> {
        let pairs = wire.match_labels.iter().flatten();
        let mut all = Self::of_pairs_iter(pairs);
        for expression in wire.match_expressions.iter().flatten() {
            let key = expression.key.clone();
            let values = expression.values.clone().unwrap_or_default();
            all.0.push(match expression.operator.as_str() {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::Absent(key),
                _ => return None,
            });
        }
        Some(all)
    }

    /// A selector of equal labels, as in Services and ReplicationControllers.
    pub fn of_pairs(pairs: &BTreeMap<String, String>) -> Self {
        Self::of_pairs_iter(pairs.iter())
    }

    fn of_pairs_iter<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Self {
        let is =
            |(key, value): (&String, &String)| Requirement::In(key.clone(), vec![value.clone()]);
        Self(pairs.map(is).collect())
    }

    /// True if it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if it selects these labels.
    pub fn matches(&self, labels: &Pairs) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => labels.get(key).is_some_and(|v| values.contains(v)),
            Requirement::NotIn(key, values) => labels.get(key).is_none_or(|v| !values.contains(v)),
            Requirement::Exists(key) => labels.contains_key(key),
            Requirement::Absent(key) => !labels.contains_key(key),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operators() {
        let labels: Pairs = [("app", "web"), ("tier", "a")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        for (expression, expected) in [
            (
                json!({"key": "tier", "operator": "In", "values": ["a", "b"]}),
                true,
            ),
            (
                json!({"key": "tier", "operator": "NotIn", "values": ["a"]}),
                false,
            ),
            (
                json!({"key": "zone", "operator": "NotIn", "values": ["a"]}),
                true,
            ),
            (json!({"key": "tier", "operator": "Exists"}), true),
            (json!({"key": "zone", "operator": "Exists"}), false),
            (json!({"key": "zone", "operator": "DoesNotExist"}), true),
        ] {
            let wire = json!({"matchLabels": {"app": "web"}, "matchExpressions": [expression]});
            let selection = Selection::of(&serde_json::from_value(wire).unwrap()).unwrap();
            assert_eq!(selection.matches(&labels), expected, "{expression}");
        }
        let bad = json!({"matchExpressions": [{"key": "tier", "operator": "Like"}]});
        assert_eq!(Selection::of(&serde_json::from_value(bad).unwrap()), None);
        assert!(Selection::default().is_empty() && Selection::default().matches(&labels));
    }
}
