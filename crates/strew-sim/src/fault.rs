//! Faults, and for how long they last.

use std::collections::BTreeMap;

use strew_model::time::{Instant, Span};

use crate::client::WriteFault;
use crate::feed::WatchFault;
use crate::scheduler::BindFault;
use crate::workloadspread::WebhookFault;

/// A part of the cluster that can crash and restart without memory.
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
    /// strew's controller, of Placements and WorkloadSpreads.
    Controller,
}

/// What befalls requests about the schedulers' Lease for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaseFault {
    /// How many of a million requests get no answer; half of them are carried out nevertheless.
    pub lost_ppm: u32,
}

/// How often faults have hit a component, by kind.
pub type Hits = BTreeMap<&'static str, u64>;

/// Something that goes wrong for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Watches of all components but kubelets.
    Watch(WatchFault),
    /// Writes of the controllers, strew's own included, patches of the scheduler, and what the webhook writes.
    Write(WriteFault),
    /// Binds.
    Bind(BindFault),
    /// Requests about the schedulers' Lease.
    Lease(LeaseFault),
    /// Calls of the webhook, and its writes.
    Webhook(WebhookFault),
    /// A second replica of the scheduler is alive.
    SecondScheduler,
}

/// The faults of the moment: of each kind the one that came last.
#[derive(Debug, Clone, Default)]
pub struct Faults(Vec<(Fault, Instant)>);

impl Faults {
    /// From now on, and until then.
    pub(crate) fn begin(&mut self, fault: Fault, until: Instant) {
        self.0.push((fault, until));
    }

    /// Forgets those that are over; whether there were any.
    pub(crate) fn pass_time(&mut self, now: Instant) -> bool {
        let n_before = self.0.len();
        self.0.retain(|(_, until)| *until > now);
        self.0.len() < n_before
    }

    /// When the next one is over.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.0.iter().map(|(_, until)| *until).min()
    }

    /// All are over.
    pub(crate) fn end(&mut self) {
        self.0.clear();
    }

    /// Whether nothing goes wrong.
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

/// How a component dies: now, or with a request that it is about to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// The component.
    pub component: Component,
    /// How many more requests it sends before the crash; 0: it crashes at once.
    pub after_writes: u32,
    /// How long it stays dead.
    pub down: Span,
}

/// A part that a test breaks on purpose, to see that the judge finds it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// The scheduler forgets a pod that it has bound until its watch shows it.
    ForgetsAssumed,
}
