//! The largest skews during a run: of a workload's own pods, by the keys of its constraints, by zone and by node.
//!
//! Nothing is recounted while nodes stay the same: each write moves one pod. A pod counts while it is on a node and
//! does not terminate; skews are read at the end of an instant, as an observer of the API server would.

use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    counted: Vec<Vec<Counted>>,
    by_owner: HashMap<Arc<str>, usize>,
    /// Where each pod is counted.
    places: BTreeMap<Name, (usize, Arc<str>)>,
    /// The workloads whose counts have changed in this instant.
    touched: BTreeSet<usize>,
}

/// A key, and the pods by domain.
struct Counted {
    key: String,
    rule: Rule,
    column: KeyId,
    tally: Tally,
    largest: Largest,
}

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
        for counted in self.counts.counted.iter_mut().flatten() {
            counted.largest.step = counted.tally.skew();
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
            counts.recount(ground);
        }
        counts.read()
    }

    /// A workload's own pods by domain, for each of its keys.
    pub fn now(&self, workload: usize) -> impl Iterator<Item = Now<'_>> {
        let counted = self.counts.counted.get(workload).into_iter().flatten();
        let counted = counted.filter(|counted| counted.tally.domains() > 0);
        counted.map(|counted| {
            let text = |domain| self.ground.text(counted.column, domain);
            let domains = counted.tally.existing();
            Now {
                key: &counted.key,
                domains: domains
                    .map(|domain| (text(domain), counted.tally.count(domain)))
                    .collect(),
                skew: counted.tally.skew(),
            }
        })
    }

    /// The keys of a workload, with the largest skews.
    pub fn of(&self, workload: usize) -> impl Iterator<Item = (&str, Largest)> {
        let counted = self.counts.counted.get(workload).into_iter().flatten();
        let counted = counted.filter(|counted| counted.tally.domains() > 0);
        counted.map(|counted| (counted.key.as_str(), counted.largest))
    }
}

impl Counts {
    fn read(&mut self) -> BTreeSet<usize> {
        let touched = std::mem::take(&mut self.touched);
        for &workload in &touched {
            for Counted { tally, largest, .. } in &mut self.counted[workload] {
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
            Some((_, known)) if known == node => return,
            _ => self.take(ground, name),
        }
        let Some(workload) = self.workload(ground, tables, of, pod) else {
            return;
        };
        self.count(ground, workload, node, 1);
        let place = (workload, Arc::clone(node));
        self.places.insert(name.clone(), place);
    }

    fn take(&mut self, ground: &Ground, name: &Name) {
        if let Some((workload, node)) = self.places.remove(name) {
            self.count(ground, workload, &node, -1);
        }
    }

    fn count(&mut self, ground: &Ground, workload: usize, node: &str, delta: i32) {
        for counted in &mut self.counted[workload] {
            if let Some(domain) = ground.domain(counted.column, node) {
                counted.tally.add(domain, delta);
            }
        }
        self.touched.insert(workload);
    }

    /// Other domains may count: counts everything again.
    fn recount(&mut self, ground: &mut Ground) {
        for (workload, all) in self.counted.iter_mut().enumerate() {
            for counted in all {
                (counted.column, counted.tally) = ground.domains(&counted.rule);
            }
            self.touched.insert(workload);
        }
        for (workload, node) in self.places.values() {
            for counted in &mut self.counted[*workload] {
                if let Some(domain) = ground.domain(counted.column, node) {
                    counted.tally.add(domain, 1);
                }
            }
        }
    }

    /// The index of a pod's workload, prepared for counting; `None` if it does not spread.
    fn workload(
        &mut self,
        ground: &mut Ground,
        tables: &Tables,
        of: &mut Workloads,
        pod: &Pod,
    ) -> Option<usize> {
        let owner = pod.meta.controller()?;
        if &*owner.kind == "DaemonSet" {
            return None;
        }
        if let Some(&known) = self.by_owner.get(&owner.uid) {
            return Some(known);
        }
        let workload = of.of_live(tables, pod);
        let n = self.counted.len().max(workload + 1);
        self.counted.resize_with(n, Vec::new);
        if self.counted[workload].is_empty() {
            let keys = ground.keys(pod).into_iter();
            let counted = keys.map(|(key, rule)| {
                let (column, tally) = ground.domains(&rule);
                let largest = Largest { run: 0, step: 0 };
                Counted {
                    key,
                    rule,
                    column,
                    tally,
                    largest,
                }
            });
            self.counted[workload] = counted.collect();
        }
        self.by_owner.insert(Arc::clone(&owner.uid), workload);
        Some(workload)
    }
}
