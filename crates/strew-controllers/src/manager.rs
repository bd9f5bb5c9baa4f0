//! kube-controller-manager: all controllers over one cache.

use std::collections::BTreeMap;

use strew_apiserver::object::{Key, Name, Object};
use strew_apiserver::{ApiError, Tables};
use strew_model::Prng;
use strew_model::time::Instant;

use crate::api::Api;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;

/// The controllers, each with its queue, and what they have seen.
pub struct Manager {
    cache: Tables,
    members: Vec<Member>,
}

struct Member {
    controller: Box<dyn Controller>,
    queue: Queue,
    /// Requests under way, and for whom.
    under_way: BTreeMap<u64, Name>,
}

impl Manager {
    /// Controllers that have seen nothing yet.
    pub fn new(controllers: Vec<Box<dyn Controller>>, now: Instant, dice: &mut Prng) -> Self {
        let start = |mut controller: Box<dyn Controller>| {
            let mut queue = Queue::default();
            controller.start(now, dice, &mut queue);
            Member {
                controller,
                queue,
                under_way: BTreeMap::new(),
            }
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
            let Member {
                controller, queue, ..
            } = member;
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
        let Some(Member {
            controller,
            queue,
            under_way,
        }) = ready.nth(drawn)
        else {
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
        let done = controller.sync(&name, &mut cx);
        let asked = cx.api.under_way();
        match done {
            Ok(()) => queue.forget_errors(&name),
            Err(ApiError::Later) => {}
            Err(ApiError::Lost) => queue.add(&name),
            Err(_) => queue.add_after_error(&name, now),
        }
        if !asked.is_empty() {
            queue.hold(&name, asked.len());
            under_way.extend(asked.into_iter().map(|number| (number, name.clone())));
        }
        true
    }

    /// What became of a request that was to be answered later. Of requests that nobody here has made nothing is done.
    pub fn answered(
        &mut self,
        now: Instant,
        (number, answer): (u64, Result<Object, ApiError>),
        api: &mut dyn Api,
        dice: &mut Prng,
    ) {
        for member in &mut self.members {
            let Some(name) = member.under_way.remove(&number) else {
                continue;
            };
            let mut cx = Context {
                now,
                cache: &self.cache,
                api,
                dice,
                queue: &mut member.queue,
            };
            member.controller.answered(&name, &answer, &mut cx);
            return member.queue.answered(&name, answer.map(drop));
        }
    }

    /// When time alone will give a controller something to look at.
    pub fn next_wake(&self) -> Option<Instant> {
        let wakes = self.members.iter();
        wakes.filter_map(|member| member.queue.next_wake()).min()
    }
}
