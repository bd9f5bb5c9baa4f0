//! When the webhook is added and removed: decisions without clock, sockets or API server.
//!
//! The order of steps guarantees:
//! - A replica registers only after it has answered its own review and the other replicas know of it.
//! - A new replica writes the configuration even if it is right already. A replica that shuts down meanwhile then gets
//!   a conflict and looks at the replicas again.
//! - A replica that shuts down reads the configuration, withdraws, decides, and removes only a configuration that has
//!   not changed since.
//! - The controller removes only what a replica has written, and only after a silence that it has observed itself.

use strew_model::time::{Instant, Span};
use strew_workloadspread::facts::status::Webhook;

use super::configuration::Registration;
use super::replicas::{EVERY, EXPIRES};

/// What a replica knows of itself and of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replica {
    /// The process ends in good order.
    pub is_ending: bool,
    /// The registration stays when the last replica ends: `--strict`.
    pub is_strict: bool,
    /// Reviews can be answered: the cluster is known, and there is a certificate.
    pub can_serve: bool,
    /// When a review of its own was asked last.
    pub asked: Option<Instant>,
    /// When one was answered well last.
    pub served: Option<Instant>,
    /// When it last announced that it is ready; `None` if it has not, or has withdrawn.
    pub present: Option<Instant>,
    /// Whether it has withdrawn at its end.
    pub has_left: bool,
    /// Whether another replica is ready, by what was answered last.
    pub has_others: bool,
    /// How the configuration stood, and when; `None`: it has to be looked at.
    pub seen: Option<(Instant, Registration)>,
    /// Whether it has written the configuration since it is ready.
    pub is_announced: bool,
    /// The Lease could not be written: nothing is tried before.
    pub not_before: Instant,
    /// The configuration could not be read or written: it is not tried before.
    pub register_not_before: Instant,
}

/// What a replica does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ask itself a review.
    Review,
    /// Tell others that it is ready.
    Renew,
    /// Look at the configuration.
    Look,
    /// Write the webhooks in.
    Register,
    /// Tell others that it is ready no longer.
    Withdraw,
    /// Take the webhooks out.
    TakeOut,
    /// Nothing before this moment.
    Wait(Instant),
    /// Nothing any more.
    Done,
}

impl Replica {
    /// What comes next.
    pub fn next(&self, now: Instant) -> Step {
        match () {
            () if now < self.not_before => Step::Wait(self.not_before),
            () if self.is_ending => self.next_at_end(now),
            () if self.can_serve && self.asked.is_none_or(|asked| now >= asked + EVERY) => {
                Step::Review
            }
            () => self.next_between_reviews(now),
        }
    }

    fn next_between_reviews(&self, now: Instant) -> Step {
        let asked = self.asked.filter(|_| self.can_serve);
        let again = asked.unwrap_or(now) + EVERY;
        // The last review was not answered well, or there was none.
        if self.served.is_none() || self.served != self.asked || !self.can_serve {
            let is_over = self.served.is_none_or(|served| now >= served + EXPIRES);
            return match self.present {
                Some(_) if is_over => Step::Withdraw,
                _ => Step::Wait(again),
            };
        }
        if self.present < self.served {
            return Step::Renew;
        }
        match self.seen {
            _ if now < self.register_not_before => Step::Wait(again.min(self.register_not_before)),
            None => Step::Look,
            Some((at, _)) if Some(at) < self.present => Step::Look,
            Some((_, Registration::Absent)) => Step::Wait(again),
            Some((
                _,
                Registration::In {
                    is_ours: true,
                    is_right: true,
                },
            )) if self.is_announced => Step::Wait(again),
            Some(_) => Step::Register,
        }
    }

    fn next_at_end(&self, now: Instant) -> Step {
        match (self.present, self.seen) {
            // It never registered.
            (None, _) if !self.has_left => Step::Done,
            _ if now < self.register_not_before => Step::Wait(self.register_not_before),
            (_, None) => Step::Look,
            (Some(_), Some(_)) => Step::Withdraw,
            (None, Some((_, Registration::In { is_ours: true, .. })))
                if !self.has_others && !self.is_strict =>
            {
                Step::TakeOut
            }
            (None, Some(_)) => Step::Done,
        }
    }
}

/// What the controller knows of the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watcher {
    /// This process acts.
    pub leads: bool,
    /// What is registered stays: `--strict`.
    pub is_strict: bool,
    /// How long no replica must have been ready.
    pub patience: Span,
    /// When replicas and configuration were looked at last.
    pub looked: Option<Instant>,
    /// Since when no replica has said that it is ready.
    pub silent_since: Option<Instant>,
    /// How the configuration stood then.
    pub registration: Registration,
    /// What was said last.
    pub said: Webhook,
    /// Something failed: nothing is tried before.
    pub not_before: Instant,
}

/// What the controller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Look at replicas and configuration.
    Look,
    /// Take the webhooks out.
    TakeOut,
    /// Say how pods are created.
    Say(Webhook),
    /// Nothing before this moment.
    Wait(Instant),
}

impl Watcher {
    /// What comes next.
    pub fn next(&self, now: Instant) -> Act {
        let due = self.looked.map_or(now, |looked| looked + EVERY);
        if !self.leads {
            return Act::Wait(now + EVERY);
        }
        if now < self.not_before {
            return Act::Wait(self.not_before);
        }
        if now >= due {
            return Act::Look;
        }
        // As long as was looked: what came after the last look is not known.
        let is_silent = self
            .silent_since
            .is_some_and(|since| self.looked >= Some(since + self.patience));
        let webhook = match (self.registration, is_silent) {
            // Another program registered the webhook, and keeps it.
            (Registration::Absent | Registration::In { is_ours: false, .. }, _) => Webhook::Answers,
            (Registration::In { .. }, true) if !self.is_strict => return Act::TakeOut,
            (Registration::In { .. }, true) => Webhook::NotReady,
            (Registration::In { .. }, false) => Webhook::Answers,
            (Registration::Out, true) => Webhook::NotRegistered,
            // A replica that is ready is about to register.
            (Registration::Out, false) => self.said,
        };
        match webhook == self.said {
            true => Act::Wait(due),
            false => Act::Say(webhook),
        }
    }
}

#[cfg(test)]
mod tests;
