//! The difference between two versions of manifests: the first ones are deployed, and then the second ones are applied to
//! that cluster, as `kubectl apply` does. So what nobody touched stays where it is, and every line is about the change.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use serde::Serialize;
use serde_json::{Value, json};
use strew_manifest::kinds;
use strew_manifest::read::{Locator, read};
use strew_scenario::format::{API_VERSION, KIND, ObjectTarget};

use super::DiffArgs;
use super::facts::{Facts, facts};
use crate::context::Context;
use crate::diagnostics::say_diagnostics;
use crate::failure::Failure;
use crate::inputs::{self, Input};
use crate::output::Format;
use crate::scenario::{self, Question, ScenarioArgs};
use crate::text::count;
use crate::world::WorldArgs;
use strew_suite::nodes::NodeArgs;

/// The steps of the scenario that is played.
const STEPS: [&str; 2] = ["old", "new"];

/// The time in which a step comes to rest.
const WITHIN: &str = "20m";

/// What a change of manifests does.
pub(super) struct Changed {
    /// The values before and after.
    pub(super) facts: [Facts; 2],
    /// The objects that are new, changed or gone, in a line.
    pub(super) told: String,
    /// What the API server refuses of the change.
    pub(super) refused: Vec<Refusal>,
    /// What is wrong after the change, and was not before.
    pub(super) wrong: Vec<String>,
}

/// An object that the API server does not accept as it is in the second version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(super) struct Refusal {
    /// `deployment/web`
    pub(super) of: String,
    /// In the API server's words.
    pub(super) why: String,
}

/// Group, kind, namespace and name.
type Identity = (String, String, String, String);

/// The objects of some files, as they are written.
struct Manifests {
    objects: BTreeMap<Identity, Value>,
    /// True if they are of a cluster: an API server gave them uids.
    is_dump: bool,
    has_nodes: bool,
}

/// Plays the change; `None` if the files have errors, which were reported.
///
/// # Errors
/// The files have no object in common, or the second ones are a dump.
pub(super) fn changed(
    args: &DiffArgs,
    inputs: [Vec<Input>; 2],
    context: &Context,
) -> Result<Option<Changed>, Failure> {
    if inputs.iter().any(|inputs| scenario::is_in(inputs)) {
        let error = anyhow!("the files hold a Scenario");
        let hint = "compare reports of it: strew simulate FILES -o json writes one";
        return Err(Failure::input(error).with_hint(hint));
    }
    let [old_inputs, new_inputs] = inputs;
    let Some(old) = manifests(old_inputs, context) else {
        return Ok(None);
    };
    let Some(new) = manifests(new_inputs, context) else {
        return Ok(None);
    };
    if new.is_dump {
        let error = anyhow!("{} is a dump of a cluster", args.after);
        let hint = "the second files are manifests, which are applied to the first ones";
        return Err(Failure::input(error).with_hint(hint));
    }
    let is_known = |identity: &Identity| old.objects.contains_key(identity);
    if !old.is_dump && !new.objects.keys().any(is_known) {
        let error = anyhow!(
            "{} and {} have no object in common",
            args.before,
            args.after
        );
        let hint = "the same manifests before and after a change are compared";
        return Err(Failure::input(error).with_hint(hint));
    }
    let change = Change::of(&old, &new);
    if change.is_empty() {
        return Ok(Some(Changed {
            facts: [Facts::new(), Facts::new()],
            told: "no object differs".to_owned(),
            refused: Vec::new(),
            wrong: Vec::new(),
        }));
    }
    let mut played = vec![args.world.made("<old>", change.before(&old).into_bytes())];
    let nodes = args.world.nodes.make(old.has_nodes)?;
    let nodes = nodes.nodes.iter().map(|node| json!(node));
    let nodes = nodes.map(|mut node| {
        node["apiVersion"] = "v1".into();
        node["kind"] = "Node".into();
        format!("{node}\n")
    });
    let nodes: String = nodes.collect();
    if !nodes.is_empty() {
        played.push(args.world.made("<nodes>", nodes.into_bytes()));
    }
    let document = change.scenario(args.world.scheduling.seed.unwrap_or(0));
    let document = document.to_string().into_bytes();
    played.push(args.world.made("<change>", document));
    let world = WorldArgs {
        nodes: NodeArgs::default(),
        ..args.world.clone()
    };
    let scenario = ScenarioArgs::default();
    let question = Question {
        // As for programs: with the counts of every step.
        output: Some(Format::Json),
        // strew lint has warnings with the places of the files.
        is_only_errors: true,
        ..Question::of(&scenario, &world, &[])
    };
    let quiet = Context {
        terminal: context.terminal.clone(),
        quiet: true,
        ..*context
    };
    let report = scenario::reported(&question, played, &quiet)?;
    Ok(report.map(|report| Changed {
        facts: by_step(facts(&report)),
        told: change.text(),
        refused: Change::refused(&report),
        wrong: wrong(&report),
    }))
}

