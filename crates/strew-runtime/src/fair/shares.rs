//! A bounded amount, shared between keys.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A part of the amount that a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldingId(u64);

/// The amount is used up, and no holding of a fuller key can be given up for this demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoShare;

/// A new holding, and the holdings that were given up for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken<T> {
    /// The new holding.
    pub id: HoldingId,
    /// What was stored with the holdings that were given up, weakest first.
    pub given_up: Vec<T>,
}

/// A bounded amount that keys hold parts of.
///
/// If it is used up, the key that holds most gives up its weakest holding, as long as it holds more than the demanding
/// key would. Among keys that hold as much as the demanding key would, and in that key itself, only holdings that yield
/// to the demand are given up. So a demand within `amount / number of keys` is never refused.
///
/// Cost of each function: logarithmic in the number of holdings, for each holding that is given up.
#[derive(Debug)]
pub struct Shares<K, R, T> {
    amount: u64,
    of_key_max: u64,
    yields: Yields<R>,
    held: u64,
    next_id: u64,
    holdings: BTreeMap<HoldingId, Holding<K, R, T>>,
    keys: BTreeMap<K, Key<R>>,
    /// The fullest key is last; of several, the one with the weakest holding.
    order: BTreeSet<Fullness<K, R>>,
}

/// True if a holding of the first rank is given up for a demand of the second one, although its key holds no more.
pub type Yields<R> = fn(R, R) -> bool;

/// What a key holds, its weakest holding, and the key.
type Fullness<K, R> = (u64, Reverse<(R, HoldingId)>, K);

#[derive(Debug)]
struct Holding<K, R, T> {
    key: K,
    amount: u64,
    rank: R,
    what: T,
}

#[derive(Debug)]
struct Key<R> {
    held: u64,
    /// The weakest holding is first.
    ranks: BTreeSet<(R, HoldingId)>,
}

impl<K: Ord + Clone, R: Ord + Copy, T> Shares<K, R, T> {
    /// Shares of `amount`, of which no key gets more than `of_key_max`.
    pub fn new(amount: u64, of_key_max: u64, yields: Yields<R>) -> Self {
        Self {
            amount,
            of_key_max,
            yields,
            held: 0,
            next_id: 0,
            holdings: BTreeMap::new(),
            keys: BTreeMap::new(),
            order: BTreeSet::new(),
        }
    }

    /// The amount that all keys hold.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The amount that a key holds.
    pub fn held_by(&self, key: &K) -> u64 {
        self.keys.get(key).map_or(0, |of_key| of_key.held)
    }

    /// Takes a part of the amount. Holdings with smaller ranks are given up first, of equal ranks the oldest.
    ///
    /// # Errors
    /// There is no room. Nothing was given up.
    pub fn take(&mut self, key: &K, amount: u64, rank: R, what: T) -> Result<Taken<T>, NoShare> {
        let given_up = self.make_room(key, amount, rank)?;
        let id = HoldingId(self.next_id);
        self.next_id += 1;
        let holding = Holding {
            key: key.clone(),
            amount,
            rank,
            what,
        };
        self.insert(id, holding);
        Ok(Taken { id, given_up })
    }

    /// Adds to a holding; returns what was given up for it. A holding that was given up stays so.
    ///
    /// # Errors
    /// There is no room; the holding stays as it was.
    pub fn grow(&mut self, id: HoldingId, by: u64) -> Result<Vec<T>, NoShare> {
        // Removed meanwhile, so that it is not given up for itself.
        let Some(mut holding) = self.remove(id) else {
            return Ok(Vec::new());
        };
        let wanted = holding.amount.saturating_add(by);
        let made = self.make_room(&holding.key, wanted, holding.rank);
        if made.is_ok() {
            holding.amount = wanted;
        }
        self.insert(id, holding);
        made
    }

    /// Gives back all of a holding beyond this amount. A holding that was given up stays so.
    pub fn shrink(&mut self, id: HoldingId, to: u64) {
        if let Some(mut holding) = self.remove(id) {
            holding.amount = holding.amount.min(to);
            self.insert(id, holding);
        }
    }

    /// Changes the rank of a holding.
    pub fn set_rank(&mut self, id: HoldingId, rank: R) {
        if let Some(mut holding) = self.remove(id) {
            holding.rank = rank;
            self.insert(id, holding);
        }
    }

    /// Gives a holding back; `None` if it was given up or released before.
    pub fn release(&mut self, id: HoldingId) -> Option<T> {
        self.remove(id).map(|holding| holding.what)
    }

