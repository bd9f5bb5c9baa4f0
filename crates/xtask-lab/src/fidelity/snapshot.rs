//! All objects at one moment, and whether the cluster is at rest.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use xtask_lab::lab::{KUBELET_LABEL, Kubectl};

/// The time without a change after which the cluster is at rest: longer than any controller pauses by itself.
pub(crate) const CALM: Duration = Duration::from_millis(2500);

/// [`CALM`] while pods wait for a node: kube-scheduler's longest back-off is ten seconds.
const CALM_WHILE_PENDING: Duration = Duration::from_secs(11);

/// The deadline for a step to come to rest.
pub(crate) const SETTLED_WITHIN: Duration = Duration::from_secs(240);

/// How long a cluster without rest is observed, to see which pods come and go.
pub(crate) const RESTLESS_FOR: Duration = Duration::from_secs(120);

/// The kinds that outcomes are made of.
const KINDS: &str = "nodes,pods,deployments,replicasets,statefulsets,daemonsets,jobs,controllerrevisions,\
                     poddisruptionbudgets";

/// Objects by kind.
pub(crate) struct Snapshot(BTreeMap<String, Vec<Value>>);

impl Snapshot {
    /// Asks the API server.
    pub(crate) fn take(kubectl: &Kubectl) -> anyhow::Result<Self> {
        Ok(Self::of(kubectl.objects(KINDS)?))
    }

    /// A snapshot of these objects.
    pub(crate) fn of(objects: Vec<Value>) -> Self {
        let mut by_kind: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            by_kind.entry(kind).or_default().push(object);
        }
        Self(by_kind)
    }

    /// The objects of a kind.
    pub(crate) fn all(&self, kind: &str) -> &[Value] {
        self.0.get(kind).map_or(&[], Vec::as_slice)
    }

    /// A text that differs after every change, except a node's heartbeat.
    pub(crate) fn fingerprint(&self) -> String {
        let mut text = String::new();
        for (kind, objects) in &self.0 {
            for object in objects {
                let metadata = &object["metadata"];
                let version = match kind == "Node" {
                    true => format!("{} {}", metadata["labels"], object["spec"]),
                    false => metadata["resourceVersion"].to_string(),
                };
                text.push_str(&format!("{} {version}\n", metadata["uid"]));
            }
        }
        text
    }

    /// The names of the nodes without a kubelet.
    pub(crate) fn lost_nodes(&self) -> impl Iterator<Item = &str> {
        let lost = self.all("Node").iter().filter(|node| !has_kubelet(node));
        lost.map(name)
    }

    /// Why a component will still act without a new request; `None` if none will.
    pub(crate) fn unrest(&self) -> Option<String> {
        let nodes = self.all("Node").iter().filter_map(node_unrest);
        let pods = self.all("Pod").iter().filter_map(|p| self.pod_unrest(p));
        let workloads = WORKLOADS.iter().flat_map(|kind| self.all(kind));
        let workloads = workloads.filter_map(workload_unrest);
        nodes.chain(pods).chain(workloads).next()
    }

    /// How long this state must not change before it counts as the last one.
    pub(crate) fn calm(&self) -> Duration {
        match self.all("Pod").iter().any(|pod| node_of(pod).is_none()) {
            true => CALM_WHILE_PENDING,
            false => CALM,
        }
    }

    fn pod_unrest(&self, pod: &Value) -> Option<String> {
        let name = name(pod);
        let Some(node) = node_of(pod) else {
            let looked_at = condition(pod, "PodScheduled").is_some();
            let is_gated = pod["spec"]["schedulingGates"].is_array();
            return (!looked_at && !is_gated).then(|| format!("{name} was not scheduled yet"));
        };
        let mut nodes = self.all("Node").iter();
        match nodes.find(|n| self::name(n) == node) {
            // The collector of such pods deletes them only after the node has been gone for a minute.
            None => return Some(format!("{name} is on a node that is gone")),
            Some(node) if !has_kubelet(node) => return None,
            Some(_) => {}
        }
        if is_terminating(pod) {
            return Some(format!("{name} is terminating"));
        }
        let owners = pod["metadata"]["ownerReferences"].as_array();
        let is_work = owners.is_some_and(|owners| owners.iter().any(|o| o["kind"] == "Job"));
        match pod["status"]["phase"].as_str() {
            Some("Pending") => Some(format!("{name} is starting")),
            Some("Running") if is_work => Some(format!("{name} is at work")),
            _ => None,
        }
    }
}

const WORKLOADS: [&str; 4] = ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"];

/// A node's taints follow its state after a moment.
fn node_unrest(node: &Value) -> Option<String> {
    let name = name(node);
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let keys: Vec<&str> = taints.filter_map(|t| t["key"].as_str()).collect();
    let has = |key: &str| keys.contains(&key);
    let is_ready = condition(node, "Ready").is_some_and(|c| c["status"] == "True");
    let is_cordoned = node["spec"]["unschedulable"] == true;
    if is_cordoned != has("node.kubernetes.io/unschedulable") {
        return Some(format!("{name} is being cordoned or uncordoned"));
    }
    let is_tainted = has("node.kubernetes.io/not-ready") || has("node.kubernetes.io/unreachable");
    match has_kubelet(node) {
        true if !is_ready || is_tainted => Some(format!("{name} is not ready yet")),
        false if is_ready || !is_tainted => Some(format!("{name} is not lost yet")),
        _ => None,
    }
}

