//! The usage of nodes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use strew_cluster::NodeIdx;
use strew_model::{Resources, well_known};

use crate::cluster_state::ClusterState;
use crate::natural_order::natural_order;

/// Amounts by the name of the resource: CPU in thousandths of a core, memory and storage in bytes.
pub type Amounts = BTreeMap<String, i64>;

/// The capacity and usage of a node, or of a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeUsage {
    /// The node, or the zone.
    pub name: String,
    /// The zone; `None` without a label.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub zone: Option<String>,
    /// 1 for a node.
    #[serde(skip)]
    pub n_nodes: usize,
    /// True if it is cordoned; false for a zone.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub unschedulable: bool,
    /// What it has for pods, `pods` among it.
    #[serde(serialize_with = "quantities")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub allocatable: Amounts,
    /// What its pods request of that.
    #[serde(serialize_with = "quantities")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub requested: Amounts,
}

/// Amounts as quantities in Kubernetes' form.
pub(crate) fn quantities<S: Serializer>(amounts: &Amounts, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(amounts.iter().map(|(name, &amount)| {
        let text = match name.as_str() {
            CPU => cpu_text(amount),
            MEMORY | STORAGE => bytes_text(amount),
            _ => amount.to_string(),
        };
        (name, text)
    }))
}

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const STORAGE: &str = "ephemeral-storage";
const PODS: &str = "pods";

/// Every node, in the order of display.
pub fn of_nodes(world: &ClusterState) -> Vec<NodeUsage> {
    let rows = (0..world.cluster.node_rows()).map(NodeIdx::from);
    let mut nodes: Vec<NodeUsage> = rows.filter_map(|node| of_node(world, node)).collect();
    nodes.sort_by(|a, b| natural_order(&a.name, &b.name));
    nodes
}

/// Every zone, by name; nodes without one are counted together, last.
pub fn of_zones(nodes: &[NodeUsage]) -> Vec<NodeUsage> {
    let mut zones: BTreeMap<(bool, &str), NodeUsage> = BTreeMap::new();
    for node in nodes {
        let name = node.zone.as_deref().unwrap_or_default();
        let zone = zones
            .entry((node.zone.is_none(), name))
            .or_insert_with(|| NodeUsage {
                name: node.zone.clone().unwrap_or_else(|| "<no zone>".to_owned()),
                zone: node.zone.clone(),
                n_nodes: 0,
                unschedulable: false,
                allocatable: Amounts::new(),
                requested: Amounts::new(),
            });
        zone.n_nodes += 1;
        add(&mut zone.allocatable, &node.allocatable);
        add(&mut zone.requested, &node.requested);
    }
    let mut zones: Vec<NodeUsage> = zones.into_values().collect();
    zones.sort_by(|a, b| {
        let by_place = a.zone.is_none().cmp(&b.zone.is_none());
        by_place.then_with(|| natural_order(&a.name, &b.name))
    });
    zones
}

/// Adds amounts to others.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = sum.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// The zone of a node; `None` without a label, or if the node is gone.
pub fn zone_of(world: &ClusterState, node: NodeIdx) -> Option<String> {
    let fact = world.cluster.node(node).fact()?;
    let keys = [well_known::ZONE, well_known::ZONE_BETA];
    let value = keys.iter().find_map(|&key| fact.labels.get(key))?;
    Some(world.cluster.names.text(value).to_owned())
}

/// `None` if the node is gone.
pub(crate) fn of_node(world: &ClusterState, node: NodeIdx) -> Option<NodeUsage> {
    let names = &world.cluster.names;
    let row = world.cluster.node(node);
    let fact = row.fact()?;
    let mut allocatable = amounts(world, &fact.allocatable);
    // What it has none of is not told; of disk files often say nothing.
    allocatable.retain(|name, amount| *amount > 0 || [CPU, MEMORY].contains(&name.as_str()));
    let mut requested = amounts(world, row.used());
    requested.retain(|name, _| allocatable.contains_key(name));
    for name in allocatable.keys() {
        requested.entry(name.clone()).or_default();
    }
    allocatable.insert(PODS.to_owned(), fact.pods_max);
    let n_pods = i64::try_from(row.pods().len()).unwrap_or(i64::MAX);
    requested.insert(PODS.to_owned(), n_pods);
    Some(NodeUsage {
        name: names.text(fact.name).to_owned(),
        zone: zone_of(world, node),
        n_nodes: 1,
        unschedulable: fact.unschedulable,
        allocatable,
        requested,
    })
}

/// Resources by name.
pub(crate) fn amounts(world: &ClusterState, resources: &Resources) -> Amounts {
    let text = |name| world.cluster.names.text(name).to_owned();
    let scalars = resources.scalars().iter();
    let scalars = scalars.map(|&(name, amount)| (text(name), amount));
    let known = [
        (CPU, resources.cpu_milli),
        (MEMORY, resources.memory),
        (STORAGE, resources.ephemeral_storage),
    ];
    let known = known.map(|(name, amount)| (name.to_owned(), amount));
    known.into_iter().chain(scalars).collect()
}

/// The taints of a node in kubectl's form: `key=value:NoSchedule`.
pub fn taints(world: &ClusterState, node: NodeIdx) -> Vec<String> {
    let names = &world.cluster.names;
    let taints = world.cluster.node(node).fact().map(|fact| &fact.taints);
    let texts = taints.into_iter().flatten().map(|taint| {
        let (key, effect) = (names.text(taint.key), taint.effect.name());
        match taint.value {
            well_known::EMPTY => format!("{key}:{effect}"),
            value => format!("{key}={}:{effect}", names.text(value)),
        }
    });
    texts.collect()
}

impl NodeUsage {
    /// What is requested of a resource, and what there is.
    pub fn of(&self, resource: &str) -> (i64, i64) {
        let amount = |amounts: &Amounts| amounts.get(resource).copied().unwrap_or(0);
        (amount(&self.requested), amount(&self.allocatable))
    }

    /// Resources beside CPU, memory, disk and pods, by name: requested and allocatable.
    pub fn others(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        let names = self.allocatable.keys().map(String::as_str);
        let others = names.filter(|name| ![CPU, MEMORY, STORAGE, PODS].contains(name));
        others.map(|name| {
            let (used, has) = self.of(name);
            (name, used, has)
        })
    }

    /// What its pods leave; negative if they request more than there is.
    pub fn free(&self) -> Amounts {
        let names = self.allocatable.keys();
        let free = names.map(|name| {
            let (used, has) = self.of(name);
            (name.clone(), has.saturating_sub(used))
        });
        free.collect()
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
