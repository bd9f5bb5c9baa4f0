//! Who holds which clusters: the PlacementDecisions, and how often each cluster is named.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use strew_model::Symbol;

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
    /// How often each cluster is named.
    counts: IndexMap<Symbol, u32, FxBuildHasher>,
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
    pub fn others(&self, owner: Owner) -> Others<'_> {
        let mut own: FxHashMap<Symbol, u32> = FxHashMap::default();
        for &cluster in self.counted.get(&owner).into_iter().flatten() {
            *own.entry(cluster).or_default() += 1;
        }
        let mut others = Others {
            ledger: self,
            own,
            max: 0,
        };
        others.max = self
            .counts
            .keys()
            .map(|&c| others.count(c))
            .max()
            .unwrap_or(0);
        others
    }

    fn disown(&mut self, owner: Owner, name: Symbol) {
        if let Some(owned) = self.by_owner.get_mut(&owner) {
            owned.retain(|&n| n != name);
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
        for &cluster in &now {
            *self.counts.entry(cluster).or_default() += 1;
        }
        for cluster in self.counted.insert(owner, now).into_iter().flatten() {
            let count = self.counts.get_mut(&cluster);
            *count.expect("what was counted in is counted out") -= 1;
        }
    }
}

/// The decisions of all but one owner.
#[derive(Debug)]
pub struct Others<'a> {
    ledger: &'a Ledger,
    own: FxHashMap<Symbol, u32>,
    /// The largest number of decisions that name one cluster, candidate or not.
    pub max: u32,
}

impl Others<'_> {
    /// How many decisions name a cluster.
    pub fn count(&self, cluster: Symbol) -> u32 {
        let all = self.ledger.counts.get(&cluster).copied().unwrap_or(0);
        match self.own.is_empty() {
            true => all,
            false => all - self.own.get(&cluster).copied().unwrap_or(0).min(all),
        }
    }
}
