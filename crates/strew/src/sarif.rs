//! Findings as SARIF 2.1.0, which code scanning shows beside the lines.

use serde_json::{Value, json};
use strew_manifest::read::{Diagnostic, Severity, Sources};

/// One run of strew with these findings. Findings without a place are about the whole input.
pub(crate) fn log(found: &[Diagnostic], sources: &Sources) -> Value {
    let mut rules: Vec<&str> = found.iter().map(|diagnostic| diagnostic.code).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<Value> = rules.iter().map(|code| json!({"id": code})).collect();
    let results = found.iter().map(|diagnostic| result(diagnostic, sources));
    let results: Vec<Value> = results.collect();
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

fn result(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut text = diagnostic.message.clone();
    if let Some(object) = &diagnostic.object {
        text = format!("{object}: {text}");
    }
    if let Some(help) = &diagnostic.help {
        text = format!("{text}\nhelp: {help}");
    }
    let mut result = json!({
        "ruleId": diagnostic.code,
        "level": level,
        "message": {"text": text},
    });
    if let Some(place) = diagnostic.place {
        let file = sources.file(place.file).name().to_owned();
        result["locations"] = json!([{"physicalLocation": {
            "artifactLocation": {"uri": file},
            "region": {"startLine": place.line, "startColumn": place.column},
        }}]);
    }
    result
}
