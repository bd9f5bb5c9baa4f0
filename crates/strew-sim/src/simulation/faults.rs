//! What goes wrong, and what people do to the cluster's own components.

use strew_api::admission::AdmissionOptions;
use strew_controllers::Manager;
use strew_controllers::object::Name;
use strew_model::time::Span;

use super::{ControllerMaker, Controllers, Simulation, Slot};
use crate::fault::{Component, Crash, Fault};
use crate::feed::Feed;
use crate::scheduler::Blueprint;

impl Simulation {
    /// Faults end, and what is to be started anew is.
    pub(super) fn pass_time(&mut self) {
        let now = self.now;
        if self.faults.pass_time(now) && !self.faults.has_second_scheduler() {
            self.schedulers.truncate(1);
        }
        for index in 0..self.schedulers.len() {
            if self.schedulers[index].restart.is_some_and(|at| at <= now) {
                self.schedulers[index] = Slot::new(self.replica());
            }
        }
        if self.controllers.restart.is_some_and(|at| at <= now) {
            self.restart_controllers();
        }
        self.begin_placing();
    }

    fn restart_controllers(&mut self) {
        let dice = &mut self.dice.controllers;
        let manager = Manager::new((self.make_controllers)(), self.now, dice);
        let feed = Feed::new(&self.server);
        self.controllers = Slot::new(Controllers { manager, feed });
    }

    /// A component dies.
    pub fn crash(&mut self, crash: Crash) {
        let Crash {
            component,
            after_writes,
            down,
        } = crash;
        let restart = self.now + down;
        let doom = (after_writes > 0).then_some((after_writes, down));
        match component {
            Component::Scheduler => {
                for slot in &mut self.schedulers {
                    match doom {
                        Some(_) => slot.doomed = doom,
                        None => slot.die(restart),
                    }
                }
            }
            Component::Controllers => match doom {
                Some(_) => self.controllers.doomed = doom,
                None => self.controllers.die(restart),
            },
            Component::Controller => {
                if let Some(slot) = &mut self.placing {
                    match doom {
                        Some(_) => slot.doomed = doom,
                        None => slot.die(restart),
                    }
                }
            }
        }
    }

    /// Something goes wrong for a while.
    pub fn fault(&mut self, fault: Fault, lasts: Span) {
        self.faults.begin(fault, self.now + lasts);
        if fault == Fault::SecondScheduler && self.schedulers.len() == 1 {
            let second = self.replica();
            self.schedulers.push(Slot::new(second));
        }
    }

    /// The schedulers' clocks jump ahead.
    pub fn jump_clock(&mut self, by: Span) {
        for replica in self
            .schedulers
            .iter_mut()
            .filter_map(|slot| slot.alive.as_mut())
        {
            replica.ahead = Span(replica.ahead.0.saturating_add(by.0));
        }
    }

    /// All faults are over, and everybody is alive.
    pub fn calm(&mut self) {
        self.faults.end();
        self.schedulers.truncate(1);
        for slot in &mut self.schedulers {
            slot.doomed = None;
            slot.restart = slot.restart.map(|_| self.now);
        }
        self.controllers.doomed = None;
        self.controllers.restart = self.controllers.restart.map(|_| self.now);
        if let Some(slot) = &mut self.placing {
            slot.doomed = None;
            slot.restart = slot.restart.map(|_| self.now);
        }
    }

    /// All components are started anew with other flags.
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

    /// From now on the pods of an autoscaler's target report this utilisation, in percent of what they request.
    pub fn set_utilisation(&mut self, autoscaler: Name, percent: u32) {
        self.utilisation.insert(autoscaler, percent);
    }
}
