//! `-o junit`: a suite for each variant, a case for each expectation; for wrong input a case for each error.

use std::fmt::Write;
use std::time::Duration;

use super::clock::clock;
use super::summary::{Breach, Must, Result, RowSum, ScenarioSum, Summary, VariantSum};
use super::text::when;
use crate::junit::escaped;

/// One file for all scenarios. `time` is virtual, the sum over all seeds: real times would differ from run to run.
/// `program` is the name in commands that play a seed again up to its breach.
pub(super) fn write(summary: &Summary, program: &str) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let mut body = String::new();
    let (mut tests, mut failures) = (0, 0);
    for scenario in &summary.scenarios {
        for variant in &scenario.variants {
            let cases = cases(variant, program);
            let failed = cases.iter().filter(|case| case.failure.is_some()).count();
            tests += cases.len();
            failures += failed;
            let name = format!("{}/{}", name_of(scenario), variant.name);
            let time = Duration::from_millis(variant.virtual_milliseconds).as_secs_f64();
            element(&mut body, &name, &scenario.file, &cases, (failed, time));
        }
    }
    let _ = writeln!(
        out,
        "<testsuites name=\"strew simulate\" tests=\"{tests}\" failures=\"{failures}\">"
    );
    out.push_str(&body);
    out.push_str("</testsuites>\n");
    out
}

struct Case {
    name: String,
    /// The error in a line, and the complete text.
    failure: Option<(String, String)>,
    is_skipped: bool,
    /// Further information on a case that is not a failure.
    note: Option<String>,
}

fn name_of(scenario: &ScenarioSum) -> &str {
    match scenario.name.as_str() {
        "" => &scenario.file,
        name => name,
    }
}

fn cases(variant: &VariantSum, program: &str) -> Vec<Case> {
    let told = variant.rows.iter();
    let told = told.filter(|row| !row.verb || row.broken > 0);
    let mut cases: Vec<Case> = told.map(|row| case(row, variant, program)).collect();
    if variant.must == Must::Fail {
        let message = format!("it broke in none of {} seeds", variant.n_played());
        let result = variant.result();
        cases.push(Case {
            name: "breaks in some seed, as it must".to_owned(),
            failure: (result == Result::BrokeNowhere).then(|| (message, String::new())),
            is_skipped: result == Result::Unknown,
            note: None,
        });
    }
    cases
}

fn case(row: &RowSum, variant: &VariantSum, program: &str) -> Case {
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
        name: format!("{} {}", when(row), row.text),
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

fn element(out: &mut String, name: &str, file: &str, cases: &[Case], (failed, time): (usize, f64)) {
    let name = escaped(name);
    let file = escaped(file);
    let skipped = cases.iter().filter(|case| case.is_skipped).count();
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{time:.3}\" file=\"{file}\">",
        cases.len()
    );
    for case in cases {
        let _ = write!(
            out,
            "    <testcase classname=\"{name}\" name=\"{}\"",
            escaped(&case.name)
        );
        let mut inner = String::new();
        if let Some((message, story)) = &case.failure {
            let (message, story) = (escaped(message), escaped(story));
            let _ = write!(inner, "<failure message=\"{message}\">{story}</failure>");
        } else if case.is_skipped {
            inner.push_str("<skipped/>");
        }
        if let Some(note) = &case.note {
            let _ = write!(inner, "<system-out>{}</system-out>", escaped(note));
        }
        match inner.as_str() {
            "" => out.push_str("/>\n"),
            inner => {
                let _ = writeln!(out, ">{inner}</testcase>");
            }
        }
    }
    out.push_str("  </testsuite>\n");
}
