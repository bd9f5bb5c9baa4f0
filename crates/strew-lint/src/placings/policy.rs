//! Domains that count although none of their nodes takes a pod of the workload.

use strew_cluster::{Policy, SpreadConstraint};
use strew_manifest::fix::Fix;

use super::Case;
use crate::Found;

/// A policy of constraints, and what its Ignore leads to.
struct IgnoredPolicy {
    rule: &'static str,
    field: &'static str,
    of: fn(&SpreadConstraint) -> Policy,
    honor: fn(&mut SpreadConstraint),
    /// What is the matter with the nodes.
    nodes: &'static str,
    help: &'static str,
}

const POLICIES: [IgnoredPolicy; 2] = [
    IgnoredPolicy {
        rule: "tainted-domain-counts",
        field: "nodeTaintsPolicy",
        of: |constraint| constraint.node_taints_policy,
        honor: |constraint| constraint.node_taints_policy = Policy::Honor,
        nodes: "their nodes take no pod of the workload",
        help: "nodes with taints and cordoned nodes count for a constraint unless nodeTaintsPolicy is Honor",
    },
    IgnoredPolicy {
        rule: "unselected-domain-counts",
        field: "nodeAffinityPolicy",
        of: |constraint| constraint.node_affinity_policy,
        honor: |constraint| constraint.node_affinity_policy = Policy::Honor,
        nodes: "the workload's node selector or node affinity excludes their nodes",
        help: "with nodeAffinityPolicy: Ignore nodes count that the pods do not ask for; Honor is the default",
    },
];

impl Case<'_, '_, '_> {
    /// Domains that count although none of their nodes takes a pod of the workload, since a policy of a hard constraint
    /// is Ignore; the fix is tried.
    pub(super) fn ignoring(
        &mut self,
        hard: &[usize],
        some: &str,
        reason: &str,
    ) -> Option<(&'static str, Found)> {
        let pods = self.pods.clone();
        for policy in &POLICIES {
            let mut ignoring = hard.to_vec();
            ignoring.retain(|index| (policy.of)(&pods.spec.spread[*index]) == Policy::Ignore);
            let all = (ignoring.len() > 1).then(|| ignoring.clone());
            let each = ignoring.iter().map(|index| vec![*index]).chain(all);
            for indexes in each {
                let honors = pods.with(|spec| {
                    indexes
                        .iter()
                        .for_each(|index| (policy.honor)(&mut spec.spread[*index]));
                });
                if !self.fits(&honors) {
                    continue;
                }
                let path = |index: usize| self.workload.constraint_path(index);
                let fixes = indexes.iter();
                let fixes = fixes.map(|index| Fix::set(&path(*index).child(policy.field), "Honor"));
                let fix = fixes.reduce(|mut fix, more| {
                    fix.edits.extend(more.edits);
                    fix
                })?;
                let names = &self.bench.cluster.names;
                let keys = indexes
                    .iter()
                    .map(|index| names.text(pods.spec.spread[*index].key));
                let keys: Vec<&str> = keys.collect();
                let message = format!(
                    "{some}: domains of {} count although {}, and stay the emptiest: {reason}",
                    keys.join(" and "),
                    policy.nodes
                );
                let found = Found::warning(self.workload.object, path(indexes[0]), message)
                    .help(policy.help)
                    .fix(fix);
                return Some((policy.rule, found));
            }
        }
        None
    }

    /// True if all pods find a node where cordoned ones take them.
    pub(super) fn is_held_by_cordoned(&mut self) -> bool {
        let unschedulable = self.bench.symbol("node.kubernetes.io/unschedulable");
        let nothing = self.bench.symbol("");
        let pods = self.pods.on_cordoned(unschedulable, nothing);
        self.files.nodes.iter().any(|node| node.is_cordoned) && self.fits(&pods)
    }
}
