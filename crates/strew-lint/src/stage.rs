//! Rollouts of the files' Deployments on the files' nodes, played by the code that `strew simulate` plays with.
//!
//! A [`Stage`] is the cluster of the files without its controllers: nodes, what decides about pods on them, and the pods
//! that run. A Deployment is played alone on it, as `placings` places it alone; pods of others get no owner, so that
//! nothing makes them again.

use std::collections::HashMap;

use serde_json::{Value, json};
use strew_manifest::read::{KubeObject, Sources};
use strew_scenario::format::{API_VERSION, KIND, load};
use strew_scenario::run::{Plan, play, scheduler_of};

use crate::files::namespace_of;
use crate::scheduling::Scheduling;

/// How often a rollout is played: ties decide which old pod goes first.
pub(crate) const TRIES: u32 = 10;

/// The most nodes and pods of a cluster in which rollouts are played.
const SIZE_MAX: usize = 2_000;

/// The most pods of a rollout that is played.
const PODS_MAX: i64 = 50;

/// The most nodes and pods in all plays together; equal ones are played once.
const PLAYED_MAX: usize = 200_000;

/// The cluster of the files, for rollouts.
pub(crate) struct Stage {
    /// Everything but the pods, as documents.
    around: String,
    /// The pods that run.
    pods: Vec<Running>,
    /// The ReplicaSets that a Deployment of the files owns.
    sets: Vec<Owned>,
    n_nodes: usize,
}

struct Running {
    /// Namespace and name of its ReplicaSet, if that owns it.
    set: Option<(String, String)>,
    pod: Value,
}

struct Owned {
    set: (String, String),
    deployment: String,
    text: String,
}

/// How often a rollout did not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hung {
    pub(crate) times: u32,
    /// What it lacks at rest the first time, as `strew simulate` says it; empty if it always ends.
    pub(crate) why: String,
}

/// What was played already.
#[derive(Default)]
pub(crate) struct StagePlays {
    known: HashMap<String, Option<Hung>>,
    n_played: usize,
}

impl Stage {
    pub(crate) fn of(objects: &[&KubeObject], scheduling: &Scheduling) -> Self {
        let configuration = scheduling.document.iter();
        let configuration = configuration.map(|text| format!("{text}{SEPARATOR}"));
        let mut stage = Self {
            around: configuration.collect(),
            pods: Vec::new(),
            sets: Vec::new(),
            n_nodes: 0,
        };
        for object in objects {
            match object {
                KubeObject::Node(_) => stage.n_nodes += 1,
                KubeObject::Namespace(_)
                | KubeObject::PriorityClass(_)
                | KubeObject::RuntimeClass(_)
                | KubeObject::StorageClass(_)
                | KubeObject::CSINode(_)
                | KubeObject::PersistentVolume(_)
                | KubeObject::PersistentVolumeClaim(_)
                | KubeObject::LimitRange(_)
                | KubeObject::ResourceQuota(_)
                | KubeObject::WorkloadSpread(_) => {}
                KubeObject::Pod(pod) => {
                    let is_running = { pod.spec.as_ref() }.is_some_and(|s| s.node_name.is_some());
                    if is_running {
                        stage.pods.push(Running {
                            set: owner(object, "ReplicaSet"),
                            pod: object.to_json(),
                        });
                    }
                    continue;
                }
                KubeObject::ReplicaSet(_) => {
                    if let (Some((namespace, deployment)), Some(metadata)) =
                        (owner(object, "Deployment"), object.metadata())
                    {
                        stage.sets.push(Owned {
                            set: (namespace_of(metadata).to_owned(), object.name().to_owned()),
                            deployment: format!("{namespace}/{deployment}"),
                            text: object.to_json().to_string(),
                        });
                    }
                    continue;
                }
                _ => continue,
            }
            stage.around += &document(&object.to_json());
        }
        stage
    }

