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
    /// How long a lease holds that is not renewed; whole seconds, at least one.
    pub lease_duration: Span,
    /// How long a leader goes on without a renewal; less than a lease holds.
    pub renew_deadline: Span,
    /// The wait between two tries. To be safe against a clock that jumps by a little, a lease should hold more than
    /// twice this longer than the renew deadline.
    pub retry_period: Span,
}

impl Settings {
    /// As a validated configuration says.
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

    /// How long an answer is waited for. Source: client-go, `resourcelock.NewFromKubeconfig`.
    fn patience(&self) -> Span {
        Span(self.renew_deadline.0 / 2).max(Span::from_secs(1))
    }
}

/// The moment of an input.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// By this host's clock, which only grows; nothing else is judged by.
    pub now: Instant,
    /// The wall clock, for readers of the lease.
    pub wall: Instant,
    /// A new random number each time.
    pub dice: u64,
}

/// Names a request. Numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// An input of an election.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The result of a request. A result that is no longer expected is ignored.
    Answered(Ticket, Answer),
    /// Nothing but time.
    Tick,
    /// This replica ends: the lease is given back, so that another one need not wait.
    Shutdown,
}

/// A request that an election asks for; it is sent once.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The id of the answer.
    pub ticket: Ticket,
    /// The request.
    pub request: Request,
}

/// A lease as it was last seen.
#[derive(Debug, Clone)]
struct Seen {
    record: Record,
    /// For how long it has not changed, by waits that count.
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
    /// Whether there was no lease at the last look; `seen` is what there was before.
    absent: bool,
    /// Whether `seen` is what the API server holds, as far as we know; else it is read before it is written.
    fresh: bool,
    /// When what we lead by ends; `None`: we do not lead.
    leads_until: Option<Instant>,
    flight: Option<Flight>,
    asks: Option<Ask>,
    last_ticket: u64,
    next_try: Instant,
    /// The last moment of an input.
    now: Instant,
    ended: bool,
}

impl Election {
    /// A candidate that has seen nothing; its first try is due at once.
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

    /// Whether this replica may act at this moment. To be asked before each act, not remembered.
    pub fn leads(&self, now: Instant) -> bool {
        self.leads_until.is_some_and(|until| now < until)
    }

    /// Until when this replica may act, unless it renews; `None`: it does not lead.
    pub fn leads_until(&self) -> Option<Instant> {
        self.leads_until
    }

    /// The last known holder of the lease.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.record.holder()
    }

    /// Takes in what happened. Time that runs backwards is taken as standing still.
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

    /// When to be woken, if nothing happens before; `None`: never, it is over.
    pub fn next_wake(&self) -> Option<Instant> {
        if self.ended && self.flight.is_none() {
            return None;
        }
        let due = match &self.flight {
            Some(flight) => flight.sent + self.settings.patience(),
            None => self.next_try,
        };
        // Waiting counts only in spans that were asked for.
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
            // Whether it was carried out, only a look can tell.
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
                // What answers with another lease than we wrote is no API server.
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

    /// Stores what was read; any change restarts the wait.
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

    /// After a look at the lease: write, or wait. A lease that somebody deleted is waited for like one that stands:
    /// who holds it need not know yet. (client-go does not wait.)
    fn looked(&mut self, at: Moment) {
        let ours = self.settings.lease_duration;
        let is_free = self.seen.as_ref().is_none_or(|seen| {
            let duration = seen.record.duration().unwrap_or(ours);
            seen.record.holder().is_none() || seen.unchanged >= duration
        });
        match is_free || self.is_ours() {
            true => self.write(at),
            // Not past the moment when it has been waited for long enough.
            false => self.next_try = at.now + self.pause(at.dice).min(self.left(ours)),
        }
    }

    /// How long the lease must stay as it is before it counts as free.
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

    /// The lease that there is, as far as we know.
    fn standing(&self) -> Option<&Record> {
        let seen = self.seen.as_ref().filter(|_| !self.absent);
        seen.map(|seen| &seen.record)
    }

    fn shut_down(&mut self, at: Moment) {
        if self.ended {
            return;
        }
        self.ended = true;
        // It stops acting before another replica may begin.
        let led = self.leads_until.take().is_some();
        if self.asks.take().is_some() {
            // It was never sent.
            self.flight = None;
        }
        if self.flight.is_none() && led && self.fresh && self.is_ours() && !self.absent {
            self.release(at);
        }
        // A write in flight is waited for: it would take the lease again after it was given back.
        self.flight.take_if(|f| f.kind == Kind::Read);
    }

    fn ask(&mut self, at: Moment, kind: Kind, request: Request) {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        let sent = at.now;
        self.flight = Some(Flight { ticket, sent, kind });
        self.asks = Some(Ask { ticket, request });
    }

    /// The wait until the next try: a leader's is even, a candidate's drawn, so that not all try at once. A candidate
    /// looks more often than a leader renews: what it sees late, it takes over late. (client-go waits 1 to 2.2 periods,
    /// and with the default periods takes over up to nine seconds after the lease's end.)
    fn pause(&self, dice: u64) -> Span {
        let period = self.settings.retry_period;
        if self.leads_until.is_some() {
            return period;
        }
        // Between two quarters of a period and three: a request's time and a busy machine come on top of it.
        let more = period.0 / 4;
        Span(period.0 / 2 + dice % more.saturating_add(1))
    }
}
