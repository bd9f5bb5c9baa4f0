use std::collections::BTreeMap;

use serde_json::{Value, json};
use strew_apiserver::object::Object;

use super::*;
use crate::small_world::{START, merge};

/// Pods with the moment in which each may go, and is gone, in seconds.
struct Play {
    tables: Tables,
    /// Until when each pod is refused.
    refused: BTreeMap<&'static str, u64>,
    /// How long each takes to go.
    seconds_to_go: u64,
    said: Vec<String>,
}

fn node(name: &str) -> Name {
    Name::new("", name)
}

fn play(pods: &[(&str, &str, Value)]) -> Play {
    let mut tables = Tables::default();
    for name in ["n1", "n2"] {
        let wire: k8s_openapi::api::core::v1::Node = serde_json::from_value(
            json!({"metadata": {"name": name}, "spec": {"unschedulable": name == "n2"}}),
        )
        .unwrap();
        tables.set(Object::of_wire(wire.into()));
    }
    let set: k8s_openapi::api::apps::v1::DaemonSet =
        serde_json::from_value(json!({"metadata": {"name": "ds"}})).unwrap();
    tables.set(Object::of_wire(set.into()));
    for (pod, node, fields) in pods {
        let mut wire = json!({"metadata": {"name": pod, "uid": pod}, "spec": {"nodeName": node, "containers": []},
            "status": {"phase": "Running"}});
        merge(&mut wire, fields.clone());
        let wire: k8s_openapi::api::core::v1::Pod = serde_json::from_value(wire).unwrap();
        tables.set(Object::of_wire(wire.into()));
    }
    Play {
        tables,
        refused: BTreeMap::new(),
        seconds_to_go: 0,
        said: Vec::new(),
    }
}

fn owned(kind: &str, name: &str) -> Value {
    json!({"metadata": {"ownerReferences": [
        {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "o", "controller": true}
    ]}})
}

impl Play {
    /// Drives a drain to its end, or to the second `until`.
    fn run(&mut self, options: DrainOptions, nodes: &[&str], until: u64) -> Option<bool> {
        let mut drain = Drain::new(options, nodes.iter().map(|name| node(name)).collect());
        let mut dice = Prng::new(1);
        let mut now = START;
        let mut going: Vec<(Instant, Key)> = Vec::new();
        loop {
            let seconds = now.since(START).0 / 1_000_000_000;
            going.retain(|(at, key)| {
                let is_gone = *at <= now;
                if is_gone {
                    self.tables.remove(key);
                }
                !is_gone
            });
            while let Some(step) = drain.poll(now, &self.tables, &mut dice) {
                match step {
                    DrainAction::Cordon(_) => {}
                    DrainAction::Print(line) => self.said.push(format!("{seconds} {line}")),
                    DrainAction::Complain(line) => self.said.push(format!("{seconds} ! {line}")),
                    DrainAction::Delete(key, _) | DrainAction::Evict(key, _) => {
                        let until = self.refused.get(&*key.name.name).copied().unwrap_or(0);
                        let answer = if seconds < until {
                            Err(ApiError::TooManyRequests {
                                message: "Cannot evict pod as it would violate the pod's disruption budget.".into(),
                                cause: "".into(),
                                retry_after: None,
                            })
                        } else {
                            going.push((now + Span::from_secs(self.seconds_to_go), key.clone()));
                            Ok(())
                        };
                        drain.answer(now, &key.name, answer);
                        let is_due = |(at, key): &(Instant, Key)| {
                            if *at <= now {
                                self.tables.remove(key);
                            }
                            *at > now
                        };
                        going.retain(is_due);
                    }
                }
            }
            match drain.next_wake() {
                Some(at) if at <= START + Span::from_secs(until) => {
                    assert!(at > now);
                    now = at;
                }
                _ => return drain.outcome(),
            }
        }
    }
}

#[test]
fn fatal_filters_leave_the_node_untouched_and_the_next_is_tried() {
    let mut play = play(&[
        ("daemon", "n1", owned("DaemonSet", "ds")),
        ("alone", "n1", json!({})),
        ("rs", "n2", owned("ReplicaSet", "rs")),
    ]);
    assert_eq!(
        play.run(DrainOptions::default(), &["n1", "n2"], 100),
        Some(false)
    );
    let errors = "[cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/daemon, \
                  cannot delete Pods that declare no controller (use --force to override): default/alone]";
    assert_eq!(
        play.said,
        [
            "0 node/n1 cordoned".to_owned(),
            "0 node/n2 already cordoned".to_owned(),
            format!(
                "0 ! error: unable to drain node \"n1\" due to error: {errors}, continuing command..."
            ),
            "0 evicting pod default/rs".to_owned(),
            "0 pod/rs evicted".to_owned(),
            "0 node/n2 drained".to_owned(),
            "0 ! There are pending nodes to be drained:".to_owned(),
            "0 !  n1".to_owned(),
            format!("0 ! error: {errors}"),
        ]
    );
}

