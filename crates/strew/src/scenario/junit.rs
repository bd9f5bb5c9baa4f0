//! `-o junit`: a suite for each variant, a case for each expectation; for wrong input a case for each error.

use std::time::Duration;

use crate::junit::{self, Case, Suite};
use strew_suite::clock::clock;
use strew_suite::summary::{Breach, Must, Result, RowSum, ScenarioSum, Summary, VariantSum};

/// One file for all scenarios, after the findings, if there are any or nothing else is. `program` is the name in commands that play a seed again up to its
/// breach.
pub(super) fn write(summary: &Summary, program: &str) -> String {
    let each = summary.scenarios.iter();
    let each = each.flat_map(|scenario| scenario.variants.iter().map(move |v| (scenario, v)));
    let suites = each.map(|(scenario, variant)| {
        let name = format!("{}/{}", name_of(scenario), variant.name);
        Suite {
            cases: cases(variant, &name, program),
            name,
            file: scenario.file.clone(),
            time: Duration::from_millis(variant.virtual_milliseconds).as_secs_f64(),
        }
    });
    let mut suites: Vec<Suite> = suites.collect();
    let is_empty = suites.iter().all(|suite| suite.cases.is_empty());
    let findings = summary.remarks();
    if is_empty || !findings.is_empty() {
        let file = &summary.first_file;
        suites.insert(
            0,
            junit::of_findings(&findings, file, summary.fails_on_warnings),
        );
    }
    junit::write("strew simulate", &suites)
}

fn name_of(scenario: &ScenarioSum) -> &str {
    match scenario.name.as_str() {
        "" => &scenario.file,
        name => name,
    }
}

fn cases(variant: &VariantSum, class: &str, program: &str) -> Vec<Case> {
    let told = variant.rows.iter();
    let told = told.filter(|row| !row.verb || row.broken > 0);
    let mut cases: Vec<Case> = told.map(|row| case(row, variant, class, program)).collect();
    if variant.must == Must::Fail {
        let message = format!("it broke in none of {} seeds", variant.n_played());
        let result = variant.result();
        cases.push(Case {
            class: class.to_owned(),
            name: "breaks in some seed, as it must".to_owned(),
            failure: (result == Result::BrokeNowhere).then(|| (message, String::new())),
            is_skipped: result == Result::Unknown,
            note: None,
        });
    }
    cases
}

fn case(row: &RowSum, variant: &VariantSum, class: &str, program: &str) -> Case {
    let n_reached = row.n_reached();
    let breach = row.first.as_ref().filter(|_| row.broken > 0);
    let story = breach.map(|breach| {
        let again = variant.again(program, breach.moment());
        story(row, breach, &again)
    });
    let message = format!("broke in {} of {n_reached} seeds", row.broken);
    let is_wrong = row.broken > 0 && row.decides && variant.must == Must::Hold;
    let (failure, note) = match (is_wrong, story) {
        (true, story) => (Some((message, story.unwrap_or_default())), None),
        (false, Some(story)) => (None, Some(format!("{message}: {story}"))),
        (false, None) => (None, None),
    };
    Case {
        class: class.to_owned(),
        name: format!("{} {}", row.when(), row.text),
        failure,
        is_skipped: row.held + row.broken == 0,
        note,
    }
}

/// The first breach, the broken seeds, and the command.
fn story(row: &RowSum, breach: &Breach, again: &str) -> String {
    let cause = breach.cause.as_ref();
    let cause = cause.map_or(String::new(), |cause| format!(" (just before: {cause})"));
    let at = clock(breach.at);
    let mut story = format!("seed {} at {at}: {}{cause}", breach.seed, breach.why);
    if let [_, _, ..] = row.seeds_broken.as_slice() {
        let seeds = row.seeds_broken.iter().map(|at| at.seed.to_string());
        let seeds: Vec<String> = seeds.collect();
        story.push_str(&format!("\nseeds that broke: {}", seeds.join(", ")));
        match row.n_more_broken() {
            0 => {}
            n => story.push_str(&format!(" and {n} more")),
        }
    }
    story.push_str(&format!("\nagain: {again}"));
    story
}
