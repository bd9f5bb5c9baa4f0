//! Manifests without a Scenario: the built-in story is made one of them, as a file beside them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use strew_api::config::FeatureGates;
use strew_api::field::FieldPath;
use strew_api::read::{Diagnostic, KubeObject, Locator, Origin, Sources, read, read_file};
use strew_scenario::format::{Loaded, load_read};

use super::Question;
use crate::failure::Failure;
use crate::inputs::{self, Input};
use crate::simulate::{Format, serialized};
use crate::storage;

/// The name of the file that is made.
pub(super) const FILE: &str = "<story>";

/// The story among the files that it is about.
pub(super) struct Story {
    pub(super) sources: Sources,
    pub(super) loaded: Loaded,
    /// The Scenario, and the nodes and storage classes that the files lack.
    pub(super) text: String,
    /// What a reader should know of those.
    pub(super) notes: Vec<String>,
}

/// Makes the story of the files.
///
/// # Errors
/// The words for nodes do not go together.
pub(super) fn story(question: &Question<'_>, inputs: Vec<Input>) -> Result<Story, Failure> {
    let mut sources = inputs::sources(inputs);
    let mut reading = read(&sources);
    let nodes = reading.objects.iter();
    let nodes = nodes.filter_map(|located| match &located.object {
        KubeObject::Node(node) => Some((node.metadata.name.as_deref()?, &located.origin)),
        _ => None,
    });
    let given: HashMap<&str, &Origin> = nodes.collect();
    let made = question.world.nodes.make(!given.is_empty())?;
    let mut twice = Vec::new();
    let mut locator = Locator::new(&sources);
    for node in &made.nodes {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if let Some(origin) = given.get(name) {
            let message = format!("--nodes makes a node {name:?}, and so does this file");
            let place = locator.place(origin, &FieldPath::root());
            twice.push(Diagnostic::error("duplicate-object", message).at(place));
        }
    }
    let scheduling = &question.world.scheduling;
    let document = strew_scenario::story::story(
        &reading.objects,
        &made.nodes,
        scheduling.seed.unwrap_or(0),
        &gates(&scheduling.feature_gates),
    );
    let mut text = serialized(&document, Format::Yaml)?;
    let stream = reading.objects.iter().map(|located| &located.object);
    let (classes, class_note) = storage::classes(stream, &question.world.storage);
    let nodes = made.nodes.into_iter().map(KubeObject::from);
    for object in nodes.chain(classes.into_iter().map(KubeObject::from)) {
        let _ = writeln!(text, "---\n{}", object.to_json());
    }
    let file = sources.add(FILE, text.clone());
    let own = read_file(&sources, file);
    reading.objects.extend(own.objects);
    reading.diagnostics.extend(own.diagnostics);
    reading.diagnostics.extend(twice);
    Ok(Story {
        loaded: load_read(&sources, reading),
        sources,
        text,
        notes: made.note.into_iter().chain(class_note).collect(),
    })
}

/// The gates of `--feature-gates`; none if something is wrong with them, which is told elsewhere.
fn gates(given: &[String]) -> BTreeMap<String, bool> {
    let text = given.join(",");
    if FeatureGates::parse(&text).is_err() {
        return BTreeMap::new();
    }
    let (pairs, _) = FeatureGates::pairs(&text);
    let pairs = pairs.into_iter();
    pairs
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
