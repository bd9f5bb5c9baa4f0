//! Requests through a server that is busy, forgets to answer, or is not ours to ask any more.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;

use kube::Client;
use serde_json::json;
use strew_kube::clock::Clock;
use strew_kube::leading::Leads;
use strew_kube::send::Patience;
use strew_kube::work::{Links, Worker};
use strew_model::Interner;
use strew_model::time::Instant;
use strew_runtime::watch::{Update, Watches};
use strew_runtime::{Answered, Begun, Machine, Moment, Next};
use strew_scheduler::machine::{Effect, EffectId, Outcome, PodName};
use strew_wire::request::{Context, Request, outcome_of, requests_of};

use crate::server::{Asked, Server, start};

const BIND: &str = "POST /api/v1/namespaces/shop/pods/web-1/binding?fieldValidation=Strict";

pub(crate) fn bind() -> Vec<Request> {
    let mut names = Interner::new();
    let pod = PodName {
        uid: "uid-1".into(),
        namespace: names.intern("shop"),
        name: "web-1".into(),
    };
    let effect = Effect::Bind {
        id: EffectId(1),
        pod,
        node: names.intern("node-1"),
    };
    let context = Context {
        names: &names,
        now: Instant::from_secs(1_000_000_000),
        hostname: "host-1",
        generation: None,
        unscheduled_since: None,
    };
    requests_of(&effect, &context)
}

/// A machine that wants what a test says.
#[derive(Default)]
pub(crate) struct Errands {
    wanted: VecDeque<(EffectId, Begun<EffectId>)>,
    done: RefCell<VecDeque<(u64, Outcome)>>,
}

impl Machine for Errands {
    type Effect = Begun<EffectId>;
    type Chain = EffectId;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, _: Instant, _: Update, _: &mut Watches) {}

    fn tick(&mut self, _: Instant) {}

    fn poll_effect(&mut self) -> Option<Begun<EffectId>> {
        self.wanted.pop_front().map(|(_, begun)| begun)
    }

    fn begin(&mut self, _: Moment, effect: Begun<EffectId>, _: bool) -> Begun<EffectId> {
        effect
    }

    fn answered(&mut self, _: Moment, chain: EffectId, answered: &Answered) -> Next<EffectId> {
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        self.done.borrow_mut().push_back((chain.0, outcome));
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        None
    }
}

fn worker() -> (Worker<Errands>, Server) {
    let (client, server) = start();
    (worker_of(client), server)
}

/// A worker that asks by this client.
pub(crate) fn worker_of(client: Client) -> Worker<Errands> {
    let clock = Clock::of_timers();
    let links = Links {
        client: client.clone(),
        writes: client,
        clock,
        leads: Leads::always(clock),
        patience: Patience::default(),
    };
    let mut worker = Worker::new(Errands::default(), Watches::default(), links);
    // Nothing is watched, so all of it is known.
    worker.tell(|_, _| {});
    worker
}

fn want(worker: &mut Worker<Errands>, id: u64, begun: Begun<EffectId>) {
    worker.tell(|errands, _| errands.wanted.push_back((EffectId(id), begun)));
    while worker.act() {}
}

/// Sends a bind as an effect.
pub(crate) fn send(worker: &mut Worker<Errands>, effect: u64, uid: &str) {
    let begun = Begun::Chain {
        about: uid.into(),
        chain: EffectId(effect),
        request: bind().remove(0),
    };
    want(worker, effect, begun);
}

/// The next effect that has ended, with its outcome.
pub(crate) async fn done(worker: &mut Worker<Errands>) -> (u64, Outcome) {
    loop {
        let first = worker.driver().machine().done.borrow_mut().pop_front();
        if let Some(done) = first {
            return done;
        }
        worker.work().await;
    }
}

