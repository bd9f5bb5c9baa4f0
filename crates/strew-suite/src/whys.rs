//! Why pods stay Pending at the end of a step, for the page: the numbers of `strew explain -o json`.

use serde_json::{Value, json};
use strew_view::cluster_state::ClusterState;
use strew_view::explanation::PodExplanation;
use strew_view::view::View;

/// The pods of a step that are explained: the first one of a workload's first reason.
const PODS_MAX: usize = 12;

/// The domains and nodes of a constraint that are named.
const NAMES_MAX: usize = 40;

/// Explanations of Pending pods of these workloads: `{"of", "explanation"}`, at most a dozen.
pub(crate) fn of(view: &mut View, workloads: &[usize]) -> Vec<Value> {
    let groups = workloads.iter().filter_map(|&workload| {
        let group = view.summaries.get(workload)?.pending.first()?;
        let entry = *group.entries.first()?;
        Some((workload, entry, group.blocked.message.clone()))
    });
    let groups: Vec<_> = groups.take(PODS_MAX).collect();
    let told = groups.into_iter().map(|(workload, entry, message)| {
        let name = &view.world.workloads[workload].name;
        let of = format!("{} {}/{}", name.kind, name.namespace, name.name);
        let explanation = explained(&mut view.world, entry, message);
        json!({"of": of, "explanation": explanation})
    });
    told.collect()
}

fn explained(world: &mut ClusterState, entry: usize, message: String) -> Value {
    let pod = world.pods[entry].pod;
    let ClusterState {
        cluster,
        schedulers,
        ..
    } = world;
    let mut explanation = schedulers.explain(cluster, pod, None);
    // With what preemption would do.
    explanation.sentence = message;
    let mut told = PodExplanation::of(&explanation, None, cluster);
    // The domains have the numbers of the nodes.
    told.refused.clear();
    let mut left_out = Vec::new();
    for constraint in told
        .constraints
        .hard
        .iter_mut()
        .chain(&mut told.constraints.soft)
    {
        left_out.push(constraint.domains.len().saturating_sub(NAMES_MAX));
        constraint.domains.truncate(NAMES_MAX);
        constraint.nodes_without_key.truncate(NAMES_MAX);
    }
    let mut told = json!(told);
    told["domainsLeftOut"] = json!(left_out);
    told
}
