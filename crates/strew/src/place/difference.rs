//! What a Placement held, and what it gets: clusters that leave, join and stay, and the counts of topologies.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use strew_manifest::ocm::{ManagedCluster, SpreadConstraintsTerm};
use strew_view::fleet::topology;
use strew_view::placement::PlacementView;

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
    /// change; `not there`, `being deleted`: the cluster.
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

/// One side of a comparison.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) view: &'a PlacementView,
    /// The clusters of the fleet.
    pub(super) clusters: &'a BTreeMap<String, ManagedCluster>,
}

/// Why clusters move.
pub(super) struct Reasons<'a> {
    /// The clusters that a change names, with what it does to them.
    pub(super) touched: &'a BTreeMap<String, &'static str>,
    /// The clusters without the change; `None` if there is no change.
    pub(super) unchanged: Option<BTreeSet<&'a str>>,
}

impl<'a> Side<'a> {
    fn held(&self) -> BTreeSet<&'a str> {
        self.view.clusters().map(|(name, _)| name).collect()
    }

    /// The values of a cluster under these terms, up to the first missing one.
    fn topology(&self, terms: &[SpreadConstraintsTerm], cluster: &str) -> Vec<String> {
        topology(terms, self.clusters.get(cluster))
    }
}

impl Difference {
    pub(super) fn of(before: Side<'_>, after: Side<'_>, reasons: &Reasons<'_>) -> Self {
        let (namespace, name) = after.view.key();
        let terms = after.view.terms();
        let (old, new) = (before.held(), after.held());
        let moved = |cluster: &&str, side: Side<'_>, is_new| Moved {
            cluster_name: (*cluster).to_owned(),
            topology: side.topology(terms, cluster),
            reason: reasons.of(cluster, is_new, after),
        };
        let gone = old.difference(&new).map(|c| moved(c, before, false));
        let come = new.difference(&old).map(|c| moved(c, after, true));
        let stay = old.intersection(&new).map(|&cluster| cluster.to_owned());
        Self {
            namespace,
            name,
            gone: gone.collect(),
            new: come.collect(),
            stay: stay.collect(),
            topologies: topologies(terms, [before, after]),
            replicas: replicas(before.view, after.view),
        }
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
    fn of(&self, cluster: &str, is_new: bool, after: Side<'_>) -> Option<&'static str> {
        if let Some(&touched) = self.touched.get(cluster) {
            return Some(touched);
        }
        let Some(there) = after.clusters.get(cluster) else {
            return Some("not there");
        };
        if !is_new && there.metadata.deletion_timestamp.is_some() {
            return Some("being deleted");
        }
        let unchanged = self.unchanged.as_ref()?;
        (unchanged.contains(cluster) == is_new).then_some("anyway")
    }
}

/// The changes of replicas, if they were divided before and are divided now.
fn replicas(before: &PlacementView, after: &PlacementView) -> Vec<ReplicaChange> {
    let (Some(before), Some(after)) = (before.replicas(), after.replicas()) else {
        return Vec::new();
    };
    let clusters: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |cluster: &String| {
        let of = |side: &BTreeMap<String, u32>| side.get(cluster).copied().unwrap_or(0);
        let (before, after) = (of(&before), of(&after));
        (before != after).then(|| ReplicaChange {
            cluster_name: cluster.clone(),
            before,
            after,
        })
    };
    clusters.into_iter().filter_map(change).collect()
}

fn topologies(terms: &[SpreadConstraintsTerm], sides: [Side<'_>; 2]) -> Vec<TopologyChange> {
    let mut counts: BTreeMap<Vec<String>, [usize; 2]> = BTreeMap::new();
    for (i, side) in sides.into_iter().enumerate() {
        for cluster in side.held() {
            let topology = side.topology(terms, cluster);
            for depth in 1..=topology.len() {
                counts.entry(topology[..depth].to_vec()).or_default()[i] += 1;
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
