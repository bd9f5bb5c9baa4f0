//! Requests through a server that is busy, forgets to answer, or is not ours to ask any more.

use serde_json::json;
use strew_api::request::{Context, Request, requests_of};
use strew_kube::clock::Clock;
use strew_kube::leading::Leads;
use strew_kube::send::Outbox;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_scheduler::machine::{Effect, EffectId, Outcome, PodName};

use crate::server::{Server, start};

const BIND: &str = "POST /api/v1/namespaces/shop/pods/web-1/binding?fieldValidation=Strict";

fn bind() -> Vec<Request> {
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

fn outbox() -> (Outbox, Server) {
    let (client, server) = start();
    let clock = Clock::new();
    (Outbox::new(client, clock, Leads::always(clock)), server)
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again_when_it_says_so() {
    let (mut outbox, mut server) = outbox();
    outbox.send(EffectId(1), &"uid-1".into(), bind());
    let asked = server.next().await;
    assert_eq!(asked.what, BIND);
    assert_eq!(asked.body["target"]["name"], "node-1");
    let begun = tokio::time::Instant::now();
    asked.answer_with(429, &[("retry-after", "7")], "slow down".to_owned());
    let again = server.next().await;
    assert_eq!((again.what.as_str(), begun.elapsed().as_secs()), (BIND, 7));
    again.answer(201, json!({"kind": "Status", "status": "Success"}));
    let done = outbox.done().await;
    assert_eq!((done.effect, done.outcome), (EffectId(1), Outcome::Ok));
    assert_eq!(outbox.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_bind_whose_answer_was_lost_is_known_by_what_the_server_says_to_the_second() {
    let (mut outbox, mut server) = outbox();
    outbox.send(EffectId(1), &"uid-1".into(), bind());
    server.next().await.cut();
    let text = "Operation cannot be fulfilled on pods/binding \"web-1\": pod web-1 is already assigned to node \"node-1\"";
    let conflict = json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": text});
    server.next().await.answer(409, conflict.clone());
    assert_eq!(outbox.done().await.outcome, Outcome::Ok);

    // Said to the first, it is somebody else's bind.
    outbox.send(EffectId(2), &"uid-1".into(), bind());
    server.next().await.answer(409, conflict);
    assert_eq!(outbox.done().await.outcome, Outcome::Conflict(text.into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_not_asked_again() {
    let (mut outbox, mut server) = outbox();
    let not_found = json!({"kind": "Status", "code": 404, "message": "pods \"web-1\" not found"});
    outbox.send(EffectId(1), &"uid-1".into(), bind());
    server.next().await.answer(404, not_found);
    assert_eq!(outbox.done().await.outcome, Outcome::Gone);

    let forbidden =
        json!({"kind": "Status", "code": 403, "message": "pods \"web-1\" is forbidden"});
    outbox.send(EffectId(2), &"uid-1".into(), bind());
    server.next().await.answer(403, forbidden);
    let refused = Outcome::Failed("pods \"web-1\" is forbidden".into());
    assert_eq!(outbox.done().await.outcome, refused);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let (mut outbox, mut server) = outbox();
    outbox.send(EffectId(1), &"uid-1".into(), bind());
    let begun = tokio::time::Instant::now();
    let mut asked = Vec::new();
    let done = loop {
        tokio::select! {
            next = server.next() => asked.push(next),
            done = outbox.done() => break done,
        }
    };
    assert!(
        matches!(done.outcome, Outcome::Failed(_)),
        "{:?}",
        done.outcome
    );
    // Thirty seconds each, and what lies between two.
    let tries = u64::try_from(asked.len()).unwrap();
    assert!((1..=4).contains(&tries), "{tries} tries");
    assert!(begun.elapsed().as_secs() <= 30 * tries + 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_for_of_one_pod_is_asked_in_order() {
    let (mut outbox, mut server) = outbox();
    outbox.send(EffectId(1), &"uid-1".into(), bind());
    outbox.send(EffectId(2), &"uid-1".into(), bind());
    outbox.send(EffectId(3), &"uid-2".into(), bind());
    // The first, and that of the other pod.
    let (first, other) = (server.next().await, server.next().await);
    let quiet = tokio::time::timeout(std::time::Duration::from_secs(20), server.next()).await;
    assert!(quiet.is_err(), "the second overtakes the first");
    let ok = json!({"kind": "Status", "status": "Success"});
    first.answer(201, ok.clone());
    assert_eq!(outbox.done().await.effect, EffectId(1));
    server.next().await.answer(201, ok.clone());
    assert_eq!(outbox.done().await.effect, EffectId(2));
    other.answer(201, ok);
    assert_eq!(outbox.done().await.effect, EffectId(3));
    assert_eq!(outbox.waiting(), 0);
}
