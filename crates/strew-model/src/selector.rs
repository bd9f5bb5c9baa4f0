//! Label selectors, already parsed.
//!
//! Source: `metav1.LabelSelectorAsSelector` and `labels.Selector`, v1.36; spec/scheduler §0.

use crate::symbol::{Holds, Marks};
use crate::{Interner, Labels, Symbol};

/// Selects label sets.
///
/// Kubernetes distinguishes a missing selector (matches nothing) from an empty one (matches everything), and several
/// plugins treat an empty one as "count nothing". So this type distinguishes them too.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Selector {
    /// A missing `labelSelector`: matches no labels at all, and is not "empty".
    Nothing,
    /// All requirements hold; without any, every label set matches and the selector is "empty".
    AllOf(Box<[Requirement]>),
}

/// One requirement of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Requirement {
    /// The label's key.
    pub key: Symbol,
    /// The condition on its value.
    pub operator: Operator,
}

/// The condition of a requirement on a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// Present, with one of these values (sorted).
    In(Box<[Symbol]>),
    /// Absent, or with none of these values (sorted).
    NotIn(Box<[Symbol]>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

impl Requirement {
    /// `key In (values)`.
    pub fn is_in(key: Symbol, values: Vec<Symbol>) -> Self {
        let operator = Operator::In(sorted(values));
        Self { key, operator }
    }

    /// `key NotIn (values)`.
    pub fn is_not_in(key: Symbol, values: Vec<Symbol>) -> Self {
        let operator = Operator::NotIn(sorted(values));
        Self { key, operator }
    }

    /// True if `labels` meet this requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.operator.accepts(labels.get(self.key))
    }
}

impl Operator {
    /// True if a label with this value, or without one (`None`), is accepted.
    pub fn accepts(&self, value: Option<Symbol>) -> bool {
        match self {
            Self::In(values) => value.is_some_and(|v| values.contains(&v)),
            Self::NotIn(values) => value.is_none_or(|v| !values.contains(&v)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }

    /// In the form of `kubectl -l`: `key=value`, `key in (a,b)`.
    pub fn text(&self, key: Symbol, names: &Interner) -> String {
        let key = names.text(key);
        let list = |values: &[Symbol]| {
            let mut texts: Vec<&str> = values.iter().map(|&v| names.text(v)).collect();
            texts.sort_unstable();
            texts.join(",")
        };
        match self {
            Self::In(values) if values.len() == 1 => format!("{key}={}", list(values)),
            Self::In(values) => format!("{key} in ({})", list(values)),
            Self::NotIn(values) if values.len() == 1 => format!("{key}!={}", list(values)),
            Self::NotIn(values) => format!("{key} notin ({})", list(values)),
            Self::Exists => key.to_owned(),
            Self::DoesNotExist => format!("!{key}"),
        }
    }
}

fn sorted(mut values: Vec<Symbol>) -> Box<[Symbol]> {
    values.sort_unstable();
    values.dedup();
    values.into()
}

impl Selector {
    /// A label without which it matches nothing, if one value of a key is asked for.
    pub fn a_label(&self) -> Option<(Symbol, Symbol)> {
        let Self::AllOf(requirements) = self else {
            return None;
        };
        requirements
            .iter()
            .find_map(|requirement| match &requirement.operator {
                Operator::In(values) => match &**values {
                    [value] => Some((requirement.key, *value)),
                    _ => None,
                },
                _ => None,
            })
    }

    /// A selector from requirements in any order; equal sets of requirements make equal selectors.
    pub fn all_of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_unstable();
        requirements.dedup();
        Self::AllOf(requirements.into())
    }

    /// `key = value` for every pair.
    pub fn of_labels(pairs: impl IntoIterator<Item = (Symbol, Symbol)>) -> Self {
        let is = |(key, value)| Requirement::is_in(key, vec![value]);
        Self::all_of(pairs.into_iter().map(is).collect())
    }

    /// True if the selector selects `labels`.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::AllOf(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// True for `{}`. A missing selector is not empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::AllOf(requirements) if requirements.is_empty())
    }

    /// In the form of `kubectl -l`, sorted by text; `<none>` for a missing selector, `{}` for an empty one.
    pub fn text(&self, names: &Interner) -> String {
        let Self::AllOf(requirements) = self else {
            return "<none>".to_owned();
        };
        if requirements.is_empty() {
            return "{}".to_owned();
        }
        let texts = requirements.iter().map(|r| r.operator.text(r.key, names));
        let mut texts: Vec<String> = texts.collect();
        // The requirements are sorted by symbol, which is the order in which they were interned.
        texts.sort_unstable();
        texts.join(",")
    }

    /// This selector with further requirements. A missing selector stays missing.
    #[must_use]
    pub fn and(&self, more: impl IntoIterator<Item = Requirement>) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::AllOf(own) => Self::all_of(own.iter().cloned().chain(more).collect()),
        }
    }
}

impl Holds for Selector {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Nothing => {}
            Self::AllOf(requirements) => requirements.mark(marks),
        }
    }
}

impl Holds for Requirement {
    fn mark(&self, marks: &mut Marks) {
        let Self { key, operator } = self;
        key.mark(marks);
        operator.mark(marks);
    }
}

impl Holds for Operator {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::In(values) | Self::NotIn(values) => values.mark(marks),
            Self::Exists | Self::DoesNotExist => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn each_operator_means_what_kubernetes_means() {
        let mut names = Interner::new();
        let (k, a, b) = (names.intern("k"), names.intern("a"), names.intern("b"));
        let none = Labels::default();
        let is = |v| Labels::new(vec![(k, v)]);
        let of = |operator| Selector::all_of(vec![Requirement { key: k, operator }]);
        let cases = [
            (Selector::Nothing, [false, false, false]),
            (Selector::all_of(vec![]), [true, true, true]),
            (of(Operator::In([a].into())), [false, true, false]),
            (of(Operator::NotIn([a].into())), [true, false, true]),
            (of(Operator::Exists), [false, true, true]),
            (of(Operator::DoesNotExist), [true, false, false]),
        ];
        for (selector, expected) in cases {
            let got = [&none, &is(a), &is(b)].map(|labels| selector.matches(labels));
            assert_eq!(got, expected, "{selector:?}");
        }
    }

    #[test]
    fn nothing_stays_nothing_and_order_does_not_matter() {
        let mut names = Interner::new();
        let (k, l, a) = (names.intern("k"), names.intern("l"), names.intern("a"));
        let more = || [Requirement::is_in(l, vec![a])];
        assert_eq!(Selector::Nothing.and(more()), Selector::Nothing);
        assert!(!Selector::Nothing.is_empty());
        let one = Selector::of_labels([(k, a)]).and(more());
        assert_eq!(one, Selector::of_labels([(l, a), (k, a)]));
    }
}
