//! PreScore, Score and NormalizeScore: soft constraints. Source: spec/scheduler §1.9 to §1.11.

use strew_cluster::topology::{EMPTY_DOMAIN, MISSING};
use strew_cluster::{Cluster, NodeIdx};
use strew_spread::soft::{self, Extremes};

use super::{SoftConstraint, SpreadPlan};

/// What scoring needs besides its input, kept from one decision to the next so that nothing is allocated.
#[derive(Debug, Default)]
pub struct Workspace {
    sums: Vec<f64>,
    ignored: Vec<bool>,
    seen: Vec<bool>,
}

/// The numbers of one soft constraint in one decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weighed {
    /// How many domains the scored nodes make up; for hostnames, how many nodes are scored.
    pub size: usize,
    /// `ln(size + 2)`.
    pub weight: f64,
}

/// Scores the feasible nodes, 0 to 100 each; `raw` gets what Score returns before normalizing, where asked for.
/// Returns false, and scores nothing, if no soft constraint holds.
pub fn score(
    cluster: &Cluster,
    plan: &SpreadPlan,
    feasible: &[NodeIdx],
    space: &mut Workspace,
    out: &mut Vec<i32>,
    raw: Option<&mut Vec<i64>>,
) -> bool {
    out.clear();
    if plan.soft.is_empty() {
        return false;
    }
    let ignored = mark_ignored(cluster, plan, feasible, space);
    space.sums.clear();
    space.sums.resize(feasible.len(), 0.0);
    for constraint in &plan.soft {
        let weighed = weigh(cluster, constraint, feasible, ignored, space);
        add_terms(
            cluster,
            constraint,
            weighed.weight,
            feasible,
            &mut space.sums,
        );
    }
    let mut extremes = Extremes::NONE;
    if ignored == 0 {
        // Rounded sums are small integers: kept in place, they need no second list.
        for sum in &mut space.sums {
            let rounded = soft::round(*sum);
            extremes.include(rounded);
            *sum = rounded as f64;
        }
        out.extend(
            space
                .sums
                .iter()
                .map(|&sum| extremes.normalize(sum as i64) as i32),
        );
    } else {
        for (sum, &is_ignored) in space.sums.iter_mut().zip(&space.ignored) {
            *sum = if is_ignored {
                0.0
            } else {
                soft::round(*sum) as f64
            };
            if !is_ignored {
                extremes.include(*sum as i64);
            }
        }
        let scored = space.sums.iter().zip(&space.ignored);
        out.extend(scored.map(|(&sum, &is_ignored)| match is_ignored {
            true => 0,
            false => extremes.normalize(sum as i64) as i32,
        }));
    }
    if let Some(raw) = raw {
        raw.clear();
        raw.extend(space.sums.iter().map(|&sum| sum as i64));
    }
    true
}

/// The numbers of each soft constraint over these feasible nodes, and how many of the nodes are ignored.
pub fn weigh_all(
    cluster: &Cluster,
    plan: &SpreadPlan,
    feasible: &[NodeIdx],
    space: &mut Workspace,
) -> (Vec<Weighed>, usize) {
    let ignored = mark_ignored(cluster, plan, feasible, space);
    let weighed = plan
        .soft
        .iter()
        .map(|c| weigh(cluster, c, feasible, ignored, space))
        .collect();
    (weighed, ignored)
}

/// Marks the nodes that lack a soft key, where all are required, and counts them.
fn mark_ignored(
    cluster: &Cluster,
    plan: &SpreadPlan,
    feasible: &[NodeIdx],
    space: &mut Workspace,
) -> usize {
    if !plan.require_all {
        return 0;
    }
    let lacks_a_key = |node: &NodeIdx| {
        let domain = |c: &SoftConstraint| cluster.column(c.key).domains()[node.index()];
        plan.soft.iter().any(|c| domain(c) == MISSING)
    };
    space.ignored.clear();
    space.ignored.extend(feasible.iter().map(lacks_a_key));
    space.ignored.iter().filter(|&&ignored| ignored).count()
}

fn weigh(
    cluster: &Cluster,
    constraint: &SoftConstraint,
    feasible: &[NodeIdx],
    ignored: usize,
    space: &mut Workspace,
) -> Weighed {
    let size = match constraint.tally {
        None => feasible.len() - ignored,
        Some(_) => distinct_domains(cluster, constraint, feasible, ignored > 0, space),
    };
    Weighed {
        size,
        weight: soft::weight(size),
    }
}

/// How many domains the nodes make up that are not ignored; those without the label make up the empty one.
fn distinct_domains(
    cluster: &Cluster,
    constraint: &SoftConstraint,
    feasible: &[NodeIdx],
    some_ignored: bool,
    space: &mut Workspace,
) -> usize {
    let column = cluster.column(constraint.key);
    space.seen.clear();
    space.seen.resize(column.len(), false);
    let domains = column.domains();
    // Stop early: with every domain seen there is nothing more to find. Domain 0 is the empty value, which few have.
    let mut size = 0;
    for (i, &node) in feasible.iter().enumerate() {
        if some_ignored && space.ignored[i] {
            continue;
        }
        let domain = match domains[node.index()] {
            MISSING => EMPTY_DOMAIN.index(),
            domain => domain as usize,
        };
        if !std::mem::replace(&mut space.seen[domain], true) {
            size += 1;
        }
    }
    size
}

/// Adds one constraint's term to each node that has its key.
fn add_terms(
    cluster: &Cluster,
    constraint: &SoftConstraint,
    weight: f64,
    feasible: &[NodeIdx],
    sums: &mut [f64],
) {
    let domains = cluster.column(constraint.key).domains();
    let max_skew = constraint.max_skew;
    match constraint.tally {
        Some(tally) => {
            let counts = cluster.tally(tally).counts();
            for (sum, &node) in sums.iter_mut().zip(feasible) {
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
            for (sum, &node) in sums.iter_mut().zip(feasible) {
                if domains[node.index()] != MISSING {
                    *sum += soft::term(counts[node.index()], weight, max_skew);
                }
            }
        }
    }
}
