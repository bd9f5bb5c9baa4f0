//! The frame of the controllers `audit` and `rebalance`: on a timer the leader lists the cluster, works on the objects,
//! and keeps what was found for the metrics.
//!
//! The work is done on a thread of its own, one at a time, so that other controllers go on. Between two looks only what
//! was found is kept. Only the leader serves it.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use serde_json::Value;
use strew_model::time::{Instant, Span};
use strew_runtime::Warning;
use strew_scheduler::metrics::{Family, Info, Value as Number};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::leading::Leads;
use crate::panics::kept;
use crate::snapshot;

/// How soon a replica that does not lead looks again whether it does.
pub(super) const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// What the looks found, and counters of all.
#[derive(Debug, Default)]
pub(super) struct State<F, C> {
    /// `None`: there was no look yet, or another replica leads.
    pub(super) found: Option<F>,
    n_left_out: usize,
    /// When the last look that found something began, by the wall clock, and how long it took; `None`: there was none.
    pub(super) succeeded: Option<(Instant, Span)>,
    n_succeeded: u64,
    n_failed: u64,
    pub(super) counters: C,
}

impl<F, C> State<F, C> {
    /// The metrics of every survey: series that were left out, when the last look that found something began, looks by
    /// their result.
    pub(super) fn families(&self, infos: [&'static Info; 3], leads: bool) -> [Family; 3] {
        let [left_out, succeeded, runs] = infos;
        let mut succeeded = Family::new(succeeded);
        if let Some((at, _)) = self.succeeded {
            succeeded.push([], Number::Number(at.0 as f64 / 1e9));
        }
        let mut runs = Family::new(runs);
        runs.push(["success".into()], Number::Count(self.n_succeeded));
        runs.push(["error".into()], Number::Count(self.n_failed));
        let n_left_out = if leads { self.n_left_out } else { 0 };
        [
            Family::of(left_out, Number::number(n_left_out)),
            succeeded,
            runs,
        ]
    }
}

/// The running controller, as its metrics see it.
pub(super) struct Running<F, C> {
    pub(super) state: Arc<Mutex<State<F, C>>>,
    pub(super) leads: Leads,
}

/// What the controller's task looks with.
pub(super) struct Survey<F, C> {
    name: &'static str,
    pub(super) client: Client,
    clock: Clock,
    begin: Instant,
    pub(super) leads: Leads,
    state: Arc<Mutex<State<F, C>>>,
}

/// Starts the controller's task, which begins again after a panic.
pub(super) fn begin<F, C, T>(
    name: &'static str,
    (client, clock, leads): (Client, Clock, Leads),
    task: impl Fn(Survey<F, C>) -> T + Send + 'static,
) -> Running<F, C>
where
    F: Default + Send + 'static,
    C: Default + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let state = Arc::<Mutex<State<F, C>>>::default();
    let running = Running {
        state: Arc::clone(&state),
        leads: leads.clone(),
    };
    drop(kept(move || {
        task(Survey {
            name,
            client: client.clone(),
            clock,
            begin: clock.now(),
            leads: leads.clone(),
            state: Arc::clone(&state),
        })
    }));
    running
}

impl<F: Send + 'static, C> Survey<F, C> {
    /// Waits until this replica leads. Returns the time, by the wall clock and by that of the process.
    pub(super) async fn led(&self) -> [Instant; 2] {
        while !self.leads.now() {
            self.state().found = None;
            tokio::time::sleep(LOOKS_EVERY).await;
        }
        [self.clock.wall(), self.clock.now()]
    }

    /// The time since the start.
    pub(super) fn now(&self) -> Span {
        self.clock.now().since(self.begin)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State<F, C>> {
        locked(&self.state)
    }

    pub(super) fn warn(&self, action: &str, error: &str, next: &str) {
        let warning = Warning {
            kind: "controller",
            namespace: "",
            name: self.name,
            node: None,
            action,
            error: &error,
            next,
        };
        warning.log();
    }

    /// Lists the cluster, and works on the objects on a thread of its own. Returns the worker, unless it panicked.
    pub(super) async fn look<W: Send + 'static>(
        &self,
        mut worker: W,
        work: impl FnOnce(&mut W, Span, Vec<Value>) -> Result<F, String> + Send + 'static,
    ) -> (Option<W>, Result<F, String>) {
        let objects = match snapshot::take_for_audit(&self.client).await {
            Ok(objects) => objects,
            Err(error) => return (Some(worker), Err(error.to_string())),
        };
        let (answer, answered) = oneshot::channel();
        let now = self.now();
        let thread = std::thread::Builder::new().name(self.name.to_owned());
        let started = thread.spawn(move || {
            let result = work(&mut worker, now, objects);
            // The receiver is dropped: the process ends.
            let _ = answer.send((Some(worker), result));
        });
        let lost = |why: String| (None, Err(why));
        match started {
            Ok(_) => answered
                .await
                .unwrap_or_else(|_| lost("its thread panicked; the log has the place".to_owned())),
            Err(error) => lost(format!("no thread: {error}")),
        }
    }

    /// Keeps what a look found that began at a time; returns how long it took.
    pub(super) fn keep(&self, [wall, began]: [Instant; 2], found: F, n_left_out: usize) -> Span {
        let took = self.clock.now().since(began);
        let mut state = self.state();
        (state.found, state.n_left_out) = (Some(found), n_left_out);
        state.succeeded = Some((wall, took));
        state.n_succeeded += 1;
        took
    }

    /// Counts and logs a look that found nothing.
    pub(super) fn failed(&self, action: &str, error: &str, next: &str) {
        self.state().n_failed += 1;
        self.warn(action, error, next);
    }
}

/// Drops the series past a bound; returns their number.
pub(super) fn cut<S>(series: &mut Vec<S>, max: usize) -> usize {
    let n_left_out = series.len().saturating_sub(max);
    series.truncate(max);
    series.shrink_to_fit();
    n_left_out
}

pub(super) fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
