//! The domains of a spread. Of many domains most have no pod of a workload: what all workloads share is kept once.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use strew_model::Symbol;

/// A domain and its pods.
#[derive(Debug, Clone, Copy)]
pub struct Domain {
    /// The value of the topology key.
    pub value: Symbol,
    /// Pods that count in it; without a constraint, the workload's own.
    pub count: i32,
    /// The workload's own pods in it.
    pub own: i32,
    /// The count before the step, if there were pods.
    pub before: Option<i32>,
}

/// Domains in the order of display, each with its pods.
#[derive(Debug, Clone)]
pub struct Domains {
    /// Every domain.
    all: Arc<[Symbol]>,
    /// Those with pods, or that had some, each with its index in `all`, ascending.
    occupied: Vec<(u32, Domain)>,
}

impl Domains {
    /// These domains, which are in the order of display.
    pub(crate) fn new(domains: impl Iterator<Item = Domain>, known: &mut Lists) -> Self {
        let mut all = Vec::new();
        let mut occupied = Vec::new();
        for (index, domain) in (0..).zip(domains) {
            all.push(domain.value);
            if (domain.count, domain.own) != (0, 0) {
                occupied.push((index, domain));
            }
        }
        occupied.shrink_to_fit();
        Self {
            all: known.one(all),
            occupied,
        }
    }

    /// The number of domains.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every domain.
    pub fn iter(&self) -> impl Iterator<Item = Domain> + Clone + '_ {
        let mut occupied = self.occupied.iter().peekable();
        (0..).zip(self.all.iter()).map(move |(index, &value)| {
            let here = occupied.next_if(|(of, _)| *of == index);
            here.map_or(Domain::empty(value), |(_, domain)| *domain)
        })
    }

    /// The domains with pods, or that had some before the step; all others are empty, and were.
    pub fn occupied(&self) -> impl Iterator<Item = Domain> + Clone + '_ {
        self.occupied.iter().map(|(_, domain)| *domain)
    }

    /// Adds what was in each domain before the step. `order` compares a domain with one of those.
    pub(crate) fn compare<'a, T: 'a + ?Sized>(
        &mut self,
        before: impl Iterator<Item = (&'a T, i32)>,
        order: impl Fn(Symbol, &T) -> Ordering,
    ) {
        for (_, domain) in &mut self.occupied {
            domain.before = Some(0);
        }
        for (value, count) in before.filter(|(_, count)| *count != 0) {
            // A domain that is there no longer is not shown.
            let Ok(index) = self.all.binary_search_by(|&domain| order(domain, value)) else {
                continue;
            };
            let found = self
                .occupied
                .binary_search_by_key(&index, |(of, _)| *of as usize);
            let place = found.unwrap_or_else(|place| {
                let domain = Domain::empty(self.all[index]);
                self.occupied.insert(place, (index as u32, domain));
                place
            });
            self.occupied[place].1.before = Some(count);
        }
    }
}

impl Domain {
    fn empty(value: Symbol) -> Self {
        Self {
            value,
            count: 0,
            own: 0,
            before: None,
        }
    }
}

/// Lists of domains, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Lists(HashSet<Arc<[Symbol]>>);

impl Lists {
    fn one(&mut self, list: Vec<Symbol>) -> Arc<[Symbol]> {
        if let Some(known) = self.0.get(list.as_slice()) {
            return Arc::clone(known);
        }
        let list: Arc<[Symbol]> = list.into();
        self.0.insert(Arc::clone(&list));
        list
    }
}

#[cfg(test)]
mod tests {
    use strew_model::RawId;

    use super::*;

    fn symbol(n: usize) -> Symbol {
        Symbol::from(RawId::first(n as u32))
    }

    fn of(counts: &[i32], known: &mut Lists) -> Domains {
        let each = counts.iter().enumerate().map(|(index, &count)| Domain {
            value: symbol(index),
            count,
            own: count,
            before: None,
        });
        Domains::new(each, known)
    }

    #[test]
    fn empty_domains_are_shown_and_not_kept() {
        let mut known = Lists::default();
        let one = of(&[0, 2, 0, 1], &mut known);
        let other = of(&[3, 0, 0, 0], &mut known);
        assert!(Arc::ptr_eq(&one.all, &other.all));
        let counts: Vec<i32> = one.iter().map(|domain| domain.count).collect();
        assert_eq!(counts, [0, 2, 0, 1]);
        assert_eq!(one.occupied().count(), 2);
    }

    #[test]
    fn what_was_there_before_is_told_of_domains_that_are_empty_now() {
        let mut now = of(&[0, 2, 0], &mut Lists::default());
        let before = [(0, 4), (1, 0), (9, 7)].map(|(of, n)| (symbol(of), n));
        let before = before.iter().map(|(value, count)| (value, *count));
        now.compare(before, |domain, value| domain.cmp(value));
        let each: Vec<_> = now.iter().map(|d| (d.count, d.before)).collect();
        assert_eq!(each, [(0, Some(4)), (2, Some(0)), (0, None)]);
    }
}
