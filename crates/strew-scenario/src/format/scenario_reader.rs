//! Reads a scenario from its document and reports every mistake.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde_json::Value;
use strew_model::Span;
use strew_wire::config::FeatureGates;

use super::claim_parts;
use super::diagnostics;
use super::expectation::Expectation;
use super::expectation_reader;
use super::node_group::{self, NodeGroup};
use super::problems::Problems;
use super::scenario::{Rest, Scenario, Step};
use super::target::{DEFAULT_NAMESPACE, Targets};
use super::timing;
use super::value::{At, Fields};
use super::verb::{LocatedVerb, Verb};
use super::verb_reader;
use super::vocabulary::{DOCUMENT, METADATA, REST, SPEC, STEP};

/// The version of Kubernetes that strew models.
const KUBERNETES: &str = "1.36";

/// The most seeds of one variant.
pub const SEEDS_MAX: u32 = 1_000_000;

/// Reads the document with its parameters put in, without variants. Reports what cannot be read and leaves it out.
pub(super) fn read(document: &Value, problems: &mut Problems) -> Scenario {
    let mut scenario = Scenario {
        name: String::new(),
        namespace: DEFAULT_NAMESPACE.to_owned(),
        annotations: BTreeMap::new(),
        seeds: NonZeroU32::MIN,
        feature_gates: FeatureGates::default(),
        node_groups: Vec::new(),
        autoscaler: None,
        timing: timing::Timing::default(),
        params: BTreeMap::new(),
        until: None,
        seed: 1,
        always: Vec::new(),
        timeline: Vec::new(),
        timeline_mentions: Vec::new(),
        always_mentions: Vec::new(),
    };
    let Some(fields) = At::root(document).fields(&DOCUMENT, problems) else {
        return scenario;
    };
    if let Some(at) = fields.required("metadata", problems) {
        metadata(&at, &mut scenario, problems);
    }
    let Some(fields) = fields.get("spec").and_then(|at| at.fields(&SPEC, problems)) else {
        return scenario;
    };
    spec(&fields, &mut scenario, problems);
    scenario
}

fn metadata(at: &At<'_>, scenario: &mut Scenario, problems: &mut Problems) {
    let Some(fields) = at.fields(&METADATA, problems) else {
        return;
    };
    let name = fields.required("name", problems);
    if let Some(name) = name.and_then(|at| at.name(problems)) {
        scenario.name = name.to_owned();
    }
    let namespace = fields.get("namespace");
    if let Some(namespace) = namespace.and_then(|at| at.name(problems)) {
        scenario.namespace = namespace.to_owned();
    }
    if let Some(at) = fields.get("annotations") {
        scenario.annotations = claim_parts::texts(&at, problems);
    }
    if let Some(at) = fields.get("labels") {
        claim_parts::texts(&at, problems);
    }
}

fn spec(fields: &Fields<'_>, scenario: &mut Scenario, problems: &mut Problems) {
    if let Some(at) = fields.get("kubernetes") {
        kubernetes(&at, problems);
    }
    if let Some(seeds) = fields.get("seeds").and_then(|at| seeds(&at, problems)) {
        scenario.seeds = seeds;
    }
    if let Some(seed) = fields.get("seed").and_then(|at| at.count(problems)) {
        scenario.seed = seed.into();
    }
    if let Some(at) = fields.get("featureGates") {
        let given = verb_reader::gates(&at, problems);
        let given = given.iter().map(|(name, value)| (name.as_str(), *value));
        scenario.feature_gates = FeatureGates::of(given).unwrap_or_default();
    }
    if let Some(at) = fields.get("nodeGroups") {
        scenario.node_groups = node_groups(&at, problems);
    }
    if let Some(at) = fields.get("autoscaler") {
        scenario.autoscaler = Some(timing::autoscaler(&at, problems));
        if fields.get("nodeGroups").is_none() {
            problems.add_key(&at.path, diagnostics::nothing_to_scale());
        }
    }
    if let Some(at) = fields.get("timing") {
        scenario.timing = timing::timing(&at, problems);
    }
    if let Some(params) = fields.get("params").and_then(|at| at.value.as_object()) {
        let numbers = params.iter();
        let numbers = numbers.filter_map(|(k, v)| Some((k.clone(), v.as_number()?.clone())));
        scenario.params = numbers.collect();
    }
    let namespace = scenario.namespace.clone();
    let mentions = RefCell::default();
    let targets = Targets {
        namespace: &namespace,
        mentions: &mentions,
    };
    if let Some(at) = fields.get("always") {
        scenario.always = always(&at, targets, problems);
        scenario.always_mentions = mentions.take();
    }
    if let Some(at) = fields.get("timeline") {
        scenario.timeline = timeline(&at, targets, problems);
        scenario.timeline_mentions = mentions.take();
    }
    if let Some(at) = fields.get("until") {
        scenario.until = at.span(problems);
        let mut steps = scenario.timeline.iter().rev();
        let last = steps.find_map(|step| Some((step, step.at?)));
        if let (Some(until), Some((last, last_at))) = (scenario.until, last)
            && until < last_at
        {
            let error = diagnostics::ends_early(until, last_at);
            problems.add_pair(&at.path, error, &last.path.child("at"), "the last step");
        }
    }
}

fn kubernetes(at: &At<'_>, problems: &mut Problems) {
    if at.value.as_str() != Some(KUBERNETES) {
        problems.add(&at.path, diagnostics::unsupported_kubernetes(at.value));
    }
}

