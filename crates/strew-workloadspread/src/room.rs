//! Simulates scheduling: whether a node takes this pod now.
//!
//! A room has its own cluster, in which waiting pods are put onto nodes as the scheduler would: bound pods, every
//! unbound pod with a marker, and pods that were admitted here and are not seen yet hold capacity. So a burst of 500
//! pods on room for 10 finds room for 10.
//!
//! Source: spec/workloadspread §4.8.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_cluster::{ClassId, Cluster, NodeFact, NodeIdx, PodFact, PodIdx, Unsupported};
use strew_model::{Holds, Instant, Interner, Marks, Span, Symbol, tolerates_all, well_known};
use strew_scheduler::{Decision, DefaultConstraints, Engine, Profile, Unfit};

use crate::choose::Fit;
use crate::facts::spec::WsKey;
use crate::marker::Marker;
use crate::waiting::Waiting;
use crate::work::Work;

/// The largest number of waiting pods that are put onto nodes for one question. Beyond it the answer is "unknown".
pub const PLACINGS_MAX: usize = 512;

/// How long an admitted pod holds capacity without being seen.
const UNSEEN_FOR: Span = Span::from_secs(30);

/// Identifies the capacity that an admission holds, until its pod is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldId(u64);

/// The properties by which an admitted pod is recognized.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// The WorkloadSpread.
    pub key: WsKey,
    /// The pod's marker.
    pub marker: Marker,
    /// The pod's name; `None` if it was unknown.
    pub name: Option<Arc<str>>,
}

/// Nodes, and the pods that hold their capacity.
pub struct Room {
    cluster: Cluster,
    engines: Vec<Engine>,
    by_scheduler: FxHashMap<Symbol, usize>,
    /// Nodes that take any number of pods.
    virtual_nodes: BTreeSet<Symbol>,
    virtual_label: (Symbol, Symbol),
    /// Waiting pods that the room put onto a node.
    placed: FxHashMap<PodIdx, NodeIdx>,
    /// Waiting pods without a node, oldest first.
    unsettled: Waiting,
    /// Waiting pods for which no node was found, with the state in which they were tried.
    stuck: Waiting,
    stuck_at: State,
    /// Grows whenever a pod leaves a node.
    frees: u64,
    /// The nodes that pods left most recently, the newest at the end.
    freed: VecDeque<NodeIdx>,
    unfit: FxHashMap<ClassId, (State, Rc<Unfit>)>,
    work: Work,
    holds: BTreeMap<HoldId, Hold>,
    next_hold: u64,
    by_name: FxHashMap<(Symbol, Arc<str>), HoldId>,
    by_uid: FxHashMap<Arc<str>, HoldId>,
    nameless: BTreeMap<(WsKey, Arc<str>), BTreeSet<HoldId>>,
}

struct Hold {
    uid: Arc<str>,
    admitted: Admitted,
    until: Instant,
}

/// While this is unchanged, pods that found no node still find none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct State {
    structure: u64,
    frees: u64,
}

impl Room {
    /// A room without nodes. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut).
    pub fn new(mut names: Interner, profiles: Vec<Profile>) -> Self {
        let virtual_label = (names.intern("type"), names.intern("virtual-kubelet"));
        let mut by_scheduler = FxHashMap::default();
        for (place, profile) in profiles.iter().enumerate() {
            by_scheduler.insert(names.intern(&profile.scheduler_name), place);
        }
        let mut cluster = Cluster::new();
        cluster.names = names;
        let default = cluster.names.intern("default-scheduler");
        if let Some(&place) = by_scheduler.get(&default) {
            by_scheduler.insert(well_known::EMPTY, place);
        }
        Self {
            cluster,
            engines: profiles.into_iter().map(Engine::new).collect(),
            by_scheduler,
            virtual_nodes: BTreeSet::new(),
            virtual_label,
            placed: FxHashMap::default(),
            unsettled: Waiting::default(),
            stuck: Waiting::default(),
            stuck_at: State::default(),
            frees: 0,
            freed: VecDeque::new(),
            unfit: FxHashMap::default(),
            work: Work::default(),
            holds: BTreeMap::new(),
            next_hold: 0,
            by_name: FxHashMap::default(),
            by_uid: FxHashMap::default(),
            nameless: BTreeMap::new(),
        }
    }

