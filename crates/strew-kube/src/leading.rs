//! Leader election: [`strew_wire::lease`] with requests and a clock.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::Warning;
use strew_wire::lease::{Ask, Election, Input, Moment, Settings, Ticket};
use strew_wire::request::Answer;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::panics::caught;
use crate::send;

/// Whether this replica may act; senders check it right before each request.
#[derive(Debug, Clone)]
pub struct Leads {
    until: Arc<AtomicU64>,
    clock: Clock,
}

impl Leads {
    /// For a single replica, which may always act.
    pub fn always(clock: Clock) -> Self {
        Self {
            until: Arc::new(AtomicU64::new(u64::MAX)),
            clock,
        }
    }

    /// For a replica that may act until the time of `until`, in nanoseconds of the clock, which a test changes.
    #[cfg(test)]
    pub(crate) fn of_test(clock: Clock, until: Arc<AtomicU64>) -> Self {
        Self { until, clock }
    }

    /// Until when this replica may act, as known now.
    pub fn until(&self) -> Instant {
        Instant(self.until.load(Ordering::Acquire))
    }

    /// True if this replica may act now.
    pub fn now(&self) -> bool {
        self.clock.now() < self.until()
    }
}

/// A candidate in the election, or the only replica.
pub struct Leading {
    /// `None`: this is the only replica.
    election: Option<Election>,
    leads: Leads,
    client: Client,
    clock: Clock,
    /// How long a leader acts without a renewal.
    deadline: Span,
    dice: Prng,
    answers: mpsc::Receiver<(Ticket, Answer)>,
    to_answers: mpsc::Sender<(Ticket, Answer)>,
    led: bool,
    /// Namespace and name of the lease.
    lease: (String, String),
    /// Why the lease could not be read or renewed the last time.
    wrong: Option<Arc<str>>,
}

/// A change of leadership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// This replica leads from now on.
    Begins,
    /// This replica no longer leads; `Some`: the new leader.
    Ends(Option<String>),
}

/// The election has its own, shorter waits; this limit only ends requests that would never end.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

impl Leading {
    /// A candidate if there are settings, else the only replica.
    pub fn new(settings: Option<Settings>, client: Client, clock: Clock, seed: u64) -> Self {
        let (to_answers, answers) = mpsc::channel(4);
        let now = clock.now();
        let deadline = settings
            .as_ref()
            .map_or(Span::default(), |s| s.renew_deadline);
        let mut leads = Leads::always(clock);
        if settings.is_some() {
            leads.until = Arc::new(AtomicU64::new(0));
        }
        let lease = settings
            .as_ref()
            .map(|s| (s.namespace.clone(), s.name.clone()));
        Self {
            lease: lease.unwrap_or_default(),
            election: settings.map(|settings| Election::new(settings, now)),
            leads,
            client,
            clock,
            deadline,
            dice: Prng::new(seed),
            answers,
            to_answers,
            led: false,
            wrong: None,
        }
    }

    /// The right to act, for senders of requests.
    pub fn leads(&self) -> &Leads {
        &self.leads
    }

    /// When to call [`turn`](Self::turn), if no answer arrives before.
    pub fn next_wake(&self) -> Option<Instant> {
        self.election.as_ref()?.next_wake()
    }

    /// How long until [`next_wake`](Self::next_wake).
    pub(crate) fn wake(&self) -> Duration {
        const AT_MOST: Duration = Duration::from_secs(60);
        let until = |at| self.clock.until(at).min(AT_MOST);
        self.next_wake().map_or(AT_MOST, until)
    }

    /// Waits for an answer and handles it.
    pub async fn answered(&mut self) {
        // The channel never closes: `self` holds a sender.
        if let Some((ticket, answer)) = self.answers.recv().await {
            self.note(&answer);
            self.handle(Input::Answered(ticket, answer));
        }
    }

    /// Logs an error once, until it changes or ends. Three answers are no errors: another replica wrote first (409),
    /// another replica created the lease first (409), or the lease does not exist yet (404).
    fn note(&mut self, answer: &Answer) {
        let is_fine = answer.object().is_some() || matches!(answer.code(), Some(404 | 409));
        let wrong = (!is_fine).then(|| answer.words());
        if let Some(words) = &wrong
            && self.wrong != wrong
        {
            self.warn("read or renew", words, "in the retry period");
        }
        self.wrong = wrong;
    }

    /// Logs a warning about the lease.
    pub(crate) fn warn(&self, action: &str, error: &(dyn Display + Sync), next: &str) {
        let (namespace, name) = &self.lease;
        let lease = Warning {
            kind: "Lease",
            namespace,
            name,
            node: None,
            action,
            error,
            next,
        };
        lease.log();
    }

    /// Advances the election to now. Returns what has changed since the last call.
    pub fn turn(&mut self) -> Option<Turn> {
        self.handle(Input::Tick);
        let leads = self.leads.now();
        if leads == self.led {
            return None;
        }
        self.led = leads;
        Some(match leads {
            true => Turn::Begins,
            false => Turn::Ends(self.holder()),
        })
    }

    /// When this replica renewed the lease that it leads by; `None` if it does not lead, or there is no lease.
    pub fn renewed(&self) -> Option<Instant> {
        let until = self.election.as_ref()?.leads_until()?;
        Some(until - self.deadline)
    }

    /// The last known holder of the lease.
    pub fn holder(&self) -> Option<String> {
        let holder = self.election.as_ref()?.holder()?;
        Some(holder.to_owned())
    }

    /// Releases the lease, so that another replica need not wait until it expires.
    pub async fn give_back(mut self, within: Duration) {
        self.handle(Input::Shutdown);
        let clock = self.clock;
        let over = clock.now() + Span(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        while self.next_wake().is_some() && clock.now() < over {
            let _ = tokio::time::timeout(clock.until(over), self.answered()).await;
        }
    }

    fn handle(&mut self, input: Input) {
        let Some(election) = &mut self.election else {
            return;
        };
        let at = Moment {
            now: self.clock.now(),
            wall: self.clock.wall(),
            dice: self.dice.next_u64(),
        };
        election.handle(at, input);
        let until = election.leads_until().map_or(0, |until| until.0);
        self.leads.until.store(until, Ordering::Release);
        while let Some(Ask { ticket, request }) = election.poll_effect() {
            let (client, to_answers) = (self.client.clone(), self.to_answers.clone());
            tokio::spawn(async move {
                let sent = caught(send::once(&client, &request, ANSWER_WITHIN)).await;
                let answer = sent.unwrap_or_else(|text| Answer::Lost(text.into()));
                // The receiver is dropped: the process ends.
                let _ = to_answers.send((ticket, answer)).await;
            });
        }
    }
}
