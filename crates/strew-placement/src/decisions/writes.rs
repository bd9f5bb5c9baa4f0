//! The order in which PlacementDecisions are written.
//!
//! A cluster that moves from one object to another must be in at least one of them at every instant; otherwise its
//! consumers remove its workload and create it again (upstream issue 1346). So the object that receives a cluster is
//! written before the object that loses it. If objects exchange clusters in a circle, one of them is first written with
//! both its old and its new clusters. Source: spec/placement §2.9, §2.13.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_model::{Holds, Marks, Symbol};

use super::slices::Slice;
use crate::facts::decision::{Decision, DecisionFact, GroupLabels, Replicas};

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The name of the PlacementDecision.
    pub name: Symbol,
    /// Its kind.
    pub kind: WriteKind,
    /// Its clusters afterwards; `None` if they do not change.
    pub decisions: Option<Box<[Decision]>>,
    /// Its labels afterwards; `None` if they do not change.
    pub group: Option<GroupLabels>,
    /// The replicas of its clusters afterwards; `None` if they do not change.
    pub replicas: Option<Replicas>,
}

/// The kinds of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// The object is created, then filled.
    Create,
    /// Its status is patched, then its labels and its annotation.
    Update,
    /// The object is deleted.
    Delete,
}

/// The writes that turn the `stored` objects into `slices`.
pub fn of(stored: &[&DecisionFact], slices: &[Slice]) -> Vec<Write> {
    in_doubt(stored, slices, &|_| false)
}

/// As [`of`], if the outcome of earlier writes to some objects is unknown. The order does not rely on the stored
/// clusters of such an object before the object is written again.
pub fn in_doubt(
    stored: &[&DecisionFact],
    slices: &[Slice],
    doubtful: &dyn Fn(Symbol) -> bool,
) -> Vec<Write> {
    let mut order = Ordering::new(stored, slices, doubtful);
    let mut writes = Vec::new();
    let mut pending: BTreeSet<usize> = (0..slices.len()).filter(|&i| order.moves(i)).collect();
    let mut united = BTreeSet::new();
    while !pending.is_empty() {
        match pending.iter().copied().find(|&i| order.loses_nobody(i)) {
            Some(i) => {
                pending.remove(&i);
                writes.push(order.write(i, slices[i].decisions.clone()));
            }
            None => {
                // A circle. No object waits for one that already holds all that it receives; if every pending object
                // does, no object waits at all.
                let left = pending.iter().copied().find(|i| !united.contains(i));
                let Some(first) = left else { break };
                united.insert(first);
                let held = order.held[first].clone();
                let gets = slices[first].decisions.iter();
                let gets = gets.filter(|d| !held.iter().any(|h| h.cluster == d.cluster));
                let union = held.iter().chain(gets).copied().collect();
                writes.push(order.write(first, union));
            }
        }
    }
    for (i, slice) in slices.iter().enumerate() {
        let Some(fact) = order.stored[i] else {
            continue;
        };
        let group = Some(labels(slice)).filter(|group| fact.group != *group);
        let replicas = Some(&slice.replicas).filter(|replicas| fact.replicas != **replicas);
        if group.is_none() && replicas.is_none() {
            continue;
        }
        let written = writes.iter_mut().rev().find(|w| w.name == slice.name);
        let replicas = replicas.cloned();
        match written {
            Some(write) => (write.group, write.replicas) = (group, replicas),
            None => writes.push(Write {
                name: slice.name,
                kind: WriteKind::Update,
                decisions: None,
                group,
                replicas,
            }),
        }
    }
    let is_surplus = |fact: &&&DecisionFact| !slices.iter().any(|s| s.name == fact.name);
    writes.extend(stored.iter().filter(is_surplus).map(|fact| Write {
        name: fact.name,
        kind: WriteKind::Delete,
        decisions: None,
        group: None,
        replicas: None,
    }));
    writes
}

/// The labels of a slice.
fn labels(slice: &Slice) -> GroupLabels {
    GroupLabels {
        index: Some(slice.group),
        name: Some(slice.group_name),
    }
}

/// The clusters of each object while writes are being ordered.
struct Ordering<'a> {
    slices: &'a [Slice],
    /// By slice: the stored object; `None` if it does not exist.
    stored: Vec<Option<&'a DecisionFact>>,
    /// By slice: its clusters after the writes so far.
    held: Vec<Vec<Decision>>,
    exists: Vec<bool>,
    /// By slice: true if its stored clusters are certain. Uncertain ones do not count in `holders`.
    is_sure: Vec<bool>,
    /// The number of objects that hold each cluster.
    holders: FxHashMap<Symbol, u32>,
    /// The selected clusters.
    kept: FxHashSet<Symbol>,
}

