//! The loop: instant by instant, every component does what it can, in an order drawn from the seed.
//!
//! Source: spec/controllers §13 (recipe); KEP-140 (a step ends when nobody can act any more).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use strew_api::admission::AdmissionOptions;
use strew_controllers::object::{Name, Object};
use strew_controllers::{Controller, Manager};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

use crate::client::{Client, WriteFault};
use crate::feed::{Feed, WatchFault};
use crate::kubelet::Kubelets;
use crate::scheduler::{BindFault, Blueprint, Replica, Surroundings};
use crate::server::Server;
use crate::timing::Timing;

/// The moment at which a simulation begins, unless its objects are younger: 2026-01-01T00:00:00Z.
pub const START: Instant = Instant::from_secs(1_767_225_600);

/// Steps within one instant, for each object that is there, before the loop is taken for endless.
const STEPS_PER_OBJECT: u64 = 1_000;

/// What a simulation is made of.
pub struct Settings {
    /// Everything that is drawn is drawn from it.
    pub seed: u64,
    /// What is there at second 0, admitted.
    pub objects: Vec<Object>,
    /// The API server's flags and gates.
    pub options: AdmissionOptions,
    /// How the scheduler is built.
    pub scheduler: Blueprint,
    /// Makes the controllers; again after a crash.
    pub controllers: fn() -> Vec<Box<dyn Controller>>,
    /// How long things take.
    pub timing: Timing,
}

/// The loop made no end of one instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the components never come to rest: {steps} steps at {after} after the start")]
pub struct Stuck {
    /// How many steps were made.
    pub steps: u64,
    /// When.
    pub after: Span,
}

/// What befalls the cluster now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Watches.
    pub watch: Option<WatchFault>,
    /// The controllers' writes.
    pub write: Option<WriteFault>,
    /// The scheduler's binds.
    pub bind: Option<BindFault>,
}

/// A cluster, and its life so far.
pub struct Simulation {
    now: Instant,
    start: Instant,
    server: Server,
    kubelets: Kubelets,
    kubelet_feed: Feed,
    manager: Manager,
    manager_feed: Feed,
    schedulers: Vec<Replica>,
    utilisation: BTreeMap<Name, u32>,
    faults: Faults,
    /// Who acts next.
    order: Prng,
    /// The controllers' draws.
    manager_dice: Prng,
    kubelet_dice: Prng,
    /// What faults hit.
    fault_dice: Prng,
    n_steps: u64,
}

/// How many components take turns beside the schedulers.
const N_OTHERS: usize = 2;

