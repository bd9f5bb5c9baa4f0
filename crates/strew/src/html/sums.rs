//! What a page has instead of long lists.

use serde_json::{Value, json};
use strew_view::heat;

/// With more domains, a spread has its counts by how often they occur.
const DOMAINS_MAX: usize = 100;

/// A spread as JSON: the counts of many domains become `groups`.
pub(crate) fn fold(spread: &mut Value) {
    let counts = spread["counts"].as_object();
    let Some(counts) = counts.filter(|counts| counts.len() > DOMAINS_MAX) else {
        return;
    };
    let domains = spread["domains"].as_u64().unwrap_or_default();
    let counts = counts.values().filter_map(Value::as_i64);
    let groups = heat::folded(counts, usize::try_from(domains).unwrap_or(usize::MAX));
    spread["counts"] = json!({});
    spread["groups"] = json!(groups);
    if let Some(own) = spread.get_mut("own").filter(|own| own.is_object()) {
        own["counts"] = json!({});
    }
}

/// A report as JSON without the nodes and placements of its steps, and with [`fold`]ed spreads.
pub(super) fn shorten(report: &mut Value) {
    let scenarios = list(report, "scenarios");
    let variants = scenarios.flat_map(|scenario| list(scenario, "variants"));
    let runs = variants.flat_map(|variant| list(variant, "runs"));
    for step in runs.flat_map(|run| list(run, "steps")) {
        if let Some(step) = step.as_object_mut() {
            step.remove("nodes");
            step.remove("placements");
        }
        let workloads = list(step, "workloads");
        workloads
            .flat_map(|workload| list(workload, "spread"))
            .for_each(fold);
    }
}

fn list<'a>(of: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    let found = of.get_mut(field).and_then(Value::as_array_mut);
    found.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_gets_shorter_and_keeps_its_numbers() {
        let counts = |n: usize| -> Value {
            let counts = (0..n).map(|i| (format!("node-{i}"), json!(i % 2 + 1)));
            Value::Object(counts.collect())
        };
        let spread = |n: usize, domains: usize| json!({"by": "k", "domains": domains, "counts": counts(n), "skew": 2, "own": {"counts": counts(n), "skew": 1}});
        let steps = |workload: Value, more: Value| {
            let mut step = json!({"name": "deploy", "workloads": [workload]});
            if let (Some(step), Some(more)) = (step.as_object_mut(), more.as_object()) {
                step.extend(more.clone());
            }
            json!({"scenarios": [{"variants": [{"runs": [{"steps": [step]}]}]}]})
        };
        let mut report = steps(
            json!({"spread": [spread(101, 103), spread(3, 3)]}),
            json!({"nodes": [1], "placements": [2]}),
        );
        shorten(&mut report);
        let mut folded = spread(0, 103);
        folded["groups"] = json!([[2, 50], [1, 51], [0, 2]]);
        let wanted = steps(json!({"spread": [folded, spread(3, 3)]}), json!({}));
        assert_eq!(report, wanted);
    }
}