    /// The rank of the holding that a demand of this key would give up first; `None` if none would be.
    pub fn next_given_up(&self, key: &K, amount: u64, rank: R) -> Option<R> {
        if self.fits(key, amount) {
            return None;
        }
        let id = self.weakest_for(key, amount, rank)?;
        Some(self.holdings.get(&id)?.rank)
    }

    fn fits(&self, key: &K, amount: u64) -> bool {
        self.held.saturating_add(amount) <= self.amount
            && self.held_by(key).saturating_add(amount) <= self.of_key_max
    }

    fn make_room(&mut self, key: &K, amount: u64, rank: R) -> Result<Vec<T>, NoShare> {
        let mut removed = Vec::new();
        while !self.fits(key, amount) {
            let weakest = self.weakest_for(key, amount, rank);
            match weakest.and_then(|id| Some((id, self.remove(id)?))) {
                Some(holding) => removed.push(holding),
                None => {
                    for (id, holding) in removed {
                        self.insert(id, holding);
                    }
                    return Err(NoShare);
                }
            }
        }
        Ok(removed.into_iter().map(|(_, of)| of.what).collect())
    }

    /// The holding to give up for this demand.
    fn weakest_for(&self, key: &K, amount: u64, demand: R) -> Option<HoldingId> {
        let wanted = self.held_by(key).saturating_add(amount);
        let own = self.keys.get(key).and_then(|own| own.ranks.first());
        let own = own.filter(|(rank, _)| (self.yields)(*rank, demand));
        if wanted > self.of_key_max {
            return own.map(|&(_, id)| id);
        }
        let (held, Reverse(weakest), _) = self.order.last()?;
        let others = match held.cmp(&wanted) {
            std::cmp::Ordering::Greater => return Some(weakest.1),
            std::cmp::Ordering::Equal => Some(weakest),
            std::cmp::Ordering::Less => None,
        };
        let others = others.filter(|(rank, _)| (self.yields)(*rank, demand));
        own.into_iter().chain(others).min().map(|&(_, id)| id)
    }

    fn insert(&mut self, id: HoldingId, holding: Holding<K, R, T>) {
        let (amount, rank) = (holding.amount, holding.rank);
        self.held += amount;
        self.change(&holding.key.clone(), |of_key| {
            of_key.held += amount;
            of_key.ranks.insert((rank, id));
        });
        self.holdings.insert(id, holding);
    }

    fn remove(&mut self, id: HoldingId) -> Option<Holding<K, R, T>> {
        let holding = self.holdings.remove(&id)?;
        self.held -= holding.amount;
        self.change(&holding.key, |of_key| {
            of_key.held -= holding.amount;
            of_key.ranks.remove(&(holding.rank, id));
        });
        Some(holding)
    }

    /// Changes the state of a key, and its place in the order. A key without holdings is forgotten.
    fn change(&mut self, key: &K, change: impl FnOnce(&mut Key<R>)) {
        let mut of_key = self.keys.remove(key).unwrap_or_else(|| Key {
            held: 0,
            ranks: BTreeSet::new(),
        });
        if let Some(&weakest) = of_key.ranks.first() {
            self.order
                .remove(&(of_key.held, Reverse(weakest), key.clone()));
        }
        change(&mut of_key);
        if let Some(&weakest) = of_key.ranks.first() {
            self.order
                .insert((of_key.held, Reverse(weakest), key.clone()));
            self.keys.insert(key.clone(), of_key);
        }
    }
}

#[cfg(test)]
mod tests {
    use strew_model::Prng;

    use super::*;

    /// Whether a holding is under way, and when it was last used.
    type Rank = (bool, u64);

    fn shares(amount: u64, of_key_max: u64) -> Shares<u64, Rank, u64> {
        Shares::new(amount, of_key_max, |held, _| held < (true, 0))
    }

    #[test]
    fn the_fullest_key_gives_up_its_weakest_holding() {
        let mut shares = shares(4, 4);
        for (at, is_under_way) in [(1, true), (2, false), (3, true), (4, true)] {
            shares.take(&7, 1, (is_under_way, at), at).unwrap();
        }
        for expected in [2, 1] {
            let taken = shares.take(&8, 1, (true, 9), 9).unwrap();
            assert_eq!(taken.given_up, [expected]);
        }
        // Both have two now, and all are under way.
        for key in [7, 8] {
            assert_eq!(shares.take(&key, 1, (true, 9), 9), Err(NoShare));
        }
        let taken = shares.take(&9, 1, (true, 9), 9);
        assert_eq!(taken.unwrap().given_up.len(), 1);
    }

