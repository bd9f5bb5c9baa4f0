//! `-o sarif`: a result for each finding, and for each expectation that broke, at its line.

use serde_json::Value;
use strew_manifest::read::Severity;

use crate::sarif::{Found, log, of_findings};
use crate::text::time_text;
use strew_suite::summary::{Breach, Must, Result, RowSum, Summary};

/// One log for all scenarios; `program` is the name in commands that play a seed again.
pub(super) fn write(summary: &Summary, program: &str) -> Value {
    let mut found = of_findings(&summary.remarks(), &summary.first_file);
    for scenario in &summary.scenarios {
        // The story is in no file.
        let file = match scenario.built_in {
            true => &summary.first_file,
            false => &scenario.file,
        };
        for variant in &scenario.variants {
            let name = format!("{}/{}", scenario.name, variant.name);
            let broken = variant.rows.iter().filter(|row| row.broken > 0);
            found.extend(broken.filter_map(|row| {
                let breach = row.first.as_ref()?;
                let is_wrong = row.decides && variant.must == Must::Hold;
                let again = variant.again(program, breach.moment());
                let place = row.place.filter(|_| !scenario.built_in);
                Some(Found {
                    rule: rule(row).to_owned(),
                    level: match is_wrong {
                        true => Severity::Error,
                        false => Severity::Note,
                    },
                    text: message(&name, row, breach, &again),
                    file: file.clone(),
                    place: place.map(|place| (place.line, place.column)),
                })
            }));
            if variant.result() == Result::BrokeNowhere {
                found.push(Found {
                    rule: "must-fail".to_owned(),
                    level: Severity::Error,
                    text: format!("{name}: must break, and held in all seeds"),
                    file: file.clone(),
                    place: None,
                });
            }
        }
    }
    log(&found)
}

/// `spread`, `pods`, …; for a refused verb its name.
fn rule(row: &RowSum) -> &str {
    row.text.split(':').next().unwrap_or_default()
}

fn message(name: &str, row: &RowSum, breach: &Breach, again: &str) -> String {
    let mut text = format!(
        "{name} at {}: {} broke in {} of {} seeds; seed {} at {}: {}",
        row.when(),
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
