//! The order in which replicas are removed so that constraints stay kept.
//!
//! [`order`] returns all replicas, the next one to remove first. After each removal no constraint is broken, wherever
//! some order achieves that and the search finds it within its bound. For replicas with one constraint the result
//! after *each* number of removals is the best that any choice of as many replicas has.
//!
//! Reading order: [`Constraint`] and [`Replica`] (input), [`Breach`] (what is minimized), [`order`], [`breaches`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{DomainIdx, Limit, Tally};

/// The most removals that a search tries. Beyond it the fullest domains go first, unchecked.
const TRIES_MAX: usize = 100_000;

/// A constraint with its counts.
#[derive(Debug, Clone)]
pub struct Constraint {
    /// Its numbers.
    pub limit: Limit,
    /// The replicas per domain, of all owners.
    pub tally: Tally,
    /// True if it is a requirement, false if it is a preference: requirements come first.
    pub is_hard: bool,
}

/// A replica that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// For each constraint the domain in which it is counted; `None` if it is not counted.
    pub domains: Box<[Option<DomainIdx>]>,
    /// Replicas of lower stages are removed before all of higher ones.
    pub stage: u32,
    /// Of replicas that are equally good, the one with the lowest value goes first.
    pub preference: i64,
}

/// How far constraints are from being kept: the sums over all of them of the skew beyond `max_skew`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Breach {
    /// Of the hard ones.
    pub hard: i64,
    /// Of the soft ones.
    pub soft: i64,
}

impl Breach {
    fn of(constraints: &[Constraint]) -> Self {
        let mut breach = Self::default();
        for Constraint {
            limit,
            tally,
            is_hard,
        } in constraints
        {
            let beyond = (limit.skew(tally) - i64::from(limit.max_skew)).max(0);
            match is_hard {
                true => breach.hard += beyond,
                false => breach.soft += beyond,
            }
        }
        breach
    }

    /// True if no constraint is broken.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// True if neither sum is above that of `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.hard <= other.hard && self.soft <= other.soft
    }
}

/// The breach after each removal, in this order of indexes into `replicas`.
pub fn breaches(
    constraints: &[Constraint],
    replicas: &[Replica],
    order: impl IntoIterator<Item = usize>,
) -> Vec<Breach> {
    let mut constraints = constraints.to_vec();
    let after = |index: usize| {
        remove(&mut constraints, &replicas[index].domains);
        Breach::of(&constraints)
    };
    order.into_iter().map(after).collect()
}

/// The indexes of all replicas, the first to remove first.
///
/// Cost: for each removal a look at each distinct combination of domains, and mostly one trial; a search that must go
/// back makes more, up to a bound.
pub fn order(constraints: &[Constraint], replicas: &[Replica]) -> Vec<usize> {
    let mut search = Search::new(constraints, replicas);
    // Preferences may have to give way to requirements.
    for keeps_soft in [true, false] {
        if search.complete(keeps_soft) {
            return search.order();
        }
    }
    search.complete_anyhow();
    search.order()
}

/// Replicas that no constraint tells apart.
struct Group {
    stage: u32,
    domains: Box<[Option<DomainIdx>]>,
    /// The preferences and indexes of its replicas, in the order of their removal.
    members: Vec<(i64, usize)>,
    n_removed: usize,
}

impl Group {
    /// The replica that would be removed next; `None` if all are.
    fn next(&self) -> Option<(i64, usize)> {
        self.members.get(self.n_removed).copied()
    }
}

/// The value of a group whose replica may be removed next: the greatest is tried first. A smaller breach afterwards (0
/// if there is none before), fuller domains, a lower preference.
type Worth = (Reverse<Breach>, [i64; 4], Reverse<Option<(i64, usize)>>);

/// A removal that was decided, and what else could be removed instead.
struct Step {
    group: usize,
    untried: Vec<(Worth, usize)>,
}

struct Search {
    constraints: Vec<Constraint>,
    /// By stage.
    groups: Vec<Group>,
    n_replicas: usize,
    steps: Vec<Step>,
    /// The longest sequence of removals that makes no breach larger.
    longest: Vec<usize>,
    tries_left: usize,
}

fn remove(constraints: &mut [Constraint], domains: &[Option<DomainIdx>]) {
    add(constraints, domains, -1);
}

fn add(constraints: &mut [Constraint], domains: &[Option<DomainIdx>], delta: i32) {
    for (constraint, domain) in constraints.iter_mut().zip(domains) {
        if let Some(domain) = domain {
            constraint.tally.add(*domain, delta);
        }
    }
}

fn take_best(untried: &mut Vec<(Worth, usize)>) -> Option<usize> {
    let best = untried.iter().enumerate().max_by_key(|(_, found)| *found);
    let place = best?.0;
    Some(untried.swap_remove(place).1)
}

