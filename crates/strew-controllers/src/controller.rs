//! The trait of a controller: it observes changes and syncs one object at a time.

use strew_apiserver::object::{Name, Object, Stored};
use strew_apiserver::{ApiError, Tables};
use strew_model::Prng;
use strew_model::time::Instant;

use crate::api::Api;
use crate::queue::Queue;

/// A change that a watch has brought; the cache has it already.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// As it was.
    pub old: Option<&'a Object>,
    /// As it is; `None`: gone.
    pub new: Option<&'a Object>,
}

impl<'a> Change<'a> {
    /// The object, as it is or as it last was.
    pub fn object(&self) -> Option<&'a Object> {
        self.new.or(self.old)
    }

    /// The object as it was and as it is, if it is of this kind.
    pub fn of<T: Stored>(&self) -> Option<(Option<&'a T>, Option<&'a T>)> {
        let read = |object: Option<&'a Object>| object.and_then(|o| T::of_object(o)).map(|o| &**o);
        match (read(self.old), read(self.new)) {
            (None, None) => None,
            found => Some(found),
        }
    }
}

/// What a sync may look at and use. Everything that it decides, it decides from the cache; what it writes, it learns
/// of through the watch.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// What the watches have brought.
    pub cache: &'a Tables,
    /// Where it writes.
    pub api: &'a mut dyn Api,
    /// Its dice.
    pub dice: &'a mut Prng,
    /// Its queue.
    pub queue: &'a mut Queue,
}

/// A controller.
pub trait Controller {
    /// How events call it: `deployment-controller`.
    fn name(&self) -> &'static str;

    /// How many objects it looks at at the same time, at least one.
    fn n_workers(&self) -> usize;

    /// Begins: periodic controllers put their first moment into the queue, its phase drawn from the dice.
    fn start(&mut self, now: Instant, dice: &mut Prng, queue: &mut Queue) {
        let _ = (now, dice, queue);
    }

    /// Something changed: puts into the queue whom that concerns.
    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue);

    /// Looks at one object. It is one atomic step, as spec/controllers §0 has it.
    ///
    /// # Errors
    /// What a write was refused for, where the object is to be looked at again after a while. [`ApiError::Lost`] ends
    /// the sync at once: the controller may be dead. So does [`ApiError::Later`], after what is asked for at the same
    /// time: the worker waits, and the object is looked at again when all answers are there.
    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError>;

    /// An object that a sync asked for is there, or was refused: the answer that [`ApiError::Later`] had announced. A
    /// refusal is also what the next [`slow_start`](crate::pod_control::slow_start) for this name begins with.
    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        let _ = (name, answer, cx);
    }
}
