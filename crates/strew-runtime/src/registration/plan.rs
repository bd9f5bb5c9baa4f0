//! When the webhook is added and removed: decisions without clock, sockets or API server.
//!
//! The order of steps guarantees:
//! - A replica registers only after it has answered its own review and the other replicas know of it.
//! - A new replica writes the configuration even if it is right already. A replica that shuts down meanwhile then gets
//!   a conflict and reads the replicas again.
//! - A replica that shuts down reads the configuration, withdraws, decides, and removes only a configuration that has
//!   not changed since.
//! - The controller removes only what a replica has written, and only after a silence that it has observed itself.

use strew_model::time::{Instant, Span};
use strew_workloadspread::facts::status::Webhook;

use super::configuration::Registration;
use super::replicas::{EVERY, EXPIRES};

/// How long the registered way must lead to no webhook before the controller removes it.
const UNREACHED_FOR: Span = Span::from_secs(4);

/// What a replica knows of itself and of the other replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replica {
    /// The process is shutting down.
    pub is_ending: bool,
    /// `--strict`: the registration stays when the last replica ends.
    pub is_strict: bool,
    /// Reviews can be answered: the cluster is known, and there is a certificate.
    pub can_serve: bool,
    /// When it last sent itself a review.
    pub asked: Option<Instant>,
    /// When it last sent itself a review that was answered correctly.
    pub served: Option<Instant>,
    /// When it last announced that it is ready; `None` if it has not, or has withdrawn.
    pub present: Option<Instant>,
    /// True if it has withdrawn, at its end.
    pub has_left: bool,
    /// True if another replica is ready, by the answer to its last write.
    pub has_others: bool,
    /// The state of the configuration, and when it was read; `None`: it must be read.
    pub seen: Option<(Instant, Registration)>,
    /// True if it has written the configuration since it became ready.
    pub is_announced: bool,
    /// After a failed write of the Lease: no step before this moment.
    pub not_before: Instant,
    /// After a failed read or write of the configuration: no further attempt before this moment.
    pub register_not_before: Instant,
}

/// The next step of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationStep {
    /// Send itself a review.
    Review,
    /// Announce that it is ready.
    Renew,
    /// Read the configuration.
    Look,
    /// Add the webhooks.
    Register,
    /// Announce that it is no longer ready.
    Withdraw,
    /// Remove the webhooks.
    TakeOut,
    /// No step before this moment.
    Wait(Instant),
    /// The replica has nothing left to do before it ends.
    Done,
}

impl Replica {
    /// What comes next.
    pub fn next(&self, now: Instant) -> RegistrationStep {
        match () {
            () if now < self.not_before => RegistrationStep::Wait(self.not_before),
            () if self.is_ending => self.next_at_end(now),
            () if self.can_serve && self.asked.is_none_or(|asked| now >= asked + EVERY) => {
                RegistrationStep::Review
            }
            () => self.next_between_reviews(now),
        }
    }

    fn next_between_reviews(&self, now: Instant) -> RegistrationStep {
        let asked = self.asked.filter(|_| self.can_serve);
        let again = asked.unwrap_or(now) + EVERY;
        // The last review failed, or there was none.
        if self.served.is_none() || self.served != self.asked || !self.can_serve {
            let is_over = self.served.is_none_or(|served| now >= served + EXPIRES);
            return match self.present {
                Some(_) if is_over => RegistrationStep::Withdraw,
                _ => RegistrationStep::Wait(again),
            };
        }
        if self.present < self.served {
            return RegistrationStep::Renew;
        }
        match self.seen {
            _ if now < self.register_not_before => {
                RegistrationStep::Wait(again.min(self.register_not_before))
            }
            None => RegistrationStep::Look,
            Some((at, _)) if Some(at) < self.present => RegistrationStep::Look,
            Some((_, Registration::Absent)) => RegistrationStep::Wait(again),
            Some((
                _,
                Registration::In {
                    is_ours: true,
                    is_right: true,
                },
            )) if self.is_announced => RegistrationStep::Wait(again),
            Some(_) => RegistrationStep::Register,
        }
    }