impl<'a> Ordering<'a> {
    fn new(
        stored: &[&'a DecisionFact],
        slices: &'a [Slice],
        doubtful: &dyn Fn(Symbol) -> bool,
    ) -> Self {
        let by_name: FxHashMap<Symbol, &DecisionFact> =
            stored.iter().map(|&f| (f.name, f)).collect();
        let of_slice: Vec<_> = slices
            .iter()
            .map(|s| by_name.get(&s.name).copied())
            .collect();
        let mut holders = FxHashMap::default();
        for fact in stored.iter().filter(|fact| !doubtful(fact.name)) {
            count(&mut holders, &fact.decisions, true);
        }
        let held = |fact: &Option<&DecisionFact>| fact.map_or(Vec::new(), |f| f.decisions.to_vec());
        let selected = slices.iter().flat_map(|s| &s.decisions);
        Self {
            slices,
            held: of_slice.iter().map(held).collect(),
            exists: of_slice.iter().map(Option::is_some).collect(),
            is_sure: slices.iter().map(|s| !doubtful(s.name)).collect(),
            stored: of_slice,
            holders,
            kept: selected.map(|d| d.cluster).collect(),
        }
    }

    /// True if a slice's object must be created, or holds other clusters, or its clusters are uncertain.
    fn moves(&self, i: usize) -> bool {
        let has_reason = self.stored[i].is_some_and(|fact| fact.has_reason);
        !self.exists[i]
            || !self.is_sure[i]
            || has_reason
            || self.held[i] != self.slices[i].decisions
    }

    /// True if every selected cluster that leaves a slice's object is in another object.
    fn loses_nobody(&self, i: usize) -> bool {
        let stays: FxHashSet<Symbol> = self.slices[i].decisions.iter().map(|d| d.cluster).collect();
        let mut leaving = self.held[i].iter().filter(|d| !stays.contains(&d.cluster));
        let others = |cluster| {
            let holders = self.holders.get(cluster).copied().unwrap_or(0);
            holders > u32::from(self.is_sure[i])
        };
        leaving.all(|d| !self.kept.contains(&d.cluster) || others(&d.cluster))
    }

    fn write(&mut self, i: usize, decisions: Vec<Decision>) -> Write {
        if std::mem::replace(&mut self.is_sure[i], true) {
            count(&mut self.holders, &self.held[i], false);
        }
        count(&mut self.holders, &decisions, true);
        self.held[i].clone_from(&decisions);
        let new = !std::mem::replace(&mut self.exists[i], true);
        Write {
            name: self.slices[i].name,
            kind: if new {
                WriteKind::Create
            } else {
                WriteKind::Update
            },
            decisions: (!new || !decisions.is_empty()).then(|| decisions.into()),
            group: new.then(|| labels(&self.slices[i])),
            replicas: Some(&self.slices[i].replicas)
                .filter(|replicas| new && **replicas != Replicas::Absent)
                .cloned(),
        }
    }
}

/// Adds or subtracts the clusters of one object, each once.
fn count(holders: &mut FxHashMap<Symbol, u32>, decisions: &[Decision], come: bool) {
    let clusters: BTreeSet<Symbol> = decisions.iter().map(|d| d.cluster).collect();
    for cluster in clusters {
        let holders = holders.entry(cluster).or_default();
        *holders = if come { *holders + 1 } else { *holders - 1 };
    }
}

/// True if the objects hold the right clusters in the right groups with the right replicas, and only scores, or the
/// order by score, differ.
pub(crate) fn differ_in_scores_only(stored: &[&DecisionFact], slices: &[Slice]) -> bool {
    type Members = BTreeSet<(GroupLabels, Symbol)>;
    let in_group = |group: GroupLabels| move |d: &Decision| (group, d.cluster);
    let is: Members = stored
        .iter()
        .flat_map(|fact| fact.decisions.iter().map(in_group(fact.group)))
        .collect();
    let wanted: Members = slices
        .iter()
        .flat_map(|slice| slice.decisions.iter().map(in_group(labels(slice))))
        .collect();
    let named = |fact: &&DecisionFact| {
        slices
            .iter()
            .any(|s| s.name == fact.name && labels(s) == fact.group && s.replicas == fact.replicas)
    };
    is == wanted && stored.len() == slices.len() && stored.iter().all(named)
}

impl Holds for Write {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            name,
            kind: _,
            decisions,
            group,
            replicas,
        } = self;
        name.mark(marks);
        decisions.mark(marks);
        group.mark(marks);
        replicas.mark(marks);
    }
}
