//! Which files belong to which Scenario.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use strew_manifest::read::{Diagnostic, documents};
use strew_scenario::format::GROUP;

use crate::input::{Input, sources};
use crate::options::Options;

/// True if the file seems to contain a document of strew's simulation; reading it decides.
pub fn holds_scenario(input: &Input) -> bool {
    let text = &input.bytes;
    let version = format!("{GROUP}/");
    let mut all = text.windows(version.len()).enumerate();
    let is_named = all.any(|(at, part)| part == version.as_bytes() && is_api_version(&text[..at]));
    // The text may be the content of one of these.
    let is_carried = || input.holds(b"ConfigMap") || input.holds(b"Secret");
    is_named && (!is_carried() || has_document_of(input, &version))
}

/// True if a document, or an item of a list, is of this version; also if the text has errors: reading reports them.
fn has_document_of(input: &Input, version: &str) -> bool {
    let (documents, errors) = documents(&sources(vec![input.clone()]));
    let is_of = |value: &Value| {
        let given = value["apiVersion"].as_str();
        given.is_some_and(|given| given.starts_with(version))
    };
    let mut values = documents.iter().map(|document| &document.value);
    !errors.is_empty()
        || values.any(|value| {
            let items = value["items"].as_array();
            is_of(value) || items.is_some_and(|items| items.iter().any(is_of))
        })
}

/// True if a text ends with the key `apiVersion`, in YAML or JSON: labels may begin with the group, too.
fn is_api_version(before: &[u8]) -> bool {
    let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b':' | b'"' | b'\'');
    let end = before.iter().rposition(|byte| !is_between(byte));
    let word = &before[..end.map_or(0, |at| at + 1)];
    let key = b"apiVersion";
    word.len() >= key.len() && word[word.len() - key.len()..].eq_ignore_ascii_case(key)
}

/// Groups the files by scenario. Several files with a Scenario are several scenarios, and each uses the named files
/// without one. A file found in a folder belongs to the nearest folder at or above its own that has Scenarios: the only
/// one there uses it; where there are several, none does. Files below no such folder are used by all.
pub fn split(
    options: &Options,
    inputs: Vec<Input>,
    unused: &mut Vec<Diagnostic>,
) -> Vec<(Vec<Input>, Vec<String>)> {
    let n_scenarios = inputs.iter().filter(|input| holds_scenario(input)).count();
    if n_scenarios < 2 {
        return vec![(inputs, options.files.to_vec())];
    }
    let (scenarios, others): (Vec<_>, Vec<_>) = inputs.into_iter().partition(holds_scenario);
    let (found, mut shared): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|input| input.is_found);
    let mut n_in: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for scenario in scenarios.iter().filter(|scenario| scenario.is_found) {
        *n_in.entry(scenario.folder()).or_default() += 1;
    }
    let mut of_folder: BTreeMap<PathBuf, Vec<Input>> = BTreeMap::new();
    let mut passed_over = Vec::new();
    for input in found {
        let folder = input.folder();
        let mut folders = folder.ancestors();
        match folders.find(|folder| n_in.contains_key(*folder)) {
            None => shared.push(input),
            Some(nearest) if n_in[nearest] == 1 => {
                of_folder.entry(nearest.to_owned()).or_default().push(input);
            }
            Some(_) => passed_over.push(input.name),
        }
    }
    if let [first, ..] = passed_over.as_slice() {
        let more = match passed_over.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let message = format!(
            "passed over {first}{more}: no Scenario in it, and each file of a folder with several is its own scenario"
        );
        let help = format!("name it beside the folder to use it in all of them: {first}");
        unused.push(Diagnostic::warning("passed-over", message).with_help(help));
    }
    let each = scenarios.into_iter().map(|scenario| {
        let mut inputs = shared.clone();
        if scenario.is_found {
            inputs.extend(of_folder.remove(&scenario.folder()).unwrap_or_default());
        }
        inputs.push(scenario);
        let names = inputs.iter().map(|input| input.name.clone()).collect();
        (inputs, names)
    });
    each.collect()
}