    /// The cluster; waiting pods are on the nodes that the room put them onto.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The strings of all facts.
    pub fn names(&self) -> &Interner {
        &self.cluster.names
    }

    /// The strings of all facts, to add to.
    pub fn names_mut(&mut self) -> &mut Interner {
        &mut self.cluster.names
    }

    /// The facts about Services, controllers and namespaces.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// True if the pod of a uid is known.
    pub fn knows(&self, uid: &str) -> bool {
        self.cluster.find_pod(uid).is_some()
    }

    /// Begins a request: its questions together may take [`WORK_MAX`](crate::WORK_MAX) steps.
    pub(crate) fn begin_request(&mut self) {
        self.work.begin();
    }

    /// The number of steps for all questions so far.
    pub(crate) fn work_done(&self) -> u64 {
        self.work.done()
    }

    /// The length of the queues of waiting pods; some of these may be gone.
    pub fn queued(&self) -> usize {
        self.unsettled.len() + self.stuck.len()
    }

    /// The number of admitted pods that are not seen yet.
    pub fn unseen(&self) -> usize {
        self.holds.len()
    }

    /// The time at which the next of them stops holding capacity.
    pub fn next_wake(&self) -> Option<Instant> {
        // Each holds for the same time, so the oldest ends first.
        self.holds.first_key_value().map(|(_, hold)| hold.until)
    }
}

// === what is gone ===

impl Room {
    /// True if enough classes and terms are new, or 8 times as many strings, and as many as the last sweep left.
    pub(crate) fn is_sweep_due(&self, min: usize) -> bool {
        self.cluster.is_sweep_due(min)
    }

    /// Frees objects that neither the room nor `mark` marks.
    pub(crate) fn sweep(&mut self, mark: impl FnOnce(&mut Marks)) {
        let mut sweep = self.cluster.begin_sweep(&FxHashSet::default());
        for engine in &mut self.engines {
            engine.sweep(&mut self.cluster, &mut sweep);
        }
        self.unfit.clear();
        let Self {
            cluster,
            engines,
            // From before the strings were pinned.
            by_scheduler: _,
            virtual_label: _,
            virtual_nodes,
            placed: _,
            unsettled: _,
            stuck: _,
            stuck_at: _,
            frees: _,
            freed: _,
            unfit: _,
            work: _,
            holds,
            next_hold: _,
            // The keys of the holds.
            by_name: _,
            by_uid: _,
            nameless: _,
        } = self;
        cluster.end_sweep(sweep, |marks: &mut Marks| {
            engines.iter().for_each(|engine| engine.mark(marks));
            virtual_nodes.iter().for_each(|node| node.mark(marks));
            for hold in holds.values() {
                hold.admitted.key.mark(marks);
            }
            mark(marks);
        });
    }
}

// === facts ===

impl Room {
    /// Sets a node.
    pub fn set_node(&mut self, fact: NodeFact) {
        let known = self.cluster.find_node(fact.name);
        if known.is_some_and(|n| self.cluster.node(n).fact() == Some(&fact)) {
            return;
        }
        let (key, value) = self.virtual_label;
        match fact.labels.get(key) == Some(value) {
            true => self.virtual_nodes.insert(fact.name),
            false => self.virtual_nodes.remove(&fact.name),
        };
        let node = self.cluster.set_node(fact);
        self.disturb(node);
    }

    /// Removes a node.
    pub fn node_gone(&mut self, name: Symbol) {
        self.virtual_nodes.remove(&name);
        if let Some(node) = self.cluster.find_node(name) {
            self.disturb(node);
        }
        self.cluster.remove_node(name);
    }