fn seeds(at: &At<'_>, problems: &mut Problems) -> Option<NonZeroU32> {
    let seeds = at.count(problems)?;
    if seeds > SEEDS_MAX {
        problems.add(&at.path, diagnostics::too_many_seeds(SEEDS_MAX));
        return None;
    }
    let seeds = NonZeroU32::new(seeds);
    if seeds.is_none() {
        problems.add(&at.path, diagnostics::no_seeds());
    }
    seeds
}

fn node_groups(at: &At<'_>, problems: &mut Problems) -> Vec<NodeGroup> {
    let mut groups: Vec<NodeGroup> = Vec::new();
    let mut names = BTreeMap::new();
    for at in at.list(problems) {
        let Some(group) = node_group::read(&at, problems) else {
            continue;
        };
        let path = at.path.child("name");
        if let Some(first) = names.insert(group.name.clone(), path.clone()) {
            let error = diagnostics::same_name("nodeGroup", &group.name);
            problems.add_pair(&path, error, &first, "first here");
        }
        groups.push(group);
    }
    groups
}

fn always(at: &At<'_>, targets: Targets<'_>, problems: &mut Problems) -> Vec<Expectation> {
    let always = expectation_reader::read_all(at, targets, problems);
    for expectation in &always {
        let given = [
            ("within", expectation.within.is_some()),
            ("for", expectation.lasts.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
            let path = expectation.path.child(name);
            problems.add_key(&path, diagnostics::always_is_always(name));
        }
    }
    always
}

fn timeline(at: &At<'_>, targets: Targets<'_>, problems: &mut Problems) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for at in at.list(problems) {
        let Some(step) = step(&at, targets, problems) else {
            continue;
        };
        check_order(&step, steps.last(), problems);
        if let Some(name) = &step.name {
            let mut named = steps.iter().filter(|other| other.name == step.name);
            if let Some(first) = named.next() {
                let error = diagnostics::same_name("step", name);
                let (here, there) = (step.path.child("name"), first.path.child("name"));
                problems.add_pair(&here, error, &there, "first here");
            }
        }
        steps.push(step);
    }
    steps
}

/// A step has a time, unless it begins when the previous step ends.
fn check_order(step: &Step, before: Option<&Step>, problems: &mut Problems) {
    let here = step.path.child("at");
    match (step.at, before) {
        (Some(at), Some(before)) if before.rest.is_some() => {
            let error = diagnostics::after_rest(at);
            let there = before.path.child("rest");
            problems.add_pair(&here, error, &there, "it waits for rest");
        }
        (
            Some(at),
            Some(Step {
                at: Some(last),
                path,
                ..
            }),
        ) if *last > at => {
            let error = diagnostics::out_of_order(at, *last);
            let there = path.child("at");
            problems.add_pair(&here, error, &there, "later than the step after it");
        }
        (None, Some(Step { rest: None, .. })) => {
            problems.add(&step.path, diagnostics::missing("at"));
        }
        // The first step may begin with the run if it waits for rest.
        (None, None) if step.rest.is_none() => {
            problems.add(&step.path, diagnostics::missing("at"));
        }
        _ => {}
    }
}

fn rest(at: &At<'_>, problems: &mut Problems) -> Rest {
    let usual = Rest::default();
    let Some(fields) = at.fields(&REST, problems) else {
        return usual;
    };
    let mut span = |name, usual| {
        let given = fields.get(name).and_then(|at| at.span(problems));
        given.unwrap_or(usual)
    };
    let read = Rest {
        quiet: span("quiet", usual.quiet),
        within: span("within", usual.within),
    };
    if read.quiet == Span(0) {
        problems.add(&fields.path().child("quiet"), diagnostics::no_time());
    }
    read
}

fn step(at: &At<'_>, targets: Targets<'_>, problems: &mut Problems) -> Option<Step> {
    let fields = at.fields(&STEP, problems)?;
    let given = fields.get("at");
    let moment = given.as_ref().and_then(|at| at.span(problems));
    let name = fields.get("name").and_then(|at| at.name(problems));
    let rest = fields.get("rest").map(|at| rest(&at, problems));
    let mut verbs = Vec::new();
    let is_verb = |(name, _): &(&str, At<'_>)| !matches!(*name, "name" | "at" | "rest" | "expect");
    for (name, at) in fields.present().filter(is_verb) {
        verbs.extend(verb_reader::read(name, &at, targets, problems));
    }
    // Expectations are read after the verbs, wherever they are written: they hold after the verbs.
    let expect = fields.get("expect");
    let expect = expect.map(|at| expectation_reader::read_all(&at, targets, problems));
    check_made_once(&verbs, problems);
    Some(Step {
        name: name.map(str::to_owned),
        at: moment,
        rest,
        verbs,
        expect: expect.unwrap_or_default(),
        path: at.path.clone(),
    })
    // A wrong time was reported already.
    .filter(|_| moment.is_some() || given.is_none())
}

/// `apply` and `create` of one step must not name the same object.
fn check_made_once(verbs: &[LocatedVerb], problems: &mut Problems) {
    let of = |wanted: fn(&Verb) -> bool| verbs.iter().filter(move |v| wanted(&v.verb));
    let manifests = |located: &LocatedVerb| match &located.verb {
        Verb::Apply(manifests) | Verb::Create(manifests) => manifests.clone(),
        _ => Vec::new(),
    };
    let applied: Vec<_> = of(|v| matches!(v, Verb::Apply(_)))
        .flat_map(manifests)
        .collect();
    for created in of(|v| matches!(v, Verb::Create(_))).flat_map(manifests) {
        let label = created.object.label();
        if let Some(other) = applied.iter().find(|other| other.object.label() == label) {
            let error = diagnostics::made_twice(&label);
            problems.add_pair(&created.path, error, &other.path, "applied here");
        }
    }
}
