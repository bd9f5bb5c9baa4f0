//! The page of `--html`: Placements with their clusters, and the fleet by its labels. `strew ui` shows the same rows.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use strew_manifest::finding::Finding;
use strew_manifest::ocm::ManagedCluster;
use strew_placement::facts::status::ConditionType;
use strew_view::placement::{PlacementView, holds};
use strew_wire::placement::debug::Explained;

use super::difference;
use super::fleet::Fleet;
use super::help;
use super::summary::is_good;
use super::text::Shown;
use super::what_if::Changed;
use crate::failure::Failure;
use crate::html;

/// The clusters that are named of those with one reason.
const NAMES_MAX: usize = 50;

/// OCM's condition of a cluster that answers.
const AVAILABLE: &str = "ManagedClusterConditionAvailable";

/// What a page is about.
pub(super) struct About<'a> {
    pub(super) files: &'a [String],
    /// The fleet after the changes.
    pub(super) fleet: &'a Fleet,
    pub(super) changed: Option<&'a Changed>,
    /// The warnings about the files.
    pub(super) findings: &'a [Finding],
}

/// Writes the page of these Placements.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(path: &str, shown: &[Shown<'_>], about: &About<'_>) -> Result<(), Failure> {
    let fleet = about.fleet;
    // Made at most once, where a Placement matches nothing.
    let cel = std::cell::LazyCell::new(|| fleet.selectors());
    let mut rows: BTreeMap<String, Value> = BTreeMap::new();
    for (decided, difference) in shown {
        let mut row = placement(&decided.view, &fleet.clusters);
        if let Some(why) = &decided.why {
            row["warning"] = json!(why.warning);
            if !why.result.topologies.is_empty() {
                row["topologies"] = topologies(why);
            }
            let others = why.result.not_selected.iter().map(|others| {
                let names = others.clusters.iter().take(NAMES_MAX);
                json!({
                    "message": others.message,
                    "count": others.count,
                    "clusters": names.collect::<Vec<_>>(),
                })
            });
            row["notSelected"] = others.collect();
        }
        row["help"] = json!(help::of(&decided.view, fleet, &cel));
        row["difference"] = json!(difference);
        rows.insert(format!("placement {}", decided.view.label()), row);
    }
    for cluster in fleet.clusters.values() {
        rows.insert(key_of(cluster), of_cluster(cluster));
    }
    for (n, finding) in about.findings.iter().enumerate() {
        rows.insert(format!("finding {n:05}"), json!(finding));
    }
    let names = about.files.iter().map(|name| {
        let last = Path::new(name).file_name().and_then(|last| last.to_str());
        last.unwrap_or(name)
    });
    let title = match about.files.is_empty() {
        true => "the hub of the kubeconfig".to_owned(),
        false => names.collect::<Vec<_>>().join(", "),
    };
    let data = json!({
        "report": {
            "kind": "Fleet",
            "title": title,
            "changes": about.changed.map(Changed::asked),
        },
        "data": {"rows": rows},
    });
    html::write(path, &data.to_string())
}

/// The counts of topologies, each with the minimum that its skew is measured from.
fn topologies(why: &Explained) -> Value {
    let each = why.result.topologies.iter().map(|topology| {
        let mut row = json!(topology);
        if let Some(measured) = why.measured.get(&topology.topology) {
            row["skew"] = json!(measured.skew);
            row["minimum"] = json!(measured.minimum);
        }
        row
    });
    each.collect()
}

/// A Placement of a page; `clusters` are those of the fleet, by name.
pub(crate) fn placement(
    view: &PlacementView,
    clusters: &BTreeMap<String, ManagedCluster>,
) -> Value {
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
        "topologies": difference::held(view, clusters),
    })
}

/// The key of a cluster's row.
pub(crate) fn key_of(cluster: &ManagedCluster) -> String {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    format!("cluster {name}")
}

/// A cluster of a page: its labels and claims, by which it has topologies, and whether it answers.
pub(crate) fn of_cluster(cluster: &ManagedCluster) -> Value {
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
