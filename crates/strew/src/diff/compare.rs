//! What two reports count differently, and whether that is better.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use strew_view::natural_order::natural_order;

use super::facts::{Facts, Place, Values};

/// What two reports differ in.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// A summary of each step of both reports.
    pub(super) steps: Vec<StepSummary>,
    /// The changes, step by step in the order of the reports, the worst first.
    pub(super) moved: Vec<Moved>,
}

/// The results of a step, before and after.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepSummary {
    pub(super) moment: String,
    /// Pending pods of all workloads.
    pub(super) pending: Pair,
    pub(super) by: Vec<KeySummary>,
    /// Keys that only one of the reports counts, so that they cannot be compared.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) only_before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) only_after: Vec<String>,
}

/// A number in both reports.
#[derive(Debug, Default, Clone, Copy, Serialize, schemars::JsonSchema)]
pub(super) struct Pair {
    pub(super) before: i64,
    pub(super) after: i64,
}

/// The skews of all workloads by a key.
#[derive(Debug, Default, Clone, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeySummary {
    pub(super) key: String,
    /// Workloads with a smaller skew than before, with a larger one, and with the same one.
    pub(super) better: usize,
    pub(super) worse: usize,
    pub(super) same: usize,
    /// Over all of these workloads.
    pub(super) mean_skew_before: f64,
    pub(super) mean_skew_after: f64,
}

/// A place with a change.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct Moved {
    pub(super) moment: String,
    pub(super) what: String,
    /// How much worse it is, in pods of skew or Pending pods; negative if better.
    pub(super) worse: i64,
    pub(super) changes: Vec<Change>,
}

/// A value that differs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(super) struct Change {
    pub(super) of: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// A claim that does not hold any more is worse than any count.
const BROKEN: i64 = 1_000_000;

/// Compares what both reports count. For a workload in only one of the reports, everything has changed.
pub(super) fn compare(before: &Facts, after: &Facts) -> Difference {
    let mut places: Vec<&Place> = before.keys().chain(after.keys()).collect();
    places.sort();
    places.dedup();
    let mut difference = Difference::default();
    for step in places.chunk_by(|a, b| a.moment == b.moment) {
        let mut summary = StepSummary {
            moment: step[0].moment(),
            ..StepSummary::default()
        };
        let mut keys: BTreeMap<&str, KeySummary> = BTreeMap::new();
        let mut moved = Vec::new();
        for place in step {
            let sides = [before.get(place), after.get(place)];
            if let Some(key) = &place.key
                && is_one_sided(place, sides, [before, after])
            {
                let only = match sides[0] {
                    Some(_) => &mut summary.only_before,
                    None => &mut summary.only_after,
                };
                if !only.contains(key) {
                    only.push(key.clone());
                }
                continue;
            }
            summary.add(place, sides, &mut keys);
            moved.extend(self::moved(place, sides));
        }
        summary.by = keys.into_values().map(KeySummary::meant).collect();
        // The sort is stable: equally bad changes stay in the order of the report.
        moved.sort_by_key(|moved| std::cmp::Reverse(moved.worse));
        difference.steps.push(summary);
        difference.moved.extend(moved);
    }
    difference
}

/// True if only one of the reports counts a key for a workload that both have.
fn is_one_sided(place: &Place, sides: [Option<&Values>; 2], facts: [&Facts; 2]) -> bool {
    let missing = match sides {
        [Some(_), None] => facts[1],
        [None, Some(_)] => facts[0],
        _ => return false,
    };
    let of = place.what.split(" by ").next().unwrap_or_default();
    missing.contains_key(&Place {
        what: of.to_owned(),
        key: None,
        ..place.clone()
    })
}

impl StepSummary {
    fn add<'a>(
        &mut self,
        place: &'a Place,
        [before, after]: [Option<&Values>; 2],
        keys: &mut BTreeMap<&'a str, KeySummary>,
    ) {
        let number = |values: Option<&Values>, name: &str| values?.get(name)?.as_i64();
        let Some(key) = &place.key else {
            self.pending.before += number(before, "Pending").unwrap_or(0);
            self.pending.after += number(after, "Pending").unwrap_or(0);
            return;
        };
        let skews = number(before, "skew").zip(number(after, "skew"));
        let Some((before, after)) = skews else {
            return;
        };
        let summary = keys.entry(key).or_default();
        summary.key.clone_from(key);
        *match after.cmp(&before) {
            std::cmp::Ordering::Less => &mut summary.better,
            std::cmp::Ordering::Greater => &mut summary.worse,
            std::cmp::Ordering::Equal => &mut summary.same,
        } += 1;
        summary.mean_skew_before += before as f64;
        summary.mean_skew_after += after as f64;
    }
}

impl KeySummary {
    /// Turns sums into means.
    fn meant(mut self) -> Self {
        let n = (self.better + self.worse + self.same).max(1) as f64;
        self.mean_skew_before /= n;
        self.mean_skew_after /= n;
        self
    }
}

fn moved(place: &Place, [before, after]: [Option<&Values>; 2]) -> Option<Moved> {
    let empty = Values::new();
    let (before, after) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_by(|a, b| natural_order(a, b));
    names.dedup();
    let changes = names.into_iter().filter_map(|name| {
        // A missing domain has no pods, unless the whole place is unknown.
        let is_domain = name.starts_with("in ");
        let of = |values: &Values| match values.get(name) {
            Some(value) => value.clone(),
            None if is_domain && !values.is_empty() => json!(0),
            None => Value::Null,
        };
        let (before, after) = (of(before), of(after));
        (before != after).then(|| Change {
            of: name.clone(),
            before,
            after,
        })
    });
    let changes: Vec<Change> = changes.collect();
    (!changes.is_empty()).then(|| Moved {
        moment: place.moment(),
        what: place.what.clone(),
        worse: changes.iter().map(worse).sum(),
        changes,
    })
}

/// How much worse a change is: more skew, more Pending pods, a claim that does not hold any more.
fn worse(change: &Change) -> i64 {
    let number = |value: &Value| match value {
        Value::Bool(held) => i64::from(!held) * BROKEN,
        value => value.as_i64().unwrap_or(0),
    };
    match change.of.as_str() {
        "skew" | "Pending" | "held" => number(&change.after) - number(&change.before),
        _ => 0,
    }
}
