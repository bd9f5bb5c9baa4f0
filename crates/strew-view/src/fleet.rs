//! A hub as rows of a page: Placements with their clusters, and the clusters by their labels.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};
use strew_apiserver::Tables;
use strew_manifest::ocm::{ManagedCluster, SpreadConstraintsTerm};
use strew_manifest::read::KubeObject;
use strew_placement::facts::status::ConditionType;

use crate::placement::{PlacementView, holds};

/// OCM's condition of a cluster that answers.
const AVAILABLE: &str = "ManagedClusterConditionAvailable";

/// All rows of a hub by key: `placement NAMESPACE/NAME`, `cluster NAME`.
pub fn rows(tables: &Tables) -> BTreeMap<String, Value> {
    let placements = PlacementView::all(tables);
    let clusters = tables.all_plain().filter_map(|plain| match &plain.object {
        KubeObject::ManagedCluster(cluster) => {
            let mut cluster = ManagedCluster::clone(cluster);
            cluster.metadata = plain.meta.to_wire();
            Some((plain.meta.name.name.to_string(), cluster))
        }
        _ => None,
    });
    let clusters: BTreeMap<String, ManagedCluster> = clusters.collect();
    let of_placements = placements.values().map(|view| {
        let key = format!("placement {}", view.label());
        (key, placement(view, &clusters))
    });
    let of_clusters = clusters.values();
    let of_clusters = of_clusters.map(|cluster| (key_of(cluster), of_cluster(cluster)));
    of_placements.chain(of_clusters).collect()
}

/// A Placement; `clusters` are those of the fleet, by name.
pub fn placement(view: &PlacementView, clusters: &BTreeMap<String, ManagedCluster>) -> Value {
    let (namespace, name) = view.key();
    let replicas = view.replicas();
    let chosen = view.clusters().map(|(name, group)| {
        let replicas = replicas.as_ref().map(|all| all.get(name).copied());
        json!({"name": name, "group": group, "replicas": replicas})
    });
    let kinds = [
        ConditionType::Misconfigured,
        ConditionType::Satisfied,
        ConditionType::SpreadSatisfied,
    ];
    let conditions = kinds.into_iter().filter_map(|kind| view.condition(kind));
    let conditions = conditions.map(|condition| {
        json!({
            "type": condition.type_,
            "reason": condition.reason,
            "message": condition.message,
            "good": is_good(condition),
        })
    });
    let state = match view {
        view if view.is_ignored() => "ignored",
        view if view.is_misconfigured() => "misconfigured",
        view if view.is_short() => "short",
        view if view.is_uneven() => "uneven",
        _ => "asAsked",
    };
    json!({
        "namespace": namespace,
        "name": name,
        "wanted": view.wanted(),
        "state": state,
        "terms": view.terms(),
        "clusters": chosen.collect::<Vec<_>>(),
        "conditions": conditions.collect::<Vec<_>>(),
        "topologies": topologies(view, clusters),
    })
}

/// The key of a cluster's row.
pub fn key_of(cluster: &ManagedCluster) -> String {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    format!("cluster {name}")
}

/// A cluster: its labels and claims, by which it has topologies, and whether it answers.
pub fn of_cluster(cluster: &ManagedCluster) -> Value {
    let claims: BTreeMap<&str, &str> = cluster.claims().collect();
    let labels: BTreeMap<&str, &str> = cluster.labels().collect();
    let status = cluster.status.as_ref();
    let mut conditions = status.iter().flat_map(|s| s.conditions.iter().flatten());
    let available = conditions.find(|condition| condition.type_ == AVAILABLE);
    let taints = cluster.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    json!({
        "labels": labels,
        "claims": claims,
        "available": available.is_none_or(holds),
        "tainted": taints.is_some_and(|taints| !taints.is_empty()),
    })
}

/// True if the condition is as a person wants it.
pub fn is_good(condition: &Condition) -> bool {
    holds(condition) != (condition.type_ == ConditionType::Misconfigured.name())
}

/// The values of a cluster under these terms, up to the first missing one.
pub fn topology(terms: &[SpreadConstraintsTerm], cluster: Option<&ManagedCluster>) -> Vec<String> {
    let values = terms.iter();
    let values = values.map_while(|term| term.value(cluster?).map(str::to_owned));
    values.collect()
}

/// The clusters that each topology holds: those of a view, and all of the fleet, so that empty ones are seen.
fn topologies(view: &PlacementView, clusters: &BTreeMap<String, ManagedCluster>) -> Value {
    let chosen: BTreeSet<&str> = view.clusters().map(|(name, _)| name).collect();
    let mut counts: BTreeMap<Vec<String>, [usize; 2]> = BTreeMap::new();
    for (name, cluster) in clusters {
        let topology = topology(view.terms(), Some(cluster));
        for depth in 1..=topology.len() {
            let [selected, all] = counts.entry(topology[..depth].to_vec()).or_default();
            *selected += usize::from(chosen.contains(name.as_str()));
            *all += 1;
        }
    }
    let rows = counts.into_iter().map(|(topology, [selected, clusters])| {
        json!({"topology": topology, "selected": selected, "clusters": clusters})
    });
    rows.collect()
}
