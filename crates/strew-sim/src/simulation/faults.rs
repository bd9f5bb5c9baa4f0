//! Faults of components and their recovery, and actions of users on components.

use strew_apiserver::object::Name;
use strew_controllers::Manager;
use strew_model::time::Span;
use strew_wire::config::AdmissionOptions;

use super::{ControllerMaker, Controllers, Simulation};
use crate::fault::{Component, Crash, Fault};
use crate::feed::Feed;
use crate::scheduler::Blueprint;
use crate::slot::Slot;
use crate::workloadspread::webhook_mut;

impl Simulation {
    /// Ends faults and restarts components that are due.
    pub(super) fn pass_time(&mut self) {
        let now = self.now;
        if self.faults.pass_time(now) && !self.faults.has_second_scheduler() {
            self.schedulers.truncate(1);
        }
        for index in 0..self.schedulers.len() {
            if self.schedulers[index].is_due(now) {
                self.schedulers[index] = Slot::new(self.replica());
            }
        }
        if self.controllers.is_due(now) {
            self.restart_controllers();
        }
        self.begin_placing();
        self.begin_keeping();
        self.begin_zoning();
        self.restart_spreading();
        self.tell_weather();
    }

    fn restart_controllers(&mut self) {
        let dice = &mut self.dice.controllers;
        let manager = Manager::new((self.make_controllers)(), self.now, dice);
        let feed = Feed::new(&self.server);
        self.controllers = Slot::new(Controllers { manager, feed });
    }

    /// Crashes a component.
    pub fn crash(&mut self, crash: Crash) {
        let Crash {
            component,
            after_writes,
            down,
        } = crash;
        let now = self.now;
        match component {
            Component::Scheduler => {
                for slot in &mut self.schedulers {
                    slot.crash(now, after_writes, down);
                }
            }
            Component::Controllers => self.controllers.crash(now, after_writes, down),
            Component::Webhook | Component::WebhookReplica => {
                let only_one = component == Component::WebhookReplica;
                if let Some(webhook) = webhook_mut(&mut self.server) {
                    webhook.replicas.crash(now, crash, only_one);
                }
                self.crash_zoning(crash, only_one);
            }
            Component::Controller => {
                if let Some(slot) = &mut self.placing {
                    slot.crash(now, after_writes, down);
                }
                if let Some(slot) = &mut self.spreads {
                    slot.crash(now, after_writes, down);
                }
                if let Some(slot) = &mut self.keeping {
                    slot.crash(now, after_writes, down);
                }
                if let Some(webhook) = webhook_mut(&mut self.server) {
                    webhook.crash_guards(now, crash);
                }
            }
        }
    }

    /// Begins a fault of this duration.
    pub fn fault(&mut self, fault: Fault, lasts: Span) {
        self.faults.begin(fault, self.now + lasts);
        if fault == Fault::SecondScheduler && self.schedulers.len() == 1 {
            let second = self.replica();
            self.schedulers.push(Slot::new(second));
        }
        self.tell_weather();
    }

    /// Moves the schedulers' clocks ahead.
    pub fn jump_clock(&mut self, by: Span) {
        for replica in self
            .schedulers
            .iter_mut()
            .filter_map(|slot| slot.alive.as_mut())
        {
            replica.jump_clock(by);
        }
    }

    /// Ends all faults and restarts all components.
    pub fn calm(&mut self) {
        self.faults.end();
        self.schedulers.truncate(1);
        let now = self.now;
        for slot in &mut self.schedulers {
            slot.calm(now);
        }
        self.controllers.calm(now);
        if let Some(slot) = &mut self.placing {
            slot.calm(now);
        }
        if let Some(slot) = &mut self.keeping {
            slot.calm(now);
        }
        self.calm_spreading();
        self.calm_zoning();
    }

    /// Restarts all components with other API server options.
    pub fn restart_with(
        &mut self,
        options: AdmissionOptions,
        scheduler: Blueprint,
        controllers: ControllerMaker,
    ) {
        self.server.set_options(options);
        self.blueprint = scheduler;
        self.make_controllers = controllers;
        for index in 0..self.schedulers.len() {
            self.schedulers[index] = Slot::new(self.replica());
        }
        self.restart_controllers();
    }

    /// Sets the utilisation of an autoscaler's target from now on, in percent of what its pods request.
    pub fn set_utilisation(&mut self, autoscaler: Name, percent: u32) {
        self.utilisation.insert(autoscaler, percent);
    }
}
