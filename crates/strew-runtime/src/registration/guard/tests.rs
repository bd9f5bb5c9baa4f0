use serde_json::json;
use strew_wire::request::{Resource, Verb};
use strew_wire::workloadspread::registration::{REGISTERED_BY, Reach, Registration as Wanted};

use super::*;

const START: Instant = Instant::from_secs(1_795_000_000);

/// A registered webhook whose only replica renews its annotation every 2 s until it is killed.
struct FakeServer {
    now: Instant,
    configuration: Value,
    killed: Instant,
}

impl FakeServer {
    fn new(killed: Instant) -> Self {
        let wanted = Wanted {
            reach: Reach::Service("strew-system".to_owned()),
            namespace: "strew-system".to_owned(),
            failure_policy: "Fail",
            excluded: Vec::new(),
            daemon_sets: false,
        };
        let mut configuration = wanted.mutating_registered();
        configuration["metadata"]["annotations"] = json!({ REGISTERED_BY: "a" });
        configuration["metadata"]["resourceVersion"] = "1".into();
        Self {
            now: START,
            configuration,
            killed,
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        let object = match request.resource {
            Resource::LEASES => {
                let renewed = self.now.min(self.killed).since(START).0 / 2_000_000_000;
                json!({"metadata": {"annotations": {"replica.webhook.strew.dev/a": renewed.to_string()}}})
            }
            _ => self.configuration.clone(),
        };
        Answer::of(200, None, object.to_string().as_bytes())
    }

    /// How long after the kill the guard takes the webhook out. Each question takes this long.
    fn taken_out_after(&mut self, question: Span, result: &Result<(), Unreached>) -> Span {
        let mut guard = Guard::new(Settings::default(), "strew-system");
        let end = self.killed + Span::from_secs(60);
        while self.now < end {
            match guard.next(self.now) {
                Task::Send(request) if request.verb == Verb::JsonPatch => {
                    return self.now.since(self.killed);
                }
                Task::Send(request) => {
                    let answer = self.answer(&request);
                    self.now = self.now + Span::from_millis(10);
                    guard.answered(self.now, &answer);
                }
                Task::Ask(..) => {
                    self.now = self.now + question;
                    guard.asked(self.now, result.clone());
                }
                Task::Say(_) => {}
                Task::Wait(until) => self.now = until,
            }
        }
        panic!("it is never taken out");
    }
}

/// A network may be open to the API server alone: then the controller's question gets no answer.
#[test]
fn a_question_without_an_answer_delays_no_removal() {
    let hidden = Err(Unreached {
        why: "no answer".to_owned(),
        is_certain: false,
    });
    for millis in (20_000..26_000).step_by(100) {
        let mut world = FakeServer::new(START + Span::from_millis(millis));
        let after = world.taken_out_after(Span::from_secs(3), &hidden);
        assert!(after < Span::from_millis(9_500), "{millis}: {after}");
    }
}

#[test]
fn replicas_that_are_killed_are_taken_out_within_ten_seconds() {
    for millis in (20_000..26_000).step_by(100) {
        let mut world = FakeServer::new(START + Span::from_millis(millis));
        let after = world.taken_out_after(Span::from_millis(10), &Ok(()));
        assert!(after < Span::from_millis(8_500), "{millis}: {after}");
        assert!(after > Span::from_secs(4), "{millis}: {after}");
    }
}