    /// Sets a pod. Unbound pods without a marker hold no capacity.
    pub fn set_pod(&mut self, mut fact: PodFact, marker: Option<&Marker>) {
        passes_volumes(&mut fact);
        let known = self.cluster.find_pod(&fact.uid);
        let released = match (known, marker) {
            (None, Some(marker)) => self.seen(&fact, marker),
            _ => None,
        };
        let before = known.and_then(|pod| self.cluster.pod(pod).node);
        let bound = fact.node.is_some();
        if !bound && marker.is_none() {
            return self.pod_gone(&fact.uid);
        }
        let waiting = known.is_some_and(|pod| self.placed.remove(&pod).is_some());
        let pod = self.cluster.set_pod(fact);
        let now = self.cluster.pod(pod).node;
        let at = before.or(released);
        if bound {
            self.left(at.filter(|_| at != now));
            if at != now
                && let Some(node) = now
                && self.is_overfull(node)
            {
                self.disturb(node);
            }
            return;
        }
        // It stays on its node, unless its class changed; then the next question moves it.
        match at.filter(|_| waiting || known.is_none()) {
            Some(node) => self.put(pod, node),
            None if known.is_none() || before.is_some() => self.unsettled.push(pod, &self.cluster),
            None => {}
        }
    }

    /// Removes a pod that was deleted, or has finished.
    pub fn pod_gone(&mut self, uid: &str) {
        if let Some(pod) = self.cluster.find_pod(uid) {
            self.placed.remove(&pod);
            self.left(self.cluster.pod(pod).node);
            self.cluster.remove_pod(uid);
        }
    }

    /// Releases the capacity of pods that were admitted too long ago and never seen.
    pub fn expire(&mut self, now: Instant) {
        while let Some((&id, hold)) = self.holds.first_key_value() {
            if hold.until > now {
                break;
            }
            self.release(id);
        }
    }

    fn left(&mut self, node: Option<NodeIdx>) {
        let Some(node) = node else {
            return;
        };
        self.frees += 1;
        self.freed.push_back(node);
        if self.freed.len() > FREED_MAX {
            self.freed.pop_front();
        }
    }

    fn put(&mut self, pod: PodIdx, node: NodeIdx) {
        self.cluster.bind(pod, node);
        self.placed.insert(pod, node);
    }

    /// True if the pods of a node, waiting ones included, ask for more than it has, or for the same port.
    fn is_overfull(&self, node: NodeIdx) -> bool {
        let row = self.cluster.node(node);
        let Some(fact) = row.fact() else {
            return true;
        };
        let (used, has) = (row.used(), &fact.allocatable);
        let ports = row.host_ports();
        let clash = |i: usize| ports[..i].iter().any(|p| p.conflicts_with(&ports[i]));
        used.cpu_milli > has.cpu_milli
            || used.memory > has.memory
            || used.ephemeral_storage > has.ephemeral_storage
            || used.scalars().iter().any(|&(name, n)| n > has.scalar(name))
            || row.pods().len() as i64 > fact.pods_max
            || (0..ports.len()).any(clash)
    }

    /// Takes waiting pods off a node that changed: the next question puts them onto nodes again.
    fn disturb(&mut self, node: NodeIdx) {
        let waiting = |p: &&PodIdx| self.placed.contains_key(p);
        let pods = self.cluster.node(node).pods().iter().filter(waiting);
        for pod in pods.copied().collect::<Vec<_>>() {
            self.placed.remove(&pod);
            self.cluster.unbind(pod);
            self.left(Some(node));
            self.unsettled.push(pod, &self.cluster);
        }
    }
}

// === what was admitted here ===

impl Room {
    /// Records that a pod was admitted: it holds capacity until it is seen, or for half a minute.
    pub fn hold(
        &mut self,
        now: Instant,
        mut pod: PodFact,
        admitted: Admitted,
        fit: &Fit,
    ) -> HoldId {
        let id = HoldId(self.next_hold);
        self.next_hold += 1;
        passes_volumes(&mut pod);
        pod.uid = format!("admitted-{}", id.0).into();
        pod.node = None;
        let namespace = admitted.key.namespace;
        if let Some(name) = &admitted.name
            && let Some(&earlier) = self.by_name.get(&(namespace, name.clone()))
        {
            // A repeated request for the same pod.
            self.release(earlier);
        }
        match (&admitted.name, &admitted.marker.uid) {
            (Some(name), _) => {
                self.by_name.insert((namespace, name.clone()), id);
            }
            (None, Some(uid)) => {
                self.by_uid.insert(uid.clone(), id);
            }
            (None, None) => {
                let kind = (admitted.key.clone(), admitted.marker.subset.clone());
                self.nameless.entry(kind).or_default().insert(id);
            }
        }
        let uid = Arc::clone(&pod.uid);
        let row = self.cluster.set_pod(pod);
        let node = match fit {
            Fit::Node { node, .. } => self.cluster.find_node(*node),
            _ => None,
        };
        let until = now + UNSEEN_FOR;
        let hold = Hold {
            uid,
            admitted,
            until,
        };
        self.holds.insert(id, hold);
        match node {
            Some(node) => self.put(row, node),
            None => self.unsettled.push(row, &self.cluster),
        }
        id
    }

