use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::client::Body;
use serde_json::{Value, json};
use strew_api::config::{Configuration, FeatureGates};
use strew_api::read::KubeObject;
use strew_api::watch::Named;
use strew_scheduler::Profile;
use tracing::span;

use super::*;
use crate::leading::Leads;
use crate::watch::Object;

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

fn there(kind: Kind, object: Value) -> Told {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or("").into();
    let named = Named {
        namespace: text("namespace"),
        name: text("name"),
        uid: text("uid"),
    };
    let object = KubeObject::of_json(object).expect("an object");
    Told::Set(kind, named, Box::new(Object::Known(object)))
}

fn candidate(client: &Client, clock: Clock) -> Leading {
    let mut election = Configuration::of_gates(&FeatureGates::default()).leader_election;
    election.leader_elect = true;
    let settings = Settings::of(&election, "here_1".to_owned());
    Leading::new(Some(settings), client.clone(), clock, 1)
}

/// How many decisions are in the log of a scheduler that has a pod, and a node with room for it.
#[tokio::main(flavor = "current_thread")]
async fn logged(leads: impl FnOnce(&Client, Clock) -> Leads) -> usize {
    let (service, _server) = tower_test::mock::pair::<http::Request<Body>, http::Response<Body>>();
    let (client, clock) = (Client::new(service, "default"), Clock::new());
    let profiles = vec![Profile::default()];
    let limits = Limits::default();
    let mut decider = Decider {
        machine: Scheduler::new(Interner::default(), profiles, limits, clock.now()),
        seen: Seen::default(),
        series: Series::default(),
        hostname: "here".to_owned(),
    };
    let mut watches = Watches::new(client.clone());
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-1", "uid": "1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "shop", "name": "web", "uid": "2"},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "web"}]},
    });
    for told in [
        there(Kind::of::<Node>(), node),
        there(Kind::of::<Pod>(), pod),
    ] {
        decider.take_in(clock.now(), told, &mut watches);
    }
    let mut outbox = Outbox::new(client.clone(), clock, leads(&client, clock));
    let n = Arc::new(AtomicUsize::new(0));
    let guard = tracing::subscriber::set_default(Decisions(Arc::clone(&n)));
    decider.tick(clock.now());
    assert!(decider.carry_out(&clock, &mut outbox), "there is an effect");
    assert_eq!(outbox.waiting(), 1);
    drop(guard);
    n.load(Ordering::Relaxed)
}

#[test]
fn what_is_decided_by_who_does_not_lead_any_more_is_no_decision() {
    assert_eq!(logged(|_, clock| Leads::always(clock)), 1);
    let not_leading = |client: &Client, clock| candidate(client, clock).leads().clone();
    assert_eq!(logged(not_leading), 0);
}
