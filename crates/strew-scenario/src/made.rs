//! Made-up nodes, for files that have none: node-0, node-1, … in zones and regions by turns.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// How many are made by default.
pub const NODES: usize = 12;

/// A node without disk would refuse every pod that asks for some; real nodes have disk.
const STORAGE: &str = "100Gi";

/// The properties of every made-up node.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The number of zones, used in turn; 0: no zone label.
    pub zones: usize,
    /// The number of regions; 0: no region label.
    pub regions: usize,
    /// Allocatable CPU.
    pub cpu: String,
    /// Allocatable memory.
    pub memory: String,
    /// The number of pods that a node takes.
    pub pods: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            zones: 3,
            regions: 1,
            cpu: "8".to_owned(),
            memory: "32Gi".to_owned(),
            pods: 110,
        }
    }
}

impl Shape {
    /// The node of this number.
    pub fn node(&self, index: usize) -> Node {
        let name = format!("node-{index}");
        let mut labels: BTreeMap<String, String> = [
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/hostname", &name),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
        let zone = (self.zones > 0).then(|| index % self.zones);
        if let Some(zone) = zone {
            let value = format!("zone-{}", letters(zone));
            labels.insert("topology.kubernetes.io/zone".to_owned(), value);
        }
        if self.regions > 0 {
            // A zone is in one region.
            let region = zone.map_or(index % self.regions, |zone| {
                zone * self.regions / self.zones
            });
            let value = format!("region-{}", region + 1);
            labels.insert("topology.kubernetes.io/region".to_owned(), value);
        }
        let (pods, storage) = (self.pods.to_string(), STORAGE.to_owned());
        let amounts = [
            ("cpu", &self.cpu),
            ("memory", &self.memory),
            ("ephemeral-storage", &storage),
            ("pods", &pods),
        ];
        let amounts = amounts.map(|(key, value)| (key.to_owned(), Quantity(value.clone())));
        let amounts = BTreeMap::from(amounts);
        Node {
            metadata: ObjectMeta {
                name: Some(name),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            spec: None,
            status: Some(NodeStatus {
                allocatable: Some(amounts.clone()),
                capacity: Some(amounts),
                ..NodeStatus::default()
            }),
        }
    }
}

/// a, b, …, z, aa, ab, …
fn letters(index: usize) -> String {
    let last = char::from(b'a' + (index % 26) as u8);
    match index / 26 {
        0 => last.to_string(),
        rest => format!("{}{last}", letters(rest - 1)),
    }
}

#[test]
fn zones_are_lettered() {
    assert_eq!(
        [0, 2, 25, 26, 701, 702].map(letters).join(" "),
        "a c z aa zz aaa"
    );
}
