//! The order of requests that are sent in the same instant.
//!
//! An instant has no length, but its events have an order. Workers of controllers create their pods concurrently, a few
//! each, while kubectl creates the next object of the files. Each request gets a delay drawn from the seed, and the
//! shortest comes first. These delays do not advance the cluster's time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::ApiError;
use strew_apiserver::object::Object;
use strew_apiserver::server::{Creation, Server};
use strew_model::Prng;
use strew_model::time::Instant;

/// A range of durations, in microseconds. Only their ratios matter: together they reproduce how pods of several
/// workloads mix on a real control plane (scenarios/fidelity/file-order, lose-zone, shared-selector).
type Takes = (u64, u64);

/// A write, until it is stored.
const WRITE: Takes = (2_000, 6_000);

/// A worker adopts a pod: it reads the owner from the API server, and patches the pod.
const ADOPT: Takes = (3_000, 9_000);

/// A worker reads an object.
const LOOK: Takes = (500, 1_500);

/// How much later a worker begins than the previous one with the same view, because its object was written and
/// delivered later.
const LAG: Takes = (4_000, 10_000);

/// kubectl applies an object: it reads it, prepares the request, and writes.
const APPLY: Takes = (14_000, 22_000);

/// The result of a creation, with the number that it was sent with.
pub(crate) type Answer = (u64, Result<Object, ApiError>);

/// A request in transit.
enum Request {
    /// A controller creates a pod.
    Create(Object),
    /// kubectl applies an object of the files.
    Apply(Object),
}

/// The requests in transit.
#[derive(Default)]
pub(crate) struct Requests {
    /// The order within an instant, in microseconds.
    clock: u64,
    /// The requests by arrival time and number.
    under_way: BTreeMap<(u64, u64), Request>,
    n_sent: u64,
    /// How much later the next worker begins than the first one with the same view.
    lag: u64,
    /// How long the present worker has waited for the answers to its adoptions.
    waited: u64,
    /// The longest such wait among the workers with the same view.
    longest_wait: u64,
    /// Uids of owners whose workers have begun to create pods; cleared when no request is in transit.
    begun: BTreeSet<Arc<str>>,
    /// Creations under review by the webhook: the request's number by the server's number.
    reviews: BTreeMap<u64, u64>,
    answers: Vec<Answer>,
}

impl Requests {
    /// kubectl applies these objects one after another.
    pub(crate) fn apply(&mut self, objects: Vec<Object>, dice: &mut Prng) {
        let mut at = self.clock;
        for object in objects {
            at += draw(APPLY, dice);
            self.send(at, Request::Apply(object));
        }
    }

    /// A controller creates a pod; returns the number that its answer will have.
    pub(crate) fn create(&mut self, pod: Object, dice: &mut Prng) -> u64 {
        let owner = pod.meta().controller();
        let begins = owner.is_some_and(|owner| self.begun.insert(Arc::clone(&owner.uid)));
        let lag = if begins { self.lag } else { 0 };
        let at = self.clock + lag + draw(WRITE, dice);
        self.send(at, Request::Create(pod))
    }

    /// The webhook reviews a creation under the server's number; returns the number that the answer will have.
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

    /// Lets the next request arrive. Returns false if there is none.
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

    /// True if the next request arrives before a worker could read anything.
    pub(crate) fn is_due(&self) -> bool {
        let next = self.under_way.first_key_value();
        next.is_some_and(|((at, _), _)| *at <= self.clock)
    }

    /// The present worker adopts or releases a pod, and waits for the answer: kubectl goes on meanwhile, so that an owner
    /// that is applied next finds pods that are still free.
    pub(crate) fn adopt(&mut self, dice: &mut Prng) {
        self.waited += draw(ADOPT, dice);
    }

    /// A worker has read an object, and adopted pods; `is_last` says that it was the last one with the same view.
    pub(crate) fn pass(&mut self, is_last: bool, dice: &mut Prng) {
        self.clock += draw(LOOK, dice);
        self.longest_wait = self.longest_wait.max(std::mem::take(&mut self.waited));
        self.lag = match is_last {
            true => {
                self.clock += std::mem::take(&mut self.longest_wait);
                0
            }
            false => self.lag + draw(LAG, dice),
        };
    }

    /// The results of creations since the last call.
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
