//! Kinds `pts`, `pts-update` and `queueing-hint`: PodTopologySpread alone.

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use strew_cluster::{NodeIdx, PodFact, SpreadConstraint};
use strew_scheduler::Refusal;
use strew_scheduler::plugins::pod_topology_spread::hint::{
    Hint, Other, Waiting, after_node, after_pod,
};
use strew_scheduler::plugins::pod_topology_spread::update::Trial;
use strew_scheduler::plugins::pod_topology_spread::{SpreadPlan, filter, score};

use super::answer::{refusal, sorted};
use super::case::{CaseCluster, node_fact, pod_fact};

/// The plugin's verdicts and scores.
pub(crate) fn plugin(case: &Value) -> anyhow::Result<Map<String, Value>> {
    let mut world = CaseCluster::of(case)?;
    let pod = world.add_pod(&case["pod"])?;
    let class = world.cluster.pod(pod).class;
    world.cluster.refresh_order();
    let plan = world.engine.plan(&mut world.cluster, class).spread.clone();
    let (mut fields, feasible) = verdicts(&world, &plan, |node| {
        filter::filter(&world.cluster, &plan, node)
    });

    let nodes = match case["scoreNodes"].as_array() {
        None => feasible,
        Some(named) => named
            .iter()
            .map(|name| find_node(&world, name))
            .collect::<anyhow::Result<_>>()?,
    };
    if nodes.is_empty() {
        return Ok(fields);
    }
    let (mut normalized, mut raw) = (Vec::new(), Vec::new());
    let mut space = score::Workspace::default();
    let scored = score::score(
        &world.cluster,
        &plan,
        score::Scored::each(&nodes),
        &mut space,
        &mut normalized,
        Some(&mut raw),
    );
    fields.insert(
        "preScore".to_owned(),
        json!(if scored { "Success" } else { "Skip" }),
    );
    if scored {
        let each = nodes
            .iter()
            .zip(raw)
            .zip(normalized)
            .map(|((&node, raw), normalized)| {
                (
                    world.name(node).to_owned(),
                    json!({"raw": raw, "normalized": normalized}),
                )
            });
        fields.insert("scores".to_owned(), Value::Object(each.collect()));
    }
    Ok(fields)
}

fn find_node(world: &CaseCluster, name: &Value) -> anyhow::Result<NodeIdx> {
    let symbol = name.as_str().and_then(|n| world.cluster.names.get(n));
    symbol
        .and_then(|s| world.cluster.find_node(s))
        .with_context(|| format!("no node {name}"))
}

fn verdicts(
    world: &CaseCluster,
    plan: &SpreadPlan,
    filter: impl Fn(NodeIdx) -> Option<Refusal>,
) -> (Map<String, Value>, Vec<NodeIdx>) {
    let mut rejected = Map::new();
    let mut feasible = Vec::new();
    for &node in world.cluster.node_order() {
        match filter(node) {
            None => feasible.push(node),
            Some(why) => {
                rejected.insert(
                    world.name(node).to_owned(),
                    refusal(&why, &world.cluster.names, false),
                );
            }
        }
    }
    let pre_filter = if plan.hard.is_empty() {
        "Skip"
    } else {
        "Success"
    };
    let fields = [
        ("preFilter", json!(pre_filter)),
        ("rejected", Value::Object(rejected)),
        (
            "feasible",
            sorted(feasible.iter().map(|&n| world.name(n)).collect()),
        ),
    ];
    (
        fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        feasible,
    )
}

