//! The feasible nodes: scores, runners-up, and the tie rule.

use strew_cluster::{Cluster, NodeIdx};
use strew_model::Symbol;
use strew_spread::soft;

use crate::engine::{Engine, Evaluation};
use crate::plugins::pod_topology_spread::score::{Scored, Workspace, score, weigh_all};
use crate::plugins::pod_topology_spread::{SoftConstraint, SpreadPlan};
use crate::profile::{PluginId, TieRule};

/// The plugin whose raw scores are shown.
pub(crate) const SPREAD: PluginId = PluginId::PodTopologySpread;

/// How the node is chosen.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The chosen node.
    pub taken: NodeIdx,
    /// The plugins that score, with their weights, in order; empty if there is one feasible node, which is not scored.
    pub plugins: Vec<(PluginId, i64)>,
    /// The best nodes, the chosen one first; then the node that the pod is on, if it is not among them.
    pub rows: Vec<ScoreRow>,
    /// The nodes with the highest total, in the order of nodes.
    pub best: Vec<NodeIdx>,
    /// The rule that chooses one of them.
    pub ties: TieRule,
    /// True if the choice differs from the rule's in visiting order, because feasible nodes were found in another
    /// order.
    pub is_drawn: bool,
}

/// The scores of one node.
#[derive(Debug, Clone)]
pub struct ScoreRow {
    /// The node.
    pub node: NodeIdx,
    /// The sum of weighted scores.
    pub total: i64,
    /// Per plugin 0 to 100, before its weight; `None` if the plugin does not score the pod.
    pub scores: Vec<Option<i32>>,
    /// The raw score of soft constraints, before normalization: lower is better. `None` if the node lacks a label that
    /// it needs to be scored.
    pub spread_raw: Option<i64>,
    /// The share of each soft constraint in it.
    pub spread: Vec<SoftShare>,
}

/// The share of a soft constraint in a node's raw score: `count * weight + (maxSkew - 1)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftShare {
    /// The node's domain; `None` if it lacks the label, and then nothing is added.
    pub value: Option<Symbol>,
    /// Pods counted there.
    pub count: i32,
    /// The summand.
    pub term: f64,
}

/// The most rows.
pub const ROWS_MAX: usize = 8;

/// How the node is chosen; `None` if no node takes the pod.
pub(crate) fn choice(
    engine: &Engine,
    cluster: &Cluster,
    plan: &SpreadPlan,
    evaluation: &Evaluation,
    on: Option<NodeIdx>,
) -> Option<Choice> {
    let place_taken = evaluation.taken?;
    let feasible = &evaluation.feasible;
    let taken = feasible[place_taken];
    let ties = engine.profile().ties;
    let best = evaluation.best.iter().map(|&p| feasible[p]).collect();
    if evaluation.totals.is_empty() {
        return Some(Choice {
            taken,
            plugins: Vec::new(),
            rows: Vec::new(),
            best,
            ties,
            is_drawn: false,
        });
    }
    let mut space = Workspace::default();
    let (mut scores, mut raw) = (Vec::new(), Vec::new());
    score(
        cluster,
        plan,
        Scored::each(feasible),
        &mut space,
        &mut scores,
        Some(&mut raw),
    );
    let (weighed, _) = weigh_all(cluster, plan, feasible, &mut space);
    let weights: Vec<f64> = weighed.iter().map(|w| w.weight).collect();
    let spread_scores = engine.profile().weight(SPREAD) > 0;
    let row = |place: usize| {
        let node = feasible[place];
        let shares = shares(cluster, plan, &weights, node);
        let ignored = plan.require_all && shares.iter().any(|s| s.value.is_none());
        ScoreRow {
            node,
            total: evaluation.totals[place],
            scores: evaluation
                .scores
                .iter()
                .map(|s| s.scores.get(place).copied())
                .collect(),
            spread_raw: match spread_scores && !ignored {
                true => raw.get(place).copied(),
                false => None,
            },
            spread: if spread_scores { shares } else { Vec::new() },
        }
    };
    Some(Choice {
        taken,
        plugins: evaluation
            .scores
            .iter()
            .map(|s| (s.plugin, s.weight))
            .collect(),
        rows: shown(cluster, evaluation, place_taken, on)
            .into_iter()
            .map(row)
            .collect(),
        best,
        ties,
        is_drawn: false,
    })
}

/// The indexes of the nodes to show: the chosen one, the next by total and name, and the pod's own node.
fn shown(
    cluster: &Cluster,
    evaluation: &Evaluation,
    taken: usize,
    on: Option<NodeIdx>,
) -> Vec<usize> {
    let name = |place: usize| {
        let node = cluster.node(evaluation.feasible[place]);
        cluster.names.text(node.name())
    };
    let order = |&a: &usize, &b: &usize| {
        let by_total = evaluation.totals[b].cmp(&evaluation.totals[a]);
        by_total.then_with(|| name(a).cmp(name(b)))
    };
    let mut others: Vec<usize> = (0..evaluation.feasible.len())
        .filter(|&p| p != taken)
        .collect();
    if others.len() >= ROWS_MAX {
        others.select_nth_unstable_by(ROWS_MAX - 1, order);
        others.truncate(ROWS_MAX - 1);
    }
    let is_on = |&p: &usize| on == Some(evaluation.feasible[p]);
    let current = (0..evaluation.feasible.len()).find(is_on);
    others.sort_by(order);
    let mut places = vec![taken];
    places.extend(others);
    places.extend(current.filter(|p| !places.contains(p)));
    places
}

/// The summand of each soft constraint in a node's raw score.
fn shares(cluster: &Cluster, plan: &SpreadPlan, weights: &[f64], node: NodeIdx) -> Vec<SoftShare> {
    let share = |(constraint, &weight): (&SoftConstraint, &f64)| {
        let column = cluster.column(constraint.key);
        let domain = column.domain(node);
        let Some(domain) = domain else {
            return SoftShare {
                value: None,
                count: 0,
                term: 0.0,
            };
        };
        let count = match constraint.tally {
            Some(tally) => cluster.tally(tally).count(domain),
            None => cluster.census(constraint.census).per_node()[node.index()],
        };
        SoftShare {
            value: Some(column.value(domain)),
            count,
            term: soft::term(count, weight, constraint.max_skew),
        }
    };
    plan.soft.iter().zip(weights).map(share).collect()
}
