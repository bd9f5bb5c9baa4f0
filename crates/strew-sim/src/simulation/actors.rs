//! The actors of a simulation; the seed draws which one steps first.

use std::fmt;

use strew_model::time::Instant;

use super::Simulation;
use crate::autoscaler::Autoscaler;
use crate::component::Component;
use crate::scheduler::Replica;
use crate::slot::Slot;
use crate::workloadspread::{Webhook, webhook};

/// A part of the cluster that takes steps of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Actor {
    Kubelets,
    /// All controllers of Kubernetes, in one process.
    Controllers,
    Autoscaler,
    /// A replica of the scheduler.
    Scheduler(usize),
    /// strew's controller of Placements.
    Placing,
    /// strew's controller that keeps ReplicaSets spread.
    Keeping,
    /// strew's webhook, with all of its replicas.
    Webhook,
    /// strew's controller of WorkloadSpreads.
    Spreading,
    /// strew's webhook of budgets by zone, with all of its replicas.
    Zoning,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kubelets => "kubelets",
            Self::Controllers => "controllers",
            Self::Autoscaler => "autoscaler",
            Self::Scheduler(_) => "scheduler",
            Self::Placing => "placement controller",
            Self::Keeping => "keeper of spread",
            Self::Webhook => "webhook",
            Self::Spreading => "controller of WorkloadSpreads",
            Self::Zoning => "webhook of budgets by zone",
        })
    }
}

impl Simulation {
    /// All of them. A seed's draws depend on their order.
    pub(super) fn actors(&self) -> impl Iterator<Item = Actor> + Clone + use<> {
        let always = [Actor::Kubelets, Actor::Controllers, Actor::Autoscaler];
        let schedulers = (0..self.schedulers.len()).map(Actor::Scheduler);
        let placing = self.placing.as_ref().map(|_| Actor::Placing);
        let keeping = self.keeping.as_ref().map(|_| Actor::Keeping);
        let spreading = self.spreads.as_ref();
        let spreading = spreading.map(|_| [Actor::Webhook, Actor::Spreading]);
        always
            .into_iter()
            .chain(schedulers)
            .chain(placing)
            .chain(keeping)
            .chain(spreading.into_iter().flatten())
            .chain(self.is_zoning().then_some(Actor::Zoning))
    }

    /// Lets one of them take one step. Returns false if it had no work.
    pub(super) fn act(&mut self, actor: Actor) -> bool {
        match actor {
            Actor::Kubelets => self.step_kubelets(),
            Actor::Controllers => self.step_controllers_and_requests(),
            Actor::Autoscaler => self.step_autoscaler(),
            Actor::Scheduler(index) => self.step_scheduler(index),
            Actor::Placing => self.step_placing(),
            Actor::Keeping => self.step_keeping(),
            Actor::Webhook => self.server.step_webhooks(self.now),
            Actor::Spreading => self.step_spreading(),
            Actor::Zoning => self.step_zoning(),
        }
    }

    /// When time alone gives it something to do: work, or its restart.
    pub(super) fn wake(&self, actor: Actor) -> Option<Instant> {
        match actor {
            Actor::Kubelets => {
                let wakes = [self.kubelets.next_wake(), self.kubelet_feed.next_wake()];
                wakes.into_iter().flatten().min()
            }
            Actor::Controllers => self.controllers.wake(|controllers| {
                let wakes = [
                    controllers.manager.next_wake(),
                    controllers.feed.next_wake(),
                ];
                wakes.into_iter().flatten().min()
            }),
            Actor::Autoscaler => self.autoscaler.as_ref().and_then(Autoscaler::next_wake),
            Actor::Scheduler(index) => self.schedulers.get(index)?.wake(Replica::next_wake),
            Actor::Placing => self.placing.as_ref()?.wake(|placing| placing.next_wake()),
            Actor::Keeping => self.keeping.as_ref()?.wake(Component::next_wake),
            Actor::Webhook => webhook(&self.server).and_then(Webhook::next_wake),
            Actor::Spreading => self.spreads.as_ref()?.wake(|keeper| keeper.next_wake()),
            Actor::Zoning => self.zoning_wake(),
        }
    }

    /// The next instant at which anything happens without an event.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let wakes = self.actors().filter_map(|actor| self.wake(actor));
        wakes.chain(self.faults.next_wake()).min()
    }

    /// The actors that time alone should have made act by now.
    pub(super) fn overdue(&self) -> Vec<String> {
        let is_due = |actor: &Actor| self.wake(*actor).is_some_and(|at| at <= self.now);
        self.actors()
            .filter(is_due)
            .map(|actor| actor.to_string())
            .collect()
    }
}

impl<T> Slot<T> {
    /// When the component has work, or is restarted.
    fn wake(&self, of: impl FnOnce(&T) -> Option<Instant>) -> Option<Instant> {
        let work = self.alive.as_ref().and_then(of);
        work.into_iter().chain(self.restart).min()
    }
}
