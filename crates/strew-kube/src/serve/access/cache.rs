//! Caches answers for a short time, so that a probe per second does not cause a review per second.
//!
//! The peer that asked first holds an answer. If the cache is full, the peer with most answers loses one: a refusal
//! rather than a permission, and the newest of the namespace with most. So forged names push out neither answers of
//! other peers, nor older ones of their own namespace, nor those of other namespaces, also where a client has the
//! address of an API server; nor, if they are refused, a permission.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strew_runtime::fair::{HoldingId, Shares};
use tokio::time::Instant;

/// The key of an answer: a digest with keys that only this process knows, so that no secret is stored.
pub(super) type Digest = (u64, u64);

/// Whether an answer is a permission, how many such answers of its namespace came before, and its number.
type Rank = (bool, Reverse<usize>, u64);

/// A peer, and the namespace that it asks about; empty: none.
type Tenant<'a> = (IpAddr, &'a str);

/// The answers that are counted together: of a tenant, permissions and refusals apart.
type Group = (IpAddr, Box<str>, bool);

/// A bounded number of answers, each kept for a short time.
pub(super) struct Cache<Y, N> {
    keys: [RandomState; 2],
    lifetime: Duration,
    entries: Mutex<Entries<Y, N>>,
}

struct Entries<Y, N> {
    by_digest: BTreeMap<Digest, Entry<Y, N>>,
    shares: Shares<IpAddr, Rank, Digest>,
    /// By number, which is the order in which they expire.
    in_order: BTreeMap<u64, Digest>,
    n_of_group: BTreeMap<Group, usize>,
    n_put: u64,
}

struct Entry<Y, N> {
    number: u64,
    group: Group,
    until: Instant,
    answer: Result<Y, N>,
    holding: HoldingId,
}

impl<Y: Clone, N: Clone> Cache<Y, N> {
    pub(super) fn new(lifetime: Duration, len_max: usize) -> Self {
        let len_max = len_max as u64;
        Self {
            keys: [RandomState::new(), RandomState::new()],
            lifetime,
            entries: Mutex::new(Entries {
                by_digest: BTreeMap::new(),
                shares: Shares::new(len_max, len_max, |held, demand| held < demand),
                in_order: BTreeMap::new(),
                n_of_group: BTreeMap::new(),
                n_put: 0,
            }),
        }
    }

    /// The digest of a question.
    pub(super) fn digest(&self, question: &impl Hash) -> Digest {
        let [a, b] = &self.keys;
        (a.hash_one(question), b.hash_one(question))
    }

    fn entries(&self) -> MutexGuard<'_, Entries<Y, N>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer, if it was given recently.
    pub(super) fn get(&self, digest: Digest) -> Option<Result<Y, N>> {
        let mut entries = self.entries();
        let entry = entries.by_digest.get(&digest)?;
        if Instant::now() < entry.until {
            return Some(entry.answer.clone());
        }
        entries.remove(digest);
        None
    }

    /// Keeps an answer to a question of this peer, unless all that could make room for it are worth more.
    pub(super) fn put(&self, tenant: Tenant<'_>, digest: Digest, answer: Result<Y, N>) {
        let mut entries = self.entries();
        entries.remove(digest);
        entries.remove_expired();
        let peer = tenant.0;
        let group = (peer, tenant.1.into(), answer.is_ok());
        let n_before = entries.n_of_group.get(&group).copied();
        let number = entries.n_put;
        let rank = (answer.is_ok(), Reverse(n_before.unwrap_or(0)), number);
        entries.n_put += 1;
        let goes = entries.shares.next_given_up(&peer, 1, rank);
        if goes.is_some_and(|(is_permission, ..)| is_permission && answer.is_err()) {
            return;
        }
        let Ok(taken) = entries.shares.take(&peer, 1, rank, digest) else {
            return;
        };
        for digest in taken.given_up {
            entries.remove(digest);
        }
        *entries.n_of_group.entry(group.clone()).or_default() += 1;
        entries.in_order.insert(number, digest);
        let entry = Entry {
            number,
            group,
            until: Instant::now() + self.lifetime,
            answer,
            holding: taken.id,
        };
        entries.by_digest.insert(digest, entry);
    }
}

