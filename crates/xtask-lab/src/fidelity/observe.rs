//! Makes an [`Outcome`] from the objects of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::outcome::{Budget, Counts, Outcome, Revision, Workload};
use super::snapshot::{Snapshot, condition, is_terminating, name, node_of};

/// The keys whose domains are counted.
const KEYS: [&str; 2] = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"];

/// Kinds that own pods or owners of pods.
const OWNERS: [&str; 5] = [
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
];

/// The outcome that the snapshot shows; `refused` are the verbs of the step that were not carried out.
pub(crate) fn outcome(snapshot: &Snapshot, refused: Vec<String>) -> Outcome {
    let mut workloads = BTreeMap::new();
    for kind in OWNERS {
        for owner in snapshot
            .all(kind)
            .iter()
            .filter(|o| controller(o).is_none())
        {
            workloads.insert(title(kind, owner), workload(snapshot, kind, owner));
        }
    }
    for pod in snapshot
        .all("Pod")
        .iter()
        .filter(|p| controller(p).is_none())
    {
        let mut alone = Workload {
            replicas: 1,
            ready: u64::from(is_ready(pod)),
            ..Workload::default()
        };
        count_pods(&mut alone, snapshot, &[pod]);
        workloads.insert(title("Pod", pod), alone);
    }
    let budgets = snapshot.all("PodDisruptionBudget").iter();
    let nodes = snapshot.all("Node").iter().filter(|node| !is_ready(node));
    Outcome {
        workloads,
        budgets: budgets.map(|b| (name(b).to_owned(), budget(b))).collect(),
        lost_nodes: nodes.map(|node| name(node).to_owned()).collect(),
        refused,
        ..Outcome::default()
    }
}

/// For a cluster that comes to no rest: the pods of each workload, over several looks.
#[derive(Debug, Default)]
pub(crate) struct Turnover(BTreeMap<String, BTreeSet<String>>);

/// A workload that has shown this number of pods more than it has at a time will go on like that.
const COME_AND_GONE: usize = 5;

impl Turnover {
    /// Adds one look.
    pub(crate) fn look(&mut self, snapshot: &Snapshot) {
        for kind in OWNERS {
            let owners = snapshot.all(kind).iter();
            for owner in owners.filter(|o| controller(o).is_none()) {
                let sets = owned(snapshot, "ReplicaSet", owner);
                let of_sets = sets.iter().flat_map(|set| owned(snapshot, "Pod", set));
                let pods = owned(snapshot, "Pod", owner).into_iter().chain(of_sets);
                let uids = pods.filter_map(|pod| pod["metadata"]["uid"].as_str());
                let seen = self.0.entry(title(kind, owner)).or_default();
                seen.extend(uids.map(str::to_owned));
            }
        }
    }

    /// The outcome of such a cluster; `None` if no workload's pods come and go.
    pub(crate) fn outcome(&self, last: &Snapshot, refused: Vec<String>) -> Option<Outcome> {
        let mut now = Self::default();
        now.look(last);
        let n_now = |title: &str| now.0.get(title).map_or(0, BTreeSet::len);
        let restless = self.0.iter();
        let restless = restless.filter(|(title, seen)| seen.len() >= n_now(title) + COME_AND_GONE);
        let restless: BTreeSet<String> = restless.map(|(title, _)| title.clone()).collect();
        (!restless.is_empty()).then(|| Outcome {
            refused,
            restless,
            ..Outcome::default()
        })
    }
}

/// `deployment/web`, and `deployment/web.shop` outside of the namespace `default`.
fn title(kind: &str, object: &Value) -> String {
    let title = format!("{}/{}", kind.to_lowercase(), name(object));
    match object["metadata"]["namespace"].as_str() {
        Some("default") | None => title,
        Some(namespace) => format!("{title}.{namespace}"),
    }
}

