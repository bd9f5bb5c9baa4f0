//! Faults and crashes.

use std::collections::BTreeMap;

use strew_model::time::{Instant, Span};

use crate::client::WriteFault;
use crate::feed::WatchFault;
use crate::scheduler::BindFault;
use crate::workloadspread::WebhookFault;

/// A component that can crash and restart without memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// Every replica of the scheduler.
    Scheduler,
    /// kube-controller-manager.
    Controllers,
    /// Every replica of strew's webhook.
    Webhook,
    /// One replica of strew's webhook.
    WebhookReplica,
    /// strew's controllers of Placements and WorkloadSpreads.
    Controller,
}

/// A fault of requests about the schedulers' Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseFault {
    /// Of a million requests, the number that get no answer; half of these are carried out.
    pub lost_ppm: u32,
}

/// How often faults have hit a component, by kind.
pub type Hits = BTreeMap<&'static str, u64>;

/// A fault that lasts for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Watches of all components except kubelets.
    Watch(WatchFault),
    /// Writes of the controllers (strew's included), patches of the scheduler, and writes of the webhook.
    Write(WriteFault),
    /// Binds.
    Bind(BindFault),
    /// Requests about the schedulers' Lease.
    Lease(LeaseFault),
    /// Calls of the webhook, and its writes.
    Webhook(WebhookFault),
    /// A second replica of the scheduler runs.
    SecondScheduler,
}

/// The active faults with their ends: of each kind the one that began last.
#[derive(Debug, Clone, Default)]
pub struct Faults(Vec<(Fault, Instant)>);

impl Faults {
    /// Begins a fault that lasts until `until`.
    pub(crate) fn begin(&mut self, fault: Fault, until: Instant) {
        self.0.push((fault, until));
    }

    /// Removes the faults that are over. Returns false if there are none.
    pub(crate) fn pass_time(&mut self, now: Instant) -> bool {
        let n_before = self.0.len();
        self.0.retain(|(_, until)| *until > now);
        self.0.len() < n_before
    }

    /// When the next fault ends.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.0.iter().map(|(_, until)| *until).min()
    }

    /// Ends all faults.
    pub(crate) fn end(&mut self) {
        self.0.clear();
    }

    /// True if no fault is active.
    pub(crate) fn is_calm(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn watch(&self) -> Option<&WatchFault> {
        self.0.iter().rev().find_map(|(fault, _)| match fault {
            Fault::Watch(fault) => Some(fault),
            _ => None,
        })
    }

    pub(crate) fn write(&self) -> Option<&WriteFault> {
        self.0.iter().rev().find_map(|(fault, _)| match fault {
            Fault::Write(fault) => Some(fault),
            _ => None,
        })
    }

    pub(crate) fn bind(&self) -> Option<&BindFault> {
        self.0.iter().rev().find_map(|(fault, _)| match fault {
            Fault::Bind(fault) => Some(fault),
            _ => None,
        })
    }

    pub(crate) fn lease(&self) -> Option<&LeaseFault> {
        self.0.iter().rev().find_map(|(fault, _)| match fault {
            Fault::Lease(fault) => Some(fault),
            _ => None,
        })
    }

    pub(crate) fn webhook(&self) -> Option<&WebhookFault> {
        self.0.iter().rev().find_map(|(fault, _)| match fault {
            Fault::Webhook(fault) => Some(fault),
            _ => None,
        })
    }

    pub(crate) fn has_second_scheduler(&self) -> bool {
        self.0
            .iter()
            .any(|(fault, _)| *fault == Fault::SecondScheduler)
    }
}

/// A crash of a component: at once, or instead of sending a later request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// The component.
    pub component: Component,
    /// The number of requests that it still sends; 0: it crashes at once.
    pub after_writes: u32,
    /// How long it stays down.
    pub down: Span,
}

/// A defect that a test adds on purpose, to check that the judge finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The scheduler forgets a pod that it has bound until its watch shows the bind.
    ForgetsAssumed,
    /// A replica of the webhook trusts only the CA that signs: a rotation has no overlap.
    ReplacesBundle,
    /// A controller never takes out what no replica serves.
    KeepsRegistration,
}
