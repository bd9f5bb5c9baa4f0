//! The step `deploy`: the Pending pods onto nodes, one after another.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use strew_cluster::{ClassId, NodeIdx};
use strew_scheduler::{Decision, PluginId, Unfit};

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
    /// kube-scheduler's sentence.
    pub(crate) message: String,
    /// The plugins that refused a node, in the order in which they are asked.
    pub(crate) by: Vec<PluginId>,
}

/// The API server's sentence about a pod with gates.
const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// Looks at every decision before it is carried out; `Break` ends the step there.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(&mut World, usize, &Decision) -> ControlFlow<()>;

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
        sentences: Sentences::default(),
    };
    let mut queue = queue(world);
    loop {
        let before = queue.len();
        if run.round(world, &mut queue, watch).is_break()
            || queue.is_empty()
            || queue.len() == before
        {
            break;
        }
    }
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
        })),
        Standing::Gated => Outcome::Pending(Rc::new(Blocked {
            message: GATED.to_owned(),
            by: vec![PluginId::SchedulingGates],
        })),
    }
}

struct Run {
    outcomes: Vec<Outcome>,
    n_decisions: usize,
    sentences: Sentences,
}

impl Run {
    /// Tries each pod of the queue once; those that were refused stay in it.
    fn round(
        &mut self,
        world: &mut World,
        queue: &mut Vec<usize>,
        watch: Watch<'_>,
    ) -> ControlFlow<()> {
        let mut refused = Vec::new();
        for &entry in queue.iter() {
            let pod = world.pods[entry].pod;
            let decision = world.engine.decide(&mut world.cluster, pod);
            self.n_decisions += 1;
            let flow = watch(world, entry, &decision);
            match decision {
                _ if flow.is_break() => return ControlFlow::Break(()),
                Decision::Place { node, .. } => {
                    world.bind(entry, node);
                    self.outcomes[entry] = Outcome::Placed(node);
                }
                Decision::Unfit(unfit) => {
                    let class = world.cluster.pod(pod).class;
                    let blocked = self.sentences.of(world, class, &unfit);
                    self.outcomes[entry] = Outcome::Pending(blocked);
                    refused.push(entry);
                }
            }
        }
        *queue = refused;
        ControlFlow::Continue(())
    }
}

/// Sentences that were said: a refusal of thousands of nodes is put into words once.
#[derive(Default)]
struct Sentences {
    last: HashMap<ClassId, (Rc<Unfit>, Rc<Blocked>)>,
    known: HashMap<Rc<Blocked>, ()>,
}

/// Refusals kept to be recognised.
const REFUSALS_MAX: usize = 64;

impl Sentences {
    fn of(&mut self, world: &World, class: ClassId, unfit: &Rc<Unfit>) -> Rc<Blocked> {
        if let Some((last, blocked)) = self.last.get(&class)
            && Rc::ptr_eq(last, unfit)
        {
            return Rc::clone(blocked);
        }
        let blocked = Rc::new(Blocked::of(world, unfit));
        let blocked = match self.known.get_key_value(&blocked) {
            Some((known, ())) => Rc::clone(known),
            None => {
                self.known.insert(Rc::clone(&blocked), ());
                blocked
            }
        };
        if self.last.len() >= REFUSALS_MAX {
            self.last.clear();
        }
        self.last
            .insert(class, (Rc::clone(unfit), Rc::clone(&blocked)));
        blocked
    }
}

impl Blocked {
    /// A refusal in words.
    pub(crate) fn of(world: &World, unfit: &Unfit) -> Self {
        let message = unfit.message(world.cluster.nodes_present(), &world.cluster.names);
        let mut by: Vec<PluginId> = match unfit {
            Unfit::NoNodes => Vec::new(),
            Unfit::PreFilter(refusal) => vec![refusal.plugin],
            Unfit::EveryNode(refusals) => {
                refusals.iter().map(|(_, refusal)| refusal.plugin).collect()
            }
        };
        by.sort_unstable();
        by.dedup();
        Self { message, by }
    }
}