fn workload(snapshot: &Snapshot, kind: &str, owner: &Value) -> Workload {
    let (spec, status) = (&owner["spec"], &owner["status"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let (replicas, ready) = match kind {
        "DaemonSet" => (&status["desiredNumberScheduled"], &status["numberReady"]),
        "Job" => (&spec["completions"], &status["ready"]),
        _ => (&spec["replicas"], &status["readyReplicas"]),
    };
    let mut workload = Workload {
        replicas: number(replicas),
        ready: number(ready),
        ..Workload::default()
    };
    let sets = owned(snapshot, "ReplicaSet", owner);
    let mut pods: Vec<&Value> = owned(snapshot, "Pod", owner);
    pods.extend(sets.iter().flat_map(|set| owned(snapshot, "Pod", set)));
    count_pods(&mut workload, snapshot, &pods);
    workload.revisions = match sets.is_empty() {
        true => controller_revisions(snapshot, owner, &pods),
        false => sets.iter().map(|set| replica_set(snapshot, set)).collect(),
    };
    if workload.revisions.len() == 1 {
        workload.revisions.clear();
    }
    workload
}

fn replica_set(snapshot: &Snapshot, set: &Value) -> Revision {
    Revision {
        replicas: set["spec"]["replicas"].as_u64(),
        ..revision(snapshot, owned(snapshot, "Pod", set).into_iter())
    }
}

/// Pods of a StatefulSet carry the name of their revision, those of a DaemonSet its last part.
fn controller_revisions(snapshot: &Snapshot, owner: &Value, pods: &[&Value]) -> Vec<Revision> {
    let revisions = owned(snapshot, "ControllerRevision", owner);
    let of = |one: &Value| {
        let pods = pods.iter().copied().filter(|pod| {
            let hash = &pod["metadata"]["labels"]["controller-revision-hash"];
            let hash = hash.as_str().unwrap_or_default();
            name(one) == hash || name(one) == format!("{}-{hash}", name(owner))
        });
        revision(snapshot, pods)
    };
    revisions.into_iter().map(of).collect()
}

fn revision<'a>(snapshot: &Snapshot, pods: impl Iterator<Item = &'a Value>) -> Revision {
    let pods: Vec<&Value> = pods.filter(|pod| lives(pod)).collect();
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    Revision {
        replicas: None,
        ready: u64::try_from(ready).unwrap_or(u64::MAX),
        bound: counts(snapshot, &pods),
    }
}

fn count_pods(workload: &mut Workload, snapshot: &Snapshot, pods: &[&Value]) {
    let mut living = Vec::new();
    for pod in pods {
        if is_terminating(pod) {
            workload.terminating += 1;
        } else if pod["status"]["phase"] == "Succeeded" {
            workload.succeeded += 1;
        } else if lives(pod) {
            living.push(*pod);
            if node_of(pod).is_none() {
                workload.pending += 1;
                let message = condition(pod, "PodScheduled").map(|c| &c["message"]);
                let message = message.and_then(Value::as_str);
                workload.messages.extend(message.map(str::to_owned));
            }
        }
    }
    workload.bound = counts(snapshot, &living);
}

fn counts(snapshot: &Snapshot, pods: &[&Value]) -> Counts {
    let mut counts = Counts::new();
    for key in KEYS {
        let domains = counts.entry(key.to_owned()).or_default();
        for node in snapshot.all("Node") {
            let Some(domain) = node["metadata"]["labels"][key].as_str() else {
                continue;
            };
            let here = pods.iter().filter(|p| node_of(p) == Some(name(node)));
            *domains.entry(domain.to_owned()).or_default() += here.map(|_| 1_u64).sum::<u64>();
        }
    }
    counts.retain(|_, domains| !domains.is_empty());
    counts
}

fn budget(budget: &Value) -> Budget {
    let number = |field: &str| budget["status"][field].as_u64().unwrap_or(0);
    Budget {
        expected_pods: number("expectedPods"),
        current_healthy: number("currentHealthy"),
        desired_healthy: number("desiredHealthy"),
        disruptions_allowed: number("disruptionsAllowed"),
    }
}

/// Objects of a kind that `owner` controls, the oldest first.
fn owned<'a>(snapshot: &'a Snapshot, kind: &str, owner: &Value) -> Vec<&'a Value> {
    let uid = owner["metadata"]["uid"].as_str();
    let all = snapshot.all(kind).iter();
    let mut owned: Vec<&Value> = all
        .filter(|o| controller(o) == uid && uid.is_some())
        .collect();
    owned.sort_by_key(|o| (o["metadata"]["creationTimestamp"].as_str(), name(o)));
    owned
}

/// The uid of the object's controller.
fn controller(object: &Value) -> Option<&str> {
    let references = object["metadata"]["ownerReferences"].as_array()?;
    let controller = references.iter().find(|r| r["controller"] == true)?;
    controller["uid"].as_str()
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|c| c["status"] == "True")
}

