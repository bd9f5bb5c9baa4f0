//! The actions of users in a generated world.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{Deployment, Key, Kind, Name, Pairs, Pod, ReplicaSet, moment};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_controllers::rollout::{RESTARTED_AT, Undo, undo_deployment};
use strew_manifest::read::KubeObject;

use super::manifests;
use super::story::{Action, ClusterPlan};
use crate::kubelet::Which;
use crate::simulation::Simulation;

type Done = Result<(), ApiError>;

/// Does the action; an error is the API server's.
pub(super) fn act(sim: &mut Simulation, world: &ClusterPlan, action: &Action) -> Done {
    match action {
        Action::Create(name) => create(sim, world, name),
        Action::Scale(name, replicas) => edit(sim, world, name, |value| {
            if value["spec"]["replicas"].is_number() {
                value["spec"]["replicas"] = json!(replicas);
            }
        }),
        Action::SetImage(name, image) => edit(sim, world, name, |value| {
            // The template of a Job never changes: each of these would count as refused.
            if value["kind"] != "Job" {
                let image = format!("app:{image}");
                template(value)["spec"]["containers"][0]["image"] = image.into();
            }
        }),
        Action::Restart(name) => {
            let now = moment::to_wire(sim.now()).0.to_string();
            edit(sim, world, name, |value| {
                let metadata = &mut template(value)["metadata"];
                metadata["annotations"][RESTARTED_AT] = now.as_str().into();
            })
        }
        Action::Undo(name) => undo(sim, name),
        Action::Pause(name) => pause(sim, name, true),
        Action::Resume(name) => pause(sim, name, false),
        Action::Ready(name, ready) => {
            let pairs = Pairs::from([("app".to_owned(), name.clone())]);
            sim.set_readiness(Which::Labelled(pairs), *ready);
            Ok(())
        }
        Action::Use(name, percent) => {
            sim.set_utilisation(Name::new("default", name.as_str()), *percent);
            Ok(())
        }
        Action::Delete(name, propagation) => {
            let options = DeleteOptions {
                propagation: Some(*propagation),
                ..DeleteOptions::default()
            };
            sim.delete(&key_of(world, name)?, &options)
        }
        Action::DeletePod(number) => delete_pod(sim, *number),
        Action::Limit(name, subset, limit) => {
            let key = key(Kind::WorkloadSpread, name);
            edit_key(sim, &key, |value| {
                let max = value.pointer_mut(&format!("/spec/subsets/{subset}/maxReplicas"));
                if let Some(max) = max.filter(|max| max.is_number()) {
                    *max = json!(limit);
                }
            })
        }
        Action::Fault(fault, lasts) => {
            sim.fault(*fault, *lasts);
            Ok(())
        }
        Action::Crash(crash) => {
            sim.crash(*crash);
            Ok(())
        }
        Action::Hooks(deed) => {
            sim.act_on_registration(*deed);
            Ok(())
        }
        Action::Jump(by) => {
            sim.jump_clock(*by);
            Ok(())
        }
        of_node => node(sim, world, of_node),
    }
}

/// The pod template of a workload.
fn template(workload: &mut Value) -> &mut Value {
    let spec = match workload["kind"] == "CronJob" {
        true => &mut workload["spec"]["jobTemplate"]["spec"],
        false => &mut workload["spec"],
    };
    &mut spec["template"]
}

