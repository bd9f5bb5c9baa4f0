//! kube-controller-manager: all controllers over one cache.

use strew_model::Prng;
use strew_model::time::Instant;

use crate::api::{Api, ApiError};
use crate::controller::{Change, Context, Controller};
use crate::object::{Key, Object};
use crate::queue::Queue;
use crate::tables::Tables;

/// The controllers, each with its queue, and what they have seen.
pub struct Manager {
    cache: Tables,
    members: Vec<Member>,
}

struct Member {
    controller: Box<dyn Controller>,
    queue: Queue,
}

impl Manager {
    /// Controllers that have seen nothing yet.
    pub fn new(controllers: Vec<Box<dyn Controller>>, now: Instant, dice: &mut Prng) -> Self {
        let start = |mut controller: Box<dyn Controller>| {
            let mut queue = Queue::default();
            controller.start(now, dice, &mut queue);
            Member { controller, queue }
        };
        Self {
            cache: Tables::default(),
            members: controllers.into_iter().map(start).collect(),
        }
    }

    /// What the watches have brought.
    pub fn cache(&self) -> &Tables {
        &self.cache
    }

    /// A watch tells of an object; one that is older than what is known is passed over.
    pub fn set(&mut self, now: Instant, object: Object) {
        let known = self.cache.find(&object.key());
        let is_old = known.is_some_and(|known| {
            known.meta().uid == object.meta().uid && known.meta().version >= object.meta().version
        });
        if is_old {
            return;
        }
        let old = self.cache.set(object.clone());
        self.tell(now, old.as_ref(), Some(&object));
    }

    /// A watch tells that an object is gone.
    pub fn gone(&mut self, now: Instant, key: &Key) {
        if let Some(old) = self.cache.remove(key) {
            self.tell(now, Some(&old), None);
        }
    }

    fn tell(&mut self, now: Instant, old: Option<&Object>, new: Option<&Object>) {
        let change = Change { old, new };
        for member in &mut self.members {
            let Member { controller, queue } = member;
            controller.observe(now, change, &self.cache, queue);
        }
    }

    /// Whether some controller has something to look at now.
    pub fn is_ready(&mut self, now: Instant) -> bool {
        self.members.iter_mut().fold(false, |ready, member| {
            member.queue.pass_time(now);
            ready | member.queue.is_ready()
        })
    }

    /// One controller, drawn from the dice among those that have something to do, looks at one object. Whether any did.
    pub fn step(&mut self, now: Instant, api: &mut dyn Api, dice: &mut Prng) -> bool {
        let n_ready = self.members.iter().filter(|m| m.queue.is_ready()).count();
        if n_ready == 0 {
            return false;
        }
        let drawn = dice.index(n_ready);
        let mut ready = self.members.iter_mut().filter(|m| m.queue.is_ready());
        let Some(Member { controller, queue }) = ready.nth(drawn) else {
            return false;
        };
        let Some(name) = queue.take() else {
            return false;
        };
        let mut cx = Context {
            now,
            cache: &self.cache,
            api,
            dice,
            queue,
        };
        match controller.sync(&name, &mut cx) {
            Ok(()) => queue.forget_errors(&name),
            Err(ApiError::Lost) => queue.add(&name),
            Err(_) => queue.add_after_error(&name, now),
        }
        true
    }

    /// When time alone will give a controller something to look at.
    pub fn next_wake(&self) -> Option<Instant> {
        let wakes = self.members.iter();
        wakes.filter_map(|member| member.queue.next_wake()).min()
    }
}
