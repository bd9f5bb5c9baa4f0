//! Who holds which clusters: the PlacementDecisions, and how often each cluster is named.

use rustc_hash::FxHashMap;
use strew_model::{Holds, Marks, Symbol};

use crate::facts::decision::DecisionFact;

/// Whose a decision is: its namespace and the placement that it is labelled with.
pub type Owner = (Symbol, Option<Symbol>);

/// All PlacementDecisions of the hub.
///
/// Those of a placement whose writes are under way count as if all were written: the next placement must not be decided
/// on counts that are about to change.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    objects: FxHashMap<(Symbol, Symbol), DecisionFact>,
    by_owner: FxHashMap<Owner, Vec<Symbol>>,
    /// The clusters that each owner counts for.
    counted: FxHashMap<Owner, Vec<Symbol>>,
    /// What owners are about to hold.
    intended: FxHashMap<Owner, Vec<Symbol>>,
    /// By the row of a cluster's name: how often it is named. 0 where the name was dropped: nothing that is counted holds
    /// it.
    counts: Vec<u32>,
}

impl Ledger {
    /// A PlacementDecision is there, and like this. Returns what it was before.
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

    /// A PlacementDecision is gone. Returns what it was.
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

    /// A placement is about to hold these clusters; `None`: its writes are done, or given up.
    pub fn intend(&mut self, owner: Owner, clusters: Option<Vec<Symbol>>) {
        match clusters {
            Some(clusters) => self.intended.insert(owner, clusters),
            None => self.intended.remove(&owner),
        };
        self.recount(owner);
    }

    /// How often each cluster is named by others than `owner`, and the largest of these numbers.
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

/// The decisions of all but one owner.
#[derive(Debug)]
pub struct Others {
    /// By the index of a cluster's name. A copy of some thousands of numbers costs less than to look each of them up.
    counts: Vec<u32>,
    /// The largest number of decisions that name one cluster, candidate or not.
    pub max: u32,
}

impl Others {
    /// How many decisions name a cluster.
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
