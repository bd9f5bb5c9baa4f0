//! Spaces out requests that the API server refuses again and again.
//!
//! Machines retry by their own rules: after a pod's backoff, with the next event, with the next decision. These rules
//! suit requests that may soon succeed, but have no bound for those that never do: a missing right, a terminating
//! namespace, a quota, an object that another webhook refuses. So the outbox remembers refusals. While it holds a
//! request back, the machine gets the last failure again.
//!
//! A chain of requests counts as one: it is identified by its first request, whichever of them was refused.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};
use strew_model::time::{Instant, Span};
use strew_wire::request::{Answer, Request};

/// The number of failures in a row that cause no pause: conflicts, or an API server that restarts.
const FREE: u32 = 3;

/// The first wait. Each further one is twice as long.
const FIRST_WAIT: Span = Span::from_secs(1);

/// The longest wait, and so the delay until a newly granted right is noticed.
const LONGEST_WAIT: Span = Span::from_secs(60);

/// A failure is forgotten after this long without another one.
const REMEMBERED: Span = Span::from_secs(600);

/// The number of remembered failures at which expired ones are removed.
const MANY: usize = 1_024;

/// Requests that failed in their last attempt.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// By object: the hash of kind, namespace and name.
    of: FxHashMap<u64, Vec<Refused>>,
    /// The number of objects at which the next cleaning is due.
    clean_at: usize,
}

#[derive(Debug)]
struct Refused {
    request: Arc<Request>,
    answer: Answer,
    n: u32,
    last: Instant,
}

impl Refused {
    /// True if it is the same request, apart from its body.
    fn is_of(&self, request: &Request) -> bool {
        let of = |r: &Request| (r.verb, r.resource, r.subresource);
        of(&self.request) == of(request) && names(&self.request) == names(request)
    }

    fn until(&self) -> Instant {
        let wait = self
            .n
            .checked_sub(FREE)
            .map_or(Some(Span(0)), |over| FIRST_WAIT.doubled(over));
        self.last + wait.map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT))
    }
}

impl Refusals {
    /// The last failure of a request, if it is too early to send it again.
    pub(crate) fn too_early(&self, now: Instant, request: &Request) -> Option<&Answer> {
        let refused = self.get(request)?;
        (now < refused.until()).then_some(&refused.answer)
    }

    /// True if it failed in its last attempt: then it is sent once, not up to four times in a row.
    pub(crate) fn has_failed(&self, now: Instant, request: &Request) -> bool {
        let refused = self.get(request);
        refused.is_some_and(|refused| now < refused.last + REMEMBERED)
    }

    /// Records the final answer of the chain that began with a request.
    pub(crate) fn note(&mut self, now: Instant, first: &Arc<Request>, answer: &Answer) {
        let is_well = answer.object().is_some();
        if is_well && self.of.is_empty() {
            return;
        }
        let key = key(first);
        let all = self.of.entry(key).or_default();
        let known = all.iter().position(|refused| refused.is_of(first));
        match (known, is_well) {
            (None, true) => {}
            (Some(index), true) => drop(all.swap_remove(index)),
            (None, false) => all.push(Refused {
                request: Arc::clone(first),
                answer: answer.clone(),
                n: 1,
                last: now,
            }),
            (Some(index), false) => {
                let refused = &mut all[index];
                let begins_anew = now >= refused.last + REMEMBERED;
                refused.n = if begins_anew {
                    1
                } else {
                    refused.n.saturating_add(1)
                };
                (refused.answer, refused.last) = (answer.clone(), now);
            }
        }
        if all.is_empty() {
            self.of.remove(&key);
        }
        self.clean(now);
    }

    /// A watch has reported an object: the reason of a refusal may be gone.
    pub(crate) fn heard_of(&mut self, plural: &str, namespace: &str, name: &str) {
        if self.of.is_empty() {
            return;
        }
        let key = hash(plural, namespace, name);
        if let Some(all) = self.of.get_mut(&key) {
            all.retain(|refused| !matches!(refused.answer.code(), Some(404 | 409)));
            if all.is_empty() {
                self.of.remove(&key);
            }
        }
    }

    /// This replica leads again: earlier failures may have come from an API server that was down.
    pub(crate) fn forget(&mut self) {
        self.of.clear();
    }

    fn get(&self, request: &Request) -> Option<&Refused> {
        if self.of.is_empty() {
            return None;
        }
        let all = self.of.get(&key(request))?;
        all.iter().find(|refused| refused.is_of(request))
    }

    fn clean(&mut self, now: Instant) {
        if self.of.len() < self.clean_at.max(MANY) {
            return;
        }
        self.of.retain(|_, all| {
            all.retain(|refused| now < refused.last + REMEMBERED);
            !all.is_empty()
        });
        self.clean_at = 2 * self.of.len();
    }
}

fn names(request: &Request) -> [&str; 2] {
    [&request.namespace, &request.name]
}

fn key(request: &Request) -> u64 {
    hash(request.resource.plural, &request.namespace, &request.name)
}

fn hash(plural: &str, namespace: &str, name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    (plural, namespace, name).hash(&mut hasher);
    hasher.finish()
}
