//! How long a plan takes after the return of a zone, and what it costs in memory: 1,000 nodes in 3 zones, 20,000 pods of
//! 2,000 workloads, all of them in two of the zones.
//!
//! `cargo xtask bench rebalance` prints a line for each case. Machines are noisy: what counts is CPU time.

mod used;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use strew_cluster::{
    Cluster, NodeFact, OwnerKind, OwnerRef, PodFact, PodHistory, PodSpec, Policy, SpreadConstraint,
};
use strew_model::{Labels, Resources, Selector, Symbol, well_known};
use strew_plan::rebalance::Wanted;
use strew_plan::{Transaction, rebalance};
use strew_scheduler::Profile;
use strew_scheduler::preemption::{Budget, Budgets};

use used::{cpu_seconds, peak_mib};

const NODES: usize = 1_000;
const WORKLOADS: usize = 2_000;
const REPLICAS: usize = 10;

fn main() {
    for (name, hosts, is_full) in [
        ("zones", false, false),
        ("zones and hosts", true, false),
        ("no room in the zone", false, true),
    ] {
        let (mut cluster, budgets) = cluster(hosts, is_full);
        let (wall, cpu) = now();
        let mut trial = Transaction::new(&mut cluster, &[Profile::default()], budgets);
        let wanted = Wanted {
            soft: false,
            evictions_max: usize::MAX,
            only: None,
        };
        let plan = rebalance(&mut trial, wanted, &BTreeMap::new());
        println!(
            "{name:20} {:>6} evictions, {:>6} -> {:>6} moves {:>7.2} s wall {:>7.2} s CPU {:>5} MiB peak",
            plan.steps.len(),
            plan.before.hard,
            plan.after.hard,
            wall.elapsed().as_secs_f64(),
            cpu_seconds() - cpu,
            peak_mib()
        );
    }
}

/// With a hard constraint over zones for each workload, and one over hosts if that is wanted.
fn cluster(hosts: bool, is_full: bool) -> (Cluster, Budgets) {
    let mut cluster = Cluster::new();
    let zones = ["a", "b", "c"].map(|zone| cluster.names.intern(zone));
    for number in 0..NODES {
        let name = cluster.names.intern(&format!("n{number}"));
        let room = if is_full && number % 3 == 2 {
            100
        } else {
            32_000
        };
        let labels = vec![
            (well_known::HOSTNAME, name),
            (well_known::ZONE, zones[number % 3]),
        ];
        cluster.set_node(NodeFact {
            name,
            labels: Labels::new(labels),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(room, 1 << 37),
            pods_max: 110,
            images: Box::default(),
        });
    }
    let app = cluster.names.intern("app");
    let mut budgets = Budgets::default();
    for workload in 0..WORKLOADS {
        let owner = cluster.names.intern(&format!("w{workload}"));
        let namespace = cluster.names.intern(&format!("team-{}", workload % 50));
        let labels = Labels::new(vec![(app, owner)]);
        let constraint = |key: Symbol| SpreadConstraint {
            max_skew: 1,
            key,
            hard: true,
            selector: Selector::of_labels(labels.iter()),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        };
        let keys = [well_known::ZONE, well_known::HOSTNAME];
        let keys = keys.into_iter().take(1 + usize::from(hosts));
        let spec = PodSpec {
            spread: keys.map(constraint).collect(),
            requests: Resources::of(500, 1 << 29),
            used: Resources::of(500, 1 << 29),
            ..PodSpec::default()
        };
        let budget = Budget {
            selector: Selector::of_labels(labels.iter()),
            counted: true,
            disruptions_allowed: 1,
            zone: None,
            disrupted: BTreeSet::new(),
        };
        budgets.set(namespace, owner, Some(budget));
        for replica in 0..REPLICAS {
            let number = workload * REPLICAS + replica;
            // The nodes of the first two zones, in turn.
            let place = number % (NODES * 2 / 3);
            let node = format!("n{}", place / 2 * 3 + place % 2);
            let uid = format!("p{number}");
            cluster.set_pod(PodFact {
                uid: uid.as_str().into(),
                name: uid.into(),
                namespace,
                labels: labels.clone(),
                owner: Some(OwnerRef {
                    kind: OwnerKind::ReplicaSet,
                    name: owner,
                }),
                terminating: false,
                node: cluster.names.get(&node),
                spec: spec.clone(),
                history: PodHistory::default(),
            });
        }
    }
    (cluster, budgets)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now() -> (Instant, f64) {
    (Instant::now(), cpu_seconds())
}
