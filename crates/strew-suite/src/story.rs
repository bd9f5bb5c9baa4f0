//! Makes the built-in story of manifests without a Scenario, as a further file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::{self, Pods};
use strew_manifest::read::{
    Diagnostic, KubeObject, Located, Locator, NO_CONTROLLER, Origin, Reading, Sources,
    read_applying, read_file,
};
use strew_scenario::format::{Loaded, load_read};
use strew_wire::config::FeatureGates;

use crate::assumed;
use crate::cure::Edit;
use crate::dump;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::options::Options;
use crate::serialized::{Notation, serialized};

/// The name of that file.
pub const FILE: &str = "<story>";

/// The story, with the files that it is about.
pub struct Story {
    /// The files, and the story as a further one.
    pub sources: Sources,
    /// What was read of them.
    pub loaded: Loaded,
    /// The Scenario, and the nodes and classes that the files lack.
    pub text: String,
    /// The number of nodes that were made without being asked for.
    pub n_assumed_nodes: usize,
    /// Notes about them.
    pub notes: Vec<String>,
}

/// Makes the story of the files, changed by `edit`.
///
/// # Errors
/// There is nothing to simulate, or the arguments about nodes contradict each other.
pub fn story(
    options: &Options,
    inputs: Vec<Input>,
    edit: Option<&Edit<'_>>,
) -> Result<Story, Failure> {
    let mut sources = input::sources(inputs);
    let mut reading = read_applying(&sources);
    if let Some(edit) = edit {
        let objects = reading.objects.iter_mut();
        objects.for_each(|located| edit.apply(&mut located.object));
    }
    check_content(&reading, options.verb.unwrap_or("simulate"))?;
    let nodes = reading.objects.iter();
    let nodes = nodes.filter_map(|located| match &located.object {
        KubeObject::Node(node) => Some((node.metadata.name.as_deref()?, &located.origin)),
        _ => None,
    });
    let given: HashMap<&str, &Origin> = nodes.collect();
    let made = options.nodes.make(!given.is_empty())?;
    if made.note.is_some() {
        check_nodes(&reading)?;
    }
    let n_assumed_nodes = made.note.as_ref().map_or(0, |_| made.nodes.len());
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
    let scheduling = &options.scheduling;
    let applied: Vec<Value> = reading
        .applied
        .iter()
        .map(|located| as_written(located, &mut locator))
        .collect();
    let document = strew_scenario::story::story(
        &reading.objects,
        &made.nodes,
        &applied,
        scheduling.seed,
        &gates(&scheduling.feature_gates),
    );
    let mut text = serialized(&document, Notation::Yaml)?;
    let assumed = assumed::assumed(&reading.objects, &sources, &options.assumed);
    let nodes = made.nodes.into_iter().map(KubeObject::from);
    for object in nodes.chain(assumed.objects) {
        let _ = writeln!(text, "---\n{}", object.to_json());
    }
    if let Some(asking) = no_pods_asked(&reading, &mut Locator::new(&sources)) {
        reading.diagnostics.push(asking);
    }
    let file = sources.add(FILE, text.clone());
    let own = read_file(&sources, file);
    let n_own = own.objects.len();
    reading.objects.extend(own.objects);
    reading.diagnostics.extend(own.diagnostics);
    reading.diagnostics.extend(twice);
    reading.diagnostics.extend(assumed.diagnostics);
    let mut loaded = load_read(&sources, reading);
    loaded.n_read = loaded.n_read.saturating_sub(n_own);
    Ok(Story {
        loaded,
        sources,
        text,
        n_assumed_nodes,
        notes: made.note.into_iter().collect(),
    })
}

/// An object as its file has it: `apply` changes these fields only.
fn as_written(located: &Located, locator: &mut Locator<'_>) -> Value {
    let object = &located.object;
    let written = locator.value(&located.origin);
    let is_whole = |value: &Value| {
        value["apiVersion"] == object.api_version() && value["kind"] == object.kind()
    };
    written.filter(is_whole).unwrap_or_else(|| object.to_json())
}

