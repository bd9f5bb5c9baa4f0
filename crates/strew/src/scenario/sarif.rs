//! `-o sarif`: a result for each expectation that broke, at its line.

use serde_json::{Value, json};

use super::summary::{Breach, Must, Result, RowSum, ScenarioSum, Summary};
use super::text::when;
use crate::sarif::{location, log};
use crate::text::time_text;

/// One log for all scenarios; `program` is the name in commands that play a seed again.
pub(super) fn write(summary: &Summary, program: &str) -> Value {
    let mut results = Vec::new();
    for scenario in &summary.scenarios {
        for variant in &scenario.variants {
            let name = format!("{}/{}", scenario.name, variant.name);
            let broken = variant.rows.iter().filter(|row| row.broken > 0);
            results.extend(broken.filter_map(|row| {
                let breach = row.first.as_ref()?;
                let is_wrong = row.decides && variant.must == Must::Hold;
                let again = variant.again(program, breach.moment());
                Some(json!({
                    "ruleId": rule(row),
                    "level": if is_wrong { "error" } else { "note" },
                    "message": {"text": message(&name, row, breach, &again)},
                    "locations": locations(scenario, row),
                }))
            }));
            if variant.result() == Result::BrokeNowhere {
                let text = format!("{name}: must break, and held in all seeds");
                results.push(json!({
                    "ruleId": "must-fail",
                    "level": "error",
                    "message": {"text": text},
                    "locations": [],
                }));
            }
        }
    }
    log(results)
}

/// `spread`, `pods`, …; for a refused verb its name.
fn rule(row: &RowSum) -> &str {
    row.text.split(':').next().unwrap_or_default()
}

fn message(name: &str, row: &RowSum, breach: &Breach, again: &str) -> String {
    let mut text = format!(
        "{name} at {}: {} broke in {} of {} seeds; seed {} at {}: {}",
        when(row),
        row.text,
        row.broken,
        row.n_reached(),
        breach.seed,
        time_text(breach.at),
        breach.why,
    );
    if let Some(cause) = &breach.cause {
        text += &format!(" (just before: {cause})");
    }
    text + &format!("\nagain: {again}")
}

fn locations(scenario: &ScenarioSum, row: &RowSum) -> Vec<Value> {
    // The story is in no file: its first input file is used.
    let place = row.place.filter(|_| !scenario.built_in);
    let place = place.map(|place| (place.line, place.column));
    location(&scenario.file, place).into_iter().collect()
}
