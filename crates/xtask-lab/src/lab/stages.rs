//! The behaviour of kwok's kubelets with a scenario's delays: `e2e/stages.yaml`.

use std::collections::BTreeMap;
use std::time::Duration;

/// The mark behind a number that a timing replaces.
const MARK: &str = "# timing: ";

/// Delays by what they are of: `podStart`, `podStop`, `podRun`; least and most.
pub type Timing = BTreeMap<String, (Duration, Duration)>;

/// The stages with these delays; what `timing` does not name keeps the file's own.
#[must_use]
pub fn with_timing(stages: &str, timing: &Timing) -> String {
    let mut text = String::with_capacity(stages.len());
    for line in stages.lines() {
        text.push_str(&replaced(line, timing).unwrap_or_else(|| line.to_owned()));
        text.push('\n');
    }
    text
}

fn replaced(line: &str, timing: &Timing) -> Option<String> {
    let (setting, mark) = line.split_once(MARK)?;
    let (name, bound) = mark.trim().split_once('.')?;
    let &(least, most) = timing.get(name)?;
    let delay = if bound == "min" { least } else { most };
    let (key, _) = setting.split_once(':')?;
    Some(format!("{key}: {} {MARK}{mark}", delay.as_millis()))
}

#[test]
fn the_numbers_of_a_timing_stand_where_the_file_marks_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/stages.yaml");
    let stages = std::fs::read_to_string(path).unwrap();
    let seconds = |a, b| (Duration::from_secs(a), Duration::from_secs(b));
    for (name, delay) in [("podStart", 7), ("podStop", 11), ("podRun", 13)] {
        let timing = Timing::from([(name.to_owned(), seconds(delay, delay + 10))]);
        let text = with_timing(&stages, &timing);
        let changed: Vec<&str> = text
            .lines()
            .zip(stages.lines())
            .filter(|(new, old)| new != old)
            .map(|(new, _)| new.trim())
            .collect();
        let expected = [
            format!("durationMilliseconds: {delay}000 # timing: {name}.min"),
            format!(
                "jitterDurationMilliseconds: {}000 # timing: {name}.max",
                delay + 10
            ),
        ];
        assert_eq!(changed, expected);
    }
    assert_eq!(with_timing(&stages, &Timing::new()), stages);
}
