//! Label selectors over labels of the wire.

use std::collections::{BTreeMap, HashMap};

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

/// Selectors with what each belongs to, found by labels without asking every selector.
#[derive(Debug, Clone)]
pub struct Selections<T> {
    all: Vec<(Selection, T)>,
    /// By key and value of a label, the places of selectors that select nothing without it.
    by_label: HashMap<String, HashMap<String, Vec<usize>>>,
    /// The places of the other selectors.
    others: Vec<usize>,
}

impl<T> Default for Selections<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            by_label: HashMap::new(),
            others: Vec::new(),
        }
    }
}

impl<T> Selections<T> {
    /// Adds a selector.
    pub fn push(&mut self, selection: Selection, of: T) {
        let place = self.all.len();
        let one_of = selection
            .0
            .iter()
            .find_map(|requirement| match requirement {
                Requirement::In(key, values) => Some((key, values)),
                _ => None,
            });
        match one_of {
            Some((key, values)) => {
                let by_value = self.by_label.entry(key.clone()).or_default();
                for value in values {
                    by_value.entry(value.clone()).or_default().push(place);
                }
            }
            None => self.others.push(place),
        }
        self.all.push((selection, of));
    }

    /// What the selectors of these labels belong to, in the order in which they were added.
    pub fn of(&self, labels: &Pairs) -> impl Iterator<Item = &T> {
        self.places(labels)
            .into_iter()
            .map(|place| &self.all[place].1)
    }

    /// As [`of`](Self::of), to change it.
    pub fn change(&mut self, labels: &Pairs, mut change: impl FnMut(&mut T)) {
        for place in self.places(labels) {
            change(&mut self.all[place].1);
        }
    }

    /// What all selectors belong to, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|(_, of)| of)
    }

    fn places(&self, labels: &Pairs) -> Vec<usize> {
        let by_label = labels.iter().filter_map(|(key, value)| {
            let places = self.by_label.get(key)?.get(value)?;
            Some(places.as_slice())
        });
        let candidates = by_label.chain([self.others.as_slice()]).flatten();
        let selects = |place: &&usize| self.all[**place].0.matches(labels);
        let mut places: Vec<usize> = candidates.filter(selects).copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each selector that matches is found, once, and in order.
    #[test]
    fn selectors_are_found_by_labels() {
        let selectors = [
            json!({"matchLabels": {"app": "web"}}),
            json!({}),
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api", "web"]}]}),
            json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
            json!({"matchLabels": {"app": "web", "tier": "b"}}),
            json!({"matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["b"]},
                {"key": "app", "operator": "In", "values": ["api"]},
            ]}),
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": []}]}),
        ];
        let parsed =
            selectors.map(|wire| Selection::of(&serde_json::from_value(wire).unwrap()).unwrap());
        let mut selections = Selections::default();
        for (place, selection) in parsed.iter().enumerate() {
            selections.push(selection.clone(), place);
        }
        for labels in [
            &[][..],
            &[("app", "web")],
            &[("app", "api")],
            &[("app", "web"), ("tier", "b")],
            &[("app", "api"), ("tier", "a")],
            &[("tier", "web")],
        ] {
            let labels: Pairs = labels
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            let one_by_one = parsed
                .iter()
                .enumerate()
                .filter(|(_, s)| s.matches(&labels));
            let one_by_one: Vec<usize> = one_by_one.map(|(place, _)| place).collect();
            assert_eq!(
                selections.of(&labels).copied().collect::<Vec<_>>(),
                one_by_one,
                "{labels:?}"
            );
        }
    }

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
