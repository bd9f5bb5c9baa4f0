//! Requests of both components, through the faults of the moment.

use strew_api::request::{Answer, Request, Verb};
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::client::WriteFault;
use crate::feed::WatchFault;
use crate::timing::Between;

/// What befalls calls of the webhook for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebhookFault {
    /// Of a million calls so many time out; half of those are carried out all the same.
    pub lost_ppm: u32,
    /// Of a million of its writes so many get no answer; half of those are carried out all the same.
    pub write_lost_ppm: u32,
    /// Each write for a call that may wait takes up to so much longer.
    pub slower: Span,
}

/// The faults that the webhook meets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) watch: Option<WatchFault>,
    pub(crate) write: Option<WriteFault>,
    pub(crate) call: Option<WebhookFault>,
}

/// What a component may use to send something.
pub(crate) struct Line<'a> {
    pub(crate) now: Instant,
    pub(crate) server: &'a mut Server,
    pub(crate) weather: Weather,
    pub(crate) dice: &'a mut Prng,
    /// How many more requests the component lives to send.
    pub(crate) writes_left: Option<&'a mut u32>,
    /// Whether somebody judges what is done.
    pub(crate) is_judged: bool,
    /// How long a status write takes.
    pub(crate) status_write: Between,
}

const MILLION: u64 = 1_000_000;

impl Line<'_> {
    pub(crate) fn strikes(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.dice.chance(u64::from(ppm), MILLION)
    }

    /// Whether a status write takes any time.
    pub(crate) fn is_slow(&self) -> bool {
        self.status_write.max > Span::default() || self.slower() > Span::default()
    }

    fn slower(&self) -> Span {
        self.weather.call.map_or(Span::default(), |c| c.slower)
    }

    /// How long the next status write takes.
    pub(crate) fn write_time(&mut self) -> Span {
        let longer = Between {
            min: Span::default(),
            max: self.slower(),
        };
        let mut draw = |between: Between| match between.min < between.max {
            true => between.draw(self.dice),
            false => between.min,
        };
        Span(draw(self.status_write).0 + draw(longer).0)
    }

    /// Brings a request to the server; `None`: nobody will ever hear what became of it.
    pub(crate) fn send(&mut self, request: &Request) -> Option<Answer> {
        if let Some(left) = &mut self.writes_left {
            if **left == 0 {
                return None;
            }
            **left -= 1;
        }
        let writes = matches!(request.verb, Verb::Update | Verb::Patch);
        let conflicts = self.weather.write.map_or(0, |fault| fault.conflict_ppm);
        if writes && self.strikes(conflicts) {
            let body = br#"{"kind": "Status", "reason": "Conflict", "message": "the object has been modified"}"#;
            return Some(Answer::of(409, None, body));
        }
        let lost = self.weather.call.map_or(0, |fault| fault.write_lost_ppm);
        if writes && self.strikes(lost) {
            if self.dice.chance(1, 2) {
                self.server.execute(self.now, request);
            }
            return None;
        }
        Some(self.server.execute(self.now, request))
    }

    /// Whether the component has sent its last request.
    pub(crate) fn is_dead(&self) -> bool {
        self.writes_left.as_ref().is_some_and(|left| **left == 0)
    }
}
