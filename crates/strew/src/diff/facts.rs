//! The values that a report counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The place of a value: the moment and the subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// `rollout/base seed 3 at 30m`, `story/base seed 0 deploy`; the parts sort in the order of the report.
    pub(super) moment: Vec<Part>,
    /// `deployment/web by zone`
    pub(super) what: String,
    /// Of a workload.
    pub(super) namespace: Option<String>,
    /// The counts by a topology key.
    pub(super) key: Option<String>,
}

/// A part of a place: sorts by numbers in the order of the report, then by name.
pub(super) type Part = (usize, String);

/// Each domain, or field, with its value.
pub(super) type Values = BTreeMap<String, Value>;

/// All values of a report.
pub(super) type Facts = BTreeMap<Place, Values>;

impl Place {
    /// The moment is filled in later.
    fn new(what: String, namespace: Option<String>, key: Option<String>) -> Self {
        Self {
            moment: Vec::new(),
            what,
            namespace,
            key,
        }
    }

    /// The workload; `None` for other subjects.
    pub(super) fn workload(&self) -> Option<&str> {
        self.namespace.as_ref()?;
        self.what.split(" by ").next()
    }

    /// The moment as text.
    pub(super) fn moment(&self) -> String {
        let words = self.moment.iter().map(|(_, name)| name.as_str());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }
}

/// The labels of a workload, and those of its pods.
pub(super) type Labels = [BTreeMap<String, String>; 2];

/// The first labels of each workload of a report, by the name that places use.
pub(super) fn labels(report: &Value) -> BTreeMap<String, Labels> {
    let mut known = BTreeMap::new();
    let scenarios = list(&report["scenarios"]);
    let variants = scenarios.flat_map(|scenario| list(&scenario["variants"]));
    let runs = variants.flat_map(|variant| list(&variant["runs"]));
    let steps = runs.flat_map(|run| list(&run["steps"]));
    for workload in steps.flat_map(|step| list(&step["workloads"])) {
        let of = |field: &str| {
            let pairs = workload[field].as_object().into_iter().flatten();
            pairs
                .map(|(key, value)| (key.clone(), text(value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        known
            .entry(name(workload))
            .or_insert_with(|| [of("labels"), of("podLabels")]);
    }
    known
}

/// `deployment/web`, `deployment/web -n shop`.
fn name(workload: &Value) -> String {
    match text(&workload["namespace"]) {
        "" | "default" => text(&workload["of"]).to_owned(),
        namespace => format!("{} -n {namespace}", text(&workload["of"])),
    }
}

/// All values of a report.
pub(super) fn facts(report: &Value) -> Facts {
    let mut facts = Facts::new();
    for (number, scenario) in list(&report["scenarios"]).enumerate() {
        for (place, variant) in list(&scenario["variants"]).enumerate() {
            let name = format!("{}/{}", text(&scenario["name"]), text(&variant["name"]));
            for run in list(&variant["runs"]) {
                let seed = run["seed"].as_u64().unwrap_or(0);
                let seed_order = usize::try_from(seed).unwrap_or(usize::MAX);
                let moment = [
                    (number, String::new()),
                    (place, name.clone()),
                    (seed_order, format!("seed {seed}")),
                ];
                let always = json!([{"name": "always", "expectations": run["always"]}]);
                steps(&always, &moment, &mut facts);
                steps(&run["steps"], &moment, &mut facts);
            }
        }
    }
    facts
}

fn steps(all: &Value, before: &[Part], facts: &mut Facts) {
    for (number, step) in list(all).enumerate() {
        let at = match text(&step["name"]) {
            "" => format!("at {}", text(&step["began"])),
            name => name.to_owned(),
        };
        let mut moment = before.to_vec();
        moment.push((number, at));
        let mut add = |mut place: Place, values: Values| {
            place.moment.clone_from(&moment);
            facts.entry(place).or_default().extend(values);
        };
        for workload in list(&step["workloads"]) {
            self::workload(workload, &mut add);
        }
        for expectation in list(&step["expectations"]) {
            let mut values = Values::new();
            values.insert("held".to_owned(), expectation["held"].clone());
            let spread = &expectation["spread"];
            values.extend(counts(&spread["counts"]));
            if let Some(skew) = spread.get("skew") {
                values.insert("skew".to_owned(), skew.clone());
            }
            let what = text(&expectation["text"]).to_owned();
            add(Place::new(what, None, None), values);
        }
    }
}

fn workload(workload: &Value, add: &mut impl FnMut(Place, Values)) {
    let of = name(workload);
    let mut values = Values::new();
    for field in ["replicas", "ready"] {
        values.insert(field.to_owned(), workload[field].clone());
    }
    let pending = list(&workload["pending"]).filter_map(|group| group["count"].as_u64());
    values.insert("Pending".to_owned(), pending.sum::<u64>().into());
    let namespace = text(&workload["namespace"]).to_owned();
    add(
        Place::new(of.clone(), Some(namespace.clone()), None),
        values,
    );
    for spread in list(&workload["spread"]) {
        // With matchLabelKeys a constraint counts the newest revision alone, and a rollout that finds no place would look
        // like the loss of every pod: its own pods are what moved.
        let own = spread.pointer("/own/counts");
        let mut values = counts(own.unwrap_or(&spread["counts"]));
        values.insert("skew".to_owned(), spread["skew"].clone());
        let key = text(&spread["by"]).to_owned();
        let what = format!("{of} by {key}");
        add(Place::new(what, Some(namespace.clone()), Some(key)), values);
    }
}

/// Pods per domain.
fn counts(map: &Value) -> Values {
    let all = map.as_object().into_iter().flatten();
    let each = all.map(|(domain, n)| (format!("in {domain}"), n.clone()));
    each.collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