    /// Releases the capacity of an admission that failed, or whose pod is seen. Returns the node.
    pub fn release(&mut self, id: HoldId) -> Option<NodeIdx> {
        let hold = self.holds.remove(&id)?;
        let Admitted { key, marker, name } = hold.admitted;
        match (name, marker.uid) {
            (Some(name), _) => forget(&mut self.by_name, &(key.namespace, name), id),
            (None, Some(uid)) => forget(&mut self.by_uid, &uid, id),
            (None, None) => {
                let kind = (key, marker.subset);
                if let Some(ids) = self.nameless.get_mut(&kind) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        self.nameless.remove(&kind);
                    }
                }
            }
        }
        let node = self.cluster.find_pod(&hold.uid);
        let node = node.and_then(|pod| self.cluster.pod(pod).node);
        self.pod_gone(&hold.uid);
        node
    }

    /// A pod with a marker is seen for the first time: releases the capacity of its admission. A pod that was admitted
    /// without name and uid is taken for the oldest such one of its subset.
    fn seen(&mut self, fact: &PodFact, marker: &Marker) -> Option<NodeIdx> {
        let named = self.by_name.get(&(fact.namespace, fact.name.clone()));
        let uid = marker.uid.as_ref().and_then(|uid| self.by_uid.get(uid));
        let kind = || {
            let (namespace, name) = (fact.namespace, marker.workload_spread.clone());
            (WsKey { namespace, name }, marker.subset.clone())
        };
        let id = named.or(uid).copied();
        let id = id.or_else(|| self.nameless.get(&kind())?.first().copied());
        id.and_then(|id| self.release(id))
    }
}

fn forget<K: std::hash::Hash + Eq>(map: &mut FxHashMap<K, HoldId>, key: &K, id: HoldId) {
    // A retry for the same pod holds under the same name.
    if map.get(key) == Some(&id) {
        map.remove(key);
    }
}

/// Volumes and dynamic resources count as fitting.
fn passes_volumes(pod: &mut PodFact) {
    let stays =
        |u: &Unsupported| matches!(u, Unsupported::PodGroup(_) | Unsupported::BadSelector(_));
    pod.spec.claims = Box::default();
    if !pod.spec.unsupported.iter().all(stays) {
        let kept = pod.spec.unsupported.iter().filter(|u| stays(u));
        pod.spec.unsupported = kept.cloned().collect();
    }
}

// === the question ===

impl Room {
    /// Whether a node takes this pod now, together with all waiting pods. The question holds no capacity.
    ///
    /// Cost: one decision of the scheduler, and one for each waiting pod that must be put onto a node (again).
    pub fn ask(&mut self, mut pod: PodFact) -> Fit {
        if !self.settle() || !self.work.allows(&self.cluster, &pod.spec) {
            return Fit::Unknown;
        }
        passes_volumes(&mut pod);
        let virtual_node = self.virtual_node(&pod);
        pod.uid = "asked".into();
        pod.node = None;
        let row = self.cluster.set_pod(pod);
        let found = self.place(row);
        self.cluster.remove_pod("asked");
        match (found, virtual_node) {
            (Ok(node), _) => {
                let node = self.cluster.node(node).name();
                let is_virtual = self.virtual_nodes.contains(&node);
                Fit::Node { node, is_virtual }
            }
            (Err(_), Some(node)) => Fit::Node {
                node,
                is_virtual: true,
            },
            (Err(unfit), None) => Fit::None(unfit),
        }
    }

