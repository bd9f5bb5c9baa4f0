//! The usage of nodes.

use std::collections::BTreeMap;

use strew_cluster::NodeIdx;
use strew_model::{Resources, Symbol, well_known};

use crate::natural_order::natural_order;
use crate::world::World;

/// The capacity and usage of a node, or of a zone.
#[derive(Debug, Clone)]
pub struct Usage {
    /// The node, or the zone.
    pub name: String,
    /// The zone; `None` without a label.
    pub zone: Option<String>,
    /// 1 for a node.
    pub n_nodes: usize,
    /// Pods on it.
    pub n_pods: usize,
    /// The most pods that it takes.
    pub pods_max: i64,
    /// The requests of its pods.
    pub requested: Resources,
    /// The resources for pods.
    pub allocatable: Resources,
    /// True if it is cordoned; false for a zone.
    pub unschedulable: bool,
}

/// Every node, by name.
pub fn of_nodes(world: &World) -> Vec<Usage> {
    let rows = (0..world.cluster.node_rows()).map(NodeIdx::from);
    let mut nodes: Vec<Usage> = rows.filter_map(|node| of_node(world, node)).collect();
    nodes.sort_by(|a, b| natural_order(&a.name, &b.name));
    nodes
}

/// Every zone, by name; nodes without one are counted together, last.
pub fn of_zones(nodes: &[Usage]) -> Vec<Usage> {
    let mut zones: BTreeMap<(bool, &str), Usage> = BTreeMap::new();
    for node in nodes {
        let name = node.zone.as_deref().unwrap_or_default();
        let zone = zones
            .entry((node.zone.is_none(), name))
            .or_insert_with(|| Usage {
                name: node.zone.clone().unwrap_or_else(|| "<no zone>".to_owned()),
                zone: node.zone.clone(),
                n_nodes: 0,
                n_pods: 0,
                pods_max: 0,
                requested: Resources::default(),
                allocatable: Resources::default(),
                unschedulable: false,
            });
        zone.n_nodes += 1;
        zone.n_pods += node.n_pods;
        zone.pods_max = zone.pods_max.saturating_add(node.pods_max);
        zone.requested.add(&node.requested, 1);
        zone.allocatable.add(&node.allocatable, 1);
    }
    let mut zones: Vec<Usage> = zones.into_values().collect();
    zones.sort_by(|a, b| {
        let by_place = a.zone.is_none().cmp(&b.zone.is_none());
        by_place.then_with(|| natural_order(&a.name, &b.name))
    });
    zones
}

/// The zone of a node; `None` without a label, or if the node is gone.
pub fn zone_of(world: &World, node: NodeIdx) -> Option<String> {
    let fact = world.cluster.node(node).fact()?;
    let keys = [well_known::ZONE, well_known::ZONE_BETA];
    let value = keys.iter().find_map(|&key| fact.labels.get(key))?;
    Some(world.cluster.names.text(value).to_owned())
}

fn of_node(world: &World, node: NodeIdx) -> Option<Usage> {
    let names = &world.cluster.names;
    let row = world.cluster.node(node);
    let fact = row.fact()?;
    Some(Usage {
        name: names.text(fact.name).to_owned(),
        zone: zone_of(world, node),
        n_nodes: 1,
        n_pods: row.pods().len(),
        pods_max: fact.pods_max,
        requested: row.used().clone(),
        allocatable: fact.allocatable.clone(),
        unschedulable: fact.unschedulable,
    })
}

impl Usage {
    /// The node's other resources, by name: requested and allocatable.
    pub fn scalars(&self, world: &World) -> Vec<(String, i64, i64)> {
        let has = self.allocatable.scalars().iter();
        let has = has.filter(|&&(_, amount)| amount > 0);
        let text = |name: Symbol| world.cluster.names.text(name).to_owned();
        let mut all: Vec<_> = has
            .map(|&(name, amount)| (text(name), self.requested.scalar(name), amount))
            .collect();
        all.sort();
        all
    }
}

/// CPU in Kubernetes' form: `500m`, `8`.
pub fn cpu_text(milli: i64) -> String {
    match milli % 1000 {
        0 => (milli / 1000).to_string(),
        _ => format!("{milli}m"),
    }
}

/// CPU for reading, in cores: `0.5`, `8`.
pub fn cpu_short(milli: i64) -> String {
    let cores = format!("{}.{:03}", milli / 1000, milli % 1000);
    let cores = match milli {
        0..10_000 => cores.as_str(),
        _ => &cores[..cores.len() - 2],
    };
    cores.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in Kubernetes' form, exactly: `32Gi`, `100Mi`, `12345`.
pub fn bytes_text(bytes: i64) -> String {
    let units = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    let exact = units
        .iter()
        .find(|(shift, _)| bytes != 0 && bytes % (1 << shift) == 0);
    match exact {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

/// Bytes for reading, rounded to one decimal: `12.5Gi`.
pub fn bytes_short(bytes: i64) -> String {
    let units = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    let large = units.iter().find(|(shift, _)| bytes >= 1 << shift);
    let Some((shift, unit)) = large else {
        return bytes.to_string();
    };
    let tenths = (i128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
    match tenths % 10 {
        0 => format!("{}{unit}", tenths / 10),
        tenth => format!("{}.{tenth}{unit}", tenths / 10),
    }
}

/// A part of a whole in percent, rounded down.
pub fn percent(part: i64, whole: i64) -> i64 {
    match whole {
        0 => 0,
        whole => i64::try_from(i128::from(part) * 100 / i128::from(whole)).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_kubernetes_does() {
        assert_eq!(cpu_text(500), "500m");
        assert_eq!(cpu_text(8000), "8");
        assert_eq!(cpu_short(8000), "8");
        assert_eq!(cpu_short(1250), "1.25");
        assert_eq!(cpu_short(40_314_804), "40314.8");
        assert_eq!(cpu_short(0), "0");
        assert_eq!(bytes_text(32 << 30), "32Gi");
        assert_eq!(bytes_text(1000), "1000");
        assert_eq!(bytes_short((12 << 30) + (1 << 29)), "12.5Gi");
        assert_eq!(bytes_short(0), "0");
        assert_eq!(percent(1, 3), 33);
    }
}