    /// The documents of a play; `None` if more pods of the Deployment run than its ReplicaSets of the files own.
    fn documents(&self, deployment: &Value, name: &str, n_running: usize) -> Option<String> {
        let mut text = self.around.clone();
        let own = || self.sets.iter().filter(|owned| owned.deployment == name);
        for owned in own() {
            text += &owned.text;
            text += SEPARATOR;
        }
        let mut n_own = 0;
        for Running { set, pod } in &self.pods {
            let is_own = set.as_ref().is_some_and(|set| own().any(|o| o.set == *set));
            if is_own {
                n_own += 1;
                text += &document(pod);
                continue;
            }
            let mut alone = pod.clone();
            if let Some(metadata) = alone["metadata"].as_object_mut() {
                metadata.shift_remove("ownerReferences");
            }
            text += &document(&alone);
        }
        text += &document(deployment);
        (n_own == n_running).then_some(text)
    }
}

const SEPARATOR: &str = "\n---\n";

fn document(value: &Value) -> String {
    format!("{value}{SEPARATOR}")
}

/// Namespace and name of the object that controls this one, if it is of this kind.
fn owner(object: &KubeObject, kind: &str) -> Option<(String, String)> {
    let metadata = object.metadata()?;
    let mut owners = metadata.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.controller == Some(true) && owner.kind == kind)?;
    Some((namespace_of(metadata).to_owned(), owner.name.clone()))
}

impl StagePlays {
    /// Plays a rollout of this Deployment, of which `n_running` pods run already; `None`: it is not played, since it or the
    /// cluster is too large, or the Deployment is not whole before the rollout.
    pub(crate) fn play(
        &mut self,
        stage: &Stage,
        deployment: &Value,
        n_running: usize,
    ) -> Option<Hung> {
        let n_pods = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
        let size = stage.n_nodes + stage.pods.len();
        if n_pods > PODS_MAX || size > SIZE_MAX {
            return None;
        }
        let metadata = &deployment["metadata"];
        let namespace = metadata["namespace"].as_str().filter(|n| !n.is_empty());
        let namespace = namespace.unwrap_or("default");
        let name = metadata["name"].as_str()?;
        let documents = stage.documents(deployment, &format!("{namespace}/{name}"), n_running)?;
        if let Some(known) = self.known.get(&documents) {
            return known.clone();
        }
        self.n_played += (size + usize::try_from(n_pods).ok()?) * TRIES as usize;
        if self.n_played > PLAYED_MAX {
            return None;
        }
        let hung = hung(&documents, &format!("{namespace}/deployment/{name}"));
        self.known.insert(documents, hung.clone());
        hung
    }
}

/// The plan of the Scenario in these documents; `None`: it cannot be played.
pub(crate) fn plan(documents: String) -> Option<Plan> {
    let mut sources = Sources::new();
    sources.add("lint", documents);
    let loaded = load(&sources);
    let variant = loaded.variants.first()?;
    let gates = &variant.scenario.feature_gates;
    let configure = scheduler_of(&sources, &variant.objects, gates).ok()?;
    Plan::new(&variant.scenario, &variant.objects, configure).ok()
}

/// Plays the rollout of this workload; `None`: it cannot be played, or its pods are not all there before.
fn hung(documents: &str, target: &str) -> Option<Hung> {
    let scenario = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "lint"},
        "spec": {"timeline": [
            {"name": "deploy", "rest": {}, "expect": [{"rolledOut": {"of": target}}]},
            {"name": "rollout", "rollout-restart": [target], "rest": {},
             "expect": [{"rolledOut": {"of": target}}]},
        ]},
    });
    let plan = plan(format!("{documents}{scenario}"))?;
    let mut hung = Hung {
        times: 0,
        why: String::new(),
    };
    for seed in 0..TRIES {
        let run = play(&plan, seed.into(), None, &mut ()).ok()?;
        let [deploy, rollout] = run.steps.as_slice() else {
            return None;
        };
        let is_refused = !deploy.refused.is_empty() || !rollout.refused.is_empty();
        let ([before], [after]) = (&*deploy.expectations, &*rollout.expectations) else {
            return None;
        };
        if is_refused || !before.held || after.is_unknown || after.is_open {
            return None;
        }
        if !after.held {
            hung.times += 1;
            if hung.why.is_empty() {
                let why = after.why.split_once(": ").map_or("", |(_, why)| why);
                hung.why = why.to_owned();
            }
        }
    }
    Some(hung)
}
