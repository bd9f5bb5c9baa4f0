//! Scheduling vectors: compares strew with the answers of kube-scheduler v1.36.3.

mod answer;
mod case;
mod preemption;
mod spread;
mod whole;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::Value;

use answer::Answer;

/// Reads each file and compares each case; exit code 1 if any differs.
pub(crate) fn run(files: Vec<PathBuf>, show: usize) -> anyhow::Result<ExitCode> {
    let files = if files.is_empty() {
        own_vectors()?
    } else {
        files
    };
    let mut all_agree = true;
    for file in &files {
        let tally = compare_file(file, show)?;
        println!("{}: {tally}", file.display());
        all_agree &= tally.is_agreement();
    }
    Ok(if all_agree {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The vectors in the project.
fn own_vectors() -> anyhow::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let entries = folder
        .read_dir()
        .with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|f| f.to_string_lossy().contains(".jsonl"));
    files.sort();
    if files.is_empty() {
        bail!("{} holds no vectors", folder.display());
    }
    Ok(files)
}

#[derive(Default)]
struct Tally {
    agreed: usize,
    differ: usize,
    not_judged: std::collections::BTreeMap<String, usize>,
}

impl Tally {
    /// False if nothing was compared, too: an empty file is no agreement.
    fn is_agreement(&self) -> bool {
        self.agreed > 0 && self.differ == 0
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} agreed, {} differ", self.agreed, self.differ)?;
        for (kind, n) in &self.not_judged {
            write!(f, " ({n} of kind {kind} not judged: no such decision yet)")?;
        }
        Ok(())
    }
}

fn compare_file(file: &Path, show: usize) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    for (number, line) in lines(file)?.enumerate() {
        let line = line.with_context(|| format!("reading {}", file.display()))?;
        if line.trim().is_empty() {
            continue;
        }
        let place = || format!("{}:{}", file.display(), number + 1);
        let case: Value = serde_json::from_str(&line).with_context(place)?;
        let name = case["name"]
            .as_str()
            .unwrap_or("(without a name)")
            .to_owned();
        let Some(answer) = answer::answer(&case).with_context(|| format!("{}: {name}", place()))?
        else {
            let kind = case["kind"].as_str().unwrap_or("(none)").to_owned();
            *tally.not_judged.entry(kind).or_default() += 1;
            continue;
        };
        let differences = answer.differences(&case["expected"]);
        if differences.is_empty() {
            tally.agreed += 1;
            continue;
        }
        tally.differ += 1;
        if tally.differ <= show {
            println!("{}: {name}", place());
            for difference in differences.iter().take(5) {
                println!("  {difference}");
            }
        }
    }
    Ok(tally)
}

fn lines(file: &Path) -> anyhow::Result<Box<dyn Iterator<Item = std::io::Result<String>>>> {
    let open = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    let is_gzip = file.extension().is_some_and(|e| e == "gz");
    Ok(match is_gzip {
        true => Box::new(BufReader::new(flate2::read::GzDecoder::new(open)).lines()),
        false => Box::new(BufReader::new(open).lines()),
    })
}

/// Objects with the wrong fields are an error of the file, not a difference.
fn decode<T: serde::de::DeserializeOwned>(value: &Value, what: &str) -> anyhow::Result<T> {
    serde_json::from_value(value.clone()).with_context(|| format!("decoding {what}"))
}

impl Answer {
    /// The fields that differ from the expectation, side by side. Fields that strew does not answer are not compared.
    fn differences(&self, expected: &Value) -> Vec<String> {
        let mut found = Vec::new();
        for (field, ours) in &self.fields {
            // A sequence's expectation is the list of steps itself.
            let theirs = match expected {
                Value::Array(_) => expected.clone(),
                object => object.get(field).cloned().unwrap_or(Value::Null),
            };
            diff(field, &theirs, ours, &mut found);
        }
        found
    }
}

fn diff(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let get = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                diff(&format!("{path}.{key}"), &get(a), &get(b), found);
            }
        }
        (Value::Array(a), Value::Array(b))
            if a.len() == b.len() && a.iter().any(Value::is_object) =>
        {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                diff(&format!("{path}[{i}]"), a, b, found);
            }
        }
        _ if theirs == ours => {}
        _ => found.push(format!("{path}: kube-scheduler {theirs}   strew {ours}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_compared_is_no_agreement() {
        let tally = |agreed, differ| Tally {
            agreed,
            differ,
            ..Tally::default()
        };
        assert!(tally(1, 0).is_agreement());
        assert!(!tally(0, 0).is_agreement());
        assert!(!tally(1, 1).is_agreement());
    }
}
