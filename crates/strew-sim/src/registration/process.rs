//! The machines of a replica and of a controller, each with what it waits for.

use std::sync::Arc;

use strew_model::Prng;
use strew_model::time::Instant;
use strew_runtime::Moment;
use strew_runtime::registration::guard::{self, Guard};
use strew_runtime::registration::registrar::{self, END_WITHIN, Registrar};
use strew_wire::workloadspread::registration::Registration;

use super::certificates::{Keeping, Rotating};
use super::deed::RegistrationPlan;
use super::transit::{Arrived, Transit};

/// A replica's part in the registration.
#[derive(Debug)]
pub(crate) struct Registering {
    pub(super) machine: Registrar,
    pub(super) transit: Transit,
    /// Until when it waits.
    pub(super) wake: Option<Instant>,
    /// When it ends at the latest; `None` until it is asked to end.
    pub(super) ends_by: Option<Instant>,
    pub(super) certificates: Rotating,
}

impl Registering {
    /// A replica that has just started.
    pub(super) fn new(
        plan: RegistrationPlan,
        registration: &Registration,
        number: u64,
        keeping: Keeping,
        now: Instant,
    ) -> Self {
        let replica = format!("replica-{number}");
        Self {
            certificates: Rotating::new(keeping, &replica, now),
            machine: Registrar::new(registrar::Settings {
                registration: registration.clone(),
                is_strict: plan.is_strict,
                replica,
            }),
            transit: Transit::default(),
            wake: None,
            ends_by: None,
        }
    }

    /// It is asked to end.
    pub(super) fn end(&mut self, now: Instant) {
        if self.ends_by.is_none() {
            self.machine.end(now);
            self.ends_by = Some(now + END_WITHIN);
        }
    }

    /// The next time at which it has something to do.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let next = self.transit.due().or(self.wake);
        let certificates = self.certificates.next_wake();
        let others = [next, certificates, self.ends_by];
        others.into_iter().flatten().min()
    }

    /// Takes in what has come back.
    pub(super) fn take(&mut self, now: Instant, arrived: Arrived, rng: &mut Prng) {
        match arrived {
            Arrived::Answer { answer, .. } => {
                if let Some(next) = self.machine.answered(now, &answer) {
                    self.transit.send(now, next, rng);
                }
            }
            Arrived::Reviewed(result) => self.machine.reviewed(now, result),
            Arrived::Asked(result) => self.machine.asked(now, result),
        }
    }

    /// The CA of its certificate, in PEM; `None` if it has none that is valid.
    pub(super) fn signer(&self, now: Instant) -> Option<Arc<str>> {
        let (signer, until) = self.certificates.serving.as_ref()?;
        (now < *until).then(|| Arc::clone(signer))
    }

    /// True if a client with these CAs (PEM) trusts its certificate.
    pub(super) fn is_trusted(&self, now: Instant, bundle: &str) -> bool {
        let signer = self.signer(now);
        signer.is_some_and(|signer| bundle.contains(&*signer))
    }

    /// What it does next.
    pub(super) fn next(&mut self, now: Instant) -> registrar::Task {
        self.machine.serve(true, &self.certificates.bundle());
        self.machine.next(Moment { now, wall: now })
    }
}

/// A controller's part in the registration.
#[derive(Debug)]
pub(super) struct GuardProcess {
    pub(super) machine: Guard,
    pub(super) transit: Transit,
    /// Until when it waits.
    pub(super) wake: Option<Instant>,
    /// Since when it has read replicas and configuration without a fault.
    pub(super) well_since: Option<Instant>,
}

impl GuardProcess {
    /// A controller that has just started.
    pub(super) fn new(plan: RegistrationPlan, namespace: &str, leads: bool) -> Self {
        let settings = guard::Settings {
            is_strict: plan.is_strict,
            ..guard::Settings::default()
        };
        let mut machine = Guard::new(settings, namespace);
        machine.lead(leads);
        Self {
            machine,
            transit: Transit::default(),
            wake: None,
            well_since: None,
        }
    }

    /// The next time at which it has something to do.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.transit.due().or(self.wake)
    }

    /// Takes in what has come back.
    pub(super) fn take(&mut self, now: Instant, arrived: Arrived) {
        match arrived {
            Arrived::Answer { answer, is_fault } => {
                self.machine.answered(now, &answer);
                if is_fault {
                    self.well_since = None;
                } else if self.machine.looked() == Some(now) {
                    self.well_since.get_or_insert(now);
                }
            }
            Arrived::Asked(result) => self.machine.asked(now, result),
            Arrived::Reviewed(_) => {}
        }
    }
}
