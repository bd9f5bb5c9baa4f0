//! Requests, questions and their results under way: a process waits for one at a time.

use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::registration::ANSWER_WITHIN;
use strew_runtime::registration::way::{Failed, Unreached};
use strew_wire::request::{Answer, Request, Verb};

use crate::client::WriteFault;

const MILLION: u64 = 1_000_000;

/// How long a request or a question takes, in milliseconds.
const TAKES: (u64, u64) = (1, 20);

/// What is under way.
#[derive(Debug)]
enum Content {
    Request(Request),
    Arrived(Arrived),
}

/// What has come back to a process.
#[derive(Debug)]
pub(super) enum Arrived {
    /// An answer of the API server. `is_fault`: a fault has refused or lost it.
    Answer { answer: Answer, is_fault: bool },
    /// The result of a review of its own.
    Reviewed(Result<(), Failed>),
    /// The result of a question by the registered way.
    Asked(Result<(), Unreached>),
}

/// Whether a process reaches the API server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weather {
    /// Nothing arrives, and nothing comes back.
    pub(super) is_cut: bool,
    /// Faults of writes.
    pub(super) write: WriteFault,
}

/// The one request or question of a process.
#[derive(Debug, Default)]
pub(super) struct Transit(Option<(Instant, Content)>);

impl Transit {
    /// True if nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// When something arrives next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.as_ref().map(|(due, _)| *due)
    }

    /// Sends a request.
    pub(super) fn send(&mut self, now: Instant, request: Request, rng: &mut Prng) {
        self.0 = Some((now + takes(rng), Content::Request(request)));
    }

    /// The result of a question, which comes back after a while. A question without an answer takes its time limit.
    pub(super) fn ask(&mut self, now: Instant, result: Arrived, is_late: bool, rng: &mut Prng) {
        let after = if is_late { ANSWER_WITHIN } else { takes(rng) };
        self.0 = Some((now + after, Content::Arrived(result)));
    }

    /// Lets a request reach the API server, or its answer come back, if it is due. `Err`: neither was due.
    pub(super) fn step(
        &mut self,
        now: Instant,
        server: &mut Server,
        weather: Weather,
        rng: &mut Prng,
    ) -> Result<Option<Arrived>, ()> {
        let (_, content) = self.0.take_if(|(due, _)| *due <= now).ok_or(())?;
        let request = match content {
            Content::Arrived(arrived) => return Ok(Some(arrived)),
            Content::Request(request) => request,
        };
        let (answer, is_fault) = deliver(now, &request, server, weather, rng);
        let after = match answer {
            Answer::Lost(_) => ANSWER_WITHIN,
            _ => takes(rng),
        };
        let arrived = Content::Arrived(Arrived::Answer { answer, is_fault });
        self.0 = Some((now + after, arrived));
        Ok(None)
    }
}

fn takes(rng: &mut Prng) -> Span {
    Span::from_millis(rng.between(TAKES.0, TAKES.1))
}

/// The answer, and whether a fault made it.
fn deliver(
    now: Instant,
    request: &Request,
    server: &mut Server,
    weather: Weather,
    rng: &mut Prng,
) -> (Answer, bool) {
    let lost = || Answer::Lost("no answer in time".into());
    if weather.is_cut {
        return (lost(), true);
    }
    let WriteFault {
        conflict_ppm,
        lost_ppm,
    } = weather.write;
    let mut strikes = |ppm: u32| ppm > 0 && rng.chance(u64::from(ppm), MILLION);
    if strikes(lost_ppm) {
        if rng.chance(1, 2) {
            server.execute(now, request);
        }
        return (lost(), true);
    }
    if request.verb == Verb::JsonPatch && strikes(conflict_ppm) {
        let body =
            br#"{"kind": "Status", "reason": "Invalid", "message": "a test of the patch failed"}"#;
        return (Answer::of(422, None, body), true);
    }
    (server.execute(now, request), false)
}
