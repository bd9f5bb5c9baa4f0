//! The largest skews during a run: of a workload's own pods, by the keys of its constraints, by zone and by node.
//!
//! Nothing is recounted while nodes and templates stay the same: each write moves one pod. A pod counts while it is on
//! a node and does not terminate; skews are read at the end of an instant, as an observer of the API server would.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Object, Pod};
use strew_apiserver::server::Server;
use strew_cluster::KeyId;
use strew_spread::Tally;

use crate::ground::{Ground, Rule};
use crate::moment::Frame;
use crate::workload::Workloads;

/// The largest skew of a workload by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Largest {
    /// Of the whole run.
    pub run: i32,
    /// Of the step.
    pub step: i32,
}

/// A workload's present pods over the domains of a key.
pub struct Now<'a> {
    /// The topology key.
    pub key: &'a str,
    /// Every domain that counts, with its pods.
    pub domains: Vec<(&'a str, i32)>,
    /// The largest minus the smallest count.
    pub skew: i32,
}

/// Counts of every workload's pods, kept current.
pub struct Skews {
    ground: Ground,
    counts: Counts,
}

/// Pods by workload, key and domain.
#[derive(Default)]
struct Counts {
    /// Per workload of the frame; empty until a pod of it was on a node.
    workloads: Vec<Counted>,
    by_owner: HashMap<Arc<str>, usize>,
    /// Where each pod is counted.
    places: BTreeMap<Name, Place>,
    /// The workloads whose counts have changed in this instant.
    touched: BTreeSet<usize>,
}

/// Where a pod is counted.
struct Place {
    workload: usize,
    /// The index of its rules among those of its workload.
    group: usize,
    node: Arc<str>,
}

/// The pods of a workload.
#[derive(Default)]
struct Counted {
    by_key: Vec<ByKey>,
    groups: Vec<Group>,
    /// The groups of a pod of each of the last templates.
    recent: VecDeque<(Arc<Pod>, usize)>,
}

/// Pods for which the same nodes count: of one subset or one revision.
struct Group {
    keys: Vec<(String, Rule)>,
    n_pods: usize,
}

/// A key, and the pods by domain.
struct ByKey {
    key: String,
    /// The nodes that count for one of the groups.
    rule: Rule,
    column: KeyId,
    tally: Tally,
    largest: Largest,
}

/// The templates of a workload whose groups are remembered.
const RECENT_MAX: usize = 8;

impl Skews {
    /// Begins to follow a cluster.
    pub fn new(server: &Server, frame: &mut Frame) -> Self {
        let mut ground = Ground::new(server, &frame.names, &frame.profiles);
        let mut counts = Counts::default();
        let tables = server.tables();
        for pod in tables.of::<Pod>().iter() {
            counts.set(&mut ground, tables, &mut frame.workloads, pod);
        }
        counts.read();
        Self { ground, counts }
    }

    /// Begins a new step, with its own largest skews.
    pub fn begin_step(&mut self) {
        for by_key in self.counts.by_key() {
            by_key.largest.step = by_key.tally.skew();
        }
    }

    /// Ends an instant. Returns the workloads whose counts changed in it.
    pub fn observe(&mut self, server: &Server, frame: &mut Frame) -> BTreeSet<usize> {
        let Self { ground, counts } = self;
        let tables = server.tables();
        let nodes_changed = ground.follow(server, |ground, change| match &change.new {
            Some(Object::Pod(pod)) => counts.set(ground, tables, &mut frame.workloads, pod),
            None => counts.take(ground, &change.key.name),
            Some(_) => {}
        });
        if nodes_changed {
            counts.recount(ground, None);
        }
        counts.read()
    }

    /// A workload's own pods by domain, for each of its keys.
    pub fn now(&self, workload: usize) -> impl Iterator<Item = Now<'_>> {
        self.shown(workload).map(|by_key| {
            let text = |domain| self.ground.text(by_key.column, domain);
            let domains = by_key.tally.existing();
            Now {
                key: &by_key.key,
                domains: domains
                    .map(|domain| (text(domain), by_key.tally.count(domain)))
                    .collect(),
                skew: by_key.tally.skew(),
            }
        })
    }

    /// The keys of a workload, with the largest skews.
    pub fn of(&self, workload: usize) -> impl Iterator<Item = (&str, Largest)> {
        self.shown(workload)
            .map(|by_key| (by_key.key.as_str(), by_key.largest))
    }

    fn shown(&self, workload: usize) -> impl Iterator<Item = &ByKey> {
        let counted = self.counts.workloads.get(workload).into_iter();
        let by_key = counted.flat_map(|counted| &counted.by_key);
        by_key.filter(|by_key| by_key.tally.domains() > 0)
    }
}

impl Counts {
    fn by_key(&mut self) -> impl Iterator<Item = &mut ByKey> {
        self.workloads
            .iter_mut()
            .flat_map(|counted| &mut counted.by_key)
    }

    fn read(&mut self) -> BTreeSet<usize> {
        let touched = std::mem::take(&mut self.touched);
        for &workload in &touched {
            for ByKey { tally, largest, .. } in &mut self.workloads[workload].by_key {
                let skew = tally.skew();
                largest.run = largest.run.max(skew);
                largest.step = largest.step.max(skew);
            }
        }
        touched
    }

