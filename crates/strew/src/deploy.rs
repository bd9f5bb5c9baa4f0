//! The step `deploy`: the Pending pods onto nodes, one after another.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use strew_cluster::{ClassId, NodeIdx, PodIdx};
use strew_model::Symbol;
use strew_scheduler::preemption::{self, Nomination};
use strew_scheduler::{Decision, PluginId, Preemption, Unfit};

use crate::text::count;
use crate::world::{Standing, World};

/// What became of every pod.
#[derive(Debug, Clone)]
pub(crate) struct Deployed {
    /// Per pod of the world.
    pub(crate) outcomes: Vec<Outcome>,
    /// How many decisions that took.
    pub(crate) n_decisions: usize,
}

/// What became of a pod.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// It was on a node before.
    WasBound,
    /// It was put on a node.
    Placed(NodeIdx),
    /// It is on no node, and why.
    Pending(Rc<Blocked>),
    /// It is not for this scheduler, or on its way out.
    LeftAlone,
}

/// Why a pod is on no node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Blocked {
    /// kube-scheduler's whole text, as the pod's condition shows it.
    pub(crate) message: String,
    /// The plugins that refused a node, in the order in which they are asked.
    pub(crate) by: Vec<PluginId>,
    /// What kube-scheduler would do about it. Here nobody is evicted.
    pub(crate) eviction: Option<Eviction>,
}

/// Pods that would have to go for another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Eviction {
    /// The node that they are on.
    pub(crate) node: String,
    /// Namespaces and names, most important first.
    pub(crate) victims: Vec<(String, String)>,
}

/// The API server's sentence about a pod with gates.
pub(crate) const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// Told of every pod before it is decided on; `Break` ends the step there.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

/// Decides and binds until no pod that is Pending can be placed any more.
///
/// Order: priority, highest first, then arrival. A refused pod is tried again after all others, as after
/// kube-scheduler's back-off, for as long as some pod was placed meanwhile: one may have waited for another.
pub(crate) fn deploy(world: &mut World, watch: Watch<'_>) -> Deployed {
    let mut run = Run {
        outcomes: world
            .pods
            .iter()
            .map(|pod| first_outcome(&pod.standing))
            .collect(),
        n_decisions: 0,
    };
    let mut queue = queue(world);
    loop {
        match run.round(world, &mut queue, watch) {
            ControlFlow::Continue(true) if !queue.is_empty() => {}
            ControlFlow::Continue(_) => break,
            ControlFlow::Break(()) => {
                return Deployed {
                    outcomes: run.outcomes,
                    n_decisions: run.n_decisions,
                };
            }
        }
    }
    run.say_why(world, &queue);
    Deployed {
        outcomes: run.outcomes,
        n_decisions: run.n_decisions,
    }
}

/// The pods that wait, in the order in which they are tried.
fn queue(world: &World) -> Vec<usize> {
    let waiting = world.pods.iter().enumerate();
    let waiting = waiting.filter(|(_, pod)| pod.standing == Standing::Waiting);
    let mut queue: Vec<usize> = waiting.map(|(entry, _)| entry).collect();
    queue.sort_by_key(|&entry| Reverse(world.cluster.spec_of(world.pods[entry].pod).priority));
    queue
}

fn first_outcome(standing: &Standing) -> Outcome {
    match standing {
        Standing::Bound => Outcome::WasBound,
        Standing::OfAnother(_) | Standing::Leaving => Outcome::LeftAlone,
        Standing::Waiting => Outcome::Pending(Rc::new(Blocked {
            message: "it was not tried".to_owned(),
            by: Vec::new(),
            eviction: None,
        })),
        Standing::Gated => Outcome::Pending(Rc::new(Blocked {
            message: GATED.to_owned(),
            by: vec![PluginId::SchedulingGates],
            eviction: None,
        })),
    }
}

struct Run {
    outcomes: Vec<Outcome>,
    n_decisions: usize,
}

impl Run {
    /// Tries each pod of the queue once; those that were refused stay in it. Whether anything has changed.
    fn round(
        &mut self,
        world: &mut World,
        queue: &mut Vec<usize>,
        watch: Watch<'_>,
    ) -> ControlFlow<(), bool> {
        let mut refused = Vec::new();
        let mut has_changed = false;
        for &entry in queue.iter() {
            watch(entry)?;
            let pod = world.pods[entry].pod;
            self.n_decisions += 1;
            match world.schedulers.decide(&mut world.cluster, pod) {
                Decision::Place { node, .. } => {
                    world.bind(entry, node);
                    self.outcomes[entry] = Outcome::Placed(node);
                    has_changed = true;
                }
                Decision::Unfit(unfit) => {
                    has_changed |= give_up_nomination(world, pod, &unfit);
                    refused.push(entry);
                }
            }
        }
        *queue = refused;
        ControlFlow::Continue(has_changed)
    }

