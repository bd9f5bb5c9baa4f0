//! Converts a vector's cluster to facts.

use anyhow::bail;
use k8s_openapi::api::core::v1::{Node, Pod, TopologySpreadConstraint};
use serde_json::Value;
use strew_cluster::{Cluster, NodeFact, PodFact, PodIdx};
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_scheduler::{DefaultConstraints, Engine, Profile, TieRule};
use strew_wire::facts;

use super::decode;

/// A case's cluster and an engine for its configuration.
pub(crate) struct CaseCluster {
    pub(crate) cluster: Cluster,
    pub(crate) engine: Engine,
}

impl CaseCluster {
    /// Builds the cluster of a case.
    pub(crate) fn of(case: &Value) -> anyhow::Result<Self> {
        let mut cluster = Cluster::new();
        let described = &case["cluster"];
        let items = |field: &str| described[field].as_array().cloned().unwrap_or_default();
        for item in items("namespaces") {
            apply(
                &KubeObject::Namespace(decode(&item, "a Namespace")?),
                &mut cluster,
            )?;
        }
        for item in items("nodes") {
            let fact = node_fact(&item, &mut cluster.names)?;
            cluster.set_node(fact);
        }
        for item in items("services") {
            apply(
                &KubeObject::Service(decode(&item, "a Service")?),
                &mut cluster,
            )?;
        }
        for item in items("replicaSets") {
            apply(
                &KubeObject::ReplicaSet(decode(&item, "a ReplicaSet")?),
                &mut cluster,
            )?;
        }
        for item in items("statefulSets") {
            apply(
                &KubeObject::StatefulSet(decode(&item, "a StatefulSet")?),
                &mut cluster,
            )?;
        }
        for item in items("replicationControllers") {
            apply(
                &KubeObject::ReplicationController(decode(&item, "a ReplicationController")?),
                &mut cluster,
            )?;
        }
        for item in items("pods") {
            if let Some(fact) = pod_fact(&item, &mut cluster.names)? {
                cluster.set_pod(fact);
            }
        }
        let engine = Engine::new(profile(&case["config"], &mut cluster.names)?);
        Ok(Self { cluster, engine })
    }

    /// Adds the incoming pod.
    pub(crate) fn add_pod(&mut self, pod: &Value) -> anyhow::Result<PodIdx> {
        match pod_fact(pod, &mut self.cluster.names)? {
            Some(fact) => Ok(self.cluster.set_pod(fact)),
            None => bail!("the incoming pod has finished"),
        }
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: strew_cluster::NodeIdx) -> &str {
        self.cluster.names.text(self.cluster.node(node).name())
    }
}

fn apply(object: &KubeObject, cluster: &mut Cluster) -> anyhow::Result<()> {
    facts::apply(object, cluster).map_err(|errors| anyhow::anyhow!("{errors:?}"))
}

/// A node as a fact.
pub(crate) fn node_fact(item: &Value, names: &mut Interner) -> anyhow::Result<NodeFact> {
    let node: Node = decode(item, "a Node")?;
    facts::node(&node, names).map_err(|errors| anyhow::anyhow!("{errors:?}"))
}

/// A pod as a fact, unless it has finished.
pub(crate) fn pod_fact(item: &Value, names: &mut Interner) -> anyhow::Result<Option<PodFact>> {
    // Vectors omit fields that decisions do not read, such as containers.
    let mut item = item.clone();
    let spec = item["spec"].as_object_mut();
    if let Some(spec) = spec {
        spec.entry("containers")
            .or_insert_with(|| Value::Array(Vec::new()));
    }
    let pod: Pod = decode(&item, "a Pod")?;
    facts::pod(&pod, names).map_err(|errors| anyhow::anyhow!("{errors:?}"))
}

fn profile(config: &Value, names: &mut Interner) -> anyhow::Result<Profile> {
    let args = &config["podTopologySpreadArgs"];
    let default_constraints = match args["defaultingType"].as_str() {
        None | Some("System") => DefaultConstraints::System,
        Some("List") => {
            let mut list = Vec::new();
            for item in args["defaultConstraints"].as_array().into_iter().flatten() {
                let wire: TopologySpreadConstraint = decode(item, "a default constraint")?;
                let constraint = facts::spread_constraint(&wire, names);
                list.push(
                    constraint.map_err(|_| anyhow::anyhow!("a default constraint's selector"))?,
                );
            }
            DefaultConstraints::List(list)
        }
        Some(other) => bail!("defaultingType {other}"),
    };
    // The generator of sequences chose the smallest name among the best.
    Ok(Profile {
        default_constraints,
        ties: TieRule::FirstName,
        ..Profile::default()
    })
}
