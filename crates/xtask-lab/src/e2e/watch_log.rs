//! All events of a watch of a namespace's pods.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde_json::Value;
use xtask_lab::lab::now;

use super::follow::Follow;
use super::stage::{Stage, name_of, node_of};

/// A pod, as the watch saw it.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) name: String,
    /// Every node that it was on: never more than one.
    pub(super) nodes: BTreeSet<String>,
    /// When it was first seen on a node.
    pub(super) bound: Option<Instant>,
}

/// Watches until it is dropped.
pub(super) struct WatchLog(Follow<BTreeMap<String, Seen>>);

impl WatchLog {
    /// Watches the pods of the case's namespace.
    pub(super) fn start(stage: &Stage) -> anyhow::Result<Self> {
        let follow = Follow::start(stage, "pods", |seen, _, pod| take_in(seen, pod))?;
        Ok(Self(follow))
    }

    /// Each pod that the watch has seen, by uid.
    pub(super) fn seen(&self) -> BTreeMap<String, Seen> {
        self.0.look(Clone::clone)
    }

    /// How many pods other than these have been on a node.
    pub(super) fn n_bound_beside(&self, known: &BTreeSet<String>) -> usize {
        self.0.look(|seen| {
            let others = seen.iter().filter(|(uid, _)| !known.contains(*uid));
            others.filter(|(_, pod)| pod.bound.is_some()).count()
        })
    }

    /// The times at which pods were first seen on a node, from this moment on, in order.
    pub(super) fn bound_after(&self, moment: Instant) -> Vec<Instant> {
        let mut bound: Vec<Instant> = self.0.look(|seen| {
            let bound = seen.values().filter_map(|pod| pod.bound);
            bound.filter(|&at| at > moment).collect()
        });
        bound.sort_unstable();
        bound
    }
}

fn take_in(seen: &mut BTreeMap<String, Seen>, pod: &Value) {
    let Some(uid) = pod["metadata"]["uid"].as_str() else {
        return;
    };
    let known = seen.entry(uid.to_owned()).or_default();
    name_of(pod).clone_into(&mut known.name);
    if let Some(node) = node_of(pod) {
        known.nodes.insert(node.to_owned());
        known.bound.get_or_insert_with(now);
    }
}

#[test]
fn what_a_watch_tells_is_pods_with_their_nodes() {
    use serde_json::json;

    let mut seen = BTreeMap::new();
    let pod = |uid: &str, name: &str, node: Value| json!({"metadata": {"uid": uid, "name": name}, "spec": {"nodeName": node}});
    for told in [
        pod("u", "p-1", Value::Null),
        pod("v", "p-2", json!("n")),
        pod("u", "p-1", json!("n")),
        pod("u", "p-1", json!("n")),
        Value::Null,
    ] {
        take_in(&mut seen, &told);
    }
    let nodes = |uid: &str| {
        seen[uid]
            .nodes
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (seen.len(), nodes("u"), nodes("v")),
        (2, vec!["n"], vec!["n"])
    );
    assert!(seen["u"].bound >= seen["v"].bound);
    assert_eq!(seen["v"].name, "p-2");
}
