//! The controller of WorkloadSpreads in the simulated cluster.

use strew_api::read::KubeObject;
use strew_api::workloadspread::Translator;
use strew_api::workloadspread::desk::Patcher;
use strew_api::workloadspread::request::{Context, controller_outcome, of_controller};
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::Instant;
use strew_workloadspread::SpreadController;
use strew_workloadspread::controller::{Effect, Input};

use super::seen::{Listener, Seen};
use super::sending::Line;
use crate::feed::WatchFault;
use crate::scheduler::Blueprint;

/// The controller: the machine, and what it was told.
pub(crate) struct SpreadKeeper {
    pub(crate) machine: SpreadController,
    pub(crate) translator: Translator,
    pub(crate) seen: Seen,
}

impl SpreadKeeper {
    /// A controller that begins by listing what there is.
    pub(crate) fn new(blueprint: &Blueprint, server: &Server) -> Self {
        Self {
            machine: SpreadController::new(blueprint.names.clone(), blueprint.limits.spreads),
            translator: Translator::default(),
            seen: Seen::new(server),
        }
    }

    /// One that has been told all that is stored.
    pub(crate) fn fresh(blueprint: &Blueprint, server: &Server, now: Instant) -> Self {
        let mut keeper = Self::new(blueprint, server);
        keeper.listen(now, server, None, &mut Prng::new(0));
        keeper
    }

    /// When time alone gives it something to do.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let wakes = [self.machine.next_wake(), self.seen.next_wake()];
        wakes.into_iter().flatten().min()
    }

    /// Takes in what its watch tells; whether that was anything.
    pub(crate) fn listen(
        &mut self,
        now: Instant,
        server: &Server,
        fault: Option<&WatchFault>,
        dice: &mut Prng,
    ) -> bool {
        let (translator, machine) = (&mut self.translator, &mut self.machine);
        let watch = (server, fault);
        self.seen.listen(now, watch, dice, translator, machine)
    }

    /// What it wants done next.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Effect> {
        self.machine.handle(now, Input::Tick);
        let mut patcher = Patcher {
            forms: &self.translator.forms,
            desk: None,
            pods: &self.seen,
        };
        self.machine.poll_effect(&mut patcher)
    }

    /// Takes in what its watch tells, or sends one request. Whether there was anything.
    pub(crate) fn step(&mut self, line: &mut Line<'_>) -> bool {
        let fault = line.weather.watch;
        let told = self.listen(line.now, line.server, fault.as_ref(), line.dice);
        let Some(effect) = self.poll(line.now) else {
            return told;
        };
        let context = Context {
            names: self.machine.names(),
            now: line.now,
            hostname: "controller",
        };
        let (id, request) = of_controller(&effect, &self.translator, &context);
        // Without an answer it waits until it takes the request as lost.
        if let (Some(answer), Some(id)) = (line.send(&request), id) {
            let outcome = Input::Outcome(id, controller_outcome(&answer));
            self.machine.handle(line.now, outcome);
        }
        true
    }
}

impl Listener for SpreadController {
    fn set(&mut self, now: Instant, object: &KubeObject, translator: &mut Translator) {
        for input in translator.controller(object, self.names_mut()) {
            self.handle(now, input);
        }
    }

    fn gone(&mut self, now: Instant, object: &KubeObject, translator: &mut Translator) {
        for input in translator.controller_gone(object, self.names_mut()) {
            self.handle(now, input);
        }
    }
}
