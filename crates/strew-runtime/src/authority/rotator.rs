//! Which step of [`plan`](super::plan) a replica takes, and what it writes: the machine around the plan.
//!
//! Sans-IO: [`Rotator::next`] returns one [`Task`] at a time, and the shell returns its result. Keys stay in the shell.
//! Dates of certificates are compared with the wall clock, waits with the monotonic one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use strew_model::time::{Instant, Span};

use super::bundle::{Holder, Place, mend};
use super::plan::{AuthorityState, AuthorityStep, Lifetimes, Next, Period, next, serving_lasts};
use crate::driver::Moment;
use crate::waits::Waits;

/// Everything is checked again after this long: the wall clock can jump, and a timer would not notice.
const LOOK_EVERY: Span = Span::from_secs(60);

/// The lost races in a row after which one is logged: a replica usually loses one or two.
const RACES_MAX: u32 = 5;

/// The settings of a rotator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The webhook's place.
    pub place: Place,
    /// How long certificates live.
    pub lifetimes: Lifetimes,
    /// True if this process maintains `caBundle`; otherwise another program copies it.
    pub manages: bool,
}

/// The Secret as last read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SecretState {
    /// True if it exists.
    pub is_stored: bool,
    /// Its CAs.
    pub state: AuthorityState,
    /// The certificate of the CA that signs, in PEM.
    pub signing: Option<Arc<str>>,
    /// All trusted CAs, in PEM.
    pub bundle: Arc<str>,
}

/// What the replica does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Take this step, and write the Secret; [`Rotator::wrote`] or [`Rotator::failed`] of [`Target::Secret`] takes the
    /// result.
    Step(AuthorityStep),
    /// Make a serving certificate, signed by the CA that signs; [`Rotator::issued`] or [`Rotator::failed`] takes the
    /// result.
    Issue,
    /// Write `caBundle` by this JSON patch; [`Rotator::mended`] or [`Rotator::failed`] takes the result.
    Mend(Holder, Value),
    /// Nothing for this long, unless something changes.
    Wait(Span),
}

/// The object of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The Secret, and certificates by its CA.
    Secret,
    /// An object with a `caBundle`.
    Holder(Holder),
}

/// Renews certificates and keeps `caBundle` current.
#[derive(Debug)]
pub struct Rotator {
    settings: Settings,
    leads: bool,
    /// `None` until the Secret has been read.
    seen: Option<SecretState>,
    /// The validity of the serving certificate, and the certificate of its CA.
    serving: Option<(Period, Arc<str>)>,
    /// The last known state of the objects with a `caBundle`; `None` for those that do not exist.
    holders: BTreeMap<Holder, Option<Value>>,
    /// The objects whose last write failed, with their waits.
    waits: BTreeMap<Target, Waits>,
}