#[test]
fn filters() {
    let empty_dir = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let done = json!({"status": {"phase": "Succeeded"}});
    let with = |mut a: Value, b: &Value| {
        merge(&mut a, b.clone());
        a
    };
    let all = DrainOptions {
        ignore_daemon_sets: true,
        delete_empty_dir_data: true,
        force: true,
        ..DrainOptions::default()
    };
    let storage =
        "cannot delete Pods with local storage (use --delete-emptydir-data to override): default/p";
    let alone =
        "cannot delete Pods that declare no controller (use --force to override): default/p";
    for (fields, without, with_flags) in [
        (owned("ReplicaSet", "rs"), "taken", "taken"),
        (
            with(owned("ReplicaSet", "rs"), &empty_dir),
            storage,
            "taken",
        ),
        (
            with(with(owned("ReplicaSet", "rs"), &empty_dir), &done),
            "taken",
            "taken",
        ),
        (
            json!({}),
            alone,
            "taken, deleting Pods that declare no controller: default/p",
        ),
        (done.clone(), "taken", "taken"),
        (with(owned("DaemonSet", "ds"), &done), "taken", "taken"),
        (
            owned("DaemonSet", "ds"),
            "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): default/p",
            "left, ignoring DaemonSet-managed Pods: default/p",
        ),
        (
            owned("DaemonSet", "gone"),
            "cannot delete daemonsets.apps \"gone\" not found: default/p",
            "taken",
        ),
        (
            json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}),
            "left",
            "left",
        ),
    ] {
        let play = play(&[("p", "n1", fields.clone())]);
        for (options, expected) in [(&DrainOptions::default(), without), (&all, with_flags)] {
            let sorted = filter::sort("n1", options, &play.tables);
            let fate = if sorted.pods.is_empty() {
                "left"
            } else {
                "taken"
            };
            let found = match (sorted.errors.first(), &*sorted.warnings) {
                (Some(error), _) => error.clone(),
                (None, "") => fate.to_owned(),
                (None, warning) => format!("{fate}, {warning}"),
            };
            assert_eq!(found, expected, "{fields}");
        }
    }
}

#[test]
fn a_refused_pod_is_tried_every_five_seconds_and_polled_every_second() {
    let mut play = play(&[("p", "n1", owned("ReplicaSet", "rs"))]);
    play.refused.insert("p", 8);
    play.seconds_to_go = 3;
    assert_eq!(play.run(DrainOptions::default(), &["n1"], 100), Some(true));
    let refused = "! error when evicting pods/\"p\" -n \"default\" (will retry after 5s): Cannot evict pod as it would \
                   violate the pod's disruption budget.";
    assert_eq!(
        play.said[1..],
        [
            "0 evicting pod default/p".to_owned(),
            format!("0 {refused}"),
            "5 evicting pod default/p".to_owned(),
            format!("5 {refused}"),
            "10 evicting pod default/p".to_owned(),
            "13 pod/p evicted".to_owned(),
            "13 node/n1 drained".to_owned(),
        ]
    );
}

#[test]
fn a_timeout_ends_it_and_the_pods_that_are_left_are_named() {
    let options = DrainOptions {
        timeout: Some(Span::from_secs(12)),
        ..DrainOptions::default()
    };
    let mut play = play(&[
        ("p", "n1", owned("ReplicaSet", "rs")),
        ("q", "n1", owned("ReplicaSet", "rs")),
    ]);
    play.refused.insert("p", 1000);
    assert_eq!(play.run(options, &["n1"], 100), Some(false));
    let error = "error when evicting pods/\"p\" -n \"default\": global timeout reached: 12s";
    let last = play.said.len() - 6;
    assert_eq!(
        play.said[last..],
        [
            format!("15 ! There are pending pods in node \"n1\" when an error occurred: {error}"),
            "15 ! pod/p".to_owned(),
            format!(
                "15 ! error: unable to drain node \"n1\" due to error: {error}, continuing command..."
            ),
            "15 ! There are pending nodes to be drained:".to_owned(),
            "15 !  n1".to_owned(),
            format!("15 ! error: {error}"),
        ]
    );
}

#[test]
fn without_eviction_pods_are_deleted() {
    let options = DrainOptions {
        disable_eviction: true,
        timeout: Some(Span::from_secs(2)),
        ..DrainOptions::default()
    };
    let mut play = play(&[("p", "n1", owned("ReplicaSet", "rs"))]);
    assert_eq!(play.run(options.clone(), &["n1"], 100), Some(true));
    assert_eq!(play.said[1..], ["0 pod/p deleted", "0 node/n1 drained"]);
    let mut slow = super::tests::play(&[("p", "n1", owned("ReplicaSet", "rs"))]);
    slow.seconds_to_go = 60;
    assert_eq!(slow.run(options, &["n1"], 100), Some(false));
    let error = "error: error when waiting for pod \"p\" in namespace \"default\" to terminate: global timeout \
                 reached: 2s";
    assert_eq!(slow.said.last().unwrap(), &format!("2 ! {error}"));
}