impl Search {
    fn new(constraints: &[Constraint], replicas: &[Replica]) -> Self {
        type Key<'a> = (u32, &'a [Option<DomainIdx>]);
        let mut groups: BTreeMap<Key<'_>, Vec<(i64, usize)>> = BTreeMap::new();
        for (index, replica) in replicas.iter().enumerate() {
            let group = groups.entry((replica.stage, &replica.domains));
            group.or_default().push((replica.preference, index));
        }
        let group = |((stage, domains), mut members): (Key<'_>, Vec<_>)| {
            members.sort_unstable();
            Group {
                stage,
                domains: domains.into(),
                members,
                n_removed: 0,
            }
        };
        Self {
            constraints: constraints.to_vec(),
            groups: groups.into_iter().map(group).collect(),
            n_replicas: replicas.len(),
            steps: Vec::new(),
            longest: Vec::new(),
            tries_left: 0,
        }
    }

    /// Removes all replicas so that no removal makes a breach larger. Returns false, with all replicas back, if there
    /// is no such order or the bound is reached.
    fn complete(&mut self, keeps_soft: bool) -> bool {
        self.tries_left = TRIES_MAX;
        let mut in_vain: BTreeSet<u64> = BTreeSet::new();
        let mut before = Breach::of(&self.constraints);
        let mut untried = self.candidates();
        while self.steps.len() < self.n_replicas {
            match self.first_allowed(&mut untried, before, keeps_soft, &in_vain) {
                Some((group, after)) => {
                    self.steps.push(Step { group, untried });
                    (before, untried) = (after, self.candidates());
                }
                None if self.tries_left == 0 => {
                    self.undo_all();
                    return false;
                }
                None => {
                    in_vain.insert(self.state());
                    self.note_longest();
                    let Some(step) = self.steps.pop() else {
                        return false;
                    };
                    self.put_back(step.group);
                    (before, untried) = (Breach::of(&self.constraints), step.untried);
                }
            }
        }
        true
    }

    /// Removes one of the best untried group that makes no breach larger. Returns the group and the breach afterwards.
    fn first_allowed(
        &mut self,
        untried: &mut Vec<(Worth, usize)>,
        before: Breach,
        keeps_soft: bool,
        in_vain: &BTreeSet<u64>,
    ) -> Option<(usize, Breach)> {
        while self.tries_left > 0
            && let Some(group) = take_best(untried)
        {
            self.take(group);
            let after = Breach::of(&self.constraints);
            let is_allowed = match keeps_soft {
                true => after.is_within(before),
                false => after.hard <= before.hard,
            };
            if is_allowed && (in_vain.is_empty() || !in_vain.contains(&self.state())) {
                return Some((group, after));
            }
            self.put_back(group);
        }
        None
    }

    /// Removes what is left after the longest sequence that makes no breach larger: each time what breaks least.
    fn complete_anyhow(&mut self) {
        for group in std::mem::take(&mut self.longest) {
            self.step(group);
        }
        self.tries_left = TRIES_MAX;
        while self.steps.len() < self.n_replicas {
            let Some(group) = take_best(&mut self.candidates()) else {
                return;
            };
            self.step(group);
        }
    }

    fn step(&mut self, group: usize) {
        self.take(group);
        let untried = Vec::new();
        self.steps.push(Step { group, untried });
    }

    /// The groups of the lowest stage that has replicas left.
    fn candidates(&mut self) -> Vec<(Worth, usize)> {
        let all = || self.groups.iter().enumerate();
        let is_open = |group: &Group| group.next().is_some();
        let stage = all().find(|(_, group)| is_open(group));
        let stage = stage.map(|(_, group)| group.stage);
        let here = all().filter(|(_, group)| is_open(group) && Some(group.stage) == stage);
        let here: Vec<usize> = here.map(|(index, _)| index).collect();
        // As long as nothing is broken, the first that breaks nothing is taken, so that most need no trial.
        let tries = !Breach::of(&self.constraints).is_none() && self.tries_left >= here.len();
        let worth = |index: usize| {
            let breach = if tries {
                self.breach_after(index)
            } else {
                Breach::default()
            };
            let group = &self.groups[index];
            let fullness = self.fullness(group);
            ((Reverse(breach), fullness, Reverse(group.next())), index)
        };
        here.into_iter().map(worth).collect()
    }

    fn breach_after(&mut self, group: usize) -> Breach {
        self.take(group);
        let after = Breach::of(&self.constraints);
        self.put_back(group);
        after
    }

    /// How full the domains of a group are, by constraint, the hard ones first. Constraints beyond the fourth do not
    /// decide between domains; their breaches count.
    fn fullness(&self, group: &Group) -> [i64; 4] {
        let mut fullness = [i64::MIN; 4];
        let each = || self.constraints.iter().zip(&group.domains);
        let hard = each().filter(|(constraint, _)| constraint.is_hard);
        let soft = each().filter(|(constraint, _)| !constraint.is_hard);
        for (place, (constraint, domain)) in fullness.iter_mut().zip(hard.chain(soft)) {
            if let Some(domain) = *domain {
                let check = constraint.limit.check(&constraint.tally, domain, false);
                *place = check.skew();
            }
        }
        fullness
    }

    fn take(&mut self, group: usize) {
        self.tries_left = self.tries_left.saturating_sub(1);
        let group = &mut self.groups[group];
        group.n_removed += 1;
        remove(&mut self.constraints, &group.domains);
    }

    fn put_back(&mut self, group: usize) {
        let group = &mut self.groups[group];
        group.n_removed -= 1;
        add(&mut self.constraints, &group.domains, 1);
    }

    fn undo_all(&mut self) {
        self.note_longest();
        while let Some(step) = self.steps.pop() {
            self.put_back(step.group);
        }
    }

    fn note_longest(&mut self) {
        if self.steps.len() > self.longest.len() {
            self.longest = self.steps.iter().map(|step| step.group).collect();
        }
    }

    /// A hash of how many replicas of each group are removed. If two states had the same one, an order might be
    /// missed.
    fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for group in &self.groups {
            group.n_removed.hash(&mut hasher);
        }
        hasher.finish()
    }

    fn order(&self) -> Vec<usize> {
        let mut next = vec![0; self.groups.len()];
        let member = |step: &Step| {
            let place = &mut next[step.group];
            *place += 1;
            self.groups[step.group].members[*place - 1].1
        };
        self.steps.iter().map(member).collect()
    }
}

#[cfg(test)]
mod tests;
