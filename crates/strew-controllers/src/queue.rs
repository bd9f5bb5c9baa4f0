//! The queue of a controller: each key at most once, now, later, or after an error's backoff.
//!
//! Source: spec/controllers §0 ("One key, one worker"), §12.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use strew_apiserver::ApiError;
use strew_apiserver::object::Name;
use strew_model::time::{Instant, Span};

/// The wait after the first error; each further one doubles it.
const FIRST_WAIT: Span = Span::from_millis(5);

/// The longest wait after an error.
const WAIT_MAX: Span = Span::from_secs(1000);

/// A queue of names without duplicates.
#[derive(Debug, Clone, Default)]
pub struct Queue {
    ready: VecDeque<Name>,
    queued: BTreeSet<Name>,
    /// The earliest time of each delayed name.
    due: BTreeMap<Name, Instant>,
    later: BTreeSet<(Instant, Name)>,
    failures: BTreeMap<Name, u32>,
    /// Names whose worker waits, with the number of missing answers.
    held: BTreeMap<Name, usize>,
    /// Names whose worker has its answers and goes on with its sync next.
    resuming: BTreeSet<Name>,
    /// Names that were added while their worker waited.
    changed: BTreeSet<Name>,
    /// The batch size or error with which slow start resumes, for names whose worker has waited.
    resumed: BTreeMap<Name, Result<usize, ApiError>>,
}

impl Queue {
    /// Queues a name for now; if its worker waits for answers, for when they have arrived.
    pub fn add(&mut self, name: &Name) {
        if self.held.contains_key(name) || self.resuming.contains(name) {
            self.changed.insert(name.clone());
        } else if self.queued.insert(name.clone()) {
            self.ready.push_back(name.clone());
        }
    }

    /// The sync of a name is over. If it failed, it took in nothing that came while its worker waited for answers: then a
    /// name that was added meanwhile is queued again.
    pub fn end(&mut self, name: &Name, has_failed: bool) {
        if self.changed.remove(name) && has_failed {
            self.add(name);
        }
    }

    /// True if the worker of a name goes on with its sync after a refused request.
    pub fn was_refused(&self, name: &Name) -> bool {
        matches!(self.resumed.get(name), Some(Err(_)))
    }

    /// Queues a name for `at`, unless it is due earlier.
    pub fn add_at(&mut self, name: &Name, at: Instant) {
        if let Some(&due) = self.due.get(name) {
            if due <= at {
                return;
            }
            self.later.remove(&(due, name.clone()));
        }
        self.due.insert(name.clone(), at);
        self.later.insert((at, name.clone()));
    }

    /// Queues a name after an error: in 5 ms, doubled with each further error.
    pub fn add_after_error(&mut self, name: &Name, now: Instant) {
        let failures = self.failures.entry(name.clone()).or_default();
        let wait = FIRST_WAIT
            .doubled(*failures)
            .unwrap_or(WAIT_MAX)
            .min(WAIT_MAX);
        *failures += 1;
        self.add_at(name, now + wait);
    }

    /// The number of errors since the last success.
    pub fn n_failures(&self, name: &Name) -> u32 {
        self.failures.get(name).copied().unwrap_or(0)
    }

    /// Resets the errors after a success.
    pub fn forget_errors(&mut self, name: &Name) {
        self.failures.remove(name);
    }

    /// The worker of a name waits for the answers to `n` concurrent requests.
    pub fn hold(&mut self, name: &Name, n: usize) {
        if self.queued.remove(name) {
            self.ready.retain(|ready| ready != name);
        }
        self.held.insert(name.clone(), n);
        self.resumed.insert(name.clone(), Ok(n * 2));
    }

    /// An answer that a name waits for has arrived, or its refusal. The last one queues the name.
    pub fn answered(&mut self, name: &Name, answer: Result<(), ApiError>) {
        if let Err(error) = answer
            && let Some(resumed) = self.resumed.get_mut(name)
            && resumed.is_ok()
        {
            *resumed = Err(error);
        }
        let Some(left) = self.held.get_mut(name) else {
            return;
        };
        *left -= 1;
        if *left == 0 {
            self.held.remove(name);
            self.add(name);
            self.resuming.insert(name.clone());
        }
    }

    /// The size of the next batch of slow start: 1, or a larger one after a wait for answers.
    ///
    /// # Errors
    /// The first refusal among the answers.
    pub fn resume(&mut self, name: &Name) -> Result<usize, ApiError> {
        self.resumed.remove(name).unwrap_or(Ok(1))
    }

    /// True if a name continues after a wait for answers.
    pub fn goes_on(&self, name: &Name) -> bool {
        self.resumed.contains_key(name)
    }

    /// Queues the delayed names that are due.
    pub fn pass_time(&mut self, now: Instant) {
        while let Some((at, name)) = self.later.first().cloned() {
            if at > now {
                break;
            }
            self.later.pop_first();
            self.due.remove(&name);
            self.add(&name);
        }
    }

    /// Takes the next name.
    pub fn take(&mut self) -> Option<Name> {
        let name = self.ready.pop_front()?;
        self.queued.remove(&name);
        self.resuming.remove(&name);
        Some(name)
    }

    /// The number of names whose worker waits for answers.
    pub fn n_held(&self) -> usize {
        self.held.len()
    }

    /// True if a name is queued for now.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next delayed name is due.
    pub fn next_wake(&self) -> Option<Instant> {
        self.later.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_secs(100);

    fn name(name: &str) -> Name {
        Name::new("default", name)
    }

    #[test]
    fn a_name_is_queued_once_and_the_soonest_moment_holds() {
        let mut queue = Queue::default();
        let (a, b) = (name("a"), name("b"));
        queue.add(&a);
        queue.add(&b);
        queue.add(&a);
        assert_eq!(
            [queue.take(), queue.take(), queue.take()],
            [Some(a.clone()), Some(b), None]
        );
        queue.add_at(&a, START + Span::from_secs(9));
        queue.add_at(&a, START + Span::from_secs(5));
        queue.add_at(&a, START + Span::from_secs(7));
        assert_eq!(queue.next_wake(), Some(START + Span::from_secs(5)));
        queue.pass_time(START + Span::from_secs(4));
        assert!(!queue.is_ready());
        queue.pass_time(START + Span::from_secs(60));
        assert_eq!([queue.take(), queue.take()], [Some(a), None]);
    }

    #[test]
    fn a_name_that_is_added_while_its_worker_waits_is_synced_once_more_after_a_failure() {
        let mut queue = Queue::default();
        let a = name("a");
        queue.add(&a);
        queue.take();
        queue.hold(&a, 1);
        queue.add(&a);
        assert!(!queue.is_ready());
        queue.answered(&a, Ok(()));
        queue.add(&a);
        assert_eq!([queue.take(), queue.take()], [Some(a.clone()), None]);
        queue.end(&a, true);
        assert_eq!([queue.take(), queue.take()], [Some(a.clone()), None]);
        queue.end(&a, true);
        assert!(!queue.is_ready());
    }

    #[test]
    fn waits_after_errors_double_up_to_a_thousand_seconds() {
        let mut queue = Queue::default();
        let a = name("a");
        let mut waits = Vec::new();
        for _ in 0..20 {
            queue.add_after_error(&a, START);
            waits.push(queue.next_wake().unwrap().since(START).0 / 1_000_000);
            queue.pass_time(Instant(u64::MAX));
            queue.take();
        }
        assert_eq!(waits[..4], [5, 10, 20, 40]);
        assert_eq!(waits[19], 1_000_000);
        queue.forget_errors(&a);
        assert_eq!(queue.n_failures(&a), 0);
    }
}
