//! A moment of a cluster as a world.
//!
//! Everything is read from tables of objects: those of the simulated API server, or those of [`Facts`](crate::facts::Facts). Pods share their specs, so that a hundred thousand need little
//! memory.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::pod::{DISRUPTION_TARGET, POD_SCHEDULED};
use strew_apiserver::object::scheduling::wire_of;
use strew_apiserver::object::{
    Kind, Node, Object, Phase, Pod, ReplicaSet, ReplicationController, StatefulSet, Stored, Truth,
};
use strew_cluster::Cluster;
use strew_manifest::printable::printable_line;
use strew_manifest::read::KubeObject;
use strew_model::{Interner, Labels};
use strew_scheduler::machine::Scheduler;
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{PluginId, Profile};
use strew_wire::facts::{self, PodFacts};

use crate::blocked::{Blocked, Eviction, GATED, PodOutcome, Victim};
use crate::cluster_state::{ClusterState, FinishedPod, PodEntry, PodState};
use crate::schedulers::Schedulers;
use crate::workload::{Workloads, revision_of_labels};

/// A cluster at a moment: its objects, and its scheduler.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// All objects.
    pub tables: &'a Tables,
    /// `None` if no scheduler runs at this moment, or if it is looked at without one.
    pub scheduler: Option<&'a Scheduler>,
    /// The interner of the profiles.
    pub names: &'a Interner,
    /// The scheduler's profiles at this moment; at least one.
    pub profiles: &'a [Profile],
}

/// The state that the views of one cluster share.
#[derive(Clone)]
pub struct Frame {
    /// The interner of the profiles.
    pub names: Interner,
    /// The scheduler's profiles at the start, for counting skews during the run; at least one.
    pub profiles: Vec<Profile>,
    /// In the order of display. Each view appends the workloads that appeared since the previous one.
    pub workloads: Workloads,
    /// Topology keys by which every workload is counted, beside those of constraints, zone and node.
    pub keys: Vec<String>,
}

/// The present cluster and the outcome of every pod. Which pods were placed since an earlier view is for
/// [`View::of`](crate::view::View::of).
pub fn world(moment: Moment<'_>, frame: &mut Frame) -> (ClusterState, Vec<PodOutcome>) {
    world_before(moment, frame, &BTreeSet::new())
}

/// As [`world()`], with pods of these uids on no node.
pub fn world_before(
    moment: Moment<'_>,
    frame: &mut Frame,
    unbound: &BTreeSet<Arc<str>>,
) -> (ClusterState, Vec<PodOutcome>) {
    let mut cluster = Cluster::new();
    cluster.names = moment.names.clone();
    let schedulers = Schedulers::of(moment.profiles, &mut cluster.names);
    let mut builder = Builder {
        tables: moment.tables,
        unbound,
        scheduler: moment.scheduler,
        world: ClusterState::empty(cluster, schedulers),
        workloads: std::mem::take(&mut frame.workloads),
        by_owner: HashMap::new(),
        facts: PodFacts::default(),
        outcomes: Vec::new(),
        reasons: HashMap::new(),
    };
    builder.surroundings();
    builder.workloads.add_stored(builder.tables);
    for pod in builder.tables.of::<Pod>().iter() {
        builder.pod(pod);
    }
    let Builder {
        mut world,
        workloads,
        outcomes,
        ..
    } = builder;
    world.workloads.clone_from(&workloads.list);
    // The list has grown, and later views give its workloads the same indexes.
    frame.workloads = workloads;
    world.members.resize(world.workloads.len(), Vec::new());
    world.schedulers.nominations = Nominations::of(&world.cluster);
    (world, outcomes)
}

struct Builder<'a> {
    tables: &'a Tables,
    unbound: &'a BTreeSet<Arc<str>>,
    scheduler: Option<&'a Scheduler>,
    world: ClusterState,
    workloads: Workloads,
    /// Workloads by the uid of a controller.
    by_owner: HashMap<Arc<str>, usize>,
    facts: PodFacts,
    outcomes: Vec<PodOutcome>,
    /// Many pods wait for the same reason.
    reasons: HashMap<Blocked, Rc<Blocked>>,
}

