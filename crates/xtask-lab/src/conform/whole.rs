//! Kinds `profile` and `sequence`: the whole default profile.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use strew_cluster::NodeIdx;
use strew_scheduler::{Decision, Evaluation, Unfit};

use super::answer::{is_narrowed_out, refusal, sorted};
use super::case::CaseCluster;

/// One scheduling cycle, with every number.
pub(crate) fn profile(case: &Value) -> anyhow::Result<Map<String, Value>> {
    let mut world = CaseCluster::of(case)?;
    let pod = world.add_pod(&case["pod"])?;
    let evaluation = world.engine.evaluate(&mut world.cluster, pod);
    let mut fields = Map::new();
    let mut set = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    set("preFilter", pre_filter(&world, &evaluation));
    set(
        "skippedFilter",
        sorted(
            evaluation
                .skipped_filters
                .iter()
                .map(|p| p.name())
                .collect(),
        ),
    );
    set("rejected", rejected(&world, &evaluation));
    set(
        "feasible",
        sorted(evaluation.feasible.iter().map(|&n| world.name(n)).collect()),
    );
    set("best", sorted(best(&world, &evaluation)));
    if evaluation.feasible.len() > 1 {
        let unscored = evaluation.scores.iter().filter(|s| s.scores.is_empty());
        set(
            "skippedScore",
            sorted(unscored.map(|s| s.plugin.name()).collect()),
        );
        set("scores", scores(&world, &evaluation));
    }
    Ok(fields)
}

pub(super) fn pre_filter(world: &CaseCluster, evaluation: &Evaluation) -> Value {
    if let Some(Unfit::PreFilter(why)) = &evaluation.refused {
        return refusal(why, &world.cluster.names, true);
    }
    let mut written = json!({"code": "Success"});
    if let Some(names) = &evaluation.narrowed {
        let names = names.iter().map(|&name| world.cluster.names.text(name));
        written["nodeNames"] = sorted(names.collect());
    }
    written
}

fn rejected(world: &CaseCluster, evaluation: &Evaluation) -> Value {
    rejected_nodes(world, evaluation.refused.as_ref())
}

/// Each refused node with its refusal.
pub(super) fn rejected_nodes(world: &CaseCluster, unfit: Option<&Unfit>) -> Value {
    let Some(Unfit::EveryNode(refusals)) = unfit else {
        return json!({});
    };
    let each = refusals.iter().map(|(node, why)| {
        (
            world.name(node).to_owned(),
            refusal(why, &world.cluster.names, true),
        )
    });
    Value::Object(each.collect())
}

fn best<'a>(world: &'a CaseCluster, evaluation: &Evaluation) -> Vec<&'a str> {
    evaluation
        .best
        .iter()
        .map(|&place| world.name(evaluation.feasible[place]))
        .collect()
}

fn scores(world: &CaseCluster, evaluation: &Evaluation) -> Value {
    let of_node = |(place, &node): (usize, &NodeIdx)| {
        let scored = evaluation.scores.iter().filter(|s| !s.scores.is_empty());
        let plugins: Map<String, Value> = scored
            .map(|s| {
                (
                    s.plugin.name().to_owned(),
                    json!(s.weight * i64::from(s.scores[place])),
                )
            })
            .collect();
        (
            world.name(node).to_owned(),
            json!({"total": evaluation.totals[place], "plugins": plugins}),
        )
    };
    Value::Object(
        evaluation
            .feasible
            .iter()
            .enumerate()
            .map(of_node)
            .collect(),
    )
}

/// Pods one after another, each put on its node before the next.
pub(crate) fn sequence(case: &Value) -> anyhow::Result<Map<String, Value>> {
    let mut world = CaseCluster::of(case)?;
    let mut steps = Vec::new();
    for item in case["pods"].as_array().into_iter().flatten() {
        let pod = world.add_pod(item)?;
        // Both ways of deciding must agree; the first is the fast one.
        let decision = world.engine.decide(&mut world.cluster, pod);
        let evaluation = world.engine.evaluate(&mut world.cluster, pod);
        let metadata = &item["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let mut step = json!({
            "pod": format!("{}/{}", text("namespace"), text("name")),
            "best": sorted(best(&world, &evaluation)),
            "feasible": evaluation.feasible.len(),
        });
        match decision {
            Decision::Place { node, total, .. } => {
                step["chosen"] = json!(world.name(node));
                if let Some(total) = total {
                    step["score"] = json!(total);
                }
                world.cluster.bind(pod, node);
            }
            Decision::Unfit(unfit) => step["rejected"] = rejected_by(&unfit),
        }
        steps.push(step);
    }
    Ok([("steps".to_owned(), Value::Array(steps))]
        .into_iter()
        .collect())
}

/// The key under which a sequence counts the nodes that no filter looked at.
const PRE_FILTER_RESULT: &str = "PreFilterResult";

fn rejected_by(unfit: &Unfit) -> Value {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    if let Unfit::EveryNode(refusals) = unfit {
        for (why, n) in refusals.counted() {
            let by = match is_narrowed_out(why) {
                true => PRE_FILTER_RESULT,
                false => why.plugin.name(),
            };
            *counts.entry(by).or_default() += n;
        }
    }
    json!(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, and pods that ask for a node that is not there (or for `n1`, which is cordoned).
    fn case(names: &[&str]) -> Value {
        let node = |name: &str, cordoned: bool| {
            json!({
                "metadata": {"name": name},
                "spec": {"unschedulable": cordoned},
                "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
            })
        };
        let term = |name: &&str| {
            let field = json!({"key": "metadata.name", "operator": "In", "values": [name]});
            json!({"matchFields": [field]})
        };
        let terms: Vec<Value> = names.iter().map(term).collect();
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        let pod = json!({
            "metadata": {"name": "p", "namespace": "default", "uid": "p"},
            "spec": {"affinity": {"nodeAffinity": required}},
        });
        json!({
            "config": {"podTopologySpreadArgs": {"defaultingType": "System"}},
            "cluster": {"nodes": [node("n1", true), node("n2", false)]},
            "pod": pod,
            "pods": [pod],
        })
    }

    /// PreFilter's result keeps the name, and a sequence counts the nodes that it leaves out under its name.
    #[test]
    fn a_name_without_a_node_stays_in_the_result_of_pre_filter() {
        let left_out = json!({
            "code": "UnschedulableAndUnresolvable",
            "reasons": ["node(s) didn't satisfy plugin(s) [NodeAffinity]"],
        });
        let cordoned = json!({
            "code": "UnschedulableAndUnresolvable",
            "plugin": "NodeUnschedulable",
            "reasons": ["node(s) were unschedulable"],
        });
        let cases = [
            (
                &["n9"][..],
                json!({"n1": left_out, "n2": left_out}),
                json!({"PreFilterResult": 2}),
            ),
            (
                &["n1", "n9"],
                json!({"n1": cordoned, "n2": left_out}),
                json!({"NodeUnschedulable": 1, "PreFilterResult": 1}),
            ),
        ];
        for (names, rejected, by_plugin) in cases {
            let case = case(names);
            let answer = profile(&case).unwrap();
            let succeeded = json!({"code": "Success", "nodeNames": names});
            assert_eq!(answer["preFilter"], succeeded);
            assert_eq!(answer["rejected"], rejected);
            let answer = sequence(&case).unwrap();
            assert_eq!(answer["steps"][0]["rejected"], by_plugin);
        }
    }
}
