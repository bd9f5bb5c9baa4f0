//! The trait of a controller: it observes changes and syncs one object at a time.

use strew_apiserver::object::{Name, Object, Stored};
use strew_apiserver::{ApiError, Tables};
use strew_model::Prng;
use strew_model::time::Instant;

use crate::api::Api;
use crate::queue::Queue;

/// A change that a watch has delivered; the cache contains it already.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The previous state; `None` if the object is new.
    pub old: Option<&'a Object>,
    /// The present state; `None` if the object is gone.
    pub new: Option<&'a Object>,
}

impl<'a> Change<'a> {
    /// The present state, or the last one.
    pub fn object(&self) -> Option<&'a Object> {
        self.new.or(self.old)
    }

    /// Previous and present state, if the object is of this kind.
    pub fn of<T: Stored>(&self) -> Option<(Option<&'a T>, Option<&'a T>)> {
        let read = |object: Option<&'a Object>| object.and_then(|o| T::of_object(o)).map(|o| &**o);
        match (read(self.old), read(self.new)) {
            (None, None) => None,
            found => Some(found),
        }
    }
}

/// The inputs of a sync. It decides on the cache only; it sees its own writes when the watch delivers them.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// What the watches have delivered.
    pub cache: &'a Tables,
    /// The API server, for writes.
    pub api: &'a mut dyn Api,
    /// Its generator of random numbers.
    pub dice: &'a mut Prng,
    /// Its queue.
    pub queue: &'a mut Queue,
}

/// A controller.
pub trait Controller {
    /// The source of its events: `deployment-controller`.
    fn name(&self) -> &'static str;

    /// The number of objects that it syncs concurrently, at least 1.
    fn n_workers(&self) -> usize;

    /// Starts the controller: periodic ones queue their first sync at a time drawn from `dice`.
    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        let _ = (now, dice, queue);
    }

    /// Queues the objects that a change concerns.
    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue);

    /// Syncs one object. It is one atomic step, as spec/controllers §0 has it.
    ///
    /// # Errors
    /// A refused write, after which the object is queued again with a backoff. [`ApiError::Lost`] ends the sync at
    /// once: the controller may have crashed. [`ApiError::Later`] also ends it, after the requests that are sent
    /// concurrently: the object is synced again when all answers have arrived.
    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError>;

    /// A request with [`ApiError::Later`] was answered. If it was refused, the next
    /// [`slow_start`](crate::pod_control::slow_start) for this name returns that error first.
    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        let _ = (name, answer, cx);
    }
}