/// The objects of the files; `None` if they have errors, which were reported.
fn manifests(inputs: Vec<Input>, context: &Context) -> Option<Manifests> {
    let sources = inputs::sources(inputs);
    let reading = read(&sources);
    let has_errors = reading.has_errors();
    let mut objects = BTreeMap::new();
    let mut locator = Locator::new(&sources);
    for located in &reading.objects {
        if let Some(value) = locator.value(&located.origin) {
            objects.insert(identity(&value), value);
        }
    }
    if has_errors {
        say_diagnostics(&[(reading.diagnostics, &sources)], context);
        return None;
    }
    let has_uid = |value: &Value| value.pointer("/metadata/uid").is_some();
    Some(Manifests {
        is_dump: objects.values().any(has_uid),
        has_nodes: objects.keys().any(|(_, kind, ..)| kind == "Node"),
        objects,
    })
}

fn identity(value: &Value) -> Identity {
    let text = |field: &str| {
        let found = value.pointer(field).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let api_version = text("/apiVersion");
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = text("/kind");
    let is_namespaced = kinds::of_kind(&kind).is_none_or(|row| row.is_namespaced);
    let namespace = match text("/metadata/namespace") {
        _ if !is_namespaced => String::new(),
        namespace if namespace.is_empty() => "default".to_owned(),
        namespace => namespace,
    };
    (group.to_owned(), kind, namespace, text("/metadata/name"))
}

/// The annotation by which `kubectl apply` knows what a field that is gone from a manifest was.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What differs between two versions.
struct Change {
    applied: Vec<Value>,
    /// The identities of these.
    touched: BTreeSet<Identity>,
    deleted: Vec<String>,
    n_new: usize,
    /// The names of the changed ones.
    names: Vec<String>,
}

impl Change {
    fn of(old: &Manifests, new: &Manifests) -> Self {
        let mut change = Self {
            applied: Vec::new(),
            touched: BTreeSet::new(),
            deleted: Vec::new(),
            n_new: 0,
            names: Vec::new(),
        };
        for (identity, value) in &new.objects {
            let before = old.objects.get(identity);
            if before == Some(value) {
                continue;
            }
            change.n_new += usize::from(before.is_none());
            change.names.push(name(identity));
            change.applied.push(value.clone());
            change.touched.insert(identity.clone());
        }
        // Manifests are a part of a cluster: what they do not name stays.
        let gone = old.objects.keys().filter(|_| !old.is_dump);
        let gone = gone.filter(|identity| !new.objects.contains_key(*identity));
        change.deleted.extend(gone.filter_map(target));
        change
    }

    fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.deleted.is_empty()
    }

    /// The first version as a text. What is applied to it later was applied by kubectl: a field that is gone from the
    /// second version is taken away. The objects of a dump have their own annotation, or none.
    fn before(&self, old: &Manifests) -> String {
        let each = old.objects.iter().map(|(identity, value)| {
            let mut value = value.clone();
            if !old.is_dump && self.touched.contains(identity) {
                let written = value.to_string();
                value["metadata"]["annotations"][LAST_APPLIED] = written.into();
            }
            format!("---\n{value}\n")
        });
        each.collect()
    }

    fn scenario(&self, seed: u64) -> Value {
        let step = |name: &str| {
            json!({
                "name": name,
                "rest": {"within": WITHIN},
                "expect": [{"rolledOut": {}}],
            })
        };
        let mut new = step(STEPS[1]);
        if !self.applied.is_empty() {
            new["apply"] = json!(self.applied);
        }
        if !self.deleted.is_empty() {
            new["delete"] = json!(self.deleted);
        }
        json!({
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": "change"},
            "spec": {"seed": seed, "seeds": 1, "timeline": [step(STEPS[0]), new]},
        })
    }

    /// What was refused of the second step of [`Change::scenario`].
    fn refused(report: &Value) -> Vec<Refusal> {
        let text = |refusal: &Value, field: &str| {
            let found = refusal[field].as_str();
            found.unwrap_or_default().to_owned()
        };
        let new = steps(report).filter(|step| step["name"] == STEPS[1]);
        let refused = new.flat_map(|step| step["refused"].as_array().into_iter().flatten());
        let refusal = |refusal: &Value| {
            let verb = text(refusal, "verb");
            Refusal {
                of: match verb.strip_prefix("apply: ") {
                    Some(of) => of.to_owned(),
                    None => verb,
                },
                why: text(refusal, "why"),
            }
        };
        refused.map(refusal).collect()
    }

    /// `1 object changed, 2 new, 1 gone: deployment/web, …`
    fn text(&self) -> String {
        let n_changed = self.applied.len().saturating_sub(self.n_new);
        let mut parts = Vec::new();
        if n_changed > 0 {
            parts.push(format!("{} changed", count(n_changed, "object")));
        }
        if self.n_new > 0 {
            parts.push(format!("{} new", count(self.n_new, "object")));
        }
        if !self.deleted.is_empty() {
            parts.push(format!("{} gone", count(self.deleted.len(), "object")));
        }
        let names: Vec<&str> = self
            .names
            .iter()
            .chain(&self.deleted)
            .map(String::as_str)
            .collect();
        let (first, rest) = names.split_at(names.len().min(NAMES_MAX));
        let more = match rest.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!("{}: {}{more}", parts.join(", "), first.join(", "))
    }
}

