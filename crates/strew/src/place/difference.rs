//! What a Placement held, and what it gets: clusters that leave, join and stay, and the counts of topologies.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use strew_model::{Interner, Symbol};
use strew_placement::facts::cluster::ClusterFact;
use strew_placement::facts::placement::{PlacementFact, TopologyKeyType};
use strew_placement::machine::Input;

/// The change of a Placement's clusters.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Difference {
    pub(super) namespace: String,
    pub(super) name: String,
    /// By name.
    pub(super) gone: Vec<Moved>,
    /// By name.
    pub(super) new: Vec<Moved>,
    /// Names of clusters that were selected before and are after.
    pub(super) stay: Vec<String>,
    /// Topologies with a cluster before or after, parents first; empty without spread constraints.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) topologies: Vec<TopologyChange>,
    /// Clusters whose replicas change, by name; empty if no replicas are divided.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) replicas: Vec<ReplicaChange>,
}

/// The replicas of a cluster.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplicaChange {
    pub(super) cluster_name: String,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// A cluster that goes or comes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Moved {
    pub(super) cluster_name: String,
    /// Its values, from the first term down.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(super) topology: Vec<String>,
    /// `lost`, `tainted`, `relabelled`, ... by the change that was asked about; `anyway`: it also moves without a
    /// change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
}

/// The clusters that a topology holds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TopologyChange {
    pub(super) topology: Vec<String>,
    pub(super) before: usize,
    pub(super) after: usize,
}

/// Clusters, by name.
pub(super) type Clusters<'a> = BTreeMap<Symbol, &'a ClusterFact>;

/// The clusters among the facts.
pub(super) fn clusters(facts: &[Input]) -> Clusters<'_> {
    let clusters = facts.iter().filter_map(|input| match input {
        Input::ClusterSet(fact) => Some((fact.name, fact)),
        _ => None,
    });
    clusters.collect()
}

/// One side of a comparison.
pub(super) struct Side<'a> {
    pub(super) held: BTreeSet<Symbol>,
    /// `None` if none are divided.
    pub(super) replicas: Option<BTreeMap<Symbol, u32>>,
    pub(super) clusters: &'a Clusters<'a>,
}

/// Why clusters move.
pub(super) struct Reasons<'a> {
    /// The clusters that a change names, with what it does to them.
    pub(super) touched: &'a BTreeMap<Symbol, &'static str>,
    /// The clusters without the change; `None` if there is no change.
    pub(super) unchanged: Option<BTreeSet<Symbol>>,
}

impl Difference {
    pub(super) fn of(
        placement: &PlacementFact,
        before: &Side<'_>,
        after: &Side<'_>,
        reasons: &Reasons<'_>,
        names: &Interner,
    ) -> Self {
        let text = |symbol: Symbol| names.text(symbol).to_owned();
        let moved = |cluster: Symbol, side: &Side<'_>, other: &Side<'_>| Moved {
            cluster_name: text(cluster),
            topology: tuple(placement, side.clusters.get(&cluster).copied(), names),
            reason: reasons.of(cluster, other),
        };
        let gone = before.held.difference(&after.held);
        let new = after.held.difference(&before.held);
        let mut difference = Self {
            namespace: text(placement.namespace),
            name: text(placement.name),
            gone: gone.map(|&c| moved(c, before, after)).collect(),
            new: new.map(|&c| moved(c, after, after)).collect(),
            stay: before
                .held
                .intersection(&after.held)
                .map(|&c| text(c))
                .collect(),
            topologies: topologies(placement, before, after, names),
            replicas: replicas(before, after, names),
        };
        let by_name = |a: &Moved, b: &Moved| a.cluster_name.cmp(&b.cluster_name);
        difference.gone.sort_by(by_name);
        difference.new.sort_by(by_name);
        difference.stay.sort();
        difference
    }

    /// True if there is any difference.
    pub(super) fn changes(&self) -> bool {
        self.moves() || !self.replicas.is_empty()
    }

    /// True if a cluster goes or comes.
    pub(super) fn moves(&self) -> bool {
        !self.gone.is_empty() || !self.new.is_empty()
    }

    /// `2 gone, 2 new, 4 stay`.
    pub(super) fn words(&self) -> String {
        let (gone, new, stay) = (self.gone.len(), self.new.len(), self.stay.len());
        format!("{gone} gone, {new} new, {stay} stay")
    }
}

impl Reasons<'_> {
    /// Why a cluster is on one side only.
    fn of(&self, cluster: Symbol, after: &Side<'_>) -> Option<&'static str> {
        if let Some(&touched) = self.touched.get(&cluster) {
            return Some(touched);
        }
        if !after.clusters.contains_key(&cluster) {
            return Some("not there");
        }
        let unchanged = self.unchanged.as_ref()?;
        let anyway = unchanged.contains(&cluster) == after.held.contains(&cluster);
        anyway.then_some("anyway")
    }
}

/// The values of a cluster under the terms of a Placement, up to the first missing one.
fn tuple(
    placement: &PlacementFact,
    cluster: Option<&ClusterFact>,
    names: &Interner,
) -> Vec<String> {
    let terms = placement.spec.spread.iter();
    let values = terms.map_while(|term| {
        let cluster = cluster?;
        let value = match term.key_type {
            TopologyKeyType::Claim => cluster.claims.get(term.key),
            _ => cluster.labels.get(term.key),
        };
        value.map(|value| names.text(value).to_owned())
    });
    values.collect()
}

/// The changes of replicas, if they were divided before and are divided now.
fn replicas(before: &Side<'_>, after: &Side<'_>, names: &Interner) -> Vec<ReplicaChange> {
    let (Some(before), Some(after)) = (&before.replicas, &after.replicas) else {
        return Vec::new();
    };
    let clusters: BTreeSet<Symbol> = before.keys().chain(after.keys()).copied().collect();
    let change = |cluster: Symbol| {
        let of = |side: &BTreeMap<Symbol, u32>| side.get(&cluster).copied().unwrap_or(0);
        (of(before) != of(after)).then(|| ReplicaChange {
            cluster_name: names.text(cluster).to_owned(),
            before: of(before),
            after: of(after),
        })
    };
    let mut changes: Vec<ReplicaChange> = clusters.into_iter().filter_map(change).collect();
    changes.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    changes
}

fn topologies(
    placement: &PlacementFact,
    before: &Side<'_>,
    after: &Side<'_>,
    names: &Interner,
) -> Vec<TopologyChange> {
    let mut counts: BTreeMap<Vec<String>, [usize; 2]> = BTreeMap::new();
    for (i, side) in [before, after].into_iter().enumerate() {
        for cluster in &side.held {
            let tuple = tuple(placement, side.clusters.get(cluster).copied(), names);
            for depth in 1..=tuple.len() {
                counts.entry(tuple[..depth].to_vec()).or_default()[i] += 1;
            }
        }
    }
    let change = |(topology, [before, after]): (_, [usize; 2])| TopologyChange {
        topology,
        before,
        after,
    };
    counts.into_iter().map(change).collect()
}
