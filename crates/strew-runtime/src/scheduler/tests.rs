//! The decision log, and events that come again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use strew_api::facts::Named;
use strew_api::read::KubeObject;
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::Profile;
use strew_scheduler::machine::Limits;
use tracing::span;

use super::*;
use crate::driver::{Action, Driver, Event, Progress};
use crate::watch::Object;

const START: Instant = Instant::from_secs(1_000);

/// Counts the lines of the decision log.
struct Decisions(Arc<AtomicUsize>);

impl tracing::Subscriber for Decisions {
    fn enabled(&self, of: &tracing::Metadata<'_>) -> bool {
        of.target() == "strew::decision"
    }

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn there(kind: Kind, object: Value) -> Update {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or("").into();
    let named = Named {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
    };
    let object = KubeObject::of_json(object).expect("an object");
    Update::Set(kind, named, Box::new(Object::Known(object)))
}

/// How many decisions are in the log of a scheduler that has a pod, and a node with room for it, and sends so many
/// requests; the lease ends so many seconds after the decision.
fn logged(lease_left_s: i64) -> (usize, usize) {
    let profiles = vec![Profile::default()];
    let scheduler = Scheduler::new(Interner::default(), profiles, Limits::production(), START);
    let machine = SchedulerMachine::new(scheduler, "here".to_owned());
    let mut driver = Driver::new(machine, Watches::default(), Span::from_secs(60), 1);
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1", "uid": "1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web", "uid": "2"},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "web"}]},
    });
    driver.tell(|machine, watches| {
        for update in [
            there(Kind::of::<Node>(), node),
            there(Kind::of::<Pod>(), pod),
        ] {
            machine.take_in(START, update, watches);
        }
    });
    let at = |now| Moment { now, wall: now };
    let decided = START + Span::from_secs(10);
    let ends = Instant(
        decided
            .0
            .saturating_add_signed(lease_left_s * 1_000_000_000),
    );
    driver.handle(at(START), Event::Lease(decided + Span(1)), &mut ());
    assert!(matches!(
        driver.poll(at(decided), &mut ()),
        Progress::Decided
    ));
    driver.handle(at(decided), Event::Lease(ends), &mut ());
    let n = Arc::new(AtomicUsize::new(0));
    let guard = tracing::subscriber::set_default(Decisions(Arc::clone(&n)));
    let next = driver.poll(at(decided), &mut ());
    assert_eq!(driver.outbox().waiting(), 1);
    drop(guard);
    let is_sent = matches!(next, Progress::Do(Action::Send(..)));
    (n.load(Ordering::Relaxed), usize::from(is_sent))
}

#[test]
fn what_is_decided_by_who_does_not_lead_any_more_is_no_decision() {
    assert_eq!(logged(1), (1, 1));
    assert_eq!(logged(-1), (0, 0));
}