/// The plugin's state and verdicts after a pod was added or removed.
pub(crate) fn update(case: &Value) -> anyhow::Result<Map<String, Value>> {
    let mut world = CaseCluster::of(case)?;
    let pod = world.add_pod(&case["pod"])?;
    let class = world.cluster.pod(pod).class;
    let change = &case["update"];
    let delta = match change["kind"].as_str() {
        Some("add") => 1,
        Some("remove") => -1,
        other => bail!("update kind {other:?}"),
    };
    let node = find_node(&world, &change["node"])?;
    // The other pod's class is known although the pod is on no node.
    let mut other = pod_fact(&change["pod"], &mut world.cluster.names)?
        .context("the updated pod has finished")?;
    other.node = None;
    other.uid = format!("{} (as updated)", other.uid).into();
    let other = world.cluster.set_pod(other);
    let other = world.cluster.pod(other).class;
    world.cluster.refresh_order();
    let plan = world.engine.plan(&mut world.cluster, class).spread.clone();
    let mut trial = Trial::new(&world.cluster, &plan);
    trial.update(&world.cluster, &plan, class, other, node, delta);
    let (mut fields, _) = verdicts(&world, &plan, |node| {
        trial.filter(&world.cluster, &plan, node)
    });
    if case["expected"].get("hardState").is_some() {
        fields.insert("hardState".to_owned(), hard_state(&world, &plan, &trial));
    }
    Ok(fields)
}

fn hard_state(world: &CaseCluster, plan: &SpreadPlan, trial: &Trial) -> Value {
    let mut counts = Vec::new();
    let mut minima = Vec::new();
    for (place, constraint) in plan.hard.iter().enumerate() {
        let tally = trial.tally(place);
        let column = world.cluster.column(constraint.key);
        let each = tally.existing().map(|domain| {
            (
                world.cluster.names.text(column.value(domain)).to_owned(),
                json!(tally.count(domain)),
            )
        });
        counts.push(Value::Object(each.collect()));
        minima.push(constraint.limit.minimum(tally).value());
    }
    json!({"counts": counts, "min": minima})
}

/// Whether an event makes a refused pod worth another try.
pub(crate) fn hint(case: &Value) -> anyhow::Result<Map<String, Value>> {
    let mut world = CaseCluster::of(&json!({"cluster": {}, "config": case["config"]}))?;
    let pod = world.add_pod(&case["pod"])?;
    let class = world.cluster.pod(pod).class;
    let plan = world.engine.plan(&mut world.cluster, class).spread.clone();
    let hard: Vec<SpreadConstraint> = plan
        .effective
        .constraints
        .iter()
        .filter(|c| c.hard)
        .cloned()
        .collect();
    let present = |field: &str| case.get(field).filter(|v| !v.is_null());
    let (old, new) = (present("old"), present("new"));
    let names = &mut world.cluster.names;
    let hint = match case["event"].as_str() {
        Some("node") => {
            let old = old.map(|o| node_fact(o, names)).transpose()?;
            let new = new.map(|n| node_fact(n, names)).transpose()?;
            after_node(&hard, old.as_ref(), new.as_ref())
        }
        Some("pod") => {
            let mut read = |item: &Value| -> anyhow::Result<(PodFact, bool)> {
                let nominated = item["status"]["nominatedNodeName"]
                    .as_str()
                    .is_some_and(|n| !n.is_empty());
                // A hint is asked about a pod whatever its phase.
                let mut item = item.clone();
                item["status"] = json!({});
                let fact = pod_fact(&item, names)?.context("a pod of an event")?;
                let placed = fact.node.is_some() || nominated;
                Ok((fact, placed))
            };
            let old = old.map(&mut read).transpose()?;
            let new = new.map(&mut read).transpose()?;
            let waiting = pod_fact(&case["pod"], names)?.context("the waiting pod")?;
            let waiting = Waiting {
                uid: &waiting.uid,
                namespace: waiting.namespace,
                hard: &hard,
            };
            after_pod(waiting, old.as_ref().map(other), new.as_ref().map(other))
        }
        unknown => bail!("event {unknown:?}"),
    };
    let hint = match hint {
        Hint::Queue => "Queue",
        Hint::Skip => "QueueSkip",
    };
    Ok([("hint".to_owned(), json!(hint))].into_iter().collect())
}

fn other((fact, placed): &(PodFact, bool)) -> Other<'_> {
    Other {
        uid: &fact.uid,
        namespace: fact.namespace,
        labels: &fact.labels,
        tolerations: &fact.spec.tolerations,
        placed: *placed,
    }
}
