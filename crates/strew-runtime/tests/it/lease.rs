//! The lease is asked right before each request, and not when its effect was decided.

use strew_model::time::{Instant, Span};
use strew_runtime::watch::Watches;
use strew_runtime::{Action, Event, Progress};

use crate::toy::{START, ToyDriver, code};

fn secs(n: u64) -> Instant {
    START + Span::from_secs(n)
}

#[test]
fn a_replica_without_the_lease_decides_nothing_and_begins_once_it_has_it() {
    let mut world = ToyDriver::new(Watches::default());
    world.handle(Event::Lease(START));
    world.want("a", &["a1"]);
    assert_eq!(world.poll(), "");
    assert_eq!(world.driver.machine().wanted.len(), 1);
    assert_eq!(world.idle_for(), None);
    world.handle(Event::Lease(secs(10)));
    assert_eq!(world.idle_for(), Some(Span::default()), "at once");
    assert_eq!(world.poll(), "a1");
}

#[test]
fn a_lease_that_ends_between_decision_and_request_stops_the_request() {
    let mut world = ToyDriver::new(Watches::default());
    world.handle(Event::Lease(secs(10)));
    world.want("a", &["a1"]);
    assert!(matches!(
        world.driver.poll(world.at(), &mut ()),
        Progress::Decided
    ));
    world.now = secs(10);
    assert_eq!(world.poll(), "");
    assert_eq!(world.heard(), ["begins without the lease"]);
    assert_eq!(world.poll(), "");
    // It is tried again like a request that a dead API server refuses: the lease may come back in a moment.
    world.now = world.driver.next_wake().expect("it is tried again");
    world.handle(Event::Lease(secs(20)));
    assert_eq!(world.poll(), "a1");
}

#[test]
fn what_waits_to_be_sent_again_fails_when_the_lease_does_not_come_back() {
    let mut world = ToyDriver::new(Watches::default());
    world.handle(Event::Lease(secs(10)));
    world.want("a", &["a1", "a2"]);
    assert_eq!(world.poll(), "a1");
    world.answer("a1", code(500));
    world.handle(Event::Lease(world.now));
    while let Some(wake) = world.driver.next_wake() {
        world.now = wake.max(world.now);
        assert_eq!(world.poll(), "");
    }
    let expected = r#"a1: Failed("this replica does not lead any more")"#;
    assert_eq!(world.heard(), [expected]);
}

#[test]
fn a_request_that_was_sent_in_time_is_settled_after_the_lease() {
    let mut world = ToyDriver::new(Watches::default());
    world.handle(Event::Lease(secs(1)));
    world.want("a", &["a1"]);
    assert_eq!(world.poll(), "a1");
    world.now = secs(5);
    world.answer("a1", code(200));
    assert_eq!(world.heard(), ["a1: Ok"]);
}

#[test]
fn a_driver_that_ends_decides_nothing_more_and_settles_what_is_on_its_way() {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["a1", "a2"]);
    assert_eq!(world.poll(), "a1");
    world.want("b", &["b1"]);
    let decided = world.driver.poll(world.at(), &mut ());
    assert!(matches!(decided, Progress::Decided));
    world.driver.end();
    assert_eq!(world.poll(), "");
    world.answer("a1", code(200));
    let next = world.driver.poll(world.at(), &mut ());
    assert!(matches!(next, Progress::Do(Action::Send(_, request)) if request.name == "a2"));
}
