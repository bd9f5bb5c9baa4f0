//! Compares what happened with what `strew audit` says of the same objects.
//!
//! Chance decides in both: the winner of a tie between nodes, which workload gets the last room, in which order nodes
//! of a zone are found lost. So several seeds are asked. What happened must be what one of them says, and where all say
//! the same, chance has no part and it must be that.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use strew_scenario::audit::values::{Audit, Row};

use super::case::{Case, judged};

/// The seeds that every case is played with.
const FEW: u64 = 3;

/// The seeds for a case in which something happened that the first ones do not say.
const MANY: u64 = 30;

/// The comparison of a case.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The workloads that were judged.
    pub(super) n_verdicts: usize,
    /// Those on which the seeds do not agree.
    pub(super) n_by_chance: usize,
    /// What happened and no seed says, with both stories.
    pub(super) differences: Vec<String>,
    /// Workloads with the right verdict, but another number of ready pods at rest than any seed says.
    pub(super) other_numbers: Vec<String>,
}

/// What a seed says of a workload.
struct Said {
    judged: String,
    /// Before, at once, at rest.
    numbers: [u64; 3],
    story: String,
}

/// Compares a case.
///
/// # Errors
/// strew does not judge it.
pub(super) fn compare(strew: &Path, case: &Case) -> anyhow::Result<Compared> {
    let mut said: BTreeMap<String, Vec<Said>> = BTreeMap::new();
    let mut n_asked = 0;
    loop {
        let upto = if n_asked == 0 { FEW } else { MANY };
        for seed in n_asked + 1..=upto {
            for (of, one) in ask(strew, case, seed).with_context(|| format!("seed {seed}"))? {
                said.entry(of).or_default().push(one);
            }
        }
        n_asked = upto;
        let compared = judge(case, &said);
        let is_clear = compared.differences.is_empty() && compared.other_numbers.is_empty();
        if is_clear || upto == MANY {
            return Ok(compared);
        }
    }
}

fn judge(case: &Case, said: &BTreeMap<String, Vec<Said>>) -> Compared {
    let mut compared = Compared {
        n_verdicts: case.observed.len(),
        ..Compared::default()
    };
    for (of, observed) in &case.observed {
        let said = said.get(of).map_or(&[][..], Vec::as_slice);
        let happened = observed.judged();
        let story = |what: &str| {
            let mut text = format!(
                "{}: {of} {what} {happened} ({})",
                case.name, observed.numbers
            );
            for (story, n) in stories(said) {
                text.push_str(&format!("\n    {n} of {} seeds: {story}", said.len()));
            }
            text
        };
        let first = said.first().map(|one| one.judged.as_str());
        compared.n_by_chance += usize::from(said.iter().any(|one| Some(&*one.judged) != first));
        let numbers = &observed.numbers;
        let begin = [numbers.before, numbers.at_once];
        if !said.iter().any(|one| one.judged == happened) {
            compared.differences.push(story("was"));
        } else if said.iter().any(|one| one.numbers[..2] != begin) {
            compared.differences.push(story("began otherwise, and was"));
        } else if !said.iter().any(|one| one.numbers[2] == numbers.ready) {
            compared.other_numbers.push(story("was"));
        }
    }
    compared
}

/// The different stories, with the number of seeds of each.
fn stories(said: &[Said]) -> BTreeMap<String, usize> {
    let mut stories = BTreeMap::new();
    for one in said {
        let story = format!("{}: {}", one.judged, one.story);
        *stories.entry(story).or_default() += 1;
    }
    stories
}

/// What a seed says of each workload, by `kind/name`.
fn ask(strew: &Path, case: &Case, seed: u64) -> anyhow::Result<BTreeMap<String, Said>> {
    let mut child = Command::new(strew)
        .args(["audit", "-", "--output=json", "--no-fix", "--jobs=1"])
        .arg(format!("--event={}", case.event.name()))
        .arg(format!("--seed={seed}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdin.take().context("it was piped")?;
    // It reads all of its input before it writes.
    pipe.write_all(case.dump().to_string().as_bytes())?;
    drop(pipe);
    let output = child.wait_with_output()?;
    ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "strew audit: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let audit: Audit = serde_json::from_slice(&output.stdout)?;
    let mut cases = audit.cases.iter();
    let its = cases.find(|one| one.event == case.event && one.domains == [case.zone.clone()]);
    let its = its.with_context(|| format!("strew audit has no case of {}", case.zone))?;
    let is_blocked = |row: &Row| {
        let mut blocked = its.blocked.iter();
        blocked.any(|blocked| blocked.object == row.of())
    };
    let each = its.workloads.iter().map(|row| {
        let cause = row.cause.as_ref().map_or("", |cause| cause.text.as_str());
        let numbers = [row.before, row.at_once, row.ready].map(u64::from);
        let said = Said {
            judged: judged(&row.verdict, is_blocked(row)),
            numbers,
            story: format!(
                "{} before, {} at once, fewest {}, {} at rest; {cause}",
                numbers[0], numbers[1], row.fewest, numbers[2]
            ),
        };
        (format!("{}/{}", row.kind.to_lowercase(), row.name), said)
    });
    Ok(each.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::audit::case::{Numbers, Observed};
    use strew_scenario::audit::values::Event;

    fn said(judged: &str, ready: u64) -> Said {
        Said {
            judged: judged.to_owned(),
            numbers: [3, 2, ready],
            story: String::new(),
        }
    }

    #[test]
    fn what_happened_must_be_what_a_seed_says() {
        let numbers = Numbers {
            wanted: 3,
            before: 3,
            at_once: 2,
            fewest: 1,
            ready: 2,
            budgets: Vec::new(),
        };
        let case = Case {
            name: "x".to_owned(),
            event: Event::Loss,
            zone: "a".to_owned(),
            observed: BTreeMap::from([("pod/a".to_owned(), Observed::new(numbers, false))]),
            objects: Vec::new(),
        };
        let counts = |said: Vec<Said>| {
            let compared = judge(&case, &BTreeMap::from([("pod/a".to_owned(), said)]));
            [
                compared.differences.len(),
                compared.n_by_chance,
                compared.other_numbers.len(),
            ]
        };
        assert_eq!(counts(vec![said("DEGRADED", 2)]), [0, 0, 0]);
        let both = vec![said("LOST", 0), said("DEGRADED", 2)];
        assert_eq!(counts(both), [0, 1, 0]);
        assert_eq!(counts(vec![said("DEGRADED", 1)]), [0, 0, 1]);
        assert_eq!(counts(vec![said("LOST", 0)]), [1, 0, 0]);
        assert_eq!(counts(Vec::new()), [1, 0, 0]);
        let mut late = said("DEGRADED", 2);
        late.numbers[0] = 2;
        assert_eq!(counts(vec![late]), [1, 0, 0]);
    }
}
