//! Sums the scores of nodes and chooses one.

use strew_cluster::NodeIdx;
use strew_model::Prng;

use crate::columns::Columns;
use crate::cycle::Cycle;
use crate::metrics::meter::Meter;
use crate::plugins::pod_topology_spread::score::{Scored, Workspace};
use crate::plugins::{
    inter_pod_affinity, node_resources_balanced_allocation, normalize, pod_topology_spread,
    selector_spread,
};
use crate::profile::{FilterOrder, PluginId, Profile, TieRule};
use crate::ties::heap_precedes;
use crate::workers::Workers;

/// The result of a score plugin.
pub(crate) enum Scores {
    /// It does not score the pod.
    None,
    /// The same score for every node.
    Same(i32),
    /// A score per node, in the list.
    Each,
}

fn score_plugin(
    cx: Cycle<'_>,
    columns: &Columns,
    plugin: PluginId,
    scored: Scored<'_>,
    spread: &mut Workspace,
    out: &mut Vec<i32>,
) -> Scores {
    let feasible = scored.nodes;
    let Cycle {
        cluster,
        plan,
        spec,
        ..
    } = cx;
    let each_if = |scored: bool| if scored { Scores::Each } else { Scores::None };
    let gather = |values: &[i32], out: &mut Vec<i32>| {
        out.clear();
        out.extend(feasible.iter().map(|n| values[n.index()]));
    };
    match plugin {
        PluginId::TaintToleration => {
            let column = columns.prefer_taints(plan);
            if column.nonzero == 0 {
                return Scores::Same(100);
            }
            gather(&column.values, out);
            normalize(out, true);
            Scores::Each
        }
        PluginId::NodeAffinity => {
            let Some(column) = columns.preferred_nodes(plan) else {
                return Scores::None;
            };
            gather(&column.values, out);
            normalize(out, false);
            Scores::Each
        }
        PluginId::NodeResourcesFit => {
            let scores = &columns.shape(plan).scores;
            out.clear();
            out.extend(feasible.iter().map(|n| i32::from(scores[n.index()].fit)));
            Scores::Each
        }
        PluginId::NodeResourcesBalancedAllocation => {
            if !node_resources_balanced_allocation::applies(&spec.requests, &cx.profile.balanced) {
                return Scores::None;
            }
            let scores = &columns.shape(plan).scores;
            out.clear();
            out.extend(
                feasible
                    .iter()
                    .map(|n| i32::from(scores[n.index()].balanced)),
            );
            Scores::Each
        }
        PluginId::PodTopologySpread => each_if(pod_topology_spread::score::score(
            cluster,
            &plan.spread,
            scored,
            spread,
            out,
            None,
        )),
        PluginId::InterPodAffinity => each_if(inter_pod_affinity::score(
            cluster,
            &plan.affinity,
            feasible,
            out,
        )),
        PluginId::ImageLocality => {
            let column = columns.images(plan);
            if column.nonzero == 0 {
                return Scores::Same(0);
            }
            gather(&column.values, out);
            Scores::Each
        }
        PluginId::SelectorSpread => match &plan.selector_spread {
            Some(plan) => each_if(selector_spread::score(cluster, plan, feasible, out)),
            None => Scores::None,
        },
        // Without claims it scores every node 0; a pod with claims is not tried.
        PluginId::DynamicResources => Scores::Same(0),
        PluginId::SchedulingGates
        | PluginId::NodeUnschedulable
        | PluginId::NodeName
        | PluginId::NodePorts
        | PluginId::VolumeRestrictions
        | PluginId::NodeVolumeLimits
        | PluginId::VolumeBinding
        | PluginId::VolumeZone
        | PluginId::NodeDeclaredFeatures
        | PluginId::GangScheduling => Scores::None,
    }
}

/// Buffers of every decision, kept to avoid allocations.
#[derive(Default)]
pub(crate) struct Sums {
    scores: Vec<i32>,
    totals: Vec<i32>,
    spread: Workspace,
    /// Measurements of decisions, if metrics are on.
    pub(crate) meter: Option<Box<Meter>>,
}

