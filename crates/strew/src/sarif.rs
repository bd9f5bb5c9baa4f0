//! Findings as SARIF 2.1.0, which code scanning shows beside the lines.
//!
//! Source: SARIF 2.1.0 (OASIS), section 3.27. Each result has a location and each rule has texts: GitHub shows no
//! result without them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strew_lint::{HELP, rule_text};
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;

/// One result.
pub(crate) struct Found {
    /// The rule.
    pub(crate) rule: String,
    /// `error`, `warning` or `note`.
    pub(crate) level: Severity,
    pub(crate) text: String,
    /// The file; the first input file if it is in none.
    pub(crate) file: String,
    /// Line and column, if they are known.
    pub(crate) place: Option<(u32, u32)>,
}

/// The project's page, if the build was told it: `cargo xtask dist --homepage`.
const HOMEPAGE: Option<&str> = option_env!("STREW_HOMEPAGE");

/// What found the results, with its rules.
fn driver(rules: Vec<Value>, homepage: Option<&str>) -> Value {
    let mut driver = json!({
        "name": "strew",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    if let Some(homepage) = homepage {
        driver["informationUri"] = homepage.into();
    }
    driver
}

/// One run of strew with these results.
pub(crate) fn log(found: &[Found]) -> Value {
    let rules: BTreeMap<&str, Value> = found
        .iter()
        .map(|found| (found.rule.as_str(), rule(&found.rule)))
        .collect();
    let results: Vec<Value> = found.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver(rules.into_values().collect(), HOMEPAGE)},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// Findings; those in no file are located in the first file.
pub(crate) fn of_findings(findings: &[Finding], first_file: &str) -> Vec<Found> {
    let of = |finding: &Finding| {
        let mut text = finding.message.clone();
        if let Some(object) = &finding.object {
            text = format!("{object}: {text}");
        }
        if let Some(help) = &finding.help {
            text = format!("{text}\nhelp: {help}");
        }
        let place = finding.place.as_ref();
        Found {
            rule: finding.code.clone(),
            level: finding.severity,
            text,
            file: place.map_or_else(|| first_file.to_owned(), |at| at.file.clone()),
            place: place.map(|at| (at.line, at.column)),
        }
    };
    findings.iter().map(of).collect()
}

/// The reason why nothing was done.
pub(crate) fn of_failure(text: &str, first_file: &str) -> Value {
    log(&[Found {
        rule: "input".to_owned(),
        level: Severity::Error,
        text: text.to_owned(),
        file: first_file.to_owned(),
        place: None,
    }])
}

fn rule(id: &str) -> Value {
    let (short, help) = match rule_text(id) {
        Some(rule) => (rule.what.to_owned(), rule.why),
        None => (in_words(id), HELP),
    };
    json!({
        "id": id,
        "shortDescription": {"text": short},
        "fullDescription": {"text": help},
        "help": {"text": help},
    })
}

/// `unknown-field` as `Unknown field`, `rolledOut` as `Rolled out`.
fn in_words(id: &str) -> String {
    let mut words = String::new();
    for c in id.chars() {
        match c {
            '-' => words.push(' '),
            c if words.is_empty() => words.extend(c.to_uppercase()),
            c if c.is_uppercase() => {
                words.push(' ');
                words.extend(c.to_lowercase());
            }
            c => words.push(c),
        }
    }
    words
}

fn result(found: &Found) -> Value {
    let mut location = json!({"physicalLocation": {"artifactLocation": {"uri": uri(&found.file)}}});
    if let Some((line, column)) = found.place {
        location["physicalLocation"]["region"] = json!({"startLine": line, "startColumn": column});
    }
    json!({
        "ruleId": found.rule,
        "level": found.level.name(),
        "message": {"text": found.text},
        "locations": [location],
    })
}

/// A path as a reference, escaped for a URI: relative, or of a file. Standard input is `stdin`.
fn uri(path: &str) -> String {
    if path.is_empty() || path == "-" || path.starts_with('<') {
        return "stdin".to_owned();
    }
    let (mut out, path) = match drive_of(path) {
        Some((drive, rest)) => (format!("file:///{drive}"), rest),
        None if path.starts_with('/') => ("file://".to_owned(), path),
        None => (String::new(), path),
    };
    let path = path.strip_prefix("./").unwrap_or(path);
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

/// The drive of an absolute path of Windows, `C:`, and the rest.
fn drive_of(path: &str) -> Option<(&str, &str)> {
    let (drive, rest) = path.split_at_checked(2)?;
    let is_drive = drive.ends_with(':') && drive.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_drive && rest.starts_with('/')).then_some((drive, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_references() {
        assert_eq!(uri("a b/c-1.yaml"), "a%20b/c-1.yaml");
        assert_eq!(uri("./c.yaml"), "c.yaml");
        assert_eq!(uri("/tmp/c.yaml"), "file:///tmp/c.yaml");
        assert_eq!(uri("C:/a b/c.yaml"), "file:///C:/a%20b/c.yaml");
        assert_eq!(uri("a:b.yaml"), "a%3Ab.yaml");
        assert_eq!([uri("<stdin>"), uri("-")], ["stdin", "stdin"]);
    }

    #[test]
    fn each_result_has_a_location_and_each_rule_its_texts() {
        let place = strew_manifest::finding::FilePlace {
            file: "a.yaml".to_owned(),
            line: 3,
            column: 5,
        };
        let findings = [
            Finding::new(Severity::Warning, "surely-new", "this").at(place),
            Finding::new(Severity::Note, "rolledOut", "that"),
        ];
        let log = log(&of_findings(&findings, "first.yaml"));
        let run = &log["runs"][0];
        let location = |n: usize| &run["results"][n]["locations"][0]["physicalLocation"];
        assert_eq!(location(0)["artifactLocation"]["uri"], "a.yaml");
        assert_eq!(location(0)["region"]["startLine"], 3);
        assert_eq!(location(1)["artifactLocation"]["uri"], "first.yaml");
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let short = |n: usize| rules[n]["shortDescription"]["text"].as_str().unwrap();
        assert_eq!([short(0), short(1)], ["Rolled out", "Surely new"]);
        assert!(rules.iter().all(|rule| rule["help"]["text"].is_string()));
    }

    #[test]
    fn a_page_that_is_not_known_is_not_told() {
        let page = "https://example.com/someone/strew";
        assert_eq!(driver(Vec::new(), Some(page))["informationUri"], page);
        let driver = driver(Vec::new(), None);
        assert!(driver.get("informationUri").is_none(), "{driver}");
    }
}
