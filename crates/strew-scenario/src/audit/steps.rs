//! The steps of a case: the story's first one, and the event.

use std::collections::BTreeSet;

use strew_apiserver::object::{Key, Object};
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::KindRow;
use strew_manifest::read::{KubeObject, embedded};
use strew_model::Span;

use super::fix::Edit;
use super::values::Event;
use super::{Question, domains};
use crate::format::{
    Claim, Expectation, LocatedVerb, Manifest, NodeTarget, ObjectTarget, Patch, Rest,
    RolloutAction, Step, Target, Verb, merge,
};
use crate::run::Plan;
use crate::story;

/// The time for a cluster to come to rest without a domain: that of the story, and more for large domains.
fn away_within(n_nodes: usize) -> Span {
    Span::from_secs(story::lost_within(n_nodes as u64))
}

/// A node whose pods are not evicted after this time is left: with budgets that admit one pod at a time, a node with a
/// hundred pods takes less.
const DRAIN_TIMEOUT: Span = Span::from_secs(30 * 60);

/// The longest drain that is played.
const DRAIN_WITHIN: Span = Span::from_secs(7 * 24 * 60 * 60);

/// The index of the event's step.
pub(super) const EVENT_STEP: usize = 1;

/// The plan of a case, with these edits done before anything else.
pub(super) fn plan(base: &Plan, question: &Question, edits: &[Edit]) -> Plan {
    let mut begin = base.scenario().timeline.first().cloned();
    let mut changed = Vec::new();
    if let Some(begin) = &mut begin {
        begin.expect.clear();
        for edit in edits {
            match before_creation(base, edit) {
                Some(object) => changed.push(object),
                None => begin.verbs.push(located(verb(edit))),
            }
        }
    }
    let event = event(base, question);
    let plan = base.with_timeline(begin.into_iter().chain([event]).collect());
    changed.into_iter().fold(plan, Plan::with_object)
}

/// The patched object, if it is a manifest that no cluster has created yet: such an object is not stored before second 0,
/// and its owner changes the file.
fn before_creation(base: &Plan, edit: &Edit) -> Option<Object> {
    let Edit::Merge { target, patch } = edit else {
        return None;
    };
    let key = target.key();
    let object = base.objects().iter().find(|object| object.key() == key)?;
    if !object.meta().uid.is_empty() {
        return None;
    }
    let mut value = object.to_json();
    merge(&mut value, patch);
    let patched = embedded(value).ok()?;
    Some(Object::of_wire(patched))
}

fn verb(edit: &Edit) -> Verb {
    match edit {
        Edit::Merge { target, patch } => Verb::Patch(vec![(
            Target::Object(target.clone()),
            Patch::Merge(patch.clone()),
        )]),
        Edit::Nodes { nodes, .. } => {
            let manifests = nodes.iter().map(|node| {
                let object = KubeObject::from(node.clone());
                Manifest {
                    value: object.to_json(),
                    object,
                    path: FieldPath::root(),
                }
            });
            Verb::Create(manifests.collect())
        }
    }
}

fn event(base: &Plan, question: &Question) -> Step {
    let named = |domain: &String| NodeTarget::Label(question.key.clone(), domain.clone());
    let nodes: Vec<NodeTarget> = question.domains.iter().map(named).collect();
    let (all, _) = domains(base.objects(), &question.key);
    let away_now = all
        .iter()
        .filter(|domain| question.domains.contains(&domain.name));
    let n_nodes = away_now.map(|domain| domain.nodes).sum();
    let (verbs, rest) = match question.event {
        Event::Loss => (vec![Verb::Lose(nodes)], away(n_nodes)),
        Event::Shift => {
            let restart = Verb::Rollout(RolloutAction::Restart, restarted(base));
            (vec![Verb::Shift(nodes), restart], away(n_nodes))
        }
        Event::Drain => {
            let timeout = Some(DRAIN_TIMEOUT);
            let rest = Rest {
                within: DRAIN_WITHIN,
                ..Rest::default()
            };
            let must_fail = false;
            let drain = Verb::Drain {
                nodes,
                timeout,
                must_fail,
            };
            (vec![drain], rest)
        }
    };
    let survives = Expectation {
        claim: Claim::Survives(None),
        within: None,
        lasts: None,
        at_rest: false,
        is_negated: false,
        warns: false,
        text: "survives: {}".to_owned(),
        path: FieldPath::root(),
        place: None,
    };
    Step {
        name: Some(question.event.name().to_owned()),
        at: None,
        rest: Some(rest),
        verbs: verbs.into_iter().map(located).collect(),
        expect: vec![survives],
        path: FieldPath::root(),
    }
}

fn away(n_nodes: usize) -> Rest {
    Rest {
        within: away_within(n_nodes),
        ..Rest::default()
    }
}

fn located(verb: Verb) -> LocatedVerb {
    LocatedVerb {
        verb,
        path: FieldPath::root(),
        place: None,
        text: String::new(),
    }
}

/// The workloads that `kubectl rollout restart` restarts.
fn restarted(base: &Plan) -> Vec<ObjectTarget> {
    let first = base.scenario().timeline.iter().take(1);
    let applied = first.flat_map(|step| &step.verbs);
    let applied = applied.flat_map(|located| match &located.verb {
        Verb::Apply(manifests) => manifests.as_slice(),
        _ => &[],
    });
    let applied = applied.map(|manifest| Object::of_wire(manifest.object.clone()));
    let all = base.objects().iter().cloned().chain(applied);
    let keys: BTreeSet<Key> = all
        .filter(is_restarted)
        .map(|object| object.key())
        .collect();
    keys.iter().filter_map(ObjectTarget::of_key).collect()
}

fn is_restarted(object: &Object) -> bool {
    match object {
        Object::Deployment(deployment) => deployment.spec.paused != Some(true),
        object => object.kind().row().is_some_and(KindRow::rolls_replicas),
    }
}
