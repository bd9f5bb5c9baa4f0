//! Leader election on a Lease, as a state machine without clock and randomness.
//!
//! [`Election`] has the verbs of every machine (`handle`, `poll_effect`, `next_wake`) and [`Election::leads`]. It has
//! one [`Request`] in flight at a time and takes its [`Answer`]. Durations and the order of steps are client-go's
//! (`tools/leaderelection`). Source: spec/scheduler §5.1, §5.4.
//!
//! # Why two never lead at once A leader leads until its renew deadline, counted from the moment it *sent* its last
//! successful write. A candidate writes only over a version of the lease that it has seen unchanged for the whole lease
//! duration, which is longer. Clocks of different machines are never compared; times in the lease are informative. A
//! jump of the candidate's clock does not shorten its wait: a span in which it asked to be woken and was not does not
//! count.
//!
//! # Which clock it needs One that continues while the machine is suspended (`CLOCK_BOOTTIME`). With a clock that
//! stops, a leader would still believe that it leads when it wakes up.

mod record;
#[cfg(test)]
mod tests;

use strew_model::time::{Instant, Span};

use record::{Record, Writing};

use crate::config::LeaderElection;
use crate::request::{Answer, Request};

/// The settings of an election: the lease and the candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The candidate's identity, unique and new after each restart (`<hostname>_<uuid>`).
    pub identity: String,
    /// How long a lease holds without a renewal; whole seconds, at least 1.
    pub lease_duration: Span,
    /// How long a leader continues without a renewal; less than `lease_duration`.
    pub renew_deadline: Span,
    /// The wait between two attempts. For safety against small jumps of the clock, the lease duration should exceed the
    /// renew deadline by more than twice this.
    pub retry_period: Span,
}

impl Settings {
    /// The settings of a validated configuration.
    pub fn of(election: &LeaderElection, identity: String) -> Self {
        let span = |d: std::time::Duration| Span(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
        Self {
            namespace: election.resource_namespace.clone(),
            name: election.resource_name.clone(),
            identity,
            lease_duration: span(election.lease_duration),
            renew_deadline: span(election.renew_deadline),
            retry_period: span(election.retry_period),
        }
    }

    /// The time limit of a request. Source: client-go, `resourcelock.NewFromKubeconfig`.
    fn patience(&self) -> Span {
        Span(self.renew_deadline.0 / 2).max(Span::from_secs(1))
    }
}

/// The time of an input.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// This host's monotonic clock, on which all decisions are based.
    pub now: Instant,
    /// The wall clock, for readers of the lease.
    pub wall: Instant,
    /// A new random number each time.
    pub dice: u64,
}

/// The id of a request; ids only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// An input of an election.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The answer to a request. An answer that is no longer expected is ignored.
    Answered(Ticket, Answer),
    /// Only time has passed.
    Tick,
    /// This replica ends: it releases the lease, so that another one need not wait.
    Shutdown,
}

/// A request to send once.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The id of the answer.
    pub ticket: Ticket,
    /// The request.
    pub request: Request,
}

/// A lease as last seen.
#[derive(Debug, Clone)]
struct Seen {
    record: Record,
    /// How long it has not changed, counting only waits that were observed.
    unchanged: Span,
}

#[derive(Debug, Clone)]
struct Flight {
    ticket: Ticket,
    sent: Instant,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Release,
}

/// One replica's part in an election.
#[derive(Debug, Clone)]
pub struct Election {
    settings: Settings,
    seen: Option<Seen>,
    /// True if the last read found no lease; `seen` is the one before.
    absent: bool,
    /// True if `seen` is what the API server holds, as far as known; otherwise the lease is read before it is written.
    fresh: bool,
    /// When this replica's leadership ends; `None` if it does not lead.
    leads_until: Option<Instant>,
    flight: Option<Flight>,
    asks: Option<Ask>,
    last_ticket: u64,
    next_try: Instant,
    /// The time of the last input.
    now: Instant,
    ended: bool,
}

impl Election {
    /// A candidate that has read nothing; its first attempt is due at once.
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            seen: None,
            absent: false,
            fresh: false,
            leads_until: None,
            flight: None,
            asks: None,
            last_ticket: 0,
            next_try: now,
            now,
            ended: false,
        }
    }

    /// True if this replica may act now. Call it before each action; do not keep the result.
    pub fn leads(&self, now: Instant) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// Until when this replica may act without a renewal; `None` if it does not lead.
    pub fn leads_until(&self) -> Option<Instant> {
        self.leads_until
    }

    /// The last known holder of the lease.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.record.holder()
    }

    /// Handles an input. Time that runs backwards counts as standing still.
    pub fn handle(&mut self, at: Moment, input: Input) {
        let at = Moment {
            now: self.now.max(at.now),
            ..at
        };
        self.pass_time(at.now);
        match input {
            Input::Answered(ticket, answer) => {
                if let Some(flight) = self.flight.take_if(|f| f.ticket == ticket) {
                    self.answered(at, &flight, &answer);
                }
            }
            Input::Tick => {}
            Input::Shutdown => self.shut_down(at),
        }
        if !self.ended && self.flight.is_none() && at.now >= self.next_try {
            self.try_now(at);
        }
    }

    /// The next request to send.
    pub fn poll_effect(&mut self) -> Option<Ask> {
        self.asks.take()
    }

    /// The next time without an input; `None` after the shutdown.
    pub fn next_wake(&self) -> Option<Instant> {
        if self.ended && self.flight.is_none() {
            return None;
        }
        let due = match &self.flight {
            Some(flight) => flight.sent + self.settings.patience(),
            None => self.next_try,
        };
        // A wait counts only up to a wake-up that was requested.
        let due = due.min(self.now + self.settings.retry_period);
        Some(self.leads_until.map_or(due, |until| due.min(until)))
    }
}

