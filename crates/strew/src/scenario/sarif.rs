//! `-o sarif`: a result for each expectation that broke, at its line; for wrong input one for each diagnostic.
//!
//! Source: SARIF 2.1.0 (OASIS), section 3.27.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use strew_manifest::read::{Diagnostic, Severity, Sources};

use super::summary::{Breach, Must, Result, RowSum, ScenarioSum, Summary};
use super::text::when;
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

/// The errors of the input.
pub(crate) fn of_diagnostics(said: &[(Vec<Diagnostic>, &Sources)]) -> Value {
    let each = said
        .iter()
        .flat_map(|(all, sources)| all.iter().map(move |diagnostic| (diagnostic, *sources)));
    let results = each.map(|(diagnostic, sources)| {
        let place = diagnostic.place;
        let location = place.and_then(|place| {
            let file = sources.file(place.file).name();
            location(file, Some((place.line, place.column)))
        });
        let mut text = diagnostic.message.clone();
        if let Some(help) = &diagnostic.help {
            text += &format!(" ({help})");
        }
        json!({
            "ruleId": diagnostic.code,
            "level": match diagnostic.severity {
                Severity::Error => "error",
                _ => "warning",
            },
            "message": {"text": text},
            "locations": location.into_iter().collect::<Vec<_>>(),
        })
    });
    log(results.collect())
}

/// The reason why nothing was played.
pub(crate) fn of_failure(text: &str) -> Value {
    log(vec![json!({
        "ruleId": "input",
        "level": "error",
        "message": {"text": text},
        "locations": [],
    })])
}

fn log(results: Vec<Value>) -> Value {
    let rules = results
        .iter()
        .filter_map(|result| result["ruleId"].as_str());
    let rules: BTreeSet<&str> = rules.collect();
    let rules: Vec<Value> = rules.into_iter().map(|id| json!({"id": id})).collect();
    json!({
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "strew", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "results": results,
        }],
    })
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

/// A place in a file; `None` if the text came from standard input.
fn location(file: &str, place: Option<(u32, u32)>) -> Option<Value> {
    if file.is_empty() || file == "-" || file.starts_with('<') {
        return None;
    }
    let mut location = json!({"physicalLocation": {"artifactLocation": {"uri": uri(file)}}});
    if let Some((line, column)) = place {
        location["physicalLocation"]["region"] = json!({"startLine": line, "startColumn": column});
    }
    Some(location)
}

/// A path as a relative reference, escaped for a URI.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_references() {
        assert_eq!(uri("a b/c-1.yaml"), "a%20b/c-1.yaml");
        assert_eq!(location("<stdin>", Some((1, 1))), None);
    }
}