    fn next_at_end(&self, now: Instant) -> RegistrationStep {
        match (self.present, self.seen) {
            // It has never registered.
            (None, _) if !self.has_left => RegistrationStep::Done,
            _ if now < self.register_not_before => RegistrationStep::Wait(self.register_not_before),
            (_, None) => RegistrationStep::Look,
            (Some(_), Some(_)) => RegistrationStep::Withdraw,
            (None, Some((_, Registration::In { is_ours: true, .. })))
                if !self.has_others && !self.is_strict =>
            {
                RegistrationStep::TakeOut
            }
            (None, Some(_)) => RegistrationStep::Done,
        }
    }
}

/// What the controller knows of the webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watcher {
    /// This process leads: it reports. Each controller removes, as none must wait for an election.
    pub leads: bool,
    /// `--strict`: the registration stays.
    pub is_strict: bool,
    /// The webhook is removed after no replica was ready for this long.
    pub patience: Span,
    /// When replicas and configuration were last read.
    pub looked: Option<Instant>,
    /// Since when no replica has announced that it is ready.
    pub silent_since: Option<Instant>,
    /// Since when the registered way, which led to a webhook before, has led to none.
    pub unreached_since: Option<Instant>,
    /// True if the configuration was there before, and does not exist now.
    pub is_deleted: bool,
    /// The state of the configuration at the last read.
    pub registration: Registration,
    /// The last state that was reported.
    pub said: Webhook,
    /// After a failure: no attempt before this moment.
    pub not_before: Instant,
}

/// The next step of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Read replicas and configuration.
    Look,
    /// Remove the webhooks.
    TakeOut,
    /// Report how pods are created.
    Say(Webhook),
    /// No step before this moment.
    Wait(Instant),
}

impl Watcher {
    /// What comes next. What the last look has shown is acted on before the next look: a question that gets no answer
    /// takes longer than the time between two looks.
    pub fn next(&self, now: Instant) -> Act {
        if now < self.not_before {
            return Act::Wait(self.not_before);
        }
        if self.is_to_be_removed() {
            return Act::TakeOut;
        }
        let Some(due) = self.looked.map(|looked| looked + EVERY) else {
            return Act::Look;
        };
        let webhook = self.webhook();
        match webhook == self.said || !self.leads {
            false => Act::Say(webhook),
            true if now >= due => Act::Look,
            true => Act::Wait(due),
        }
    }

    /// True if a replica has registered the webhook, none serves it, and it does not stay.
    fn is_to_be_removed(&self) -> bool {
        let is_ours = matches!(self.registration, Registration::In { is_ours: true, .. });
        is_ours && !self.is_strict && self.is_silent()
    }

    /// True if no replica has been ready or reached for long enough. The silence is measured up to the last read: later
    /// announcements are not known.
    fn is_silent(&self) -> bool {
        self.has_no_replica() || self.lasts(self.unreached_since, self.patience.min(UNREACHED_FOR))
    }

    /// True if no replica has been ready for long enough: then no question by the registered way changes anything.
    pub fn has_no_replica(&self) -> bool {
        self.lasts(self.silent_since, self.patience)
    }

    fn lasts(&self, since: Option<Instant>, patience: Span) -> bool {
        since.is_some_and(|since| self.looked >= Some(since + patience))
    }

    /// How pods are created, as far as the last look has shown.
    fn webhook(&self) -> Webhook {
        match (self.registration, self.is_silent()) {
            (Registration::Absent, _) if self.is_deleted => Webhook::NotRegistered,
            // Another program registered the webhook, and keeps it.
            (Registration::Absent | Registration::In { is_ours: false, .. }, _) => Webhook::Answers,
            (Registration::In { .. }, true) => Webhook::NotReady,
            (Registration::In { .. }, false) => Webhook::Answers,
            (Registration::Out, true) => Webhook::NotRegistered,
            // A ready replica is about to register the webhook.
            (Registration::Out, false) => self.said,
        }
    }
}

#[cfg(test)]
mod tests;
