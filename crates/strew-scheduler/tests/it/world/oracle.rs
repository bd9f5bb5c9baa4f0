//! The engine against a plain reading of the rules.

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_scheduler::naive::{NaiveAffinity, NaiveSpread};
use strew_scheduler::plugins::{
    node_affinity, node_ports, node_resources_fit, node_unschedulable, taint_toleration,
};
use strew_scheduler::{Decision, Engine, PluginId, Profile, Refusal, Unfit};

use super::RandomCluster;

impl RandomCluster {
    /// What went wrong, with what made it.
    pub(crate) fn compare(&mut self, engine: &mut Engine, pod: PodIdx) -> Result<(), String> {
        let evaluation = engine.evaluate(&mut self.cluster, pod);
        let decision = engine.decide(&mut self.cluster, pod);
        // The first decision on a class asks every node, later ones may ask one of each group. (A search among named
        // nodes moves the start of the next one, as upstream.)
        for _ in 0..if evaluation.narrowed.is_none() { 2 } else { 0 } {
            let again = engine.decide(&mut self.cluster, pod);
            if again != decision {
                return Err(format!("decided {decision:?}, and then {again:?}"));
            }
        }
        let cluster = &self.cluster;
        let taken = evaluation.taken.map(|place| evaluation.feasible[place]);
        let decided = match &decision {
            Decision::Place { node, .. } => Some(*node),
            Decision::Unfit(_) => None,
        };
        if decided != taken {
            return Err(format!("decide {decision:?}, evaluate {taken:?}"));
        }

        if let Decision::Unfit(unfit) = &decision
            && Some(&**unfit) != evaluation.refused.as_ref()
        {
            let all = evaluation.refused;
            return Err(format!("decide says {unfit:?}, evaluate {all:?}"));
        }

        self.compare_volumes(pod, &evaluation, engine.profile().binds_claims)?;
        let spread = NaiveSpread::new(cluster, engine.profile(), pod);
        let affinity = NaiveAffinity::new(cluster, engine.profile(), pod);
        let refusals = match &evaluation.refused {
            Some(Unfit::EveryNode(refusals)) => Some(refusals),
            _ => None,
        };
        if matches!(evaluation.refused, Some(Unfit::PreFilter(_))) {
            return Ok(());
        }
        for (node, naive) in spread.filter() {
            let ours = refusals.and_then(|refusals| refusals.of(node));
            // Plugins before and after: a node passes spread iff neither an earlier plugin nor spread refused it.
            match ours {
                Some(r) if r.plugin < PluginId::PodTopologySpread => continue,
                Some(r) if r.plugin == PluginId::PodTopologySpread => {
                    if naive.as_ref() != Some(r) {
                        return Err(format!(
                            "spread on {node:?}: engine {r:?}, recount {naive:?}"
                        ));
                    }
                    continue;
                }
                _ if naive.is_some() => {
                    return Err(format!(
                        "spread on {node:?}: engine passes, recount {naive:?}"
                    ));
                }
                _ => {}
            }
            let naive = affinity.filter(node);
            if naive.as_ref() != ours {
                return Err(format!(
                    "affinity on {node:?}: engine {ours:?}, recount {naive:?}"
                ));
            }
        }
        if evaluation.feasible.len() < 2 {
            return Ok(());
        }
        let scores_of = |plugin: PluginId| {
            let found = evaluation.scores.iter().find(|s| s.plugin == plugin);
            found.map(|s| s.scores.clone()).filter(|s| !s.is_empty())
        };
        let naive = spread.score(&evaluation.feasible);
        let naive = naive.map(|s| s.into_iter().map(|(_, n)| n as i32).collect::<Vec<_>>());
        if naive != scores_of(PluginId::PodTopologySpread) {
            let ours = scores_of(PluginId::PodTopologySpread);
            return Err(format!("spread scores: engine {ours:?}, recount {naive:?}"));
        }
        let naive = affinity.score(&evaluation.feasible);
        let ours = scores_of(PluginId::InterPodAffinity);
        // Weights that cancel out are scored 0 each, or not scored: the totals are the same.
        let zeros = |s: &Option<Vec<i32>>| s.iter().flatten().all(|&n| n == 0);
        if naive != ours && !(zeros(&naive) && zeros(&ours)) {
            return Err(format!(
                "affinity scores: engine {ours:?}, recount {naive:?}"
            ));
        }
        Ok(())
    }
}

/// A node that a pod fits on, by the plain reading of every filter.
pub(crate) fn fits_somewhere(cluster: &Cluster, profile: &Profile, pod: PodIdx) -> Option<NodeIdx> {
    let spec = cluster.spec_of(pod);
    let parts = cluster.tables().parts(cluster.class_of(pod).key.spec);
    let affinity = NaiveAffinity::new(cluster, profile, pod);
    let verdicts = NaiveSpread::new(cluster, profile, pod).filter();
    let fits = |&(node, ref spread): &(NodeIdx, Option<Refusal>)| {
        let row = cluster.node(node);
        row.fact().is_some_and(|fact| {
            node_unschedulable::allows(fact, &spec.tolerations)
                && taint_toleration::allows(fact, &spec.tolerations)
                && node_affinity::allows(cluster, parts.node_affinity, fact)
                && node_ports::allows(row, &spec.host_ports)
                && node_resources_fit::fits(row, &spec.requests)
                && spread.is_none()
                && affinity.filter(node).is_none()
        })
    };
    verdicts.iter().find(|v| fits(v)).map(|&(node, _)| node)
}
