//! The effects of Open Cluster Management's registration component on a hub's objects: its webhooks, and the two sets
//! that it maintains. Source: spec/placement §1.3, §1.4.

use std::sync::Arc;

use strew_manifest::ocm::{ManagedCluster, Taint};
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;

use super::Server;
use crate::object::{Object, Pairs, moment};

const SET_LABEL: &str = "cluster.open-cluster-management.io/clusterset";
const DEFAULT_SET: &str = "default";

/// The set of all clusters.
pub const GLOBAL_SET: &str = "global";

/// The sets that registration maintains, with their selectors.
pub const DEFAULT_SETS: [(&str, &str); 2] = [
    (
        DEFAULT_SET,
        r#"{"selectorType": "ExclusiveClusterSetLabel"}"#,
    ),
    (
        GLOBAL_SET,
        r#"{"selectorType": "LabelSelector", "labelSelector": {}}"#,
    ),
];

impl Server {
    /// True once a Placement was stored: then the hub needs a placement controller.
    pub fn is_hub(&self) -> bool {
        self.is_hub
    }

    /// This server has no registration component: clusters and their sets stay as they are given.
    pub fn leave_registration_out(&mut self) {
        self.registers = false;
    }

    /// Creates the sets `default` and `global`, from the first Placement on.
    pub fn keep_default_sets(&mut self, now: Instant) {
        if self.is_hub {
            self.add_default_sets(now);
        }
    }

    /// Creates the sets `default` and `global`, unless they exist or registration is left out.
    pub fn add_default_sets(&mut self, now: Instant) {
        if !self.registers {
            return;
        }
        for (name, selector) in DEFAULT_SETS {
            let selector: serde_json::Value = serde_json::from_str(selector).unwrap_or_default();
            let set = KubeObject::of_json(serde_json::json!({
                "apiVersion": "cluster.open-cluster-management.io/v1beta2",
                "kind": "ManagedClusterSet",
                "metadata": {"name": name},
                "spec": {"clusterSelector": selector},
            }));
            let Ok(set) = set.map(Object::of_wire) else {
                continue;
            };
            if self.tables.find(&set.key()).is_none() {
                self.preload(now, set);
            }
        }
    }
}

impl Server {
    /// Puts a cluster into a set, and dates its taints.
    pub(super) fn register(&self, object: &mut Object, old: Option<&Object>, now: Instant) {
        if self.registers {
            mutate(object, old, now);
        }
    }
}

fn mutate(object: &mut Object, old: Option<&Object>, now: Instant) {
    let Object::Plain(plain) = object else { return };
    let KubeObject::ManagedCluster(cluster) = &plain.object else {
        return;
    };
    let old = old.and_then(taints_of).unwrap_or_default();
    let mut cluster = cluster.clone();
    stamp(&mut cluster, old, now);
    let plain = Arc::make_mut(plain);
    plain.object = KubeObject::ManagedCluster(cluster);
    join_default_set(Arc::make_mut(&mut plain.meta.labels));
}

/// Puts a cluster that is in no other set into the set `default`.
pub fn join_default_set(labels: &mut Pairs) {
    let set = labels.entry(SET_LABEL.to_owned());
    set.or_insert_with(|| DEFAULT_SET.to_owned());
}

fn taints_of(object: &Object) -> Option<&[Taint]> {
    match object {
        Object::Plain(plain) => match &plain.object {
            KubeObject::ManagedCluster(cluster) => cluster.spec.as_ref()?.taints.as_deref(),
            _ => None,
        },
        _ => None,
    }
}

/// A taint that stays keeps its time. A given time is kept, since files describe the past.
fn stamp(cluster: &mut ManagedCluster, old: &[Taint], now: Instant) {
    let taints = cluster.spec.as_mut().and_then(|spec| spec.taints.as_mut());
    for taint in taints.into_iter().flatten() {
        let is_same = |old: &&Taint| {
            old.key == taint.key
                && old.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default()
                && old.effect == taint.effect
        };
        let known = old
            .iter()
            .find(is_same)
            .and_then(|old| old.time_added.clone());
        if taint.time_added.is_none() {
            taint.time_added = Some(known.unwrap_or_else(|| moment::to_wire(now)));
        }
    }
}
