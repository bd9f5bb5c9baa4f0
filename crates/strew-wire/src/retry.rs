//! Decides when a request is retried: a policy without clock, randomness or sleep.
//!
//! The numbers are client-go's: a status patch of a pod is sent up to four times, with pauses of 10, 50 and 250 ms
//! (`retry.DefaultBackoff`), after a conflict, 500, 503 or a failed connection. A request waits as long as a busy
//! server asks, up to ten times (`rest.maxRetries`). Two differences on purpose: other requests are also repeated if
//! their result is unknown, since every request may be sent twice (see [`request`](crate::request)); and all retries
//! end at a deadline. Source: spec/scheduler §5.8.

use strew_model::time::{Instant, Span};

use crate::request::{Answer, Request, Verb};

/// The most attempts, beside those after which a busy server asked to wait. Source: client-go,
/// `retry.DefaultBackoff.Steps`.
const TRIES_MAX: u32 = 4;

/// How often a busy server may ask to wait. Source: client-go, `rest.maxRetries`.
const BUSY_MAX: u32 = 10;

/// The first wait. Source: client-go, `retry.DefaultBackoff.Duration`.
const FIRST_WAIT: Span = Span::from_millis(10);

/// The factor between two waits. Source: client-go, `retry.DefaultBackoff.Factor`.
const FACTOR: u64 = 5;

/// A wait is up to a tenth longer. Source: client-go, `retry.DefaultBackoff.Jitter`.
const JITTER_PART: u64 = 10;

/// The decision after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Send it again after this wait.
    After(Span),
    /// The answer is final.
    GiveUp,
}

/// The attempts of a request so far.
#[derive(Debug, Clone)]
pub struct Retrying {
    tries: u32,
    busy: u32,
    deadline: Instant,
    repeated: bool,
}

impl Retrying {
    /// A request before its first attempt; no attempt starts after the deadline.
    pub fn new(deadline: Instant) -> Self {
        Self {
            tries: 0,
            busy: 0,
            deadline,
            repeated: false,
        }
    }

    /// True if an attempt before the last one may have been carried out, as [`outcome_of`](crate::request::outcome_of)
    /// needs to know.
    pub fn repeated(&self) -> bool {
        self.repeated
    }

    /// The decision after an answer that arrived at `now`; `dice` is a new random number each time.
    ///
    /// After [`Retry::GiveUp`] the answer is final: [`outcome_of`](crate::request::outcome_of) gives its meaning.
    pub fn next(&mut self, request: &Request, answer: &Answer, now: Instant, dice: u64) -> Retry {
        match is_worth_it(request, answer) {
            true => self.after(answer, now, dice),
            false => Retry::GiveUp,
        }
    }

    /// As [`next`](Self::next), for a request that reads.
    pub fn next_read(&mut self, answer: &Answer, now: Instant, dice: u64) -> Retry {
        match may_change(answer) {
            true => self.after(answer, now, dice),
            false => Retry::GiveUp,
        }
    }

    fn after(&mut self, answer: &Answer, now: Instant, dice: u64) -> Retry {
        let wait = match answer.retry_after() {
            Some(asked) => {
                self.busy += 1;
                (self.busy <= BUSY_MAX).then_some(asked)
            }
            None => {
                let wait = jittered(FIRST_WAIT.0 * FACTOR.pow(self.tries.min(TRIES_MAX)), dice);
                self.tries += 1;
                (self.tries < TRIES_MAX).then_some(wait)
            }
        };
        match wait {
            Some(wait) if now + wait < self.deadline => {
                self.repeated |= may_be_done(answer);
                Retry::After(wait)
            }
            _ => Retry::GiveUp,
        }
    }
}

fn is_worth_it(request: &Request, answer: &Answer) -> bool {
    match answer {
        // The request was not sent.
        Answer::Refused(_) => true,
        _ if answer.code() == Some(429) => true,
        // Another client wrote between the server's own read and write; a patch still applies.
        _ if answer.code() == Some(409) => {
            request.verb == Verb::Patch && !answer.is_of_another_uid()
        }
        _ => request.is_idempotent() && may_change(answer),
    }
}

/// True if the server may give another answer shortly.
fn may_change(answer: &Answer) -> bool {
    match answer.code() {
        Some(code) => matches!(code, 429 | 500 | 502..=504),
        None => true,
    }
}

/// True if the request may have been carried out, although the answer is no success.
fn may_be_done(answer: &Answer) -> bool {
    matches!(answer, Answer::Lost(_)) || matches!(answer.code(), Some(500..=599))
}

