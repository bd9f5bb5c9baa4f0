//! AddPod and RemovePod: how adding or removing a pod on a node changes the hard constraints.
//!
//! Source: spec/scheduler §1.7, with its two quirks: a terminating pod that was never counted is subtracted
//! nevertheless, and an empty selector, which counts nothing, matches here.

use strew_cluster::{ClassId, Cluster, NodeIdx};
use strew_spread::Tally;

use super::SpreadPlan;
use super::filter::filter_with;
use crate::status::Refusal;

/// A copy of the tallies of a plan's hard constraints, to be changed.
#[derive(Debug, Clone)]
pub struct Trial {
    tallies: Vec<Tally>,
}

impl Trial {
    /// The counts of the cluster as it is.
    pub fn new(cluster: &Cluster, plan: &SpreadPlan) -> Self {
        Self {
            tallies: plan
                .hard
                .iter()
                .map(|c| cluster.tally(c.tally).clone())
                .collect(),
        }
    }

    /// Adds (1) or removes (-1) a pod of class `other` on a node; `incoming` is the class of the plan.
    pub fn update(
        &mut self,
        cluster: &Cluster,
        plan: &SpreadPlan,
        incoming: ClassId,
        other: ClassId,
        node: NodeIdx,
        delta: i32,
    ) {
        let tables = cluster.tables();
        let other = &tables.class(other).key;
        if other.namespace != tables.class(incoming).key.namespace {
            return;
        }
        let has_all = plan
            .hard
            .iter()
            .all(|c| cluster.column(c.key).domain(node).is_some());
        if !has_all {
            return;
        }
        let labels = tables.labels(other.labels);
        for (constraint, tally) in plan.hard.iter().zip(&mut self.tallies) {
            let matches = plan.effective.constraints[constraint.index]
                .selector
                .matches(labels);
            let included = cluster.tally_nodes(constraint.tally).contains(node.index());
            if let (true, true, Some(domain)) = (
                matches,
                included,
                cluster.column(constraint.key).domain(node),
            ) {
                tally.add(domain, delta);
            }
        }
    }

    /// The tally of the hard constraint with this index.
    pub fn tally(&self, place: usize) -> &Tally {
        &self.tallies[place]
    }

    /// Why a node is refused with these counts; `None` if it passes.
    pub fn filter(&self, cluster: &Cluster, plan: &SpreadPlan, node: NodeIdx) -> Option<Refusal> {
        // Constraints are identified by the index of their tally in the plan.
        let place = |constraint: &super::HardConstraint| {
            plan.hard
                .iter()
                .position(|c| std::ptr::eq(c, constraint))
                .unwrap_or_default()
        };
        filter_with(cluster, plan, node, |constraint| {
            &self.tallies[place(constraint)]
        })
    }
}
