//! Kind `preemption`: a pod that fits nowhere, and its victims.

use anyhow::bail;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Map, Value, json};
use strew_cluster::PodIdx;
use strew_scheduler::preemption::{
    Budgets, Candidate, Eviction, Nomination, Nominations, NotHelped, Outcome, Preemption, preempt,
};
use strew_scheduler::{Decision, Unfit};
use strew_wire::facts;

use super::answer::{refusal, sorted};
use super::case::CaseCluster;
use super::decode;
use super::whole::{pre_filter, rejected_nodes};

/// 1 January 2025: all times of the vectors lie in 2024.
const NOW_S: i64 = 1_735_689_600;

/// The failed attempt, and the result of preemption.
pub(crate) fn preemption(case: &Value) -> anyhow::Result<Map<String, Value>> {
    let mut world = CaseCluster::of(case)?;
    let pod = world.add_pod(&case["pod"])?;
    let mut budgets = Budgets::default();
    let described = case["cluster"]["podDisruptionBudgets"].as_array();
    for item in described.into_iter().flatten() {
        let wire: PodDisruptionBudget = decode(item, "a PodDisruptionBudget")?;
        facts::set_budget(&wire, &mut world.cluster, &mut budgets);
    }
    let nominations = Nominations::of(&world.cluster);
    let decision = world
        .engine
        .decide_with(&mut world.cluster, pod, &nominations);
    let Decision::Unfit(unfit) = decision else {
        // Not an error of the file: strew decides otherwise than kube-scheduler.
        let outcome = json!(format!("the pod fits: {decision:?}"));
        return Ok([("outcome".to_owned(), outcome)].into_iter().collect());
    };
    let evaluation = world.engine.evaluate(&mut world.cluster, pod);
    let (engine, cluster) = (&mut world.engine, &mut world.cluster);
    let found = preempt(engine, cluster, pod, &unfit, &budgets, &nominations, NOW_S);
    if let Err(why) = world.cluster.audit() {
        bail!("preemption changed the cluster: {why}");
    }
    let mut fields = Map::new();
    let mut set = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    set("preFilter", pre_filter(&world, &evaluation));
    set("rejected", rejected_nodes(&world, Some(&unfit)));
    set("outcome", json!(outcome(&found)));
    set("acceptable", acceptable(&world, &found, case));
    set("candidates", candidates(&world, &found, case));
    set("notHelped", not_helped(&world, &found));
    set("postFilter", post_filter(&world, &found));
    set("message", message(&world, &found, &unfit));
    Ok(fields)
}

fn outcome(found: &Preemption) -> &'static str {
    match found.outcome {
        Outcome::Preempt(_) => "preempt",
        Outcome::NotEligible(_) => "not-eligible",
        Outcome::NoCandidate => "no-candidate",
        Outcome::ClaimsNotFound => "error",
        Outcome::FitsAsItIs => "fits-as-it-is",
        Outcome::NotAsked(_) => "not-asked",
    }
}

/// All choices that kube-scheduler may make, if strew's choice is one of them; otherwise strew's choice.
fn acceptable(world: &CaseCluster, found: &Preemption, case: &Value) -> Value {
    let Outcome::Preempt(eviction) = &found.outcome else {
        return json!([]);
    };
    one_of(
        &case["expected"]["acceptable"],
        eviction_written(world, eviction),
    )
}

/// The list, if it contains `ours`; otherwise `ours` alone.
fn one_of(theirs: &Value, ours: Value) -> Value {
    match theirs.as_array() {
        Some(list) if list.contains(&ours) => theirs.clone(),
        _ => json!([ours]),
    }
}

fn eviction_written(world: &CaseCluster, eviction: &Eviction) -> Value {
    let mut written = json!({
        "nominatedNode": world.name(eviction.node),
        "victims": pods(world, &eviction.victims),
        "numPDBViolations": eviction.violations,
        "deleted": pods(world, &eviction.deleted),
    });
    if !eviction.cleared.is_empty() {
        written["clearedNominations"] = pods(world, &eviction.cleared);
    }
    written
}

fn candidates(world: &CaseCluster, found: &Preemption, case: &Value) -> Value {
    let of_node = |candidate: &Candidate| {
        let node = world.name(candidate.node);
        let ours = json!({
            "victims": pods(world, &candidate.victims),
            "numPDBViolations": candidate.violations,
        });
        let theirs = &case["expected"]["candidates"][node];
        (node.to_owned(), one_of(theirs, ours))
    };
    Value::Object(found.candidates.iter().map(of_node).collect())
}

fn not_helped(world: &CaseCluster, found: &Preemption) -> Value {
    let names = &world.cluster.names;
    let each = found.not_helped.iter().map(|(node, why)| {
        let written = match why {
            NotHelped::Refused(why) => refusal(why, names, true),
            why => json!({
                "code": why.code().name(),
                "reasons": why.reasons(world.name(*node), names),
            }),
        };
        (world.name(*node).to_owned(), written)
    });
    Value::Object(each.collect())
}

fn post_filter(world: &CaseCluster, found: &Preemption) -> Value {
    let nomination = match found.nomination() {
        Nomination::Set(_) => "set",
        Nomination::Clear => "clear",
        Nomination::Keep => "keep",
    };
    json!({
        "code": found.code().map_or("Success", |code| code.name()),
        "message": found.post_filter_message(&world.cluster),
        "nomination": nomination,
    })
}

fn message(world: &CaseCluster, found: &Preemption, unfit: &Unfit) -> Value {
    json!(found.message(unfit, &world.cluster))
}

/// Pods as `namespace/name`, in byte order.
fn pods(world: &CaseCluster, pods: &[PodIdx]) -> Value {
    let text = |&pod: &PodIdx| {
        let namespace = world.cluster.class_of(pod).key.namespace;
        let namespace = world.cluster.names.text(namespace);
        format!("{namespace}/{}", world.cluster.pod(pod).name)
    };
    let names: Vec<String> = pods.iter().map(text).collect();
    sorted(names.iter().map(String::as_str).collect())
}