fn steps(report: &Value) -> impl Iterator<Item = &Value> {
    let steps = report.pointer("/scenarios/0/variants/0/runs/0/steps");
    steps.and_then(Value::as_array).into_iter().flatten()
}

/// Why expectations of the second step fail that held in the first one.
fn wrong(report: &Value) -> Vec<String> {
    let failed = |name: &str| -> Vec<String> {
        let steps = steps(report).filter(|step| step["name"] == name);
        let all = steps.flat_map(|step| step["expectations"].as_array().into_iter().flatten());
        let broken = all.filter(|outcome| outcome["held"] == false && outcome["open"] != true);
        let why = broken.filter_map(|outcome| outcome["why"].as_str());
        why.filter(|why| !why.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let before = failed(STEPS[0]);
    let mut now = failed(STEPS[1]);
    now.retain(|why| !before.contains(why));
    now
}

/// The most objects that are named.
const NAMES_MAX: usize = 8;

fn name(identity: &Identity) -> String {
    target(identity).unwrap_or_else(|| format!("{}/{}", identity.1, identity.3))
}

/// `shop/deployment/web`, as verbs of scenarios name objects; `None` for a kind that none of them knows.
fn target((_, kind, namespace, name): &Identity) -> Option<String> {
    let type_name = kinds::of_kind(kind)?;
    let target = ObjectTarget {
        type_name,
        namespace: type_name.is_namespaced.then(|| namespace.clone()),
        name: name.clone(),
    };
    Some(target.to_string())
}

/// The values of each step, at one moment.
fn by_step(all: Facts) -> [Facts; 2] {
    let mut steps = [Facts::new(), Facts::new()];
    for (mut place, values) in all {
        let step = place.moment.last().map(|(_, name)| name.as_str());
        if let Some(index) = STEPS.iter().position(|name| Some(*name) == step) {
            place.moment = vec![(0, "with the change".to_owned())];
            steps[index].insert(place, values);
        }
    }
    steps
}