fn jittered(nanos: u64, dice: u64) -> Span {
    Span(nanos + dice % (nanos / JITTER_PART + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strew_model::Prng;

    use super::*;
    use crate::request::{Precondition, Resource};

    const START: Instant = Instant::from_secs(100);
    const BIND: (Verb, &str) = (Verb::Create, "binding");
    const STATUS: (Verb, &str) = (Verb::Patch, "status");
    const UPDATE: (Verb, &str) = (Verb::Update, "");

    fn request((verb, subresource): (Verb, &'static str)) -> Request {
        Request {
            verb,
            resource: Resource::PODS,
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
            subresource,
            body: json!({}),
            precondition: Precondition::default(),
        }
    }

    fn code(code: u16) -> Answer {
        Answer::of(code, None, b"{}")
    }

    fn busy(code: u16, seconds: &str) -> Answer {
        Answer::of(code, Some(seconds), b"{}")
    }

    /// The waits in milliseconds while the answer is always the same, without jitter.
    fn waits(request: &Request, answer: &Answer, within: Span) -> Vec<u64> {
        let (mut retrying, mut now) = (Retrying::new(START + within), START);
        let mut waits = Vec::new();
        while let Retry::After(wait) = retrying.next(request, answer, now, 0) {
            waits.push(wait.0 / 1_000_000);
            now = now + wait;
        }
        waits
    }

    #[test]
    fn what_is_sent_again_and_when() {
        let backoff: &[u64] = &[10, 50, 250];
        let never: &[u64] = &[];
        let refused = Answer::Refused("".into());
        let lost = Answer::Lost("".into());
        let other_uid = Answer::of(409, None, br#"{"message": "Precondition failed: UID in"}"#);
        for (of, answer, expected) in [
            (STATUS, code(409), backoff),
            (STATUS, code(500), backoff),
            (STATUS, code(503), backoff),
            (STATUS, refused.clone(), backoff),
            (STATUS, other_uid, never),
            (STATUS, code(404), never),
            (STATUS, code(422), never),
            (STATUS, code(200), never),
            (BIND, code(201), never),
            (BIND, code(409), never),
            (BIND, code(403), never),
            (BIND, code(500), backoff),
            (BIND, lost.clone(), backoff),
            (UPDATE, lost, never),
            (UPDATE, code(503), never),
            (UPDATE, refused, backoff),
            (UPDATE, code(429), backoff),
            (BIND, busy(429, "1"), &[1000; 10]),
            (BIND, busy(503, "2"), &[2000; 10]),
            (BIND, busy(409, "1"), never),
        ] {
            let waits = waits(&request(of), &answer, Span::from_secs(60));
            assert_eq!(waits, expected, "{of:?} {answer:?}");
        }
    }

    #[test]
    fn what_reads_is_sent_again_unless_it_was_answered() {
        let next = |answer: &Answer| {
            Retrying::new(START + Span::from_secs(60)).next_read(answer, START, 0)
        };
        let soon = Retry::After(FIRST_WAIT);
        for (answer, expected) in [
            (code(200), Retry::GiveUp),
            (code(403), Retry::GiveUp),
            (code(404), Retry::GiveUp),
            (code(409), Retry::GiveUp),
            (code(500), soon),
            (code(503), soon),
            (code(429), soon),
            (busy(429, "1"), Retry::After(Span::from_secs(1))),
            (Answer::Refused("".into()), soon),
            (Answer::Lost("".into()), soon),
        ] {
            assert_eq!(next(&answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn nothing_is_sent_past_the_deadline() {
        let within = Span::from_secs(3);
        assert_eq!(waits(&request(BIND), &busy(429, "1"), within), [1000, 1000]);
        assert!(waits(&request(BIND), &busy(429, "18446744073709551615"), within).is_empty());
        let within = Span::from_millis(61);
        assert_eq!(waits(&request(BIND), &code(500), within), [10, 50]);
    }

    #[test]
    fn what_may_have_been_carried_out_is_remembered() {
        let repeated = |answers: &[Answer]| {
            let mut retrying = Retrying::new(START + Span::from_secs(60));
            for answer in answers {
                retrying.next(&request(BIND), answer, START, 0);
            }
            retrying.repeated()
        };
        let refused = Answer::Refused("".into());
        assert!(!repeated(&[refused.clone(), code(429), busy(429, "1")]));
        assert!(repeated(&[refused, Answer::Lost("".into()), code(429)]));
        assert!(repeated(&[code(504)]));
        assert!(!repeated(&[code(403)]));
    }

    #[test]
    fn waits_are_up_to_a_tenth_longer() {
        let mut dice = Prng::new(1);
        for _ in 0..1000 {
            let mut retrying = Retrying::new(Instant(u64::MAX));
            let answer = code(500);
            let Retry::After(wait) =
                retrying.next(&request(STATUS), &answer, START, dice.next_u64())
            else {
                panic!("the first answer is not the last");
            };
            assert!((Span::from_millis(10)..=Span::from_millis(11)).contains(&wait));
        }
    }
}
