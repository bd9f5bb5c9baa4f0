//! StatefulSets and DaemonSets from manifests to rest.

use strew_apiserver::object::{Key, Kind, Name, Pod, StatefulSet};
use strew_apiserver::{DeleteOptions, Propagation};
use strew_model::time::Span;
use strew_sim::{Fault, WriteFault};

use crate::life::{Life, nodes};

const DAEMONS: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log}
spec:
  selector: {matchLabels: {app: log}}
  template:
    metadata: {labels: {app: log}}
    spec: {containers: [{name: c, image: log}]}
";

const DATABASE: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: db}]
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}}
";

/// For each node the pods on it; names that were drawn are cut to their owner's.
fn ready_pods(life: &Life) -> Vec<String> {
    let picture = life.picture();
    let lines = picture.lines().map(|line| {
        let (node, pods) = line.split_once(": ").unwrap();
        let pods = pods.split(", ").map(|pod| {
            let (name, state) = pod.split_once(' ').unwrap();
            assert_eq!(state, "Running ready", "{picture}");
            match name.starts_with("log-") {
                true => "log",
                false => name,
            }
        });
        format!("{node} {}", pods.collect::<Vec<_>>().join(" "))
    });
    lines.collect()
}

#[test]
fn daemon_pods_are_bound_to_their_nodes() {
    for seed in 0..4 {
        let text = nodes(3, 3) + "---" + DAEMONS;
        let mut life = Life::of(&text, seed);
        assert_eq!(ready_pods(life.until(60)), ["n0 log", "n1 log", "n2 log"]);
    }
}

#[test]
fn a_stateful_set_fills_its_zones_one_pod_after_the_other() {
    for seed in 0..4 {
        let text = nodes(3, 3) + "---" + DATABASE;
        let mut life = Life::of(&text, seed);
        let n_at = |life: &mut Life, secs| life.until(secs).picture().matches("db-").count();
        assert_eq!(n_at(&mut life, 0), 1);
        let mut lines = ready_pods(life.until(120));
        lines.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
        let names: Vec<&str> = lines.iter().map(|l| l.split(' ').nth(1).unwrap()).collect();
        assert_eq!(
            names,
            ["db-0", "db-1", "db-2"],
            "one in each zone, seed {seed}"
        );
    }
}

/// The collector takes its revisions while its pods still terminate; and a conflict makes it look again.
#[test]
fn a_stateful_set_that_is_deleted_in_the_foreground_goes() {
    for conflict_ppm in [0, 600_000] {
        let mut life = Life::of(&(nodes(3, 3) + "---" + DATABASE), 1);
        life.until(60);
        let fault = Fault::Write(WriteFault {
            conflict_ppm,
            lost_ppm: 0,
        });
        life.sim.fault(fault, Span::from_secs(20));
        let key = Key {
            kind: Kind::StatefulSet,
            name: Name::new("default", "db"),
        };
        let options = DeleteOptions {
            propagation: Some(Propagation::Foreground),
            ..DeleteOptions::default()
        };
        life.sim.delete(&key, &options).unwrap();
        life.until(180);
        let tables = life.sim.server().tables();
        let n_left = tables.of::<StatefulSet>().len() + tables.of::<Pod>().len();
        assert_eq!(n_left, 0, "{conflict_ppm}: {}", life.picture());
    }
}
