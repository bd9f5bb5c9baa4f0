//! When a request is sent again: moments to come back at, never a sleep.

use strew_model::time::Span;
use strew_runtime::watch::Watches;
use strew_wire::request::Answer;

use crate::toy::{START, ToyDriver, code};

/// The waits between attempts in milliseconds while the answer is always the same, and what is heard in the end.
fn waits(answer: &Answer) -> (Vec<u64>, Vec<String>) {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["a1"]);
    let mut waits = Vec::new();
    loop {
        assert_eq!(world.poll(), "a1");
        world.answer("a1", answer.clone());
        assert_eq!(world.poll(), "", "not before its time");
        let Some(wait) = world.idle_for() else {
            return (waits, world.heard());
        };
        waits.push(wait.0 / 1_000_000);
        world.now = world.now + wait;
    }
}

#[test]
fn a_request_is_sent_again_at_its_time() {
    let busy = Answer::of(429, Some("7"), b"{}");
    let lost = Answer::Lost("cut".into());
    let refused = Answer::Refused("no route".into());
    for (answer, expected, end) in [
        (code(200), vec![], "a1: Ok"),
        (code(404), vec![], "a1: Gone"),
        (code(403), vec![], "a1: Failed"),
        (code(500), vec![10, 50, 250], "a1: Failed"),
        (code(409), vec![10, 50, 250], "a1: Conflict"),
        (lost, vec![10, 50, 250], "a1: Failed"),
        (refused, vec![10, 50, 250], "a1: Failed"),
        (busy, vec![7_000; 8], "a1: Failed"),
    ] {
        let (waits, heard) = waits(&answer);
        assert_eq!(waits.len(), expected.len(), "{answer:?}: {waits:?}");
        for (wait, expected) in waits.iter().zip(expected) {
            // A wait is up to a tenth longer, but for one that the server asks for.
            assert!(
                (expected..=expected + expected / 10).contains(wait),
                "{answer:?}: {waits:?}"
            );
        }
        assert_eq!(heard.len(), 1);
        assert!(heard[0].starts_with(end), "{answer:?}: {heard:?}");
    }
}

#[test]
fn patience_begins_when_a_request_may_go_out() {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["a1"]);
    world.want("a", &["a2"]);
    world.poll();
    // The first takes all of its patience, and the second still has its own.
    world.now = START + Span::from_secs(59);
    world.answer("a1", code(200));
    assert_eq!(world.poll(), "a2");
    world.now = world.now + Span::from_secs(30);
    world.answer("a2", code(500));
    world.poll();
    assert!(world.idle_for().is_some(), "it is sent again");
}