    fn set(&mut self, ground: &mut Ground, tables: &Tables, of: &mut Workloads, pod: &Arc<Pod>) {
        let name = &pod.meta.name;
        let Some(node) = pod.node.as_ref().filter(|_| pod.is_active()) else {
            return self.take(ground, name);
        };
        match self.places.get(name) {
            Some(place) if place.node == *node => return,
            _ => self.take(ground, name),
        }
        let Some(workload) = self.workload(tables, of, pod) else {
            return;
        };
        let counted = &mut self.workloads[workload];
        let group = counted.group(ground, pod);
        counted.groups[group].n_pods += 1;
        let is_first = counted.groups[group].n_pods == 1;
        let node = Arc::clone(node);
        self.count(ground, workload, &node, 1);
        let place = Place {
            workload,
            group,
            node,
        };
        self.places.insert(name.clone(), place);
        if is_first {
            self.regroup(ground, workload);
        }
    }

    fn take(&mut self, ground: &mut Ground, name: &Name) {
        let Some(place) = self.places.remove(name) else {
            return;
        };
        self.count(ground, place.workload, &place.node, -1);
        let group = &mut self.workloads[place.workload].groups[place.group];
        group.n_pods -= 1;
        if group.n_pods == 0 {
            self.regroup(ground, place.workload);
        }
    }

    fn count(&mut self, ground: &Ground, workload: usize, node: &str, delta: i32) {
        self.workloads[workload].count(ground, node, delta);
        self.touched.insert(workload);
    }

    /// The first pod of a group has come, or the last one has gone: counts again if other nodes count now.
    fn regroup(&mut self, ground: &mut Ground, workload: usize) {
        if self.workloads[workload].regroup(ground) {
            self.recount(ground, Some(workload));
        }
    }

    /// Other domains may count, for one workload or for all: counts its pods again.
    fn recount(&mut self, ground: &mut Ground, only: Option<usize>) {
        let is_meant = |workload: usize| only.is_none_or(|only| only == workload);
        for (workload, counted) in self.workloads.iter_mut().enumerate() {
            if is_meant(workload) {
                for by_key in &mut counted.by_key {
                    (by_key.column, by_key.tally) = ground.domains(&by_key.rule);
                }
                self.touched.insert(workload);
            }
        }
        for place in self.places.values() {
            if is_meant(place.workload) {
                self.workloads[place.workload].count(ground, &place.node, 1);
            }
        }
    }

    /// The index of a pod's workload; `None` if it does not spread.
    fn workload(&mut self, tables: &Tables, of: &mut Workloads, pod: &Pod) -> Option<usize> {
        let owner = pod.meta.controller()?;
        if &*owner.kind == "DaemonSet" {
            return None;
        }
        if let Some(&known) = self.by_owner.get(&owner.uid) {
            return Some(known);
        }
        let workload = of.of_live(tables, pod);
        let n = self.workloads.len().max(workload + 1);
        self.workloads.resize_with(n, Counted::default);
        self.by_owner.insert(Arc::clone(&owner.uid), workload);
        Some(workload)
    }
}

impl Counted {
    fn count(&mut self, ground: &Ground, node: &str, delta: i32) {
        for by_key in &mut self.by_key {
            if let Some(domain) = ground.domain(by_key.column, node) {
                by_key.tally.add(domain, delta);
            }
        }
    }

    /// The index of a pod's group.
    fn group(&mut self, ground: &mut Ground, pod: &Arc<Pod>) -> usize {
        let mut recent = self.recent.iter();
        // Pods of one template share their spec.
        if let Some((_, group)) = recent.find(|(known, _)| Arc::ptr_eq(&known.spec, &pod.spec)) {
            return *group;
        }
        let keys = ground.keys(pod);
        let group = self.groups.iter().position(|group| group.keys == keys);
        let group = group.unwrap_or_else(|| {
            self.groups.push(Group { keys, n_pods: 0 });
            self.groups.len() - 1
        });
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.push_front((Arc::clone(pod), group));
        group
    }

    /// Finds the nodes that count for the groups with pods; without any, those of the last ones stay. Returns true if
    /// others count now.
    fn regroup(&mut self, ground: &mut Ground) -> bool {
        let mut rules: Vec<(&String, Rule)> = Vec::new();
        let groups = self.groups.iter().filter(|group| group.n_pods > 0);
        for (key, rule) in groups.flat_map(|group| &group.keys) {
            match rules.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => known.add(rule),
                None => rules.push((key, rule.clone())),
            }
        }
        let mut changed = false;
        for (key, rule) in rules {
            match self.by_key.iter_mut().find(|by_key| by_key.key == *key) {
                Some(by_key) => {
                    changed |= by_key.rule != rule;
                    by_key.rule = rule;
                }
                None => {
                    let (column, tally) = ground.domains(&rule);
                    let key = key.clone();
                    self.by_key.push(ByKey {
                        key,
                        rule,
                        column,
                        tally,
                        largest: Largest { run: 0, step: 0 },
                    });
                    changed = true;
                }
            }
        }
        changed
    }
}
