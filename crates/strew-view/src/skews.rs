//! The largest skews on the way: of a workload's own pods, by the keys of its constraints, by zone and by node.
//!
//! Nothing is recounted: each write moves one pod. A pod counts while it is on a node and nobody has asked for its
//! deletion; skews are read when an instant is over, as an observer of the API server would.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use strew_api::facts::{self, PodFacts};
use strew_api::read::KubeObject;
use strew_apiserver::object::scheduling::wire_of;
use strew_apiserver::object::{Name, Node, Object, Pod};
use strew_apiserver::server::{Cursor, Server};
use strew_cluster::{Cluster, KeyId, PodFact};
use strew_spread::{DomainIdx, Tally};

use crate::moment::Frame;
use crate::schedulers::Schedulers;
use crate::spread;
use crate::world::World;

/// The largest skew of a workload by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Largest {
    /// Of the whole run.
    pub run: i32,
    /// Of the step.
    pub step: i32,
}

/// Counts of every workload's pods, kept current.
pub struct Skews {
    /// Nodes, and a pod of each workload: what tells which nodes count.
    world: World,
    facts: PodFacts,
    /// Per workload of the frame; empty as long as nothing was seen of it.
    counted: Vec<Vec<Counted>>,
    by_owner: HashMap<Arc<str>, usize>,
    seen: Cursor,
    /// Where each pod is counted.
    places: HashMap<Name, (usize, Arc<str>)>,
}

/// A key, and the pods by domain.
struct Counted {
    key: String,
    column: KeyId,
    tally: Tally,
    largest: Largest,
}

impl Skews {
    /// Begins to watch a cluster.
    pub fn new(server: &Server, frame: &mut Frame) -> Self {
        let mut cluster = Cluster::new();
        cluster.names = frame.names.clone();
        let schedulers = Schedulers::of(&frame.profiles, &mut cluster.names);
        let tables = server.tables();
        for node in tables.of::<Node>().iter() {
            let wire = wire_of(&Object::Node(Arc::clone(node)));
            if let Some(KubeObject::Node(wire)) = wire
                && let Ok(fact) = facts::node(&wire, &mut cluster.names)
            {
                cluster.set_node(fact);
            }
        }
        let mut skews = Self {
            world: World::empty(cluster, schedulers),
            facts: PodFacts::default(),
            counted: Vec::new(),
            by_owner: HashMap::new(),
            seen: server.listen(),
            places: HashMap::new(),
        };
        let mut touched = BTreeSet::new();
        for pod in tables.of::<Pod>().iter() {
            skews.set(server, frame, pod, &mut touched);
        }
        skews.read(&touched);
        skews
    }

    /// From now on the largest of a new step are looked for.
    pub fn begin_step(&mut self) {
        for counted in self.counted.iter_mut().flatten() {
            counted.largest.step = counted.tally.skew();
        }
    }

    /// An instant is over.
    pub fn observe(&mut self, server: &Server, frame: &mut Frame) {
        let mut touched = BTreeSet::new();
        while let Some(change) = server.next_change(&mut self.seen) {
            match &change.new {
                Some(Object::Pod(pod)) => self.set(server, frame, pod, &mut touched),
                None => self.take(&change.key.name, &mut touched),
                Some(_) => {}
            }
        }
        self.read(&touched);
    }

    /// The keys of a workload, with the largest skews.
    pub fn of(&self, workload: usize) -> impl Iterator<Item = (&str, Largest)> {
        let counted = self.counted.get(workload).into_iter().flatten();
        counted.map(|counted| (counted.key.as_str(), counted.largest))
    }

    fn read(&mut self, touched: &BTreeSet<usize>) {
        for &workload in touched {
            for Counted { tally, largest, .. } in &mut self.counted[workload] {
                let skew = tally.skew();
                largest.run = largest.run.max(skew);
                largest.step = largest.step.max(skew);
            }
        }
    }

    fn set(
        &mut self,
        server: &Server,
        frame: &mut Frame,
        pod: &Arc<Pod>,
        touched: &mut BTreeSet<usize>,
    ) {
        let name = &pod.meta.name;
        let Some(node) = pod.node.as_ref().filter(|_| pod.is_active()) else {
            return self.take(name, touched);
        };
        match self.places.get(name) {
            Some((_, known)) if known == node => return,
            _ => self.take(name, touched),
        }
        let Some(workload) = self.workload(server, frame, pod) else {
            return;
        };
        self.count(workload, node, 1);
        self.places
            .insert(name.clone(), (workload, Arc::clone(node)));
        touched.insert(workload);
    }

    fn take(&mut self, name: &Name, touched: &mut BTreeSet<usize>) {
        if let Some((workload, node)) = self.places.remove(name) {
            self.count(workload, &node, -1);
            touched.insert(workload);
        }
    }

    fn count(&mut self, workload: usize, node: &str, delta: i32) {
        let cluster = &mut self.world.cluster;
        let name = cluster.names.intern(node);
        let Some(node) = cluster.find_node(name) else {
            return;
        };
        for counted in &mut self.counted[workload] {
            let domain: Option<DomainIdx> = cluster.column(counted.column).domain(node);
            if let Some(domain) = domain {
                counted.tally.add(domain, delta);
            }
        }
    }

    /// The workload of a pod, ready to be counted; `None`: it is nothing that spreads.
    fn workload(&mut self, server: &Server, frame: &mut Frame, pod: &Pod) -> Option<usize> {
        let owner = pod.meta.controller()?;
        if &*owner.kind == "DaemonSet" {
            return None;
        }
        if let Some(&known) = self.by_owner.get(&owner.uid) {
            return Some(known);
        }
        let tables = server.tables();
        let workload = frame.workloads.of_live(tables, pod);
        let n = self.counted.len().max(workload + 1);
        self.counted.resize_with(n, Vec::new);
        if self.counted[workload].is_empty() {
            let fact = self.facts.fact(pod, &mut self.world.cluster.names).ok()??;
            self.counted[workload] = self.keys(fact);
        }
        self.by_owner.insert(Arc::clone(&owner.uid), workload);
        Some(workload)
    }

    fn keys(&mut self, fact: PodFact) -> Vec<Counted> {
        let world = &mut self.world;
        let pod = world.cluster.set_pod(PodFact { node: None, ..fact });
        let class = world.cluster.pod(pod).class;
        let keys = spread::keys(world, class).into_iter();
        let counted = keys.map(|(key, column, tally)| Counted {
            key: world.cluster.names.text(key).to_owned(),
            column,
            tally,
            largest: Largest { run: 0, step: 0 },
        });
        counted
            .filter(|counted| counted.tally.domains() > 0)
            .collect()
    }
}