/// The next request that reaches the server, while the worker goes on.
async fn next(worker: &mut Worker<Errands>, server: &mut Server) -> Asked {
    loop {
        tokio::select! {
            biased;
            asked = server.next() => return asked,
            () = worker.work() => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says_so() {
    let (mut worker, mut server) = worker();
    send(&mut worker, 1, "uid-1");
    let asked = next(&mut worker, &mut server).await;
    assert_eq!(asked.what, BIND);
    assert_eq!(asked.body["target"]["name"], "node-1");
    let begun = tokio::time::Instant::now();
    asked.answer_with(429, &[("retry-after", "7")], "slow down".to_owned());
    let again = next(&mut worker, &mut server).await;
    assert_eq!((again.what.as_str(), begun.elapsed().as_secs()), (BIND, 7));
    again.answer(201, json!({"kind": "Status", "status": "Success"}));
    assert_eq!(done(&mut worker).await, (1, Outcome::Ok));
    assert_eq!(worker.driver().outbox().waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bind_whose_answer_was_lost_is_known_by_what_the_server_says_to_the_second() {
    let (mut worker, mut server) = worker();
    send(&mut worker, 1, "uid-1");
    next(&mut worker, &mut server).await.cut();
    let text = "Operation cannot be fulfilled on pods/binding \"web-1\": pod web-1 is already assigned to node \"node-1\"";
    let conflict = json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": text});
    next(&mut worker, &mut server)
        .await
        .answer(409, conflict.clone());
    assert_eq!(done(&mut worker).await.1, Outcome::Ok);

    // In answer to the first request, it is another replica's bind.
    send(&mut worker, 2, "uid-1");
    next(&mut worker, &mut server).await.answer(409, conflict);
    assert_eq!(done(&mut worker).await.1, Outcome::Conflict(text.into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_not_asked_again() {
    let (mut worker, mut server) = worker();
    let not_found = json!({"kind": "Status", "code": 404, "message": "pods \"web-1\" not found"});
    send(&mut worker, 1, "uid-1");
    next(&mut worker, &mut server).await.answer(404, not_found);
    assert_eq!(done(&mut worker).await.1, Outcome::Gone);

    let forbidden =
        json!({"kind": "Status", "code": 403, "message": "pods \"web-1\" is forbidden"});
    send(&mut worker, 2, "uid-1");
    next(&mut worker, &mut server).await.answer(403, forbidden);
    let refused = Outcome::Failed("pods \"web-1\" is forbidden".into());
    assert_eq!(done(&mut worker).await.1, refused);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let (mut worker, mut server) = worker();
    send(&mut worker, 1, "uid-1");
    let begun = tokio::time::Instant::now();
    let mut asked = Vec::new();
    let (_, outcome) = loop {
        tokio::select! {
            next = server.next() => asked.push(next),
            done = done(&mut worker) => break done,
        }
    };
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    // Thirty seconds each, and what lies between two.
    let tries = u64::try_from(asked.len()).unwrap();
    assert!((1..=4).contains(&tries), "{tries} tries");
    assert!(begun.elapsed().as_secs() <= 30 * tries + 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_of_one_pod_is_asked_in_order() {
    let (mut worker, mut server) = worker();
    send(&mut worker, 1, "uid-1");
    send(&mut worker, 2, "uid-1");
    send(&mut worker, 3, "uid-2");
    // The first, and that of the other pod.
    let (first, other) = (
        next(&mut worker, &mut server).await,
        next(&mut worker, &mut server).await,
    );
    let second = next(&mut worker, &mut server);
    let quiet = tokio::time::timeout(std::time::Duration::from_secs(20), second).await;
    assert!(quiet.is_err(), "the second overtakes the first");
    let ok = json!({"kind": "Status", "status": "Success"});
    first.answer(201, ok.clone());
    assert_eq!(done(&mut worker).await.0, 1);
    next(&mut worker, &mut server).await.answer(201, ok.clone());
    assert_eq!(done(&mut worker).await.0, 2);
    other.answer(201, ok);
    assert_eq!(done(&mut worker).await.0, 3);
    assert_eq!(worker.driver().outbox().waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_events_keep_no_bind_waiting_and_are_dropped_beyond_a_limit() {
    let (mut worker, mut server) = worker();
    let event = |number: usize| {
        let mut request = bind().remove(0);
        request.name = format!("event-{number}");
        request.body = json!({"number": number});
        request
    };
    (0..5_000).for_each(|number| want(&mut worker, 0, Begun::Event(event(number))));
    assert_eq!(worker.driver().outbox().dropped(), 904);
    // As many as go at once, and then the bind.
    let mut held = Vec::new();
    for number in 0..8 {
        let asked = next(&mut worker, &mut server).await;
        assert_eq!(asked.body, json!({"number": number}));
        held.push(asked);
    }
    send(&mut worker, 1, "uid-1");
    let asked = next(&mut worker, &mut server).await;
    assert_eq!(asked.what, BIND);
    asked.answer(201, json!({"kind": "Status", "status": "Success"}));
    assert_eq!(done(&mut worker).await, (1, Outcome::Ok));

    let made = || json!({"kind": "Event"});
    held.into_iter().for_each(|asked| asked.answer(201, made()));
    for number in 8..4_096 {
        let asked = next(&mut worker, &mut server).await;
        assert_eq!(asked.body, json!({"number": number}));
        asked.answer(201, made());
    }
    let second = std::time::Duration::from_secs(1);
    let more = tokio::time::timeout(second, next(&mut worker, &mut server)).await;
    assert!(more.is_err(), "more events than wait");
    // All is sent, and what comes later is sent, too.
    want(&mut worker, 0, Begun::Event(event(7)));
    assert_eq!(
        next(&mut worker, &mut server).await.body,
        json!({"number": 7})
    );
}
