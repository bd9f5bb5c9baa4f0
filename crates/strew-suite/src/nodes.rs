//! Made-up nodes: `--nodes 12 --zones 3 --node-cpu 8`.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use strew_manifest::quantity::Quantity;
use strew_scenario::made::{NODES, Shape};

use crate::failure::Failure;

/// Nodes to make up.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(
        next_help_heading = "Nodes beside those of the files (node-0, node-1, …; each with 100Gi of ephemeral storage)"
    )
)]
pub struct NodeArgs {
    /// The number of nodes [default: 12 if the files have none]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub nodes: Option<usize>,
    /// The number of zones, used in turn; 0: no zone label [default: 3]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub zones: Option<usize>,
    /// The number of regions; 0: no region label [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub regions: Option<usize>,
    /// Allocatable CPU of each node [default: 8]
    #[cfg_attr(feature = "clap", arg(long, value_name = "QUANTITY"))]
    pub node_cpu: Option<String>,
    /// Allocatable memory of each node [default: 32Gi]
    #[cfg_attr(feature = "clap", arg(long, value_name = "QUANTITY"))]
    pub node_memory: Option<String>,
    /// The number of pods that each node takes [default: 110]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub node_pods: Option<u32>,
}

/// Twenty times the largest cluster that Kubernetes supports.
const NODES_MAX: usize = 100_000;

/// The nodes for the arguments, and notes about them.
#[derive(Debug, Default)]
pub struct MadeNodes {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// What a person should know, if nobody asked for them.
    pub note: Option<String>,
}

impl NodeArgs {
    /// Makes the nodes. Without `--nodes`, nodes are made only if the files have none.
    ///
    /// # Errors
    /// The arguments contradict each other or the files.
    pub fn make(&self, files_hold_nodes: bool) -> Result<MadeNodes, Failure> {
        let shape = self.shape()?;
        let (count, by_default) = match self.nodes {
            Some(count) => (count, false),
            None if files_hold_nodes && self.is_shaped() => {
                return Err(
                    Failure::input("the files hold nodes, so there are none to shape")
                        .with_hint("add --nodes N to have more nodes beside them"),
                );
            }
            None if files_hold_nodes => return Ok(MadeNodes::default()),
            None => (NODES.max(shape.zones), true),
        };
        if count > NODES_MAX {
            return Err(bad("--nodes", format!("{count} is more than {NODES_MAX}")));
        }
        if shape.zones > count && count > 0 {
            let zones = shape.zones;
            return Err(bad(
                "--zones",
                format!("{count} nodes cannot fill {zones} zones"),
            ));
        }
        let note = by_default.then(|| {
            let zones = match shape.zones {
                0 => "without zones".to_owned(),
                1 => "in one zone".to_owned(),
                n => format!("in {n} zones"),
            };
            format!(
                "the files hold no nodes: taking {count} {zones}, each with {} CPU and {} (see --nodes, --zones)",
                shape.cpu, shape.memory
            )
        });
        Ok(MadeNodes {
            nodes: (0..count).map(|i| shape.node(i)).collect(),
            note,
        })
    }

    /// The same nodes as `nodeGroups` of a Scenario: one per zone, or one per region without zones.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn groups(&self, files_hold_nodes: bool) -> Result<(Vec<Value>, Option<String>), Failure> {
        let made = self.make(files_hold_nodes)?;
        let mut groups: Vec<(String, usize, Node)> = Vec::new();
        for mut node in made.nodes {
            let labels = node.metadata.labels.get_or_insert_default();
            labels.remove("kubernetes.io/hostname");
            let place = [
                "topology.kubernetes.io/zone",
                "topology.kubernetes.io/region",
            ];
            let place = place.iter().find_map(|key| labels.get(*key));
            let name = place.map_or("node", String::as_str).to_owned();
            node.metadata.name = None;
            match groups.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, size, _)) => *size += 1,
                None => groups.push((name, 1, node)),
            }
        }
        let group = |(name, size, node): (String, usize, Node)| {
            let status = node.status.unwrap_or_default();
            json!({
                "name": name,
                "size": size,
                "template": {
                    "metadata": {"labels": node.metadata.labels},
                    "status": {"allocatable": status.allocatable},
                },
            })
        };
        Ok((groups.into_iter().map(group).collect(), made.note))
    }

    /// True if something is asked of the nodes beside their number.
    pub fn is_shaped(&self) -> bool {
        let Self {
            nodes: _,
            zones,
            regions,
            node_cpu,
            node_memory,
            node_pods,
        } = self;
        zones.is_some()
            || regions.is_some()
            || node_cpu.is_some()
            || node_memory.is_some()
            || node_pods.is_some()
    }

    /// The arguments again, for suggested commands.
    pub fn to_args(&self) -> Vec<String> {
        let text = |name: &str, t: &Option<String>| t.clone().map(|t| [name.to_owned(), t]);
        let number = |name: &str, n: Option<usize>| text(name, &n.map(|n| n.to_string()));
        [
            number("--nodes", self.nodes),
            number("--zones", self.zones),
            number("--regions", self.regions),
            text("--node-cpu", &self.node_cpu),
            text("--node-memory", &self.node_memory),
            number("--node-pods", self.node_pods.map(|n| n as usize)),
        ]
        .into_iter()
        .flatten()
        .flatten()
        .collect()
    }
}

impl NodeArgs {
    fn shape(&self) -> Result<Shape, Failure> {
        let default = Shape::default();
        let n_nodes = self.nodes.unwrap_or(default.zones).max(1);
        let shape = Shape {
            zones: self.zones.unwrap_or(default.zones.min(n_nodes)),
            regions: self.regions.unwrap_or(default.regions),
            cpu: self.node_cpu.clone().unwrap_or(default.cpu),
            memory: self.node_memory.clone().unwrap_or(default.memory),
            pods: self.node_pods.unwrap_or(default.pods),
        };
        let cpu = amount("--node-cpu", &shape.cpu)?;
        cpu.checked_milli_value()
            .map_err(|e| bad("--node-cpu", e.to_string()))?;
        amount("--node-memory", &shape.memory)?;
        if shape.zones > 0 && shape.regions > shape.zones {
            let (zones, regions) = (shape.zones, shape.regions);
            return Err(bad(
                "--regions",
                format!("{zones} zones cannot fill {regions} regions"),
            ));
        }
        Ok(shape)
    }
}

fn amount(flag: &str, text: &str) -> Result<Quantity, Failure> {
    let parsed = Quantity::parse(text).and_then(|q| q.checked_value().map(|_| q));
    let parsed = parsed.map_err(|error| bad(flag, format!("{text:?}: {error}")))?;
    match parsed.signum() {
        1 => Ok(parsed),
        _ => Err(bad(flag, format!("{text:?}: must be greater than 0"))),
    }
}

fn bad(flag: &str, why: String) -> Failure {
    Failure::input(format!("{flag}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_go_round_the_zones() {
        let args = NodeArgs {
            nodes: Some(5),
            zones: Some(2),
            ..NodeArgs::default()
        };
        let made = args.make(false).unwrap().nodes;
        let zone =
            |n: &Node| n.metadata.labels.as_ref().unwrap()["topology.kubernetes.io/zone"].clone();
        assert_eq!(
            made.iter().map(zone).collect::<Vec<_>>().join(" "),
            "zone-a zone-b zone-a zone-b zone-a"
        );
    }
}
