//! `-o junit`: a suite for each variant, a case for each expectation; of wrong input a case for each error.

use std::fmt::Write;
use std::time::Duration;

use strew_model::Span;
use strew_scenario::format::Verdict;

use super::clock::clock;
use super::standing::{Answer, Breach, Result, Row, Standing};
use super::suite::{Cast, Suite};

/// One file for all scenarios. `time` is virtual, the sum over all seeds: times of the machine would differ from run to
/// run. `again` gives the command that plays a seed of a variant again, until its breach.
pub(super) fn write(suites: &[Suite], answer: &Answer<'_>, again: &Again<'_>) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let mut body = String::new();
    let (mut tests, mut failures) = (0, 0);
    for (suite, standings) in suites.iter().zip(&answer.casts) {
        for (cast, standing) in suite.variants.iter().zip(standings) {
            let cases = cases(cast, standing, &|breach| again(suite, cast, breach));
            let failed = cases.iter().filter(|case| case.failure.is_some()).count();
            tests += cases.len();
            failures += failed;
            let name = format!("{}/{}", name_of(suite), cast.variant.name);
            let runs = standing.runs.iter();
            let time = runs.fold(0.0, |sum, judged| sum + seconds(judged.run.played.ended));
            element(&mut body, &name, suite, &cases, (failed, time));
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

/// The command that plays a run again.
pub(super) type Again<'a> = dyn Fn(&Suite, &Cast, &Breach) -> String + 'a;

/// Errors of the input, a case each: a reader of test results would see no tests otherwise.
pub(crate) fn wrong_input(errors: &[String]) -> String {
    let n = errors.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"strew simulate\" tests=\"{n}\" errors=\"{n}\">\n  \
         <testsuite name=\"input\" tests=\"{n}\" errors=\"{n}\">\n"
    );
    for error in errors {
        let first = escaped(error.lines().next().unwrap_or_default());
        let _ = writeln!(
            out,
            "    <testcase classname=\"input\" name=\"{first}\"><error message=\"{first}\">{}</error></testcase>",
            escaped(error)
        );
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn seconds(time: Span) -> f64 {
    Duration::from_nanos(time.0).as_secs_f64()
}

struct Case {
    name: String,
    /// What is wrong in a line, and the whole story.
    failure: Option<(String, String)>,
    is_skipped: bool,
    /// What is worth telling though it is not wrong.
    note: Option<String>,
}

fn name_of(suite: &Suite) -> &str {
    match suite.name.as_str() {
        "" => &suite.file,
        name => name,
    }
}

fn cases(cast: &Cast, standing: &Standing<'_>, again: &dyn Fn(&Breach) -> String) -> Vec<Case> {
    let n_runs = standing.runs.len();
    let verdict = cast.variant.verdict;
    let told = standing.rows.iter();
    let told = told.filter(|row| row.expectation.is_some() || row.n_broken > 0);
    let mut cases: Vec<Case> = told.map(|row| case(row, verdict, again)).collect();
    if verdict == Verdict::MustFail {
        let message = format!("it broke in none of {n_runs} seeds");
        cases.push(Case {
            name: "breaks in some seed, as it must".to_owned(),
            failure: (standing.result == Result::BrokeNowhere).then(|| (message, String::new())),
            is_skipped: standing.result == Result::Unknown,
            note: None,
        });
    }
    cases
}

fn case(row: &Row<'_>, verdict: Verdict, again: &dyn Fn(&Breach) -> String) -> Case {
    let when = row.moment.text();
    let n_reached = row.n_held + row.n_broken + row.n_open;
    let breach = row.breach.as_ref().filter(|_| row.n_broken > 0);
    let story = breach.map(|breach| story(row, breach, &again(breach)));
    let message = format!("broke in {} of {n_reached} seeds", row.n_broken);
    let is_wrong = row.n_broken > 0 && row.decides && verdict == Verdict::MustHold;
    let (failure, note) = match (is_wrong, story) {
        (true, story) => (Some((message, story.unwrap_or_default())), None),
        (false, Some(story)) => (None, Some(format!("{message}: {story}"))),
        (false, None) => (None, None),
    };
    Case {
        name: format!("{when} {}", row.text),
        failure,
        is_skipped: row.n_held + row.n_broken == 0,
        note,
    }
}

/// The first breach, every seed that broke, and the command.
fn story(row: &Row<'_>, breach: &Breach, again: &str) -> String {
    let cause = breach.cause.as_ref();
    let cause = cause.map_or(String::new(), |cause| format!(" (just before: {cause})"));
    let at = clock(breach.at);
    let mut story = format!("seed {} at {at}: {}{cause}", breach.seed, breach.why);
    if let [_, _, ..] = row.seeds_broken.as_slice() {
        let seeds: Vec<String> = row.seeds_broken.iter().map(u64::to_string).collect();
        story.push_str(&format!("\nseeds that broke: {}", seeds.join(", ")));
    }
    story.push_str(&format!("\nagain: {again}"));
    story
}

fn element(
    out: &mut String,
    name: &str,
    suite: &Suite,
    cases: &[Case],
    (failed, time): (usize, f64),
) {
    let name = escaped(name);
    let file = escaped(&suite.file);
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

/// Text as XML takes it; of what XML 1.0 has no words for, a question mark.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_takes_every_text() {
        assert_eq!(
            escaped("a<b & \"c\"\n\u{1}"),
            "a&lt;b &amp; &quot;c&quot;&#10;?"
        );
    }
}