    /// Puts into words why the pods that are left were refused. Nothing has changed since they were: each class is
    /// asked for once.
    fn say_why(&mut self, world: &mut World, refused: &[usize]) {
        let mut known: HashMap<(ClassId, Option<Symbol>), Rc<Blocked>> = HashMap::new();
        for &entry in refused {
            let pod = world.pods[entry].pod;
            let row = world.cluster.pod(pod);
            let key = (row.class, row.history.nominated);
            let blocked = match known.get(&key) {
                Some(blocked) => Rc::clone(blocked),
                None => {
                    let Some(blocked) = Blocked::now(world, pod) else {
                        continue;
                    };
                    let blocked = Rc::new(blocked);
                    known.insert(key, Rc::clone(&blocked));
                    blocked
                }
            };
            self.outcomes[entry] = Outcome::Pending(blocked);
        }
    }
}

/// A pod for which room was made, and for which no room can be made any more, leaves that room to others, as with
/// kube-scheduler. Whether it does.
fn give_up_nomination(world: &mut World, pod: PodIdx, unfit: &Unfit) -> bool {
    if world.cluster.pod(pod).history.nominated.is_none() {
        return false;
    }
    let World {
        cluster,
        schedulers,
        ..
    } = world;
    let gives_up = schedulers.preempt(cluster, pod, unfit).nomination() == Nomination::Clear;
    if gives_up {
        cluster.nominate(pod, None);
        schedulers.nominations.set(&cluster.pod(pod).uid, None);
    }
    gives_up
}

impl Blocked {
    /// Why a pod is refused as things are; `None` if it is not.
    pub(crate) fn now(world: &mut World, pod: PodIdx) -> Option<Self> {
        let World {
            cluster,
            schedulers,
            ..
        } = world;
        let Decision::Unfit(unfit) = schedulers.decide(cluster, pod) else {
            return None;
        };
        let preemption = schedulers.preempt(cluster, pod, &unfit);
        Some(Self::of(world, &unfit, &preemption))
    }

    fn of(world: &World, unfit: &Unfit, preemption: &Preemption) -> Self {
        let mut by: Vec<PluginId> = match unfit {
            Unfit::NoNodes => Vec::new(),
            Unfit::PreFilter(refusal) => vec![refusal.plugin],
            Unfit::EveryNode(refusals) => {
                refusals.iter().map(|(_, refusal)| refusal.plugin).collect()
            }
        };
        by.sort_unstable();
        by.dedup();
        Self {
            message: preemption.message(unfit, &world.cluster),
            by,
            eviction: Eviction::of(world, preemption),
        }
    }
}

impl Eviction {
    fn of(world: &World, preemption: &Preemption) -> Option<Self> {
        let preemption::Outcome::Preempt(eviction) = &preemption.outcome else {
            return None;
        };
        let cluster = &world.cluster;
        let name = |&pod: &PodIdx| {
            let namespace = cluster.class_of(pod).key.namespace;
            let namespace = cluster.names.text(namespace).to_owned();
            (namespace, cluster.pod(pod).name.to_string())
        };
        Some(Self {
            node: world.node_name(eviction.node).to_owned(),
            victims: eviction.victims.iter().map(name).collect(),
        })
    }

    /// `would preempt 2 pods on node n1: default/web-1, shop/db-0`, at most [`VICTIMS_SHOWN`] by name.
    pub(crate) fn text(&self) -> String {
        let shown = self.victims.iter().take(VICTIMS_SHOWN);
        let mut names: Vec<String> = shown
            .map(|(namespace, name)| format!("{namespace}/{name}"))
            .collect();
        if self.victims.len() > VICTIMS_SHOWN {
            names.push(format!("… and {} more", self.victims.len() - VICTIMS_SHOWN));
        }
        let pods = count(self.victims.len(), "pod");
        format!(
            "would preempt {pods} on node {}: {}",
            self.node,
            names.join(", ")
        )
    }
}

/// Pods named of those that would have to go.
const VICTIMS_SHOWN: usize = 5;