fn node(sim: &mut Simulation, world: &ClusterPlan, action: &Action) -> Done {
    match action {
        Action::Drain(name) => drain(sim, name),
        Action::Cordon(name) => sim.cordon(name, true),
        Action::Uncordon(name) => sim.cordon(name, false),
        Action::Taint(name, effect) => edit_node(sim, name, |value| {
            let taints = untainted(value);
            let new = json!({"key": "storm", "effect": effect.name()});
            value["spec"]["taints"] = taints.into_iter().chain([new]).collect();
        }),
        Action::Untaint(name) => edit_node(sim, name, |value| {
            value["spec"]["taints"] = untainted(value).into();
        }),
        Action::Rezone(name, number) => edit_node(sim, name, |value| {
            let zone = manifests::zone(*number);
            value["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into();
        }),
        Action::Lose(name) => sim.lose(name),
        Action::Restore(name) => sim.restore(name),
        Action::DeleteNode(name) => sim.delete(&node_key(name), &DeleteOptions::default()),
        Action::CreateNode(name) => match world.nodes.iter().find(|node| node.name == *name) {
            Some(plan) => sim.create(decode(manifests::node(plan))?).map(drop),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn untainted(node: &Value) -> Vec<Value> {
    let taints = node["spec"]["taints"].as_array().cloned();
    let mut taints = taints.unwrap_or_default();
    taints.retain(|taint| taint["key"] != "storm");
    taints
}

fn decode(value: Value) -> Result<KubeObject, ApiError> {
    KubeObject::of_json(value).map_err(|error| ApiError::Invalid(error.to_string().into()))
}

fn key(kind: Kind, name: &str) -> Key {
    Key {
        kind,
        name: Name::new("default", name),
    }
}

fn node_key(name: &str) -> Key {
    Key {
        kind: Kind::Node,
        name: Name::new("", name),
    }
}

fn key_of(world: &ClusterPlan, name: &str) -> Result<Key, ApiError> {
    let found = world.workloads.iter().find(|w| w.name == name);
    let none = || ApiError::Invalid("the world has no such workload".into());
    let (kind, _) = manifests::kind(found.ok_or_else(none)?.worker);
    Ok(key(Kind::of(kind), name))
}

fn create(sim: &mut Simulation, world: &ClusterPlan, name: &str) -> Done {
    match world.workloads.iter().find(|w| w.name == name) {
        Some(plan) => sim.create(decode(manifests::workload(plan))?).map(drop),
        None => Ok(()),
    }
}

fn edit(
    sim: &mut Simulation,
    world: &ClusterPlan,
    name: &str,
    change: impl Fn(&mut Value),
) -> Done {
    let key = key_of(world, name)?;
    edit_key(sim, &key, change)
}

fn edit_node(sim: &mut Simulation, name: &str, change: impl Fn(&mut Value)) -> Done {
    edit_key(sim, &node_key(name), change)
}

fn edit_key(sim: &mut Simulation, key: &Key, change: impl Fn(&mut Value)) -> Done {
    let edited = sim.edit(key, &mut |value| {
        change(value);
        Ok(())
    });
    edited.map(drop)
}

fn pause(sim: &mut Simulation, name: &str, paused: bool) -> Done {
    edit_key(sim, &key(Kind::Deployment, name), |value| {
        value["spec"]["paused"] = paused.into();
    })
}

fn undo(sim: &mut Simulation, name: &str) -> Done {
    let key = key(Kind::Deployment, name);
    let tables = sim.server().tables();
    let Some(deployment) = tables.get::<Deployment>(&key.name) else {
        return Ok(());
    };
    let is_its = |set: &&Arc<ReplicaSet>| {
        let owner = set.meta.controller();
        owner.is_some_and(|owner| owner.uid == deployment.meta.uid)
    };
    let sets: Vec<Arc<ReplicaSet>> = tables.of().iter().filter(is_its).cloned().collect();
    let Ok(Undo::To(target)) = undo_deployment(deployment, &sets, 0) else {
        return Ok(());
    };
    edit_key(sim, &key, |value| {
        value["spec"]["template"] = json!(target.template);
        value["metadata"]["annotations"] = json!(target.annotations);
    })
}

fn delete_pod(sim: &mut Simulation, number: u32) -> Done {
    let pods = sim.server().tables().of::<Pod>();
    let n = pods.len().max(1);
    let pod = pods.iter().nth(number as usize % n);
    match pod.map(|pod| pod.meta.name.clone()) {
        Some(name) => {
            let key = Key {
                kind: Kind::Pod,
                name,
            };
            sim.delete(&key, &DeleteOptions::default())
        }
        None => Ok(()),
    }
}

fn drain(sim: &mut Simulation, node: &str) -> Done {
    sim.cordon(node, true)?;
    let pods: Vec<Arc<Pod>> = sim.server().tables().pods_on(node).cloned().collect();
    for pod in pods {
        let is_daemon = pod
            .meta
            .controller()
            .is_some_and(|o| &*o.kind == "DaemonSet");
        if !is_daemon {
            let key = Key {
                kind: Kind::Pod,
                name: pod.meta.name.clone(),
            };
            // A budget may forbid the eviction: then the pod stays.
            let _kept = sim.evict(&key, &DeleteOptions::of_uid(&pod.meta.uid));
        }
    }
    Ok(())
}