impl Election {
    fn pass_time(&mut self, now: Instant) {
        let passed = now.since(self.now);
        self.now = now;
        let counts = passed < Span(self.settings.retry_period.0.saturating_mul(2));
        if let Some(seen) = &mut self.seen
            && counts
        {
            seen.unchanged = Span(seen.unchanged.0.saturating_add(passed.0));
        }
        if self.leads_until.is_some_and(|until| now >= until) {
            self.leads_until = None;
        }
        let patience = self.settings.patience();
        if self.flight.take_if(|f| now >= f.sent + patience).is_some() {
            // Only a read can show whether it was carried out.
            self.fresh = false;
            self.asks = None;
            self.next_try = now;
        }
    }

    fn answered(&mut self, at: Moment, flight: &Flight, answer: &Answer) {
        let pause = self.pause(at.dice);
        match (flight.kind, answer.object(), answer.code()) {
            (Kind::Release, ..) => {}
            (Kind::Write, Some(lease), _) => {
                self.see(Record::of(lease.clone()));
                // An answer with a different lease than was written does not come from an API server.
                if self.is_ours() && self.ended {
                    self.release(at);
                } else if self.is_ours() {
                    self.leads_until = Some(flight.sent + self.settings.renew_deadline);
                }
                self.next_try = at.now + self.settings.retry_period;
            }
            _ if self.ended => {}
            (Kind::Read, Some(lease), _) => {
                self.see(Record::of(lease.clone()));
                self.looked(at);
            }
            (Kind::Read, None, Some(404)) => {
                self.absent = true;
                self.looked(at);
            }
            (Kind::Write, None, Some(404 | 409)) => {
                // Another candidate wrote. The next read shows the leader.
                self.fresh = false;
                let leads = self.leads_until.is_some();
                self.next_try = if leads { at.now } else { at.now + pause };
            }
            (Kind::Read | Kind::Write, None, _) => {
                self.fresh = false;
                self.next_try = at.now + pause;
            }
        }
    }

    /// Stores a read lease; any change restarts the wait.
    fn see(&mut self, record: Record) {
        if !self.seen.as_ref().is_some_and(|s| s.record == record) {
            let unchanged = Span::default();
            self.seen = Some(Seen { record, unchanged });
        }
        self.absent = false;
        self.fresh = true;
        if !self.is_ours() {
            self.leads_until = None;
        }
    }

    fn is_ours(&self) -> bool {
        self.holder() == Some(&self.settings.identity)
    }

    /// After a read: writes or waits. A deleted lease is waited for like an existing one, because its holder may not
    /// know of the deletion yet. (client-go does not wait.)
    fn looked(&mut self, at: Moment) {
        let ours = self.settings.lease_duration;
        let is_free = self.seen.as_ref().is_none_or(|seen| {
            let duration = seen.record.duration().unwrap_or(ours);
            seen.record.holder().is_none() || seen.unchanged >= duration
        });
        match is_free || self.is_ours() {
            true => self.write(at),
            // Not later than the end of the wait for the lease.
            false => self.next_try = at.now + self.pause(at.dice).min(self.left(ours)),
        }
    }

    /// How long the lease must stay unchanged before it counts as free.
    fn left(&self, ours: Span) -> Span {
        self.seen.as_ref().map_or(Span::default(), |seen| {
            let duration = seen.record.duration().unwrap_or(ours);
            Span(duration.0.saturating_sub(seen.unchanged.0))
        })
    }

    fn try_now(&mut self, at: Moment) {
        match self.fresh && self.leads(at.now) {
            // A leader knows the version that it wrote.
            true => self.write(at),
            false => self.ask(at, Kind::Read, record::read(&self.settings)),
        }
    }

    fn write(&mut self, at: Moment) {
        let request = record::write(&self.settings, self.standing(), Writing::Hold, at.wall);
        self.ask(at, Kind::Write, request);
    }

    fn release(&mut self, at: Moment) {
        let request = record::write(&self.settings, self.standing(), Writing::Release, at.wall);
        self.ask(at, Kind::Release, request);
    }

    /// The existing lease, as far as known.
    fn standing(&self) -> Option<&Record> {
        let seen = self.seen.as_ref().filter(|_| !self.absent);
        seen.map(|seen| &seen.record)
    }

    fn shut_down(&mut self, at: Moment) {
        if self.ended {
            return;
        }
        self.ended = true;
        // This replica stops acting before another one may begin.
        let led = self.leads_until.take().is_some();
        if self.asks.take().is_some() {
            // The request was never sent.
            self.flight = None;
        }
        if self.flight.is_none() && led && self.fresh && self.is_ours() && !self.absent {
            self.release(at);
        }
        // A write in flight is waited for: otherwise it could take the lease again after its release.
        self.flight.take_if(|f| f.kind == Kind::Read);
    }

    fn ask(&mut self, at: Moment, kind: Kind, request: Request) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let sent = at.now;
        self.flight = Some(Flight { ticket, sent, kind });
        self.asks = Some(Ask { ticket, request });
    }

    /// The wait until the next attempt: fixed for a leader, drawn for a candidate, so that candidates do not try at
    /// once. A candidate reads more often than a leader renews, since it takes over late if it sees a change late.
    /// (client-go waits 1 to 2.2 periods, and with the default periods takes over up to nine seconds after the lease's
    /// end.)
    fn pause(&self, dice: u64) -> Span {
        let period = self.settings.retry_period;
        if self.leads_until.is_some() {
            return period;
        }
        // Between a half and three quarters of a period; the time of the request, on a busy machine, comes on top.
        let more = period.0 / 4;
        Span(period.0 / 2 + dice % more.saturating_add(1))
    }
}