impl Sums {
    /// Sums the weighted scores of each node.
    pub(crate) fn add_up(&mut self, cx: Cycle<'_>, columns: &Columns, scored: Scored<'_>) {
        let Self {
            scores,
            totals,
            spread,
            meter,
        } = self;
        totals.clear();
        totals.resize(scored.nodes.len(), 0);
        for &(plugin, weight) in &cx.profile.scores {
            let begun = meter.as_deref().and_then(Meter::read);
            let said = score_plugin(cx, columns, plugin, scored, spread, scores);
            if let Some(meter) = meter {
                let weighted = (plugin, weight as i32);
                meter.said(weighted, begun, &said, scores, scored.nodes.len());
            }
            match said {
                // An equal score for all nodes does not change their order.
                Scores::Same(0) | Scores::None => {}
                Scores::Same(score) => totals
                    .iter_mut()
                    .for_each(|total| *total += weight as i32 * score),
                Scores::Each => {
                    for (total, &score) in totals.iter_mut().zip(&*scores) {
                        *total += weight as i32 * score;
                    }
                }
            }
        }
    }

    /// The sum per node.
    pub(crate) fn totals(&self) -> &[i32] {
        &self.totals
    }

    /// The highest sum.
    pub(crate) fn highest(&self) -> i32 {
        self.totals.iter().copied().max().unwrap_or(0)
    }

    /// The scores of each plugin for these nodes, in the profile's order.
    pub(crate) fn by_plugin(
        &mut self,
        cx: Cycle<'_>,
        columns: &Columns,
        nodes: &[NodeIdx],
    ) -> Vec<PluginScores> {
        let of_plugin = |&(plugin, weight): &(PluginId, i64)| {
            let scored = Scored::each(nodes);
            let kept = match score_plugin(
                cx,
                columns,
                plugin,
                scored,
                &mut self.spread,
                &mut self.scores,
            ) {
                Scores::Same(score) => vec![score; nodes.len()],
                Scores::Each => self.scores.clone(),
                Scores::None => Vec::new(),
            };
            PluginScores {
                plugin,
                weight,
                scores: kept,
            }
        };
        cx.profile.scores.iter().map(of_plugin).collect()
    }
}

/// The scores of one plugin in a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginScores {
    /// The plugin.
    pub plugin: PluginId,
    /// Its weight.
    pub weight: i64,
    /// Per feasible node 0 to 100, before the weight; empty if the plugin does not score the pod.
    pub scores: Vec<i32>,
}

/// The random choices of decisions.
#[derive(Debug, Clone)]
pub(crate) struct Chance {
    /// For [`TieRule::Random`].
    rng: Prng,
    /// `None`: feasible nodes are in visiting order.
    pub(crate) workers: Option<Workers>,
}

impl Chance {
    pub(crate) fn of(profile: &Profile) -> Self {
        let seed = match profile.ties {
            TieRule::Random(seed) => seed,
            _ => 0,
        };
        let order_matters =
            profile.ties == TieRule::Upstream136 || profile.percentage_of_nodes_to_score.is_some();
        let workers = match profile.filter_order {
            FilterOrder::Raced { workers, seed } if order_matters => Workers::new(workers, seed),
            _ => None,
        };
        Self {
            rng: Prng::new(seed),
            workers,
        }
    }
}

/// Chooses one of the best nodes, which are given with their indexes among all feasible ones.
pub(crate) fn take(
    cx: Cycle<'_>,
    best: impl Iterator<Item = (usize, NodeIdx)>,
    chance: &mut Chance,
) -> Option<(usize, NodeIdx)> {
    let name = |node: NodeIdx| cx.cluster.names.text(cx.cluster.node(node).name());
    let mut met = 1;
    best.reduce(|a, b| {
        let b_first = match cx.profile.ties {
            TieRule::Upstream136 => heap_precedes(b.0, a.0),
            TieRule::FirstName => name(b.1) < name(a.1),
            TieRule::Random(_) => {
                // Each of n is chosen with probability 1/n, in one pass.
                met += 1;
                chance.rng.chance(1, met)
            }
        };
        if b_first { b } else { a }
    })
}
