//! Caches answers for a short time, so that a probe per second does not cause a review per second.
//!
//! The peer that asked first holds an answer. If the cache is full, the peer with most answers loses one: its oldest
//! refusal, or else its oldest permission. So forged names push out neither answers of other peers nor, if they are
//! refused, a permission.

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

/// Whether an answer is a permission, and its number.
type Rank = (bool, u64);

/// A bounded number of answers, each kept for a short time.
pub(super) struct Cache<Y, N> {
    keys: [RandomState; 2],
    lifetime: Duration,
    entries: Mutex<Entries<Y, N>>,
}

struct Entries<Y, N> {
    by_digest: BTreeMap<Digest, Entry<Y, N>>,
    shares: Shares<IpAddr, Rank, Digest>,
    n_put: u64,
}

struct Entry<Y, N> {
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
                shares: Shares::new(len_max, len_max, (true, u64::MAX)),
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

    /// Keeps an answer to a question of this peer, unless it is a refusal in the place of a permission.
    pub(super) fn put(&self, peer: IpAddr, digest: Digest, answer: Result<Y, N>) {
        let mut entries = self.entries();
        entries.remove(digest);
        let rank = (answer.is_ok(), entries.n_put);
        entries.n_put += 1;
        let goes = entries.shares.next_given_up(&peer, 1);
        if goes.is_some_and(|(is_permission, _)| is_permission && answer.is_err()) {
            return;
        }
        let Ok(taken) = entries.shares.take(&peer, 1, rank, digest) else {
            return;
        };
        for digest in taken.given_up {
            entries.by_digest.remove(&digest);
        }
        let entry = Entry {
            until: Instant::now() + self.lifetime,
            answer,
            holding: taken.id,
        };
        entries.by_digest.insert(digest, entry);
    }
}

impl<Y, N> Entries<Y, N> {
    fn remove(&mut self, digest: Digest) {
        if let Some(entry) = self.by_digest.remove(&digest) {
            self.shares.release(entry.holding);
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
        let put = |digest, answer| cache.put(API_SERVER, digest, Ok::<_, ()>(answer));
        put(a, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        put(b, 2);
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
            cache.put(at, known, Ok(()));
            for n in 0..1_000 {
                cache.put(STRANGER, cache.digest(&n), Err(()));
                cache.put(API_SERVER, cache.digest(&(n, "of us")), Err(()));
            }
            assert_eq!(cache.get(known), Some(Ok(())), "{at}");
        }
        // Nor does a name that has the right: the answers of another peer stay.
        cache.put(API_SERVER, known, Ok(()));
        for n in 0..1_000 {
            cache.put(STRANGER, cache.digest(&(n, "system:masters")), Ok(()));
        }
        assert_eq!(cache.get(known), Some(Ok(())));
        let entries = cache.entries();
        assert_eq!(entries.by_digest.len() as u64, entries.shares.held());
        assert_eq!(entries.shares.held(), 64);
    }
}
