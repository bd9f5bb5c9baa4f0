//! Signatures of nodes, read from a plan.

use smallvec::SmallVec;
use strew_cluster::topology::MISSING;
use strew_cluster::{Cluster, KeyId, NodeIdx, TallyId};

use super::Signature;
use crate::columns::Columns;
use crate::group_limits::GroupLimits;
use crate::plan::ClassPlan;

/// Reads signatures for one class.
pub(super) struct Reader<'a> {
    /// The most groups that are useful.
    pub(super) groups_max: usize,
    plan: &'a ClassPlan,
    columns: &'a Columns,
    /// Keys whose domain matters.
    domains: SmallVec<[&'a [u32]; 4]>,
    /// Counts per node that matter (hostname constraints), with the column that shows which nodes have the key.
    counts: SmallVec<[(&'a [u32], &'a [i32]); 2]>,
    /// Keys with a domain for each node: the domain's count matters.
    domain_counts: SmallVec<[(&'a [u32], &'a [i32]); 2]>,
}

impl<'a> Reader<'a> {
    /// `None` if nodes differ by something that signatures do not contain.
    pub(super) fn of(
        cluster: &'a Cluster,
        plan: &'a ClassPlan,
        columns: &'a Columns,
        limits: GroupLimits,
    ) -> Option<Self> {
        // The legacy score sums over nodes, so representatives cannot stand for others.
        if !plan.by_node.is_empty() || plan.selector_spread.is_some() {
            return None;
        }
        let mut keys: SmallVec<[KeyId; 4]> = SmallVec::new();
        let mut reader = Self {
            groups_max: limits.groups_max(cluster.nodes_present()),
            plan,
            columns,
            domains: SmallVec::new(),
            counts: SmallVec::new(),
            domain_counts: SmallVec::new(),
        };
        for hard in &plan.spread.hard {
            reader.add_counted(cluster, hard.key, hard.tally, &mut keys);
        }
        for soft in &plan.spread.soft {
            match soft.tally {
                Some(_) => keys.push(soft.key),
                None => {
                    let counts = cluster.census(soft.census).per_node();
                    reader
                        .counts
                        .push((cluster.column(soft.key).domains(), counts));
                }
            }
        }
        for counted in plan.affinity.active(cluster) {
            reader.add_counted(cluster, counted.key, counted.tally, &mut keys);
        }
        keys.sort_unstable();
        keys.dedup();
        // A key with many domains makes as many groups, so groups are not tried.
        let has_more = |&key: &KeyId| cluster.column(key).len() > reader.groups_max;
        if keys.iter().any(has_more) {
            return None;
        }
        reader
            .domains
            .extend(keys.iter().map(|&k| cluster.column(k).domains()));
        Some(reader)
    }

    /// By the count if each node is a domain of its own; by the domain if nodes share domains.
    fn add_counted(
        &mut self,
        cluster: &'a Cluster,
        key: KeyId,
        tally: TallyId,
        keys: &mut SmallVec<[KeyId; 4]>,
    ) {
        let column = cluster.column(key);
        if column.is_one_to_one() {
            self.domain_counts
                .push((column.domains(), cluster.tally(tally).counts()));
        } else {
            keys.push(key);
        }
    }

    pub(super) fn signature(&self, node: NodeIdx) -> Signature {
        let i = node.index();
        let mut signature = Signature::new();
        let shape = self.columns.shape(self.plan);
        if !self.columns.admitted(self.plan).contains(i) || !shape.fits.contains(i) {
            return signature;
        }
        let scores = shape.scores[i];
        signature.push(u32::from(scores.fit) << 8 | u32::from(scores.balanced));
        let columns = [
            Some(self.columns.prefer_taints(self.plan)),
            self.columns.preferred_nodes(self.plan),
            Some(self.columns.images(self.plan)),
        ];
        for column in columns.into_iter().flatten().filter(|c| c.nonzero > 0) {
            signature.push(column.values[i] as u32);
        }
        signature.extend(self.domains.iter().map(|domains| domains[i]));
        for (domains, counts) in &self.counts {
            signature.push(if domains[i] == MISSING {
                MISSING
            } else {
                counts[i] as u32
            });
        }
        for (domains, counts) in &self.domain_counts {
            let domain = domains[i];
            let count = counts.get(domain as usize).copied().unwrap_or(0);
            signature.push(if domain == MISSING {
                MISSING
            } else {
                count as u32
            });
        }
        signature
    }
}