    /// A virtual node that the pod may go to, whatever it holds.
    fn virtual_node(&self, pod: &PodFact) -> Option<Symbol> {
        let admits = |&&name: &&Symbol| {
            let node = self.cluster.find_node(name);
            let fact = node.and_then(|n| self.cluster.node(n).fact());
            fact.is_some_and(|fact| {
                let names = &self.cluster.names;
                pod.spec.node_affinity.matches(name, &fact.labels, names)
                    && tolerates_all(&pod.spec.tolerations, &fact.taints)
            })
        };
        self.virtual_nodes.iter().find(admits).copied()
    }

    /// Puts waiting pods onto nodes. Returns false if there are more than one question may put.
    fn settle(&mut self) -> bool {
        let state = self.state();
        if self.stuck_at != state {
            self.stuck_at = state;
            self.unsettled.append(&mut self.stuck);
        }
        let mut tries = 0;
        while let Some(pod) = self.unsettled.next(&self.cluster) {
            let is_allowed = tries < PLACINGS_MAX && {
                let spec = self.cluster.spec_of(pod);
                self.work.allows(&self.cluster, spec)
            };
            if !is_allowed {
                self.unsettled.put_back(pod);
                return false;
            }
            tries += 1;
            match self.place(pod) {
                Ok(node) => self.put(pod, node),
                Err(_) => self.stuck.push(pod, &self.cluster),
            }
        }
        true
    }

    fn state(&self) -> State {
        State {
            structure: self.cluster.structure_changes().head(),
            frees: self.frees,
        }
    }

    fn place(&mut self, pod: PodIdx) -> Result<NodeIdx, Rc<Unfit>> {
        let class = self.cluster.pod(pod).class;
        let spec = self.cluster.spec_of(pod);
        let place = self.by_scheduler.get(&spec.scheduler_name).copied();
        // A pod of a scheduler that is not configured here is judged with the first profile.
        let Some(engine) = self.engines.get_mut(place.unwrap_or(0)) else {
            return Err(Rc::new(Unfit::NoNodes));
        };
        let state = State {
            structure: self.cluster.structure_changes().head(),
            frees: self.frees,
        };
        let remembers = only_gets_worse(engine.profile(), spec);
        if let Some((at, unfit)) = self.unfit.get_mut(&class)
            && remembers
            && at.structure == state.structure
            && state.frees - at.frees <= self.freed.len() as u64
        {
            // Only nodes that a pod has left since may take it now.
            let since = (state.frees - at.frees) as usize;
            let mut nodes: Vec<NodeIdx> = self.freed.iter().rev().take(since).copied().collect();
            nodes.sort_unstable();
            nodes.dedup();
            let cluster = &mut self.cluster;
            let refuses = |&n: &NodeIdx| {
                let there = cluster.node(n).fact().is_some();
                !there || engine.refusal_on(cluster, pod, n).is_some()
            };
            if nodes.iter().all(refuses) {
                *at = state;
                return Err(Rc::clone(unfit));
            }
        }
        match engine.decide(&mut self.cluster, pod) {
            Decision::Place { node, .. } => Ok(node),
            Decision::Unfit(unfit) => {
                if self.unfit.len() >= UNFIT_MAX {
                    self.unfit.clear();
                }
                self.unfit.insert(class, (state, Rc::clone(&unfit)));
                Err(unfit)
            }
        }
    }
}

/// The number of such nodes that are remembered.
const FREED_MAX: usize = 64;

/// The number of classes that are remembered as finding no node.
const UNFIT_MAX: usize = 4096;

/// True if further pods can only reduce the chances of such a pod: hard spreading and affinity to other pods may raise
/// them.
fn only_gets_worse(profile: &Profile, spec: &strew_cluster::PodSpec) -> bool {
    let defaults_soft = match &profile.default_constraints {
        DefaultConstraints::System => true,
        DefaultConstraints::List(list) => list.iter().all(|c| !c.hard),
    };
    defaults_soft && spec.spread.iter().all(|c| !c.hard) && spec.affinity.required.is_empty()
}
