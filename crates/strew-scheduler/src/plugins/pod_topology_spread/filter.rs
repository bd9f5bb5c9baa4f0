//! Filter: hard constraints. Source: spec/scheduler §1.8.

use strew_cluster::{Cluster, NodeIdx};
use strew_spread::{SkewCheck, Tally};

use super::{HardConstraint, SpreadPlan};
use crate::profile::PluginId;
use crate::status::{Reason, Refusal};

/// The verdict of one hard constraint on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The node lacks the topology label.
    NoDomain,
    /// The comparison.
    Checked(SkewCheck),
}

impl Verdict {
    /// Whether the node passes.
    pub fn allowed(self) -> bool {
        matches!(self, Self::Checked(check) if check.allowed())
    }
}

/// The verdict of one constraint, with counts from `tally`.
pub fn verdict(
    cluster: &Cluster,
    constraint: &HardConstraint,
    tally: &Tally,
    node: NodeIdx,
) -> Verdict {
    match cluster.column(constraint.key).domain(node) {
        None => Verdict::NoDomain,
        Some(domain) => {
            Verdict::Checked(constraint.limit.check(tally, domain, constraint.self_match))
        }
    }
}

/// Why a node is refused; `None` if it passes. The first constraint that fails decides.
pub fn filter(cluster: &Cluster, plan: &SpreadPlan, node: NodeIdx) -> Option<Refusal> {
    filter_with(cluster, plan, node, |constraint| {
        cluster.tally(constraint.tally)
    })
}

/// As [`filter`], with tallies of the caller.
pub fn filter_with<'a>(
    cluster: &'a Cluster,
    plan: &SpreadPlan,
    node: NodeIdx,
    tally: impl Fn(&HardConstraint) -> &'a Tally,
) -> Option<Refusal> {
    plan.hard
        .iter()
        .find_map(|c| match verdict(cluster, c, tally(c), node) {
            Verdict::NoDomain => Some(Refusal::unresolvable(
                PluginId::PodTopologySpread,
                Reason::MissingTopologyLabel,
            )),
            checked if checked.allowed() => None,
            _ => Some(Refusal::unschedulable(
                PluginId::PodTopologySpread,
                Reason::Skew,
            )),
        })
}

/// Keeps the nodes that pass every hard constraint. Cost: nodes × one domain per constraint; pods are not visited.
pub fn retain_passing(cluster: &Cluster, plan: &SpreadPlan, nodes: &mut Vec<NodeIdx>) {
    for constraint in &plan.hard {
        let gate = Gate::of(cluster, constraint);
        nodes.retain(|&node| gate.passes(node));
    }
}

/// What the hard constraints of a class let pass, apart from which node is in which domain: per constraint, the highest
/// count of a domain that passes, and the counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passing(Box<[(i64, Box<[i32]>)]>);

impl Passing {
    /// What they let pass now.
    pub fn of(cluster: &Cluster, plan: &SpreadPlan) -> Self {
        let each = plan.hard.iter().map(|constraint| {
            let gate = Gate::of(cluster, constraint);
            (gate.highest, gate.counts.into())
        });
        Self(each.collect())
    }

    /// True if they let the same pass now.
    pub fn is_so(&self, cluster: &Cluster, plan: &SpreadPlan) -> bool {
        self.0.len() == plan.hard.len()
            && self
                .0
                .iter()
                .zip(&plan.hard)
                .all(|((highest, counts), constraint)| {
                    let gate = Gate::of(cluster, constraint);
                    gate.highest == *highest && gate.counts == &**counts
                })
    }
}

/// A constraint prepared for many nodes: a domain passes if its count is at most `highest`.
struct Gate<'a> {
    domains: &'a [u32],
    counts: &'a [i32],
    highest: i64,
}

impl<'a> Gate<'a> {
    fn of(cluster: &'a Cluster, constraint: &HardConstraint) -> Self {
        let tally = cluster.tally(constraint.tally);
        Self {
            domains: cluster.column(constraint.key).domains(),
            counts: tally.counts(),
            highest: constraint.limit.highest_count(tally, constraint.self_match),
        }
    }

    /// True if a node passes. A missing label is a domain beyond all others.
    #[inline]
    fn passes(&self, node: NodeIdx) -> bool {
        let domain = self.domains[node.index()];
        match self.counts.get(domain as usize) {
            Some(&count) => i64::from(count) <= self.highest,
            // A domain without counted nodes has count 0.
            None => domain != strew_cluster::topology::MISSING && self.highest >= 0,
        }
    }
}
