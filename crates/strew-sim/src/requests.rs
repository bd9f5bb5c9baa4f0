//! The order of requests that are sent in the same instant.
//!
//! An instant has no length, but its events have an order. Workers of controllers create their pods at the same time, a
//! few each, while kubectl creates the next object of the files. Each request gets a delay drawn from the seed, and the
//! shortest comes first. This delay does not advance the cluster's time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::{Kind, Object};
use strew_apiserver::server::{Creation, Server};
use strew_model::Prng;
use strew_model::time::Instant;

/// How long something takes, from and to, in microseconds. Only what they are to each other matters; together they give
/// how pods of several workloads mix on a real control plane (scenarios/fidelity/file-order, lose-zone, shared-selector).
type Takes = (u64, u64);

/// A write, until it is stored.
const WRITE: Takes = (2_000, 6_000);

/// A worker looks at an object.
const LOOK: Takes = (500, 1_500);

/// By so much a worker begins later than another that began with the same view: what it looks at was written later, and
/// told.
const LAG: Takes = (4_000, 10_000);

/// kubectl applies an object: it asks whether that is there, makes the request, and writes.
const APPLY: Takes = (14_000, 22_000);

/// What becomes of a creation, under the number that it was sent with.
pub(crate) type Answer = (u64, Result<Object, ApiError>);

/// Something on its way.
enum Request {
    /// A controller creates a pod.
    Create(Object),
    /// kubectl applies an object of the files.
    Apply(Object),
}

/// All that is on its way.
#[derive(Default)]
pub(crate) struct Requests {
    /// Orders what happens within an instant.
    clock: u64,
    /// By when they come, and by number.
    under_way: BTreeMap<(u64, u64), Request>,
    n_sent: u64,
    /// By so much a worker begins later than the first of those that began with the same view.
    lag: u64,
    /// Uids of owners whose workers have begun to create pods, until nothing is on its way.
    begun: BTreeSet<Arc<str>>,
    /// Creations that the webhook is asked about: by the server's number that of the request.
    reviews: BTreeMap<u64, u64>,
    answers: Vec<Answer>,
}

impl Requests {
    /// kubectl applies these objects, one after another.
    pub(crate) fn apply(&mut self, objects: Vec<Object>, dice: &mut Prng) {
        let mut at = self.clock;
        for object in objects {
            at += draw(APPLY, dice);
            self.send(at, Request::Apply(object));
        }
    }

    /// A controller creates a pod; the answer gets this number.
    pub(crate) fn create(&mut self, pod: Object, dice: &mut Prng) -> u64 {
        let owner = pod.meta().controller();
        let begins = owner.is_some_and(|owner| self.begun.insert(Arc::clone(&owner.uid)));
        let lag = if begins { self.lag } else { 0 };
        let at = self.clock + lag + draw(WRITE, dice);
        self.send(at, Request::Create(pod))
    }

    /// The webhook is asked about a creation under the server's number: the number under which its answer will be told.
    pub(crate) fn reviewed(&mut self, review: u64) -> u64 {
        self.n_sent += 1;
        self.reviews.insert(review, self.n_sent);
        self.n_sent
    }

    fn send(&mut self, at: u64, request: Request) -> u64 {
        self.n_sent += 1;
        self.under_way.insert((at, self.n_sent), request);
        self.n_sent
    }

    /// The next one comes to the server. Whether there was any.
    pub(crate) fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let Some(((at, number), request)) = self.under_way.pop_first() else {
            self.begun.clear();
            return false;
        };
        self.clock = self.clock.max(at);
        match request {
            Request::Apply(object) => server.preload(now, object),
            Request::Create(pod) => match server.begin_create(now, pod) {
                Ok(Creation::Done(pod)) => self.answers.push((number, Ok(pod))),
                Ok(Creation::UnderWay(review)) => {
                    self.reviews.insert(review, number);
                }
                Err(error) => self.answers.push((number, Err(error))),
            },
        }
        true
    }

    /// Whether the next one comes before a worker could look at anything.
    pub(crate) fn is_due(&self) -> bool {
        let next = self.under_way.first_key_value();
        next.is_some_and(|((at, _), _)| *at <= self.clock)
    }

    /// A worker has looked at an object. Whether it was the last of those that began with the same view.
    pub(crate) fn pass(&mut self, is_last: bool, dice: &mut Prng) {
        self.clock += draw(LOOK, dice);
        self.lag = match is_last {
            true => 0,
            false => self.lag + draw(LAG, dice),
        };
    }

    /// What became of creations since the last call.
    pub(crate) fn take_answers(&mut self, server: &mut Server) -> Vec<Answer> {
        let reviewed = server.take_answers().into_iter();
        let reviewed = reviewed.filter_map(|(review, answer)| {
            let number = self.reviews.remove(&review)?;
            Some((number, answer))
        });
        let mut answers: Vec<Answer> = reviewed.collect();
        answers.append(&mut self.answers);
        answers
    }
}

fn draw((from, to): Takes, dice: &mut Prng) -> u64 {
    dice.between(from, to)
}

/// Whether an object of the files is one that kubectl applies while the controllers watch: what makes pods. All else is
/// there before them, as is what comes from a dump, which has uids.
pub(crate) fn is_applied(object: &Object) -> bool {
    object.meta().uid.is_empty()
        && matches!(
            object.kind(),
            Kind::Deployment
                | Kind::ReplicaSet
                | Kind::ReplicationController
                | Kind::StatefulSet
                | Kind::DaemonSet
                | Kind::Job
                | Kind::CronJob
                | Kind::CloneSet
        )
}