impl Simulation {
    /// A cluster at second 0; nobody has acted.
    pub fn new(settings: Settings) -> Self {
        let mut seeds = Prng::new(settings.seed);
        let mut dice = || Prng::new(seeds.next_u64());
        let newest = Server::newest_moment(&settings.objects);
        let start = START.max(newest);
        let mut server = Server::new(settings.options, dice());
        for object in settings.objects {
            server.preload(start, object);
        }
        let mut manager_dice = dice();
        let manager = Manager::new((settings.controllers)(), start, &mut manager_dice);
        let scheduler = Replica::new(
            &settings.scheduler,
            "scheduler-0".to_owned(),
            false,
            &server,
            start,
        );
        Self {
            now: start,
            start,
            kubelets: Kubelets::new(settings.timing),
            kubelet_feed: Feed::new(&server),
            manager,
            manager_feed: Feed::new(&server),
            schedulers: vec![scheduler],
            utilisation: BTreeMap::new(),
            faults: Faults::default(),
            order: dice(),
            manager_dice,
            kubelet_dice: dice(),
            fault_dice: dice(),
            server,
            n_steps: 0,
        }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Span {
        self.now.since(self.start)
    }

    /// The API server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The scheduler's replicas.
    pub fn schedulers(&self) -> &[Replica] {
        &self.schedulers
    }

    /// How many steps were made.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// Lives on until so long after the start; `watch` is called after every instant, when everybody has come to rest.
    ///
    /// # Errors
    /// If some instant does not end.
    pub fn run_until(
        &mut self,
        until: Span,
        watch: &mut dyn FnMut(&mut Self) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Stuck> {
        let end = self.start + until;
        loop {
            self.drain()?;
            if watch(self).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            match self.next_wake() {
                Some(wake) if wake <= end => self.now = wake.max(self.now),
                _ => break,
            }
        }
        self.now = self.now.max(end);
        Ok(ControlFlow::Continue(()))
    }

    /// Everybody does what they can at this instant.
    ///
    /// # Errors
    /// If that does not end.
    pub fn drain(&mut self) -> Result<(), Stuck> {
        let mut n_steps = 0_u64;
        while self.step() {
            n_steps += 1;
            if n_steps % 1_000_000 == 0 && n_steps > self.steps_max() {
                return Err(Stuck {
                    steps: n_steps,
                    after: self.elapsed(),
                });
            }
        }
        self.n_steps += n_steps;
        Ok(())
    }

    fn steps_max(&self) -> u64 {
        let n_objects = self.server.tables().all().len() as u64;
        (n_objects + 1).saturating_mul(STEPS_PER_OBJECT)
    }

    /// One component does one thing. Whether any had something to do.
    fn step(&mut self) -> bool {
        let n_components = N_OTHERS + self.schedulers.len();
        let first = self.order.index(n_components);
        let acted = (0..n_components).any(|i| self.act((first + i) % n_components));
        if acted {
            self.trim();
        }
        acted
    }

    fn act(&mut self, component: usize) -> bool {
        match component {
            0 => self.step_kubelets(),
            1 => self.step_manager(),
            n => self.step_scheduler(n - N_OTHERS),
        }
    }

    fn step_kubelets(&mut self) -> bool {
        let mut told = false;
        // Kubelets know their own pods: no fault befalls what they are told.
        while let Some(change) = self.kubelet_feed.next(
            self.now,
            &self.server,
            &strew_controllers::Tables::default(),
            None,
            &mut self.fault_dice,
        ) {
            told = true;
            let dice = &mut self.kubelet_dice;
            self.kubelets
                .observe(self.now, &change, &mut self.server, dice);
        }
        self.kubelets
            .step(self.now, &mut self.server, &mut self.kubelet_dice)
            || told
    }

    fn step_manager(&mut self) -> bool {
        let mut told = false;
        while let Some(change) = self.manager_feed.next(
            self.now,
            &self.server,
            self.manager.cache(),
            self.faults.watch.as_ref(),
            &mut self.fault_dice,
        ) {
            told = true;
            match change.object {
                Some(object) => self.manager.set(self.now, object),
                None => self.manager.gone(self.now, &change.key),
            }
        }
        if !self.manager.is_ready(self.now) {
            return told;
        }
        let mut client = Client {
            now: self.now,
            server: &mut self.server,
            kubelets: &self.kubelets,
            utilisation: &self.utilisation,
            fault: self.faults.write.as_ref(),
            dice: &mut self.fault_dice,
            writes_left: None,
        };
        self.manager
            .step(self.now, &mut client, &mut self.manager_dice)
            || told
    }

    fn step_scheduler(&mut self, index: usize) -> bool {
        let Some(replica) = self.schedulers.get_mut(index) else {
            return false;
        };
        let mut around = Surroundings {
            now: self.now,
            server: &mut self.server,
            watch_fault: self.faults.watch.as_ref(),
            bind_fault: self.faults.bind.as_ref(),
            conflict_ppm: self.faults.write.map_or(0, |fault| fault.conflict_ppm),
            dice: &mut self.fault_dice,
            writes_left: &mut None,
        };
        replica.step(&mut around)
    }

    fn trim(&mut self) {
        let cursors = self.schedulers.iter().map(Replica::cursor);
        let others = [self.kubelet_feed.cursor(), self.manager_feed.cursor()];
        let seen = cursors.chain(others).min().unwrap_or(0);
        self.server.trim_log(seen);
    }

    fn next_wake(&self) -> Option<Instant> {
        let schedulers = self.schedulers.iter();
        let schedulers = schedulers.filter_map(|replica| replica.next_wake(self.now));
        let others = [
            self.kubelets.next_wake(),
            self.kubelet_feed.next_wake(),
            self.manager.next_wake(),
            self.manager_feed.next_wake(),
        ];
        schedulers.chain(others.into_iter().flatten()).min()
    }
}
