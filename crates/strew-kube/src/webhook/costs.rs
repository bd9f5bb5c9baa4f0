//! CPU time of the deciding thread per peer and namespace.

use strew_model::time::Span;
use strew_runtime::admission::{AdmissionMachine, Payer};
use strew_runtime::{CallId, Observer};
use strew_workloadspread::admission::Effect;

/// CPU time by payer that is not charged yet.
pub(super) struct Costs {
    /// The CPU time of this thread, in nanoseconds.
    clock: fn() -> u64,
    since: u64,
    unpaid: Vec<(Payer, Span)>,
}

impl Costs {
    pub(super) fn new(clock: fn() -> u64) -> Self {
        Self {
            clock,
            since: 0,
            unpaid: Vec::new(),
        }
    }

    /// Starts a measurement.
    pub(super) fn begin(&mut self) {
        self.since = (self.clock)();
    }

    /// Adds the time since [`begin`](Self::begin), or since the last call of this function, to a payer.
    pub(super) fn was_for(&mut self, payer: Payer) {
        let now = (self.clock)();
        let cost = Span(now.saturating_sub(self.since));
        self.since = now;
        self.unpaid.push((payer, cost));
    }

    /// Returns the CPU time that is not charged yet.
    pub(super) fn take(&mut self) -> Vec<(Payer, Span)> {
        std::mem::take(&mut self.unpaid)
    }
}

impl Observer<AdmissionMachine> for Costs {
    fn polled(&mut self) {
        self.begin();
    }

    fn decided(&mut self, machine: &mut AdmissionMachine, effect: &Effect) {
        let payer = match effect {
            Effect::Answer(answer) => machine.call_of(answer.request).map(Payer::Call),
            Effect::WriteStatus { key, .. } | Effect::ReadSpread { key, .. } => {
                let namespace = machine.machine().names().text(key.namespace);
                Some(Payer::Namespace(namespace.into()))
            }
        };
        if let Some(payer) = payer {
            self.was_for(payer);
        }
    }

    fn replied(&mut self, call: CallId) {
        self.was_for(Payer::Call(call));
    }
}
