//! The backoff of a Job after failures: 10 s, doubled each time, at most 10 min.

use strew_apiserver::object::pod::READY;
use strew_apiserver::object::{Phase, Pod, Truth};
use strew_model::time::{Instant, Span};

const FIRST: Span = Span::from_secs(10);
const MAX: Span = Span::from_secs(600);

/// Failures since the last success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Record {
    n_failures: u32,
    last: Instant,
}

impl Record {
    /// Adds pods that have finished since.
    pub(super) fn with(mut self, succeeded: &[&Pod], failed: &[&Pod]) -> Self {
        let success = succeeded.iter().map(|pod| finished_at(pod)).max();
        if success.is_some() {
            self = Self::default();
        }
        for at in failed.iter().map(|pod| finished_at(pod)) {
            // A failure before the last success no longer counts.
            if success.is_none_or(|success| at > success) {
                self.n_failures += 1;
                self.last = self.last.max(at);
            }
        }
        self
    }

    /// When pods may be created again.
    pub(super) fn until(&self) -> Instant {
        until(self.n_failures, self.last)
    }
}

/// When pods may be created again after `n_failures` failures, the last one at `last`.
pub(super) fn until(n_failures: u32, last: Instant) -> Instant {
    match n_failures {
        0 => Instant::default(),
        n => last + FIRST.doubled(n - 1).unwrap_or(MAX).min(MAX),
    }
}

/// When a pod finished: at its last container's end, else when it became not ready, was deleted or created.
pub(super) fn finished_at(pod: &Pod) -> Instant {
    let exits = pod.status.exits.iter().filter(|exit| !exit.is_init);
    if pod.status.phase != Phase::Running
        && let Some(at) = exits.map(|exit| exit.at).max()
    {
        return at;
    }
    if let Some(ready) = pod.status.condition(READY)
        && ready.status == Truth::False
    {
        return ready.since;
    }
    match pod.meta.deletion {
        Some(deletion) => deletion.at - deletion.grace,
        None => pod.meta.created,
    }
}

#[cfg(test)]
mod tests {
    use strew_apiserver::object::{Exit, Meta, Name, PodStatus};

    use super::*;

    fn ended(at: u64) -> Pod {
        let exit = Exit {
            container: "c".into(),
            code: 1,
            at: Instant::from_secs(at),
            is_init: false,
        };
        let mut pod = Pod {
            meta: Meta::new(Name::new("ns", "x")),
            spec: Default::default(),
            node: None,
            status: PodStatus::default(),
        };
        pod.status.phase = Phase::Failed;
        pod.status.exits = [exit].into();
        pod
    }

    #[test]
    fn waits_double_up_to_ten_minutes() {
        for (n, expected) in [(1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (90, 600)] {
            let until = until(n, Instant::from_secs(1000));
            assert_eq!(until.secs() - 1000, expected, "{n}");
        }
        assert_eq!(until(0, Instant::from_secs(1000)), Instant::default());
    }

    #[test]
    fn a_success_forgets_the_failures_before_it() {
        let [a, b, c] = [100, 200, 300].map(ended);
        let record = Record::default().with(&[], &[&a, &b]);
        assert_eq!(record.until().secs(), 220);
        assert_eq!(record.with(&[&c], &[]).until(), Instant::default());
        assert_eq!(record.with(&[&b], &[&a, &c]).until().secs(), 310);
    }
}