impl Builder<'_> {
    /// Nodes, namespaces, services, owners, budgets.
    fn surroundings(&mut self) {
        self.nodes();
        self.imply_namespaces();
        self.each::<ReplicaSet>();
        self.each::<ReplicationController>();
        self.each::<StatefulSet>();
        for budget in self.tables.all_of(&Kind::PodDisruptionBudget) {
            self.object(&budget);
        }
        for plain in self.tables.all_plain() {
            self.object(&Object::Plain(Arc::clone(plain)));
        }
    }

    /// In the order in which the scheduler saw them, since ties between equal nodes depend on it.
    fn nodes(&mut self) {
        let cluster = self.scheduler.map(Scheduler::cluster);
        let place = |node: &Arc<Node>| {
            let cluster = cluster?;
            cluster.find_node(cluster.names.get(&node.meta.name.name)?)
        };
        let mut nodes: Vec<Arc<Node>> = self.tables.of::<Node>().iter().cloned().collect();
        nodes.sort_by_key(|node| (place(node).is_none(), place(node)));
        for node in nodes {
            self.object(&Node::into_object(node));
        }
    }

    fn each<T: Stored>(&mut self) {
        for object in self.tables.of::<T>().iter() {
            self.object(&T::into_object(Arc::clone(object)));
        }
    }

    /// An object that cannot be converted was refused when the files were loaded, or by the API server.
    fn object(&mut self, object: &Object) {
        let ClusterState {
            cluster,
            schedulers,
            ..
        } = &mut self.world;
        match wire_of(object) {
            Some(KubeObject::Node(node)) => {
                if let Ok(fact) = facts::node(&node, &mut cluster.names) {
                    cluster.set_node(fact);
                }
            }
            Some(KubeObject::PodDisruptionBudget(budget)) => {
                facts::set_budget(&budget, cluster, &mut schedulers.budgets);
            }
            Some(wire) => drop(facts::apply(&wire, cluster)),
            None => {}
        }
    }

    /// Adds namespaces that only pods name, with the label that every namespace has.
    fn imply_namespaces(&mut self) {
        let pods = self.tables.of::<Pod>().iter();
        let mut named: Vec<&Arc<str>> = pods.map(|pod| &pod.meta.name.namespace).collect();
        named.dedup();
        let cluster = &mut self.world.cluster;
        let key = cluster.names.intern("kubernetes.io/metadata.name");
        for name in named.into_iter().collect::<BTreeSet<_>>() {
            let name = cluster.names.intern(name);
            cluster.set_namespace(name, Some(Labels::new(vec![(key, name)])));
        }
    }

    fn pod(&mut self, pod: &Arc<Pod>) {
        let name = &pod.meta.name;
        if pod.is_finished() {
            let cluster = &self.world.cluster;
            let node = pod.node.as_deref().and_then(|name| cluster.names.get(name));
            self.world.finished.push(FinishedPod {
                name: Arc::clone(&name.name),
                namespace: Arc::clone(&name.namespace),
                workload: self.workloads.find_live(self.tables, pod),
                node: node.and_then(|name| cluster.find_node(name)),
                has_failed: pod.status.phase == Phase::Failed,
            });
            return;
        }
        let workload = self.workload(pod);
        let cluster = &mut self.world.cluster;
        let Ok(Some(mut fact)) = self.facts.fact(&**pod, &mut cluster.names) else {
            return;
        };
        if self.unbound.contains(&pod.meta.uid) {
            fact.node = None;
        }
        let is_leaving = fact.terminating;
        let scheduler = fact.spec.scheduler_name;
        let is_gated = !fact.spec.gates.is_empty();
        let index = cluster.set_pod(fact);
        let node = cluster.pod(index).node;
        let standing = match () {
            () if node.is_some() => PodState::Bound,
            () if is_leaving => PodState::Leaving,
            () if !self.world.schedulers.has(scheduler) => {
                PodState::OfAnother(printable_line(self.world.cluster.names.text(scheduler)).into())
            }
            () if is_gated => PodState::Gated,
            () => PodState::Waiting,
        };
        let outcome = match (&standing, node) {
            (PodState::Bound, Some(node)) => PodOutcome::Placed(node),
            (PodState::Waiting | PodState::Gated, _) => PodOutcome::Pending(self.reason(pod)),
            _ => PodOutcome::LeftAlone,
        };
        let world = &mut self.world;
        world.members[workload].push(world.pods.len());
        world.pods.push(PodEntry {
            name: Arc::clone(&name.name),
            namespace: Arc::clone(&name.namespace),
            workload,
            pod: index,
            standing,
            is_ready: !is_leaving && pod.is_ready(),
            is_leaving,
            revision: revision_of_labels(&pod.meta.labels).map(Into::into),
        });
        self.outcomes.push(outcome);
    }

    fn workload(&mut self, pod: &Pod) -> usize {
        let owner = pod.meta.controller().map(|owner| &owner.uid);
        let known = owner.and_then(|uid| self.by_owner.get(uid));
        let workload = match known {
            Some(&known) => known,
            None => {
                let found = self.workloads.of_live(self.tables, pod);
                if let Some(uid) = owner {
                    self.by_owner.insert(Arc::clone(uid), found);
                }
                found
            }
        };
        let members = &mut self.world.members;
        members.resize(members.len().max(workload + 1), Vec::new());
        workload
    }

    /// The scheduler's message in the pod's condition.
    fn reason(&mut self, pod: &Pod) -> Rc<Blocked> {
        let by = self
            .scheduler
            .map(|scheduler| scheduler.rejected_by(&pod.meta.uid));
        let by: Vec<PluginId> = by.into_iter().flat_map(|set| set.iter()).collect();
        let condition = pod.status.condition(POD_SCHEDULED);
        let condition = condition.filter(|condition| condition.status == Truth::False);
        let message = match condition {
            Some(condition) => printable_line(&condition.message).into_owned(),
            None if by.contains(&PluginId::SchedulingGates) => GATED.to_owned(),
            None => "it was not tried yet".to_owned(),
        };
        let blocked = Blocked {
            message,
            by,
            eviction: self.eviction(pod),
        };
        if let Some(known) = self.reasons.get(&blocked) {
            return Rc::clone(known);
        }
        let shared = Rc::new(blocked.clone());
        self.reasons.insert(blocked, Rc::clone(&shared));
        shared
    }

    /// The pods that the scheduler has preempted for the pod and that still terminate.
    fn eviction(&self, pod: &Pod) -> Option<Eviction> {
        let node = pod.status.nominated.as_deref()?;
        let victims = self.tables.pods_on(node).filter(|pod| {
            let condition = pod.status.condition(DISRUPTION_TARGET);
            pod.meta.is_terminating()
                && condition.is_some_and(|c| &*c.reason == "PreemptionByScheduler")
        });
        let name = |pod: &Arc<Pod>| {
            let name = &pod.meta.name;
            Victim {
                pod: name.name.to_string(),
                namespace: name.namespace.to_string(),
            }
        };
        Some(Eviction {
            node: node.to_owned(),
            victims: victims.map(name).collect(),
        })
    }
}
