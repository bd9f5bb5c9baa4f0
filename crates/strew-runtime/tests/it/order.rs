//! Order per object, and back-pressure.

use strew_runtime::Event;
use strew_runtime::watch::Watches;

use crate::toy::{ToyDriver, code};

#[test]
fn chains_about_one_object_are_carried_out_one_after_another() {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["a1", "a2"]);
    world.want("a", &["a3"]);
    world.want("b", &["b1"]);
    assert_eq!(world.poll(), "a1 b1");
    world.answer("a1", code(200));
    assert_eq!(world.poll(), "a2", "the chain goes on before the next one");
    world.answer("b1", code(404));
    assert_eq!(world.poll(), "");
    world.answer("a2", code(200));
    assert_eq!(world.poll(), "a3");
    world.answer("a3", code(200));
    let heard = ["a1: Ok", "b1: Gone", "a2: Ok", "a3: Ok"];
    assert_eq!(world.heard(), heard);
    assert_eq!(world.driver.outbox().waiting(), 0);
}

/// A refusal that is to be sent again must not arrive after the bind that was decided later.
#[test]
fn a_chain_waits_for_the_one_before_while_that_is_sent_again() {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["refusal"]);
    world.want("a", &["bind"]);
    assert_eq!(world.poll(), "refusal");
    world.answer("refusal", code(500));
    assert_eq!(world.poll(), "");
    world.now = world.driver.next_wake().expect("it is sent again");
    assert_eq!(world.poll(), "refusal");
    world.answer("refusal", code(200));
    assert_eq!(world.poll(), "bind");
}

#[test]
fn a_chain_that_fails_sends_none_of_the_rest_and_lets_the_next_one_begin() {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["a1", "a2"]);
    world.want("a", &["a3"]);
    assert_eq!(world.poll(), "a1");
    world.answer("a1", code(404));
    assert_eq!(world.poll(), "a3");
}

#[test]
fn sixty_four_requests_are_on_their_way_at_once_and_256_chains_wait() {
    let mut world = ToyDriver::new(Watches::default());
    let about = |n: usize| -> &'static str { Box::leak(format!("p{n}").into_boxed_str()) };
    for n in 0..300 {
        world.want(about(n), &["patch"]);
    }
    world.poll();
    assert_eq!(
        (world.open.len(), world.driver.outbox().waiting()),
        (64, 256)
    );
    assert_eq!(world.driver.machine().wanted.len(), 44, "not asked for");
    // However early the machine would like to go on, only an answer helps.
    world
        .driver
        .tell(|toy, _| toy.wake = Some(crate::toy::START));
    world.poll();
    assert_eq!(world.idle_for(), None);
    for _ in 0..10 {
        world.answer("patch", code(200));
    }
    world.poll();
    assert_eq!(
        (world.open.len(), world.driver.outbox().waiting()),
        (64, 256)
    );
    assert_eq!(world.driver.machine().wanted.len(), 34);
}

#[test]
fn events_take_no_place_of_the_others_and_are_dropped_beyond_a_limit() {
    let mut world = ToyDriver::new(Watches::default());
    world.driver.tell(|toy, _| {
        toy.events = (0..5_000).map(|n| format!("e{n}")).collect();
    });
    assert_eq!(world.poll(), "e0 e1 e2 e3 e4 e5 e6 e7");
    assert_eq!(world.driver.outbox().dropped(), 904);
    world.want("a", &["bind"]);
    assert_eq!(world.poll(), "bind");
    world.answer("e3", code(201));
    assert_eq!(world.poll(), "e8");
    // One that is to be sent again keeps its place.
    world.answer("e5", code(500));
    assert_eq!(world.poll(), "");
    world.now = world.driver.next_wake().expect("it is sent again");
    assert_eq!(world.poll(), "e5");
}

#[test]
fn an_answer_that_nothing_waits_for_is_ignored() {
    let mut world = ToyDriver::new(Watches::default());
    world.want("a", &["a1"]);
    world.poll();
    let (_, ticket) = world.open[0].clone();
    world.answer("a1", code(200));
    world.handle(Event::Answered(ticket, code(500)));
    assert_eq!(world.poll(), "");
    assert_eq!(world.heard(), ["a1: Ok"]);
}
