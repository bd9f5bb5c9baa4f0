//! PreScore, Score and NormalizeScore: soft constraints. Source: spec/scheduler §1.9 to §1.11.

use strew_cluster::topology::{EMPTY_DOMAIN, MISSING};
use strew_cluster::{Cluster, NodeIdx};
use strew_spread::soft::{self, Extremes};

use super::{SoftConstraint, SpreadPlan};

/// The nodes to score.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a> {
    /// Feasible nodes.
    pub nodes: &'a [NodeIdx],
    /// The number of feasible nodes with equal scores that each of them represents; `None`: each represents itself.
    pub sizes: Option<&'a [u32]>,
}

impl<'a> Scored<'a> {
    /// Nodes that represent themselves.
    pub fn each(nodes: &'a [NodeIdx]) -> Self {
        Self { nodes, sizes: None }
    }

    fn size(self, place: usize) -> usize {
        self.sizes.map_or(1, |sizes| sizes[place] as usize)
    }
}

/// Buffers of scoring, kept between decisions to avoid allocations.
#[derive(Debug, Default)]
pub struct Workspace {
    sums: Vec<f64>,
    ignored: Vec<bool>,
    seen: Vec<bool>,
}

/// The numbers of one soft constraint in one decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighed {
    /// The number of domains of the scored nodes; for hostnames, the number of scored nodes.
    pub size: usize,
    /// `ln(size + 2)`.
    pub weight: f64,
}

/// Scores nodes, 0 to 100 each; `raw` gets the scores before normalization, if requested. Returns false, and scores
/// nothing, if there is no soft constraint.
pub fn score(
    cluster: &Cluster,
    plan: &SpreadPlan,
    scored: Scored<'_>,
    space: &mut Workspace,
    out: &mut Vec<i32>,
    raw: Option<&mut Vec<i64>>,
) -> bool {
    out.clear();
    if plan.soft.is_empty() {
        return false;
    }
    let ignored = mark_ignored(cluster, plan, scored, space);
    space.sums.clear();
    space.sums.resize(scored.nodes.len(), 0.0);
    for constraint in &plan.soft {
        let weight = weigh(cluster, constraint, scored, ignored, space).weight;
        add_terms(cluster, constraint, weight, scored.nodes, &mut space.sums);
    }
    let mut extremes = Extremes::NONE;
    let is_ignored = |place: usize| ignored > 0 && space.ignored[place];
    for (place, sum) in space.sums.iter_mut().enumerate() {
        // Rounded sums are whole numbers far below 2^53: they are kept in place, without a second list.
        if is_ignored(place) {
            *sum = 0.0;
        } else {
            let rounded = soft::round(*sum);
            extremes.include(rounded);
            *sum = rounded as f64;
        }
    }
    out.extend(
        space
            .sums
            .iter()
            .enumerate()
            .map(|(place, &sum)| match is_ignored(place) {
                true => 0,
                false => extremes.normalize(sum as i64) as i32,
            }),
    );
    if let Some(raw) = raw {
        raw.clear();
        raw.extend(space.sums.iter().map(|&sum| sum as i64));
    }
    true
}

/// The numbers of each soft constraint over these nodes, and how many of the nodes are ignored.
pub fn weigh_all(
    cluster: &Cluster,
    plan: &SpreadPlan,
    feasible: &[NodeIdx],
    space: &mut Workspace,
) -> (Vec<Weighed>, usize) {
    let scored = Scored::each(feasible);
    let ignored = mark_ignored(cluster, plan, scored, space);
    let weighed = plan
        .soft
        .iter()
        .map(|c| weigh(cluster, c, scored, ignored, space))
        .collect();
    (weighed, ignored)
}

/// Marks the nodes that lack a soft key, if all are required, and counts the nodes that they represent.
fn mark_ignored(
    cluster: &Cluster,
    plan: &SpreadPlan,
    scored: Scored<'_>,
    space: &mut Workspace,
) -> usize {
    let all_have = |c: &SoftConstraint| cluster.column(c.key).labelled() == cluster.nodes_present();
    if !plan.require_all || plan.soft.iter().all(all_have) {
        return 0;
    }
    let lacks_a_key = |node: &NodeIdx| {
        let domain = |c: &SoftConstraint| cluster.column(c.key).domains()[node.index()];
        plan.soft.iter().any(|c| domain(c) == MISSING)
    };
    space.ignored.clear();
    space.ignored.extend(scored.nodes.iter().map(lacks_a_key));
    let ignored = space
        .ignored
        .iter()
        .enumerate()
        .filter(|&(_, &ignored)| ignored);
    ignored.map(|(place, _)| scored.size(place)).sum()
}

fn weigh(
    cluster: &Cluster,
    constraint: &SoftConstraint,
    scored: Scored<'_>,
    ignored: usize,
    space: &mut Workspace,
) -> Weighed {
    let size = match constraint.tally {
        None => {
            (0..scored.nodes.len())
                .map(|place| scored.size(place))
                .sum::<usize>()
                - ignored
        }
        Some(_) => distinct_domains(cluster, constraint, scored.nodes, ignored > 0, space),
    };
    Weighed {
        size,
        weight: soft::weight(size),
    }
}

/// The number of domains of the nodes that are not ignored; nodes without the label form the empty domain.
fn distinct_domains(
    cluster: &Cluster,
    constraint: &SoftConstraint,
    nodes: &[NodeIdx],
    some_ignored: bool,
    space: &mut Workspace,
) -> usize {
    let column = cluster.column(constraint.key);
    space.seen.clear();
    space.seen.resize(column.len(), false);
    let domains = column.domains();
    // With every domain seen the search can stop; one more may be that of nodes without the label.
    let all = column.inhabited() + usize::from(column.labelled() < cluster.nodes_present());
    let mut size = 0;
    for (i, &node) in nodes.iter().enumerate() {
        if some_ignored && space.ignored[i] {
            continue;
        }
        let domain = match domains[node.index()] {
            MISSING => EMPTY_DOMAIN.index(),
            domain => domain as usize,
        };
        if !std::mem::replace(&mut space.seen[domain], true) {
            size += 1;
            if size == all {
                break;
            }
        }
    }
    size
}

/// Adds one constraint's term to each node that has its key.
fn add_terms(
    cluster: &Cluster,
    constraint: &SoftConstraint,
    weight: f64,
    nodes: &[NodeIdx],
    sums: &mut [f64],
) {
    let domains = cluster.column(constraint.key).domains();
    let max_skew = constraint.max_skew;
    match constraint.tally {
        Some(tally) => {
            let counts = cluster.tally(tally).counts();
            for (sum, &node) in sums.iter_mut().zip(nodes) {
                let domain = domains[node.index()];
                if domain != MISSING {
                    // A domain beyond the tally was never counted.
                    let count = counts.get(domain as usize).copied().unwrap_or(0);
                    *sum += soft::term(count, weight, max_skew);
                }
            }
        }
        None => {
            let counts = cluster.census(constraint.census).per_node();
            for (sum, &node) in sums.iter_mut().zip(nodes) {
                if domains[node.index()] != MISSING {
                    *sum += soft::term(counts[node.index()], weight, max_skew);
                }
            }
        }
    }
}