/// Refuses a dump that has pods on nodes and no nodes: made-up nodes would give an answer about another cluster.
///
/// # Errors
/// There is such a pod.
fn check_nodes(reading: &Reading) -> Result<(), Failure> {
    let dumped = reading.objects.iter().filter(|located| located.from_dump);
    let pods = dumped.filter_map(|located| match &located.object {
        KubeObject::Pod(pod) => pod.spec.as_ref()?.node_name.as_deref(),
        _ => None,
    });
    let names: BTreeSet<&str> = pods.filter(|name| !name.is_empty()).collect();
    let Some(first) = names.first() else {
        return Ok(());
    };
    let others = match names.len() {
        1 => String::new(),
        n => format!(" and {} others", n - 1),
    };
    let error = format!("no node in the input, but its pods are on node {first}{others}");
    Err(Failure::input(error).with_hint(dump::nodes_hint()))
}

/// Refuses files with nothing to `verb`: an answer about nothing would look green. Errors of the files are reported
/// first.
///
/// # Errors
/// There is neither a pod nor a workload.
fn check_content(reading: &Reading, verb: &str) -> Result<(), Failure> {
    let objects = || reading.objects.iter().map(|located| &located.object);
    let is_workload = |object: &KubeObject| match object {
        // Their names may be those of other kinds.
        KubeObject::Other(_) | KubeObject::AdvancedStatefulSet(_) => false,
        _ => kinds::of_kind(object.kind()).is_some_and(|row| row.pods != Pods::No),
    };
    if reading.has_errors() || !reading.broken.is_empty() || objects().any(is_workload) {
        return Ok(());
    }
    let mut given: BTreeMap<Cow<'_, str>, usize> = BTreeMap::new();
    for object in objects() {
        *given.entry(object.kind_in_group()).or_default() += 1;
    }
    if given.is_empty() {
        let error = format!("no objects passed to {verb}");
        return Err(Failure::input(error).with_hint(
            "the input is empty: look at what writes it, for example helm template or kustomize build",
        ));
    }
    let given = given.iter().map(|(kind, n)| format!("{n} {kind}"));
    let given: Vec<String> = given.collect();
    let unplayed = reading
        .diagnostics
        .iter()
        .filter(|d| d.code == NO_CONTROLLER);
    let help = unplayed.clone().find_map(|d| d.help.as_deref());
    let why = match unplayed.count() {
        0 => "",
        _ => ": strew has no controller that makes their pods",
    };
    let error = format!(
        "no workload passed to {verb}, only {}{why}",
        given.join(", ")
    );
    Err(Failure::input(error).with_hint(help.unwrap_or(
        "workloads are Pods, and what makes them: Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs, \
         CloneSets",
    )))
}

/// A note at the first workload, if none asks for a pod: nothing is judged then, and a green answer says nothing.
fn no_pods_asked(reading: &Reading, locator: &mut Locator<'_>) -> Option<Diagnostic> {
    let all = || reading.objects.iter();
    let makes = |located: &&Located| {
        kinds::of_kind(located.object.kind()).is_some_and(|row| row.pods != Pods::No)
    };
    // A negative number is an error of its own.
    let asks = |located: &Located| located.object.replicas().is_none_or(|n| n != 0);
    if all().filter(makes).any(asks) {
        return None;
    }
    let first = all().find(makes)?;
    let message = "no workload asks for a pod (replicas: 0), so that nothing is judged";
    let path = FieldPath::root().child("spec").child("replicas");
    Some(
        Diagnostic::note("no-pods-asked", message)
            .at(locator.place(&first.origin, &path))
            .with_help("give the number of replicas that is to be judged"),
    )
}

/// The gates of `--feature-gates`; empty if there is an error, which is reported elsewhere.
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
