//! Deployments and their ReplicaSets, from the manifest to the last pod.

use strew_apiserver::object::{Deployment, Key, Kind, Name, ReplicaSet};
use strew_model::time::Span;
use strew_sim::{Component, Crash};

use crate::life::{Life, nodes};

fn deployment(replicas: usize) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, image: nginx, resources: {{requests: {{cpu: '1'}}}}}}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {{matchLabels: {{app: web}}}}
"
    )
}

/// `replicas ready available unavailable`, and how the rollout goes.
fn state(life: &Life) -> (Vec<i32>, String) {
    let tables = life.sim.server().tables();
    let web = tables
        .get::<Deployment>(&Name::new("default", "web"))
        .unwrap();
    let status = &web.status;
    let counts = [
        status.replicas,
        status.ready_replicas,
        status.available_replicas,
        status.unavailable_replicas,
    ];
    let mut conditions = status.conditions.iter().flatten();
    let progressing = conditions.find(|condition| condition.type_ == "Progressing");
    let reason = progressing.and_then(|condition| condition.reason.clone());
    (
        counts.map(|count| count.unwrap_or(0)).into(),
        reason.unwrap_or_default(),
    )
}

#[test]
fn a_deployment_comes_to_be_and_is_spread() {
    for seed in 0..5 {
        let mut life = Life::of(&(nodes(6, 3) + &deployment(9)), seed);
        life.until(60);
        let expected = (vec![9, 9, 9, 0], "NewReplicaSetAvailable".to_owned());
        assert_eq!(state(&life), expected, "{}", life.picture());
        let sets = life.sim.server().tables().of::<ReplicaSet>();
        assert_eq!(sets.len(), 1);
        let picture = life.picture();
        for zone in 0..3 {
            let of_zone = |line: &&str| {
                [zone, zone + 3]
                    .iter()
                    .any(|n| line.starts_with(&format!("n{n}:")))
            };
            let lines = picture.lines().filter(of_zone);
            let n_pods: usize = lines
                .map(|line| line.matches("Running ready").count())
                .sum();
            assert_eq!(n_pods, 3, "{picture}");
        }
    }
}

#[test]
fn what_has_no_room_is_called_stuck_after_ten_minutes() {
    let mut life = Life::of(&(nodes(3, 3) + &deployment(15)), 1);
    life.until(300);
    assert_eq!(
        state(&life),
        (vec![15, 12, 12, 3], "ReplicaSetUpdated".to_owned())
    );
    life.until(700);
    assert_eq!(
        state(&life),
        (vec![15, 12, 12, 3], "ProgressDeadlineExceeded".to_owned())
    );
}

#[test]
fn a_rollout_ends_the_same_wherever_the_controllers_die() {
    for after_writes in (1..40).step_by(3) {
        let mut life = Life::of(&(nodes(6, 3) + &deployment(9)), 3);
        life.until(60);
        let key = Key {
            kind: Kind::Deployment,
            name: Name::new("default", "web"),
        };
        let image = "/spec/template/spec/containers/0/image";
        let edited = life.sim.edit(&key, &mut |web| {
            *web.pointer_mut(image).ok_or("no image")? = "nginx:2".into();
            Ok(())
        });
        edited.unwrap();
        life.sim.crash(Crash {
            component: Component::Controllers,
            after_writes,
            down: Span::from_secs(5),
        });
        life.until(400);
        let expected = (vec![9, 9, 9, 0], "NewReplicaSetAvailable".to_owned());
        assert_eq!(state(&life), expected, "after {after_writes} writes");
        let sets = life.sim.server().tables().of::<ReplicaSet>().iter();
        let mut sizes: Vec<i32> = sets.filter_map(|set| set.spec.replicas).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [0, 9]);
    }
}