impl<Y, N> Entries<Y, N> {
    fn remove(&mut self, digest: Digest) {
        let Some(entry) = self.by_digest.remove(&digest) else {
            return;
        };
        self.shares.release(entry.holding);
        self.in_order.remove(&entry.number);
        if let Some(n) = self.n_of_group.get_mut(&entry.group) {
            *n -= 1;
            if *n == 0 {
                self.n_of_group.remove(&entry.group);
            }
        }
    }

    fn remove_expired(&mut self) {
        let now = Instant::now();
        while let Some((_, &digest)) = self.in_order.first_key_value()
            && self.by_digest.get(&digest).is_none_or(|e| e.until <= now)
        {
            self.in_order.pop_first();
            self.remove(digest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const API_SERVER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

    #[tokio::test(start_paused = true)]
    async fn answers_are_few_and_short_lived() {
        let cache = Cache::new(Duration::from_secs(10), 2);
        let [a, b, c] = ["a", "b", "c"].map(|question| cache.digest(&question));
        let put = |digest, answer| cache.put((API_SERVER, ""), digest, Ok::<_, ()>(answer));
        put(a, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        put(b, 2);
        put(c, 3);
        let found = [a, b, c].map(|digest| cache.get(digest));
        assert_eq!(found, [Some(Ok(1)), Some(Ok(2)), None]);
        // What has expired makes room, although nothing asks for it.
        tokio::time::advance(Duration::from_secs(9)).await;
        put(c, 3);
        let found = [a, b, c].map(|digest| cache.get(digest));
        assert_eq!(found, [None, Some(Ok(2)), Some(Ok(3))]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!([a, b, c].map(|d| cache.get(d)), [None; 3]);
        put(a, 4);
        assert_eq!(cache.entries().by_digest.len(), 1);
    }

    /// Before, 4,096 forged names pushed the permission of the ReplicaSet controller out.
    #[tokio::test(start_paused = true)]
    async fn forged_names_push_no_permission_out() {
        let cache = Cache::new(Duration::from_secs(300), 64);
        let known = cache.digest(&"replicaset-controller");
        for at in [API_SERVER, STRANGER] {
            // The stranger may ask about it first.
            cache.put((at, "a"), known, Ok(()));
            for n in 0..1_000 {
                cache.put((STRANGER, "a"), cache.digest(&n), Err(()));
                cache.put((API_SERVER, "a"), cache.digest(&(n, "of us")), Err(()));
            }
            assert_eq!(cache.get(known), Some(Ok(())), "{at}");
        }
        // Nor does a name that has the right: the answers of another peer stay.
        cache.put((API_SERVER, "a"), known, Ok(()));
        for n in 0..1_000 {
            let forged = cache.digest(&(n, "system:masters"));
            cache.put((STRANGER, "a"), forged, Ok(()));
        }
        assert_eq!(cache.get(known), Some(Ok(())));
        // Nor where the stranger has the address of the API server; another namespace gets a place in any case.
        let other = cache.digest(&"in another namespace");
        for round in 0..2 {
            for n in 0..1_000 {
                let forged = cache.digest(&(n, round, "at the API server's address"));
                cache.put((API_SERVER, "a"), forged, Ok(()));
            }
            cache.put((API_SERVER, "b"), other, Ok(()));
        }
        assert_eq!(
            [known, other].map(|digest| cache.get(digest)),
            [Some(Ok(())); 2]
        );
        let entries = cache.entries();
        assert_eq!(entries.by_digest.len() as u64, entries.shares.held());
        assert_eq!(entries.in_order.len(), entries.by_digest.len());
        assert_eq!(entries.n_of_group.values().sum::<usize>(), 64);
        assert_eq!(entries.shares.held(), 64);
    }
}