    #[test]
    fn a_key_takes_from_itself_beyond_its_bound() {
        let mut shares = shares(8, 2);
        for at in [1, 2] {
            shares.take(&7, 1, (false, at), at).unwrap();
        }
        assert_eq!(shares.next_given_up(&7, 1, (true, 3)), Some((false, 1)));
        let taken = shares.take(&7, 1, (true, 3), 3).unwrap();
        assert_eq!(taken.given_up, [1]);
        assert_eq!(shares.grow(taken.id, 1), Ok(vec![2]));
        assert_eq!(shares.grow(taken.id, 1), Err(NoShare));
        assert_eq!(shares.take(&7, 1, (false, 4), 4), Err(NoShare));
        shares.shrink(taken.id, 5);
        assert_eq!(shares.held(), 2);
        shares.shrink(taken.id, 1);
        assert_eq!((shares.held(), shares.held_by(&7)), (1, 1));
        assert_eq!(shares.grow(taken.id, 1), Ok(vec![]));
        assert_eq!(shares.release(taken.id), Some(3));
        assert_eq!(shares.release(taken.id), None);
        assert!(shares.take(&7, 1, (false, 4), 4).is_ok());
        assert_eq!((shares.held(), shares.held_by(&7)), (1, 1));
    }

    /// The rule: whatever others do, a demand within a key's share is granted, and nothing of that key is given up for
    /// others.
    #[test]
    fn a_demand_within_its_share_is_never_refused() {
        for seed in 0..300 {
            let mut rng = Prng::new(seed);
            let (amount, n_keys) = (rng.between(8, 200), rng.between(1, 8));
            let of_key_max = rng.between(amount / 4, amount);
            let mut shares = shares(amount, of_key_max);
            let mut ids = Vec::new();
            for step in 0..400 {
                let (key, rank) = (rng.between(1, n_keys), (rng.chance(1, 2), step));
                let wanted = rng.between(1, 1 + amount / 8);
                let before = shares.held_by(&key);
                let share = of_key_max.min(amount / n_keys);
                let is_within = before + wanted <= share;
                let mut demanding = key;
                let held_before: BTreeMap<u64, u64> = shares
                    .keys
                    .iter()
                    .map(|(key, of)| (*key, of.held))
                    .collect();
                let given_up = match rng.between(0, 4) {
                    0 if !ids.is_empty() => {
                        shares.release(ids.swap_remove(rng.index(ids.len())));
                        vec![]
                    }
                    1 if !ids.is_empty() => {
                        shares.set_rank(*rng.pick(&ids), rank);
                        vec![]
                    }
                    2 if !ids.is_empty() => {
                        let id = *rng.pick(&ids);
                        let of = shares.holdings.get(&id).map(|holding| holding.key);
                        let held = of.map(|of| shares.held_by(&of));
                        demanding = of.unwrap_or(key);
                        let grown = shares.grow(id, wanted);
                        let is_within = held.is_some_and(|held| held + wanted <= share);
                        assert!(grown.is_ok() || !is_within, "seed {seed}: {step}");
                        grown.unwrap_or_default()
                    }
                    _ => match shares.take(&key, wanted, rank, key) {
                        Ok(taken) => {
                            ids.push(taken.id);
                            taken.given_up
                        }
                        Err(NoShare) => {
                            assert!(!is_within, "seed {seed}: {step}");
                            assert_eq!(shares.held_by(&key), before, "seed {seed}: {step}");
                            vec![]
                        }
                    },
                };
                // Nothing of a key within its share is given up, unless for a further demand of that key.
                for of in given_up {
                    let had = held_before.get(&of).copied().unwrap_or_default();
                    assert!(of == demanding || had > share, "seed {seed}: {step}");
                }
                audit(&shares, seed);
            }
        }
    }

    /// Counts are those of a recount.
    fn audit(shares: &Shares<u64, Rank, u64>, seed: u64) {
        let mut by_key = BTreeMap::new();
        for holding in shares.holdings.values() {
            *by_key.entry(holding.key).or_insert(0) += holding.amount;
        }
        let held = shares.keys.iter().map(|(key, of_key)| (*key, of_key.held));
        assert_eq!(held.collect::<BTreeMap<_, _>>(), by_key, "seed {seed}");
        assert_eq!(shares.held, by_key.values().sum::<u64>(), "seed {seed}");
        assert!(shares.held <= shares.amount, "seed {seed}");
        assert!(by_key.values().all(|held| *held <= shares.of_key_max));
        assert_eq!(shares.order.len(), by_key.len(), "seed {seed}");
    }
}
