//! The largest skews during a run: of a workload's own pods, by the keys of its constraints, by zone and by node.
//!
//! Nothing is recounted: each write moves one pod, or one node with the pods that are on it. A pod counts while it is on
//! a node and does not terminate; skews are read at the end of an instant, as an observer of the API server would.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Kind, Name, Object, Pod};
use strew_apiserver::server::{Change, Server};
use strew_cluster::KeyId;
use strew_spread::{Sparse, Tally};

use crate::ground::{Ground, Rule, Stand, moves_node};
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
    /// Each rule that a key of a workload has or had.
    rules: Vec<Followed>,
    /// Where each pod is counted.
    places: HashMap<Name, Place>,
    /// The counted pods of each workload on each node.
    on_nodes: HashMap<Arc<str>, BTreeMap<usize, i32>>,
    /// The workloads whose counts have changed in this instant.
    touched: BTreeSet<usize>,
}

/// A rule, followed for all workloads that have it.
struct Followed {
    rule: Rule,
    column: KeyId,
    /// Its domains, without pods.
    empty: Tally,
    /// Workloads, each with the index of the key.
    users: Vec<(usize, usize)>,
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
    /// The index of the rule that says which nodes count for one of the groups.
    rule: usize,
    counts: Sparse,
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
        let Counts {
            workloads, rules, ..
        } = &mut self.counts;
        for by_key in workloads.iter_mut().flat_map(|counted| &mut counted.by_key) {
            by_key.largest.step = by_key.skew(rules);
        }
    }

    /// Ends an instant. Returns the workloads whose counts changed in it.
    pub fn observe(&mut self, server: &Server, frame: &mut Frame) -> BTreeSet<usize> {
        let Self { ground, counts } = self;
        let tables = server.tables();
        while let Some(change) = ground.next(server) {
            match &change.new {
                _ if change.is_of(&Kind::Node) => counts.node(ground, change),
                Some(Object::Pod(pod)) => {
                    ground.take_in(change);
                    counts.set(ground, tables, &mut frame.workloads, pod);
                }
                None if change.is_of(&Kind::Pod) => counts.take(ground, &change.key.name),
                _ => ground.take_in(change),
            }
        }
        counts.read()
    }

    /// A workload's own pods by domain, for each of its keys.
    pub fn now(&self, workload: usize) -> impl Iterator<Item = Now<'_>> {
        self.shown(workload).map(|by_key| {
            let Followed { column, empty, .. } = &self.counts.rules[by_key.rule];
            let text = |domain| self.ground.text(*column, domain);
            let domains = empty.existing();
            Now {
                key: &by_key.key,
                domains: domains
                    .map(|domain| (text(domain), by_key.counts.count(domain)))
                    .collect(),
                skew: by_key.counts.skew(empty),
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
        by_key.filter(|by_key| self.counts.rules[by_key.rule].empty.domains() > 0)
    }
}

impl Counts {
    fn read(&mut self) -> BTreeSet<usize> {
        let touched = std::mem::take(&mut self.touched);
        for &workload in &touched {
            for by_key in &mut self.workloads[workload].by_key {
                let skew = by_key.skew(&self.rules);
                let largest = &mut by_key.largest;
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
        if counted.groups[group].n_pods == 1 {
            self.regroup(ground, workload);
        }
        self.count(ground, workload, node, 1);
        let place = Place {
            workload,
            group,
            node: Arc::clone(node),
        };
        self.places.insert(name.clone(), place);
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

    fn count(&mut self, ground: &Ground, workload: usize, node: &Arc<str>, delta: i32) {
        self.workloads[workload].count(ground, &self.rules, node, delta);
        self.touched.insert(workload);
        let here = self.on_nodes.entry(Arc::clone(node)).or_default();
        let n = here.entry(workload).or_default();
        *n += delta;
        if *n == 0 {
            here.remove(&workload);
        }
        if here.is_empty() {
            self.on_nodes.remove(node);
        }
    }

    /// Takes in a change of a node: where it stands elsewhere, the pods on it do as well.
    fn node(&mut self, ground: &mut Ground, change: &Change) {
        let node = &change.key.name.name;
        let stands = |ground: &Ground, rules: &[Followed]| -> Vec<Stand> {
            let rules = rules.iter();
            rules
                .map(|followed| ground.stand(&followed.rule, followed.column, node))
                .collect()
        };
        if !moves_node(change) {
            return;
        }
        let before = stands(ground, &self.rules);
        ground.take_in(change);
        let after = stands(ground, &self.rules);
        let pods = self.on_nodes.get(node);
        let n_pods = |workload| pods.and_then(|pods| pods.get(&workload)).copied();
        for ((followed, before), after) in self.rules.iter_mut().zip(before).zip(after) {
            if before == after {
                continue;
            }
            let Followed { empty, users, .. } = followed;
            let is_elsewhere = before.place != after.place;
            let places = [before.place, after.place].map(|place| place.filter(|_| is_elsewhere));
            let places = || places.into_iter().flatten();
            for &(workload, key) in &*users {
                let counts = &mut self.workloads[workload].by_key[key].counts;
                places().for_each(|place| counts.leave(empty, place));
            }
            if is_elsewhere && let Some(place) = before.place {
                empty.remove_place(place);
            }
            if is_elsewhere && let Some(place) = after.place {
                empty.add_place(place);
            }
            for &(workload, key) in &*users {
                let n_pods = n_pods(workload).unwrap_or(0);
                let counts = &mut self.workloads[workload].by_key[key].counts;
                places().for_each(|place| counts.enter(empty, place));
                if let Some(domain) = before.domain {
                    counts.add(empty, domain, -n_pods);
                }
                if let Some(domain) = after.domain {
                    counts.add(empty, domain, n_pods);
                }
                if is_elsewhere || n_pods > 0 {
                    self.touched.insert(workload);
                }
            }
        }
    }

    /// The first pod of a group has come, or the last one has gone: counts again if other nodes count now.
    fn regroup(&mut self, ground: &mut Ground, workload: usize) {
        let changed = self.workloads[workload].changed(&self.rules);
        if changed.is_empty() {
            return;
        }
        let mut anew = Vec::new();
        for (key, rule) in changed {
            let index = self.follow(ground, rule);
            let by_key = &mut self.workloads[workload].by_key;
            let place = by_key.iter().position(|by_key| by_key.key == key);
            let place = place.unwrap_or(by_key.len());
            match by_key.get_mut(place) {
                Some(by_key) => {
                    let old = std::mem::replace(&mut by_key.rule, index);
                    by_key.counts = Sparse::default();
                    let users = &mut self.rules[old].users;
                    users.retain(|user| *user != (workload, place));
                }
                None => by_key.push(ByKey {
                    key,
                    rule: index,
                    counts: Sparse::default(),
                    largest: Largest { run: 0, step: 0 },
                }),
            }
            self.rules[index].users.push((workload, place));
            anew.push(place);
        }
        let counted = &mut self.workloads[workload];
        if counted.groups.iter().any(|group| group.n_pods > 0) {
            let own = self.places.values();
            for place in own.filter(|place| place.workload == workload) {
                for &key in &anew {
                    counted.by_key[key].count(ground, &self.rules, &place.node, 1);
                }
            }
        }
        self.touched.insert(workload);
    }

    /// The index of a rule.
    fn follow(&mut self, ground: &mut Ground, rule: Rule) -> usize {
        let known = self.rules.iter().position(|known| known.rule == rule);
        known.unwrap_or_else(|| {
            let (column, empty) = ground.domains(&rule);
            self.rules.push(Followed {
                rule,
                column,
                empty,
                users: Vec::new(),
            });
            self.rules.len() - 1
        })
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

impl ByKey {
    fn count(&mut self, ground: &Ground, rules: &[Followed], node: &str, delta: i32) {
        let Followed { column, empty, .. } = &rules[self.rule];
        if let Some(domain) = ground.domain(*column, node) {
            self.counts.add(empty, domain, delta);
        }
    }

    fn skew(&self, rules: &[Followed]) -> i32 {
        self.counts.skew(&rules[self.rule].empty)
    }
}

impl Counted {
    fn count(&mut self, ground: &Ground, rules: &[Followed], node: &str, delta: i32) {
        for by_key in &mut self.by_key {
            by_key.count(ground, rules, node, delta);
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

    /// The keys for which other nodes count now than before, each with its new rule: that of the groups with pods.
    /// Without any, those of the last ones stay.
    fn changed(&self, followed: &[Followed]) -> Vec<(String, Rule)> {
        let mut rules: Vec<(String, Rule)> = Vec::new();
        let groups = self.groups.iter().filter(|group| group.n_pods > 0);
        for (key, rule) in groups.flat_map(|group| &group.keys) {
            match rules.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => known.add(rule),
                None => rules.push((key.clone(), rule.clone())),
            }
        }
        rules.retain(|(key, rule)| {
            let known = self.by_key.iter().find(|by_key| by_key.key == *key);
            known.is_none_or(|known| followed[known.rule].rule != *rule)
        });
        rules
    }
}

#[cfg(test)]
mod tests;
