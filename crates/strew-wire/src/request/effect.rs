//! Requests for the effects of a scheduler.

use serde_json::{Map, Value, json};
use strew_model::time::Instant;
use strew_model::{Interner, Symbol};
use strew_scheduler::machine::{Condition, Effect, PodName};

use super::{Precondition, Request, Resource, Verb, event, time};

/// The inputs of a request beside its effect.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The interner of the cluster.
    pub names: &'a Interner,
    /// The wall clock's time.
    pub now: Instant,
    /// The name of this host or instance, part of `reportingInstance`.
    pub hostname: &'a str,
    /// `metadata.generation` of the effect's pod; `None` if unknown.
    pub generation: Option<i64>,
    /// Since when `PodScheduled` of the effect's pod has been False; this time is kept.
    pub unscheduled_since: Option<Instant>,
}

/// The requests of an effect, in order; each is sent after the previous one has succeeded.
pub fn requests_of(effect: &Effect, cx: &Context<'_>) -> Vec<Request> {
    match effect {
        Effect::Bind { pod, node, .. } => vec![bind(pod, *node, cx)],
        Effect::PodCondition { pod, condition, .. } => {
            vec![status(pod, pod_scheduled(condition, cx), cx)]
        }
        Effect::Nominate { pod, node, .. } => {
            let node = node.map(|node| cx.names.text(node));
            vec![status(pod, json!({ "nominatedNodeName": node }), cx)]
        }
        Effect::DeleteVictim {
            victim, message, ..
        } => vec![
            status(victim, disruption_target(message, cx), cx),
            delete(victim, cx),
        ],
        Effect::Event(event) => vec![event::create(event, cx)],
    }
}

/// Source: spec/scheduler §3.15.
fn bind(pod: &PodName, node: Symbol, cx: &Context<'_>) -> Request {
    let namespace = cx.names.text(pod.namespace);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": &*pod.name, "namespace": namespace, "uid": &*pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": cx.names.text(node)},
    });
    of_pod(Verb::Create, pod, "binding", body, cx)
}

/// Source: spec/scheduler §5.8. The list of conditions is merged by type, so the others stay.
fn pod_scheduled(condition: &Condition, cx: &Context<'_>) -> Value {
    let since = cx.unscheduled_since.unwrap_or(cx.now);
    let told = [
        ("type", "PodScheduled"),
        ("status", "False"),
        ("reason", condition.reason.name()),
        ("message", &condition.message),
    ];
    one_condition(&told, since, cx)
}

/// Source: spec/scheduler §3.16, 6.
fn disruption_target(message: &str, cx: &Context<'_>) -> Value {
    let told = [
        ("type", "DisruptionTarget"),
        ("status", "True"),
        ("reason", "PreemptionByScheduler"),
        ("message", message),
    ];
    one_condition(&told, cx.now, cx)
}

fn one_condition(told: &[(&str, &str)], since: Instant, cx: &Context<'_>) -> Value {
    let mut condition: Map<String, Value> = told
        .iter()
        .map(|&(key, text)| (key.to_owned(), text.into()))
        .collect();
    condition.insert("lastTransitionTime".to_owned(), time(since).into());
    if let Some(generation) = cx.generation {
        condition.insert("observedGeneration".to_owned(), generation.into());
    }
    json!({ "conditions": [condition] })
}

/// A patch with a uid fails for another pod of this name, because the uid of an object cannot change.
fn status(pod: &PodName, status: Value, cx: &Context<'_>) -> Request {
    let body = json!({ "metadata": {"uid": &*pod.uid}, "status": status });
    of_pod(Verb::Patch, pod, "status", body, cx)
}

fn delete(pod: &PodName, cx: &Context<'_>) -> Request {
    let body = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": &*pod.uid},
    });
    of_pod(Verb::Delete, pod, "", body, cx)
}

fn of_pod(
    verb: Verb,
    pod: &PodName,
    subresource: &'static str,
    body: Value,
    cx: &Context<'_>,
) -> Request {
    Request {
        verb,
        resource: Resource::PODS,
        namespace: cx.names.text(pod.namespace).to_owned(),
        name: pod.name.to_string(),
        subresource,
        body,
        precondition: Precondition::uid(&pod.uid),
    }
}
