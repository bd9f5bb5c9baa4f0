//! Compares an outcome with those of a real control plane.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::outcome::{BY_NAME, Outcome};

/// A fact that never held on a real control plane.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Disagreement {
    /// What the fact is about.
    pub(crate) about: String,
    /// All values of the fact on real control planes.
    pub(crate) real: BTreeSet<String>,
    /// The values here that no real control plane had.
    pub(crate) here: BTreeSet<String>,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |set: &BTreeSet<String>| {
            let quoted: Vec<String> = set.iter().map(|s| format!("{s:?}")).collect();
            quoted.join(" or ")
        };
        write!(
            f,
            "{} {} instead of {}",
            self.about,
            list(&self.here),
            list(&self.real)
        )
    }
}

/// What `here` shows and `real` never did; both are outcomes of the same step, from several runs.
///
/// A fact that is the same in all real runs must be that one here; one that varies must stay within what was seen, and
/// each number of it between the least and the most that were seen in its place.
/// Facts that name domains are compared only if they never vary: a few runs do not show all ways in which equal
/// domains can be filled, and the sorted counts say the rest.
pub(crate) fn disagreements(real: &[Outcome], here: &[Outcome]) -> Vec<Disagreement> {
    let here = seen(here);
    let mut found = Vec::new();
    let mut real = seen(real);
    let none = BTreeSet::from(["nothing".to_owned()]);
    for about in here.keys() {
        real.entry(about.clone()).or_insert_with(|| none.clone());
    }
    for (about, real) in real {
        let here = here.get(&about).unwrap_or(&none);
        let range = Range::of(&real);
        let is_new = |value: &&String| !range.as_ref().is_some_and(|range| range.holds(value));
        let new: BTreeSet<String> = here.difference(&real).filter(is_new).cloned().collect();
        let is_symmetric = about.contains(BY_NAME) && real.len() > 1;
        if !new.is_empty() && !is_symmetric {
            found.push(Disagreement {
                about,
                real,
                here: new,
            });
        }
    }
    found
}

/// The range of the values of a fact, place by place: a number is one place, `5/4/3` has three.
struct Range(Vec<(u64, u64)>);

impl Range {
    /// `None` unless all values are such numbers, with the same number of places.
    fn of(values: &BTreeSet<String>) -> Option<Self> {
        let mut places: Option<Vec<(u64, u64)>> = None;
        for value in values {
            let value = numbers(value)?;
            let known = places.get_or_insert_with(|| value.iter().map(|&n| (n, n)).collect());
            if known.len() != value.len() {
                return None;
            }
            for (place, number) in known.iter_mut().zip(value) {
                *place = (place.0.min(number), place.1.max(number));
            }
        }
        places.map(Self)
    }

    fn holds(&self, value: &str) -> bool {
        let Some(value) = numbers(value) else {
            return false;
        };
        let mut places = self.0.iter().zip(&value);
        self.0.len() == value.len() && places.all(|(&(min, max), n)| (min..=max).contains(n))
    }
}

fn numbers(value: &str) -> Option<Vec<u64>> {
    value.split('/').map(|number| number.parse().ok()).collect()
}

/// The facts that differ between outcomes, with all their values.
pub(crate) fn varying(outcomes: &[Outcome]) -> BTreeMap<String, BTreeSet<String>> {
    let mut facts = seen(outcomes);
    facts.retain(|_, values| values.len() > 1);
    facts
}

fn seen(outcomes: &[Outcome]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let facts: Vec<BTreeMap<String, String>> = outcomes.iter().map(Outcome::facts).collect();
    for about in facts.iter().flat_map(BTreeMap::keys) {
        let values = facts.iter().map(|f| match f.get(about) {
            Some(value) => value.clone(),
            None => "nothing".to_owned(),
        });
        all.entry(about.clone()).or_insert_with(|| values.collect());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::outcome::Workload;

    fn outcome(ready: u64, counts: &[u64]) -> Outcome {
        let domains = counts.iter().enumerate();
        let domains = domains.map(|(i, &n)| (format!("n-{i}"), n)).collect();
        let workload = Workload {
            ready,
            bound: BTreeMap::from([("host".to_owned(), domains)]),
            ..Workload::default()
        };
        Outcome {
            workloads: BTreeMap::from([("deployment/web".to_owned(), workload)]),
            ..Outcome::default()
        }
    }

    #[track_caller]
    fn check(real: &[Outcome], here: &[Outcome], expected: &[&str]) {
        let found = disagreements(real, here);
        let abouts: Vec<&str> = found.iter().map(|d| d.about.as_str()).collect();
        assert_eq!(abouts, expected);
    }

    #[test]
    fn what_is_always_so_must_be_so() {
        let real = [outcome(4, &[2, 2]), outcome(4, &[2, 2])];
        check(&real, &[outcome(4, &[2, 2])], &[]);
        check(&real, &[outcome(3, &[2, 2])], &["deployment/web ready"]);
        let both = ["deployment/web by host", "deployment/web by name of host"];
        check(&real, &[outcome(4, &[2, 2]), outcome(4, &[3, 1])], &both);
    }

    #[test]
    fn what_varies_must_stay_within() {
        let real = [outcome(4, &[3, 1, 0]), outcome(4, &[2, 1, 1])];
        check(&real, &[outcome(4, &[0, 1, 3])], &[]);
        check(&real, &[outcome(4, &[1, 2, 1])], &[]);
        check(
            &real,
            &[outcome(5, &[4, 1, 0])],
            &["deployment/web by host", "deployment/web ready"],
        );
        check(
            &real,
            &[outcome(4, &[2, 2, 0])],
            &["deployment/web by host"],
        );
    }

    #[test]
    fn numbers_stay_between_the_least_and_the_most() {
        let real = [outcome(2, &[5, 4, 3]), outcome(6, &[7, 4, 1])];
        check(&real, &[outcome(4, &[6, 4, 2])], &[]);
        check(&real, &[outcome(7, &[7, 4, 1])], &["deployment/web ready"]);
        check(
            &real,
            &[outcome(6, &[6, 5, 1])],
            &["deployment/web by host"],
        );
        check(&real, &[outcome(6, &[7, 5])], &["deployment/web by host"]);
    }

    #[test]
    fn a_workload_that_is_not_there_is_a_disagreement_on_either_side() {
        let some = [outcome(0, &[])];
        let none = [Outcome::default()];
        assert!(!disagreements(&some, &none).is_empty());
        assert!(!disagreements(&none, &some).is_empty());
    }

    #[test]
    fn only_what_differs_varies() {
        let outcomes = [outcome(4, &[2, 1]), outcome(4, &[1, 2])];
        let varying: Vec<String> = varying(&outcomes).into_keys().collect();
        assert_eq!(varying, ["deployment/web by name of host"]);
    }
}
