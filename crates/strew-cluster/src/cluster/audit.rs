//! A full recount that verifies everything that is maintained incrementally.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_spread::Tally;

use super::{Cluster, NodeRow, PodRow};
use crate::census::{Census, CensusId, Censuses, Weighing};
use crate::class::ClassId;
use crate::eligibility::EligibleNodes;
use crate::index::{NodeIdx, PodIdx};
use crate::volumes::ClaimKey;

impl Cluster {
    /// Recounts everything that is maintained incrementally.
    ///
    /// # Errors
    /// The first difference from a recount, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut pods_on = 0;
        let mut users: FxHashMap<_, Vec<NodeIdx>> = FxHashMap::default();
        for (i, row) in self.nodes.iter().enumerate() {
            let mut fresh = NodeRow::new(row.name);
            for &pod in &row.pods {
                if self.pod(pod).node != Some(NodeIdx::from(i)) {
                    return Err(format!(
                        "pod {} is listed on a node that it is not on",
                        self.pod(pod).name
                    ));
                }
                fresh.account(self.spec_of(pod), 1);
                self.claims_of(pod)
                    .for_each(|key| fresh.use_claim(key, true));
                let namespace = self.class_of(pod).key.namespace;
                let claims = self.spec_of(pod).claims.iter();
                for claim in claims.filter_map(|used| used.named) {
                    let of_claim = users.entry((namespace, claim)).or_default();
                    of_claim.push(NodeIdx::from(i));
                }
            }
            let sorted = |row: &NodeRow| {
                let mut claims = row.claims.clone();
                claims.sort_unstable();
                claims
            };
            pods_on += row.pods.len();
            let name = self.names.text(row.name);
            let mut left = row.used.clone();
            left.add(&fresh.used, -1);
            if !left.is_zero() || fresh.used_scored != row.used_scored {
                return Err(format!(
                    "node {name}: used {:?}, recounted {:?}",
                    row.used, fresh.used
                ));
            }
            if sorted(row) != sorted(&fresh) {
                return Err(format!(
                    "node {name}: claims {:?}, recounted {:?}",
                    row.claims, fresh.claims
                ));
            }
        }
        if !self.volumes.audit(&users) {
            return Err(format!("users of claims: recounted {users:?}"));
        }
        if pods_on != self.pods().filter(|(_, p)| p.node.is_some()).count() {
            return Err("the nodes' lists and the pods' nodes differ in number".to_owned());
        }
        let mut priorities = BTreeMap::new();
        for (_, pod) in self.pods().filter(|(_, pod)| pod.node.is_some()) {
            let key = &self.tables.class(pod.class).key;
            *priorities
                .entry(self.tables.spec(key.spec).priority)
                .or_default() += 1;
        }
        if priorities != self.priorities {
            return Err(format!(
                "priorities: kept {:?}, recounted {priorities:?}",
                self.priorities
            ));
        }
        self.audit_classes()?;
        self.censuses
            .iter()
            .try_for_each(|(id, census)| self.audit_census(id, census))
    }

    /// Compares the facts, their rows, and every order that a decision can see with another state of this cluster. For
    /// tests: each pod and node is visited.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn same_facts(&self, other: &Self) -> Result<(), String> {
        let rows = self.nodes.len().max(other.nodes.len());
        for row in 0..rows {
            // A row that is free is as good as none.
            let node = |cluster: &Self| {
                let there = cluster.nodes.get(row)?;
                let is_free = there.fact.is_none() && there.pods.is_empty();
                let sorted = |claims: &[ClaimKey]| {
                    let mut claims = claims.to_vec();
                    claims.sort_unstable();
                    claims
                };
                (!is_free).then(|| {
                    let used = (there.used_scored, sorted(&there.claims));
                    (there.name, there.fact.clone(), there.pods.clone(), used)
                })
            };
            same(&format!("node row {row}"), node(self), node(other))?;
        }
        let order = |cluster: &Self| {
            let mut order = cluster.order.clone();
            order.refresh();
            order
        };
        same("order of nodes", order(self), order(other))?;
        let pods = |cluster: &Self| {
            let pod = |(index, row): (PodIdx, &PodRow)| {
                let key = cluster.class_of(index).key.clone();
                let row = (Arc::clone(&row.uid), row.node, row.history);
                (index, row, key, cluster.spec_of(index).clone())
            };
            cluster.pods().map(pod).collect::<Vec<_>>()
        };
        same("pods", pods(self), pods(other))?;
        let volumes = |cluster: &Self| {
            let all = cluster.volumes.all().map(|(name, _)| name);
            let mut held: Vec<_> = all.map(|v| (v, cluster.volumes.holder(v))).collect();
            held.sort_unstable();
            held
        };
        same("assumed volumes", volumes(self), volumes(other))
    }

    fn audit_classes(&self) -> Result<(), String> {
        let mut counts: FxHashMap<ClassId, (usize, usize)> = FxHashMap::default();
        for (_, pod) in self.pods() {
            let (pods, members) = counts.entry(pod.class).or_default();
            *pods += 1;
            *members += usize::from(pod.node.is_some());
        }
        self.tables
            .audit(|id| counts.get(&id).copied().unwrap_or_default())
    }

    fn audit_census(&self, id: CensusId, census: &Census) -> Result<(), String> {
        let weighing = Weighing {
            tables: &self.tables,
            namespaces: &self.namespaces,
        };
        let mut per_node = vec![0; self.nodes.len()];
        for (_, pod) in self.pods() {
            let weight = weighing.weigh(census.key(), self.tables.class(pod.class));
            if let (Some(node), Some(count)) = (pod.node, weight) {
                per_node[node.index()] += count;
            }
        }
        if per_node != census.per_node() {
            return Err(format!(
                "census {:?}: kept {:?}, recounted {per_node:?}",
                census.key(),
                census.per_node()
            ));
        }
        for derived in census.tallies() {
            let mut fresh = Censuses::new(usize::MAX);
            let copy = fresh.start(census.key().clone(), 0);
            fresh.adopt(copy, per_node.clone());
            let place = fresh.tally(copy, derived.key, &self.eligible_afresh(), &self.topology);
            let fresh = &fresh.tally_of(place).tally;
            if !same_tally(fresh, &derived.tally) {
                return Err(format!(
                    "tally {id:?} {:?}: kept {:?}, recounted {fresh:?}",
                    derived.key, derived.tally
                ));
            }
        }
        Ok(())
    }

    fn eligible_afresh(&self) -> EligibleNodes {
        let mut eligible = self.eligible.clone();
        for (i, row) in self.nodes.iter().enumerate() {
            eligible.refresh(NodeIdx::from(i), row, &self.tables, &self.names);
        }
        eligible
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, a: T, b: T) -> Result<(), String> {
    match a == b {
        true => Ok(()),
        false => Err(format!("{what}: {a:?}, and {b:?}")),
    }
}

/// True if equal domains have equal counts; a tally need not know domains with count 0.
fn same_tally(a: &Tally, b: &Tally) -> bool {
    let domains = a.counts().len().max(b.counts().len()) as u32;
    let same = |d| {
        let d = strew_spread::DomainIdx(d);
        a.count(d) == b.count(d) && a.exists(d) == b.exists(d)
    };
    (0..domains).all(same) && a.minimum() == b.minimum() && a.maximum() == b.maximum()
}