fn lives(pod: &Value) -> bool {
    let phase = &pod["status"]["phase"];
    !is_terminating(pod) && phase != "Succeeded" && phase != "Failed"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, zone: &str) -> Value {
        json!({
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    }

    fn owned_by(owner: &str) -> Value {
        json!([{"controller": true, "uid": owner}])
    }

    fn set(name: &str, made: &str, replicas: u64) -> Value {
        json!({
            "kind": "ReplicaSet",
            "metadata": {
                "name": name, "uid": name, "creationTimestamp": made, "namespace": "default",
                "ownerReferences": owned_by("web"),
            },
            "spec": {"replicas": replicas},
        })
    }

    fn pod(name: &str, owner: &str, node: Option<&str>) -> Value {
        let ready = if node.is_some() { "True" } else { "False" };
        json!({
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "ownerReferences": owned_by(owner)},
            "spec": {"nodeName": node},
            "status": {"conditions": [
                {"type": "Ready", "status": ready},
                {"type": "PodScheduled", "status": ready, "message": "0/2 nodes are available"},
            ]},
        })
    }

    #[test]
    fn a_workload_whose_pods_come_and_go_is_named() {
        let look = |turn: usize| {
            let mut pods = [pod("came", "old", None), pod("stays", "calm", None)];
            pods[0]["metadata"]["uid"] = json!(format!("u{turn}"));
            pods[1]["metadata"]["uid"] = json!("same");
            let sets = ["old", "calm"].map(|name| {
                let mut set = set(name, "1", 1);
                set["metadata"]["ownerReferences"] = json!(null);
                set
            });
            Snapshot::of(sets.into_iter().chain(pods).collect())
        };
        let mut turnover = Turnover::default();
        for (turn, is_named) in [(0, false), (3, false), (5, true)] {
            (0..=turn).for_each(|turn| turnover.look(&look(turn)));
            let outcome = turnover.outcome(&look(turn), Vec::new());
            let named: Vec<String> = outcome.into_iter().flat_map(|o| o.restless).collect();
            let expected: &[&str] = if is_named { &["replicaset/old"] } else { &[] };
            assert_eq!(named, expected, "{turn}");
        }
    }

    #[test]
    fn pods_are_counted_for_who_owns_them_in_the_end() {
        let deployment = json!({
            "kind": "Deployment",
            "metadata": {"name": "web", "uid": "web", "namespace": "default"},
            "spec": {"replicas": 3}, "status": {"readyReplicas": 2},
        });
        let mut going = pod("p4", "old", Some("b-0"));
        going["metadata"]["deletionTimestamp"] = json!("t");
        let snapshot = Snapshot::of(vec![
            node("a-0", "a"),
            node("b-0", "b"),
            deployment,
            set("new", "2", 2),
            set("old", "1", 1),
            pod("p1", "old", Some("a-0")),
            pod("p2", "new", Some("b-0")),
            pod("p3", "new", None),
            going,
        ]);
        let outcome = outcome(&snapshot, Vec::new());
        let web = &outcome.workloads["deployment/web"];
        assert_eq!(outcome.workloads.len(), 1, "{outcome:?}");
        assert_eq!(
            (web.replicas, web.ready, web.pending, web.terminating),
            (3, 2, 1, 1)
        );
        assert_eq!(
            web.messages.iter().collect::<Vec<_>>(),
            ["0/2 nodes are available"]
        );
        let zones = |counts: &Counts| -> Vec<u64> {
            counts["topology.kubernetes.io/zone"]
                .values()
                .copied()
                .collect()
        };
        assert_eq!(zones(&web.bound), [1, 1]);
        let revisions: Vec<_> = web.revisions.iter().collect();
        let sizes: Vec<_> = revisions.iter().map(|r| r.replicas).collect();
        assert_eq!(sizes, [Some(1), Some(2)], "the oldest first");
        assert_eq!(
            (zones(&revisions[0].bound), zones(&revisions[1].bound)),
            (vec![1, 0], vec![0, 1])
        );
    }

    #[test]
    fn a_pod_on_its_own_is_a_workload() {
        let mut alone = pod("p", "", None);
        alone["metadata"]["ownerReferences"] = json!(null);
        alone["metadata"]["namespace"] = json!("shop");
        let outcome = outcome(&Snapshot::of(vec![alone]), Vec::new());
        let workload = &outcome.workloads["pod/p.shop"];
        assert_eq!(
            (workload.replicas, workload.ready, workload.pending),
            (1, 0, 1)
        );
    }
}