impl Rotator {
    /// A rotator that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            leads: false,
            seen: None,
            serving: None,
            holders: BTreeMap::new(),
            waits: BTreeMap::new(),
        }
    }

    /// Sets whether this replica takes the steps.
    pub fn lead(&mut self, leads: bool) {
        self.leads = leads;
    }

    /// The Secret's current state.
    pub fn see_secret(&mut self, secret: SecretState) {
        self.seen = Some(secret);
    }

    /// The current state of an object with a `caBundle`; `None` if it does not exist. Returns true if that is news: the
    /// object was not known to be missing.
    pub fn see_holder(&mut self, holder: Holder, object: Option<Value>) -> bool {
        let is_news = object.is_none() && self.holders.get(&holder) != Some(&None);
        self.holders.insert(holder, object);
        is_news
    }

    /// The CAs to trust, in PEM; `None` until the replica has a serving certificate.
    pub fn bundle(&self) -> Option<&Arc<str>> {
        self.serving.as_ref()?;
        Some(&self.seen.as_ref()?.bundle)
    }

    /// When the signing CA expires; `None` if there is none yet.
    pub fn authority_until(&self) -> Option<Instant> {
        Some(self.seen.as_ref()?.state.signing?.until)
    }

    /// What comes next. Every replica may create the first Secret: without it no replica could serve, and only one
    /// creation succeeds.
    pub fn next(&mut self, at: Moment) -> Task {
        let Some(seen) = &self.seen else {
            return Task::Wait(LOOK_EVERY);
        };
        let is_free = self.is_free(Target::Secret, at.now);
        let due = self.due(seen, at.wall);
        if let Next::Do(step) = due
            && is_free
            && (self.leads || !seen.is_stored)
        {
            return Task::Step(step);
        }
        let lasts = serving_lasts(self.shown(seen), at.wall);
        if seen.signing.is_some() && lasts.is_none() && is_free {
            return Task::Issue;
        }
        if let Some((holder, patch)) = self.mend(seen, at.now) {
            return Task::Mend(holder, patch);
        }
        self.wait(due, lasts, at)
    }

    fn wait(&self, due: Next, lasts: Option<Instant>, at: Moment) -> Task {
        let step = match due {
            Next::Wait(until) => Some(until),
            Next::Do(_) => None,
        };
        let dues = [step, lasts].into_iter().flatten();
        let dues = dues.map(|due| due.since(at.wall));
        let waits = self.waits.values().filter_map(|waits| waits.until(at.now));
        let waits = waits.map(|until| until.since(at.now));
        Task::Wait(dues.chain(waits).fold(LOOK_EVERY, Span::min))
    }

    fn due(&self, seen: &SecretState, wall: Instant) -> Next {
        let is_published = self.is_published(seen);
        next(&seen.state, wall, &self.settings.lifetimes, is_published)
    }

    /// True if every `caBundle` is known to have all trusted CAs.
    fn is_published(&self, seen: &SecretState) -> bool {
        let trusts = |holder: &Holder| match self.holders.get(holder) {
            None => false,
            Some(None) => true,
            Some(Some(object)) => {
                mend(*holder, object, &seen.bundle, &self.settings.place).is_none()
            }
        };
        !self.settings.manages || Holder::ALL.iter().all(trusts)
    }

    /// The validity of the present certificate, and whether the signing CA has signed it.
    fn shown(&self, seen: &SecretState) -> Option<(Period, bool)> {
        let (period, signer) = self.serving.as_ref()?;
        Some((*period, seen.signing.as_ref() == Some(signer)))
    }

    /// The next `caBundle` to write, and its patch.
    fn mend(&self, seen: &SecretState, now: Instant) -> Option<(Holder, Value)> {
        if !self.leads || !self.settings.manages || seen.signing.is_none() {
            return None;
        }
        let free = Holder::ALL.into_iter();
        let mut free = free.filter(|holder| self.is_free(Target::Holder(*holder), now));
        free.find_map(|holder| {
            let object = self.holders.get(&holder)?.as_ref()?;
            let patch = mend(holder, object, &seen.bundle, &self.settings.place)?;
            Some((holder, patch))
        })
    }

    /// True if an object may be written again.
    fn is_free(&self, target: Target, now: Instant) -> bool {
        let waits = self.waits.get(&target);
        waits.is_none_or(|waits| waits.until(now).is_none())
    }

    /// The Secret was written.
    pub fn wrote(&mut self, secret: SecretState) {
        self.waits.remove(&Target::Secret);
        self.see_secret(secret);
    }

    /// A serving certificate was made, by the CA that signs.
    pub fn issued(&mut self, period: Period) {
        let signing = self.seen.as_ref().and_then(|seen| seen.signing.clone());
        self.serving = signing.map(|signing| (period, signing));
    }

    /// `caBundle` was written into an object, which is this now.
    pub fn mended(&mut self, holder: Holder, object: Value) {
        self.waits.remove(&Target::Holder(holder));
        self.holders.insert(holder, Some(object));
    }

    /// A task failed; it is tried again after a wait, with the state known then. Returns the wait to log, or `None` if
    /// another replica wrote first, which the watch will report (`is_race`).
    pub fn failed(&mut self, now: Instant, target: Target, is_race: bool) -> Option<Span> {
        let waits = self.waits.entry(target).or_default();
        let is_news = !is_race || waits.n_failures(now) >= RACES_MAX;
        let wait = waits.next(now, false);
        is_news.then_some(wait)
    }
}
