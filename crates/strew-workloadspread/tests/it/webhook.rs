//! A webhook that is away: every WorkloadSpread reports it.

use strew_workloadspread::controller::{EventKind, Input};
use strew_workloadspread::facts::status::Webhook;

use crate::desk::*;
use crate::world::*;

/// Why the webhook is not ready, and since when, from the status.
fn said(desk: &Desk) -> Option<(Webhook, u64)> {
    let condition = desk.ws.status.webhook?;
    Some((condition.why, condition.since.secs()))
}

#[test]
fn the_condition_and_an_event_come_and_go() {
    let words = words();
    let ws = spread(words.web(), vec![subset("a", None)]);
    let mut desk = Desk::new(&words, ws, &[workload(words.web(), 5)]);
    desk.run();
    let steps = [
        (Webhook::Answers, None, None),
        (
            Webhook::NotRegistered,
            Some((Webhook::NotRegistered, NOW + 2)),
            Some(EventKind::WebhookNotRegistered),
        ),
        (
            Webhook::NotRegistered,
            Some((Webhook::NotRegistered, NOW + 2)),
            None,
        ),
        (
            Webhook::NotReady,
            Some((Webhook::NotReady, NOW + 2)),
            Some(EventKind::WebhookNotReady),
        ),
        (Webhook::Answers, None, Some(EventKind::WebhookReady)),
    ];
    for (webhook, condition, event) in steps {
        desk.pass(1);
        desk.events.clear();
        let before = desk.writes;
        desk.tell(Input::Webhook(webhook));
        desk.run();
        let events: Vec<EventKind> = desk.events.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(events, event.into_iter().collect::<Vec<_>>());
        assert_eq!(said(&desk), condition);
        let n_writes = desk.writes - before;
        assert_eq!(n_writes, usize::from(event.is_some()), "{webhook:?}");
    }
}

#[test]
fn a_controller_that_knows_nothing_of_the_webhook_leaves_the_condition() {
    let words = words();
    let ws = spread(words.web(), vec![subset("a", None)]);
    let owner = workload(words.web(), 5);
    let mut desk = Desk::new(&words, ws, std::slice::from_ref(&owner));
    desk.tell(Input::Webhook(Webhook::NotRegistered));
    desk.run();
    let before = said(&desk);
    assert!(before.is_some());
    let mut next = Desk::new(&words, desk.ws.clone(), std::slice::from_ref(&owner));
    next.add(pod(&owner, "p0", Some("a")));
    next.run();
    assert_eq!(next.overall(), ["a 1/-1"]);
    assert_eq!(said(&next), before);
    next.tell(Input::Webhook(Webhook::Answers));
    next.run();
    assert_eq!(said(&next), None);
}
