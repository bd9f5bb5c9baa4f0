//! The PlacementDecisions of the hub, and the number of decisions that name each cluster.

use rustc_hash::FxHashMap;
use strew_model::{Holds, Marks, Symbol};

use crate::facts::decision::DecisionFact;

/// The owner of a decision: its namespace, and the placement that its label names.
pub type Owner = (Symbol, Option<Symbol>);

/// All PlacementDecisions of the hub.
///
/// While a placement's writes are under way, all of them count as done: the next placement must not be decided on
/// counts that are about to change.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    objects: FxHashMap<(Symbol, Symbol), DecisionFact>,
    by_owner: FxHashMap<Owner, Vec<Symbol>>,
    /// The clusters that count for each owner.
    counted: FxHashMap<Owner, Vec<Symbol>>,
    /// The clusters that owners will hold after their writes.
    intended: FxHashMap<Owner, Vec<Symbol>>,
    /// By the row of a cluster's name: the number of decisions that name it. 0 if the name was dropped.
    counts: Vec<u32>,
}

impl Ledger {
    /// Sets a PlacementDecision. Returns the previous one.
    pub fn set(&mut self, fact: DecisionFact) -> Option<DecisionFact> {
        let (key, owner) = (
            (fact.namespace, fact.name),
            (fact.namespace, fact.placement),
        );
        let before = self.objects.insert(key, fact);
        if let Some(old) = &before
            && old.placement != owner.1
        {
            self.disown((old.namespace, old.placement), old.name);
        }
        let owned = self.by_owner.entry(owner).or_default();
        if !owned.contains(&key.1) {
            owned.push(key.1);
        }
        self.recount(owner);
        before
    }

    /// Removes a PlacementDecision. Returns it.
    pub fn remove(&mut self, namespace: Symbol, name: Symbol) -> Option<DecisionFact> {
        let old = self.objects.remove(&(namespace, name))?;
        self.disown((namespace, old.placement), name);
        Some(old)
    }

    /// The PlacementDecision of this name.
    pub fn get(&self, namespace: Symbol, name: Symbol) -> Option<&DecisionFact> {
        self.objects.get(&(namespace, name))
    }

    /// The PlacementDecisions labelled with this placement.
    pub fn of(&self, namespace: Symbol, placement: Symbol) -> impl Iterator<Item = &DecisionFact> {
        let names = self.by_owner.get(&(namespace, Some(placement)));
        let names = names.into_iter().flatten();
        names.filter_map(move |&name| self.objects.get(&(namespace, name)))
    }

    /// Sets the clusters that a placement will hold after its writes; `None` when the writes are done or were given up.
    pub fn intend(&mut self, owner: Owner, clusters: Option<Vec<Symbol>>) {
        match clusters {
            Some(clusters) => self.intended.insert(owner, clusters),
            None => self.intended.remove(&owner),
        };
        self.recount(owner);
    }

    /// The number of decisions of owners other than `owner` that name each cluster, and the largest of these numbers.
    pub fn others(&self, owner: Owner) -> Others {
        let mut counts = self.counts.clone();
        for cluster in self.counted.get(&owner).into_iter().flatten() {
            counts[cluster.index()] -= 1;
        }
        let max = counts.iter().copied().max().unwrap_or(0);
        Others { counts, max }
    }

    fn disown(&mut self, owner: Owner, name: Symbol) {
        if let Some(owned) = self.by_owner.get_mut(&owner) {
            owned.retain(|&n| n != name);
            if owned.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        self.recount(owner);
    }

    fn recount(&mut self, owner: Owner) {
        let now = match self.intended.get(&owner) {
            Some(intended) => intended.clone(),
            None => {
                let names = self.by_owner.get(&owner).into_iter().flatten();
                let objects = names.filter_map(|&name| self.objects.get(&(owner.0, name)));
                let named = objects.flat_map(|object| object.decisions.iter());
                named.map(|decision| decision.cluster).collect()
            }
        };
        for cluster in &now {
            let place = cluster.index();
            if self.counts.len() <= place {
                self.counts.resize(place + 1, 0);
            }
            self.counts[place] += 1;
        }
        let before = match now.is_empty() {
            true => self.counted.remove(&owner),
            false => self.counted.insert(owner, now),
        };
        for cluster in before.into_iter().flatten() {
            self.counts[cluster.index()] -= 1;
        }
    }
}

/// The decisions of all owners but one.
#[derive(Debug)]
pub struct Others {
    /// By the index of a cluster's name. Copying some thousands of numbers is cheaper than looking up each.
    counts: Vec<u32>,
    /// The largest number of decisions that name one cluster, whether the cluster is a candidate or not.
    pub max: u32,
}

impl Others {
    /// The number of decisions that name a cluster.
    pub fn count(&self, cluster: Symbol) -> u32 {
        self.counts.get(cluster.index()).copied().unwrap_or(0)
    }
}

impl Holds for Ledger {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        self.objects.values().for_each(|fact| fact.mark(marks));
        for ((namespace, placement), clusters) in self.counted.iter().chain(&self.intended) {
            namespace.mark(marks);
            placement.mark(marks);
            clusters.as_slice().mark(marks);
        }
        for ((namespace, placement), names) in &self.by_owner {
            namespace.mark(marks);
            placement.mark(marks);
            names.as_slice().mark(marks);
        }
    }
}
