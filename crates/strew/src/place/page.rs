//! The page of `--html`: Placements with their clusters, and the fleet by its labels, by the rows of
//! [`strew_view::fleet`].

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use strew_manifest::finding::Finding;
use strew_view::fleet::{key_of, of_cluster, placement};
use strew_wire::placement::debug::Explained;

use super::fleet::Fleet;
use super::help;
use super::text::Shown;
use super::what_if::Changed;
use crate::failure::Failure;
use crate::html;

/// The clusters that are named of those with one reason.
const NAMES_MAX: usize = 50;

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
