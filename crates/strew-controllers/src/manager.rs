//! kube-controller-manager: all controllers over one cache.

use std::collections::BTreeMap;

use strew_apiserver::object::{Key, Name, Object};
use strew_apiserver::{ApiError, Tables};
use strew_model::Prng;
use strew_model::time::Instant;

use crate::api::Api;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;

/// The controllers, each with its queue, and their cache.
pub struct Manager {
    cache: Tables,
    members: Vec<Member>,
    /// Objects that workers have taken and not synced yet: the controller's index, and the object's name.
    at_work: Vec<(usize, Name)>,
}

struct Member {
    controller: Box<dyn Controller>,
    queue: Queue,
    /// Requests without an answer, with the name of the object that they are for.
    under_way: BTreeMap<u64, Name>,
}

impl Member {
    /// The number of workers that do not wait for an answer.
    fn n_free(&self) -> usize {
        let n_workers = self.controller.n_workers();
        n_workers.saturating_sub(self.queue.n_held())
    }
}

impl Manager {
    /// Controllers that have seen no object.
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
            at_work: Vec::new(),
        }
    }

    /// What the watches have delivered.
    pub fn cache(&self) -> &Tables {
        &self.cache
    }

    /// Takes in a watch event about an object; an older version than the known one is ignored.
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

    /// Takes in a watch event about a deleted object.
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

    /// True while workers have objects that they took with the present cache. The caller must deliver no watch event
    /// until this is false, because all workers must see one state of the cache.
    pub fn is_at_work(&self) -> bool {
        !self.at_work.is_empty()
    }

    /// True if a controller has an object to sync now, and a free worker.
    pub fn is_ready(&mut self, now: Instant) -> bool {
        let ready = self.members.iter_mut().fold(false, |ready, member| {
            member.queue.pass_time(now);
            ready | (member.n_free() > 0 && member.queue.is_ready())
        });
        ready || self.is_at_work()
    }

    /// Lets one worker, drawn from `dice`, sync its object. If no worker has one, every free worker takes an object
    /// first: all of them see the cache as it is now, and none sees the writes of another. Returns false if there was
    /// nothing to do.
    pub fn step(&mut self, now: Instant, api: &mut dyn Api, dice: &mut Prng) -> bool {
        if self.at_work.is_empty() {
            self.begin();
        }
        if self.at_work.is_empty() {
            return false;
        }
        let drawn = dice.index(self.at_work.len());
        let (member, name) = self.at_work.swap_remove(drawn);
        let Some(Member {
            controller,
            queue,
            under_way,
        }) = self.members.get_mut(member)
        else {
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
        let has_failed = done.is_err();
        match done {
            Ok(()) => queue.forget_errors(&name),
            Err(ApiError::Later) => {}
            Err(ApiError::Lost) => queue.add(&name),
            Err(_) => queue.add_after_error(&name, now),
        }
        if asked.is_empty() {
            queue.end(&name, has_failed);
        } else {
            queue.hold(&name, asked.len());
            under_way.extend(asked.into_iter().map(|number| (number, name.clone())));
        }
        true
    }

    /// Lets every free worker take an object.
    fn begin(&mut self) {
        for (index, member) in self.members.iter_mut().enumerate() {
            for _ in 0..member.n_free() {
                let Some(name) = member.queue.take() else {
                    break;
                };
                self.at_work.push((index, name));
            }
        }
    }

    /// Passes on the answer to a request that got [`ApiError::Later`]. Requests of other managers are ignored.
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

    /// The next time at which a controller has something to do without an event.
    pub fn next_wake(&self) -> Option<Instant> {
        let wakes = self.members.iter();
        wakes.filter_map(|member| member.queue.next_wake()).min()
    }
}