fn workload_unrest(workload: &Value) -> Option<String> {
    let name = name(workload);
    let status = &workload["status"];
    if status["observedGeneration"] != workload["metadata"]["generation"] {
        return Some(format!("{name} was not looked at by its controller"));
    }
    let count = |field: &str| status[field].as_u64().unwrap_or(0);
    let is_waiting = count("readyReplicas") != count("availableReplicas");
    is_waiting.then(|| format!("{name} waits for its replicas to be available"))
}

/// The name, which every object has.
pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The node that a pod is bound to.
pub(crate) fn node_of(pod: &Value) -> Option<&str> {
    pod["spec"]["nodeName"].as_str()
}

/// Whether it has a deletion timestamp.
pub(crate) fn is_terminating(pod: &Value) -> bool {
    pod["metadata"]["deletionTimestamp"].is_string()
}

/// The condition of this type.
pub(crate) fn condition<'a>(object: &'a Value, of: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|c| c["type"] == of)
}

fn has_kubelet(node: &Value) -> bool {
    !node["metadata"]["labels"][KUBELET_LABEL].is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(ready: bool, kubelet: bool, spec: Value) -> Value {
        let labels = if kubelet {
            json!({KUBELET_LABEL: "runs"})
        } else {
            json!({})
        };
        let status = if ready { "True" } else { "Unknown" };
        json!({
            "kind": "Node", "metadata": {"name": "n", "labels": labels}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        })
    }

    fn pod(fields: Value) -> Value {
        let mut pod = json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": {}, "status": {}});
        for (path, value) in fields.as_object().unwrap() {
            pod[path.as_str()] = value.clone();
        }
        pod
    }

    #[test]
    fn a_cluster_is_restless_while_somebody_can_act() {
        let calm = || node(true, true, json!({}));
        let unreachable = json!({"taints": [{"key": "node.kubernetes.io/unreachable"}]});
        let lost = node(false, false, unreachable.clone());
        let bound = json!({"nodeName": "n"});
        let going = json!({"name": "p", "deletionTimestamp": "t"});
        let work = json!({"name": "p", "ownerReferences": [{"kind": "Job"}]});
        let looked_at = json!({"conditions": [{"type": "PodScheduled", "status": "False"}]});
        for (what, objects, expected) in [
            ("a node", vec![calm()], None),
            (
                "a new node",
                vec![node(false, true, json!({}))],
                Some("n is not ready yet"),
            ),
            (
                "a returning node",
                vec![node(true, true, unreachable)],
                Some("n is not ready yet"),
            ),
            (
                "a node just lost",
                vec![node(true, false, json!({}))],
                Some("n is not lost yet"),
            ),
            ("a lost node", vec![lost.clone()], None),
            (
                "a node just cordoned",
                vec![node(true, true, json!({"unschedulable": true}))],
                Some("n is being cordoned or uncordoned"),
            ),
            (
                "a new pod",
                vec![pod(json!({}))],
                Some("p was not scheduled yet"),
            ),
            (
                "a pending pod",
                vec![pod(json!({"status": looked_at}))],
                None,
            ),
            (
                "a pod without its node",
                vec![pod(json!({"spec": bound}))],
                Some("p is on a node that is gone"),
            ),
            (
                "a starting pod",
                vec![
                    calm(),
                    pod(json!({"spec": bound, "status": {"phase": "Pending"}})),
                ],
                Some("p is starting"),
            ),
            (
                "a running pod",
                vec![
                    calm(),
                    pod(json!({"spec": bound, "status": {"phase": "Running"}})),
                ],
                None,
            ),
            (
                "a job's pod",
                vec![
                    calm(),
                    pod(json!({"metadata": work, "spec": bound, "status": {"phase": "Running"}})),
                ],
                Some("p is at work"),
            ),
            (
                "a stopping pod",
                vec![calm(), pod(json!({"spec": bound, "metadata": going}))],
                Some("p is terminating"),
            ),
            (
                "a stopping pod on a lost node",
                vec![lost, pod(json!({"spec": bound, "metadata": going}))],
                None,
            ),
            (
                "a deployment just changed",
                vec![json!({
                    "kind": "Deployment", "metadata": {"name": "d", "generation": 2},
                    "status": {"observedGeneration": 1},
                })],
                Some("d was not looked at by its controller"),
            ),
        ] {
            let snapshot = Snapshot::of(objects);
            assert_eq!(snapshot.unrest().as_deref(), expected, "{what}");
        }
    }

    #[test]
    fn heartbeats_are_no_change() {
        let print = |node: &Value| Snapshot::of(vec![node.clone()]).fingerprint();
        let mut node = node(true, true, json!({}));
        let before = print(&node);
        node["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(print(&node), before);
        node["spec"] = json!({"unschedulable": true});
        assert_ne!(print(&node), before);
    }
}
