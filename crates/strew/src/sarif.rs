//! Findings as SARIF 2.1.0, which code scanning shows beside the lines.
//!
//! Source: SARIF 2.1.0 (OASIS), section 3.27.

use serde_json::{Value, json};
use strew_manifest::read::{Diagnostic, Sources};

/// One run of strew with these results.
pub(crate) fn log(results: Vec<Value>) -> Value {
    let rules = results
        .iter()
        .filter_map(|result| result["ruleId"].as_str());
    let mut rules: Vec<&str> = rules.collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> = rules.iter().map(|id| json!({"id": id})).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "strew",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// Diagnostics; each list has places in its own files. One without a place is about the whole input.
pub(crate) fn of_diagnostics(said: &[(Vec<Diagnostic>, &Sources)]) -> Value {
    let results = said.iter().flat_map(|(all, sources)| {
        let results = all.iter().map(|diagnostic| result(diagnostic, sources));
        results.collect::<Vec<_>>()
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

/// A place in a file; `None` if the text came from standard input.
pub(crate) fn location(file: &str, place: Option<(u32, u32)>) -> Option<Value> {
    if file.is_empty() || file == "-" || file.starts_with('<') {
        return None;
    }
    let mut location = json!({"physicalLocation": {"artifactLocation": {"uri": uri(file)}}});
    if let Some((line, column)) = place {
        location["physicalLocation"]["region"] = json!({"startLine": line, "startColumn": column});
    }
    Some(location)
}

fn result(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let mut text = diagnostic.message.clone();
    if let Some(object) = &diagnostic.object {
        text = format!("{object}: {text}");
    }
    if let Some(help) = &diagnostic.help {
        text = format!("{text}\nhelp: {help}");
    }
    let location = diagnostic.place.and_then(|place| {
        let file = sources.file(place.file).name();
        location(file, Some((place.line, place.column)))
    });
    json!({
        "ruleId": diagnostic.code,
        "level": diagnostic.severity.name(),
        "message": {"text": text},
        "locations": location.into_iter().collect::<Vec<_>>(),
    })
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
