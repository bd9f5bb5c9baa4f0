//! Caches answers for a short time, so that a probe per second does not cause a review per second.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The key of an answer: a digest with keys that only this process knows, so that no secret is stored.
pub(super) type Digest = (u64, u64);

/// A bounded number of answers, each kept for a short time.
pub(super) struct Cache<T> {
    keys: [RandomState; 2],
    lifetime: Duration,
    len_max: usize,
    entries: Mutex<BTreeMap<Digest, (Instant, T)>>,
}

impl<T: Clone> Cache<T> {
    pub(super) fn new(lifetime: Duration, len_max: usize) -> Self {
        Self {
            keys: [RandomState::new(), RandomState::new()],
            lifetime,
            len_max,
            entries: Mutex::default(),
        }
    }

    /// The digest of a question.
    pub(super) fn digest(&self, question: &impl Hash) -> Digest {
        let [a, b] = &self.keys;
        (a.hash_one(question), b.hash_one(question))
    }

    /// The answer, if it was given recently.
    pub(super) fn get(&self, digest: Digest) -> Option<T> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, answer) = entries.get(&digest)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    /// Keeps an answer. If the cache is full, the oldest answer is dropped.
    pub(super) fn put(&self, digest: Digest, answer: T) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if entries.len() >= self.len_max {
            entries.retain(|_, (until, _)| now < *until);
        }
        if entries.len() >= self.len_max {
            let oldest = entries.iter().min_by_key(|(_, (until, _))| *until);
            if let Some(oldest) = oldest.map(|(&digest, _)| digest) {
                entries.remove(&oldest);
            }
        }
        entries.insert(digest, (now + self.lifetime, answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_are_few_and_short_lived() {
        let cache = Cache::new(Duration::from_secs(10), 2);
        let [a, b, c] = ["a", "b", "c"].map(|question| cache.digest(&question));
        cache.put(a, 1);
        tokio::time::advance(Duration::from_secs(1)).await;
        cache.put(b, 2);
        cache.put(c, 3);
        assert_eq!([a, b, c].map(|d| cache.get(d)), [None, Some(2), Some(3)]);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!([a, b, c].map(|d| cache.get(d)), [None; 3]);
        cache.put(a, 4);
        assert_eq!(cache.entries.lock().unwrap().len(), 1);
    }
}
