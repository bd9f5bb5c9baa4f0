//! Deletes finished Jobs after `ttlSecondsAfterFinished`.

use strew_apiserver::object::{Job, Name, Object, moment};
use strew_apiserver::{ApiError, DeleteOptions, Propagation, Tables};
use strew_model::time::{Instant, Span};

use super::conditions::finished;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;

/// The controller that deletes finished Jobs.
#[derive(Debug, Default)]
pub struct TtlController(());

impl TtlController {
    /// A controller that has seen no object.
    pub fn new() -> Self {
        Self::default()
    }
}

/// When a Job must be deleted; `None`: never.
fn due(job: &Job) -> Option<Instant> {
    let ttl = u64::try_from(job.spec.ttl_seconds_after_finished?).unwrap_or(0);
    let since = finished(&job.status)?.last_transition_time.as_ref();
    let is_needed = job.meta.deletion.is_none();
    let at = moment::of_wire(since)? + Span::from_secs(ttl);
    is_needed.then_some(at)
}

impl Controller for TtlController {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn n_workers(&self) -> usize {
        workers::TTL_AFTER_FINISHED
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        if let Some((_, Some(job))) = change.of::<Job>()
            && let Some(at) = due(job)
        {
            queue.add_at(&job.meta.name, at);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(job) = cx.cache.get::<Job>(name) else {
            return Ok(());
        };
        let key = Object::Job(job.clone()).key();
        // Reads the store, since a user may have changed the time.
        let Some(Object::Job(job)) = cx.api.get(&key) else {
            return Ok(());
        };
        match due(&job) {
            Some(at) if at <= cx.now => {
                let mut options = DeleteOptions::of_uid(&job.meta.uid);
                options.propagation = Some(Propagation::Foreground);
                match cx.api.delete(&key, &options) {
                    Err(ApiError::NotFound(_)) => Ok(()),
                    result => result,
                }
            }
            Some(at) => {
                cx.queue.add_at(name, at);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
