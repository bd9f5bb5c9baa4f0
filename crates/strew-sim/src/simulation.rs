//! The loop: at each instant every actor acts, in an order drawn from the seed, until none has work left.
//!
//! Source: spec/controllers §13 (recipe); KEP-140 (a step ends when no component can act).

mod actors;
mod bounds;
mod faults;
mod judge;
mod keeping;
mod placing;
mod spreading;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use strew_apiserver::object::{Name, Object, Pod, is_applied};
use strew_apiserver::server::{Cursor, Server};
use strew_controllers::{Controller, Manager};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::keep::Keeping;
use strew_wire::config::AdmissionOptions;

use crate::auditor::Witness;
use crate::autoscaler::{Autoscaler, AutoscalerSettings, NodeGroup};
use crate::client::Client;
use crate::component::Component;
use crate::fault::{Faults, Sabotage};
use crate::feed::Feed;
use crate::kubelet::Kubelets;
use crate::placement::{Diligence, PlacementController};
use crate::registration::RegistrationPlan;
use crate::requests::Requests;
use crate::scheduler::{Blueprint, Eyes, Replica};
use crate::slot::{Awaited, Slot};
use crate::timing::{Between, Timing};
use crate::workloadspread::{SpreadKeeper, Webhooks};
use bounds::Bounds;
pub use bounds::{N_PODS_MAX, Size};

/// The time at which a simulation begins, unless its objects are younger: 2026-01-01T00:00:00Z.
pub const START: Instant = Instant::from_secs(1_767_225_600);

/// The loop counts as endless after this many steps within one instant for each stored object.
const STEPS_PER_OBJECT: u64 = 1_000;

/// The least number of steps after which the loop can count as endless.
const STEPS_MIN: u64 = 50_000;

/// Time counts as standing still after this many instants at one moment.
const INSTANTS_MAX: u32 = 200_000;

/// Steps of one instant between two checks of the number of objects.
const STEPS_BETWEEN_CHECKS: u64 = 1_000;

/// Makes controllers at the start, and again after a crash.
pub type ControllerMaker = Arc<dyn Fn() -> Vec<Box<dyn Controller>> + Send + Sync>;

/// The settings of a simulation.
#[derive(Clone)]
pub struct Settings {
    /// The seed of all random draws.
    pub seed: u64,
    /// The admitted objects at second 0.
    pub objects: Vec<Object>,
    /// The API server's options and gates.
    pub options: AdmissionOptions,
    /// How the scheduler is built.
    pub scheduler: Blueprint,
    /// True if the scheduler's replicas elect a leader; needed only if there may be two.
    pub elects: bool,
    /// Makes the controllers.
    pub controllers: ControllerMaker,
    /// How long things take.
    pub timing: Timing,
    /// Node groups; their nodes at second 0 are among `objects`.
    pub groups: Vec<NodeGroup>,
    /// How groups grow and shrink; `None`: they keep their sizes.
    pub autoscaler: Option<AutoscalerSettings>,
}

/// Why a simulation ended early.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// An instant did not end.
    #[error("the components never come to rest: {steps} steps at {after} after the start")]
    Endless {
        /// The number of steps.
        steps: u64,
        /// The time since the start.
        after: Span,
    },
    /// The next instant is never later than the one before.
    #[error("time stands still at {after} after the start, and these wait to act: {overdue}")]
    Standing {
        /// The time since the start.
        after: Span,
        /// The components that time alone should have made act.
        overdue: String,
    },
    /// The workloads ask for more pods than a simulation holds.
    #[error("{workload} asks for {n} pods; a simulation holds at most {N_PODS_MAX} in all")]
    TooMany {
        /// The workload that asks for most.
        workload: String,
        /// The number of pods.
        n: u64,
    },
    /// Pods are created and deleted again within one instant.
    #[error(
        "the pods of {workload} are made and deleted again without end: {n_pods} of them at {after} after the start, \
         without a pause{why}"
    )]
    Churn {
        /// What makes them: `ReplicaSet default/web-7d4b9c`.
        workload: String,
        /// The pods that were made in this instant.
        n_pods: usize,
        /// The time since the start.
        after: Span,
        /// What deletes them: `: TaintManagerEviction: Marking for deletion Pod default/web-x`, or empty.
        why: String,
    },
    /// Pods are created without end, beyond what the workloads ask for.
    #[error(
        "pods are created without end: {n_pods} pods at {after} after the start, while the workloads \
         ask for {n_asked}; a controller creates pods that its own selector does not match"
    )]
    Runaway {
        /// The pods that have not finished.
        n_pods: u64,
        /// The pods that the workloads ask for.
        n_asked: u64,
        /// The time since the start.
        after: Span,
    },
}

impl Stuck {
    /// True if the given objects cause it, not a defect of strew.
    pub fn is_of_input(&self) -> bool {
        match self {
            Self::Endless { .. } | Self::Standing { .. } => false,
            Self::TooMany { .. } | Self::Runaway { .. } | Self::Churn { .. } => true,
        }
    }
}

struct Controllers {
    manager: Manager,
    feed: Feed,
}

/// A cluster and its state.
pub struct Simulation {
    pub(crate) now: Instant,
    start: Instant,
    pub(crate) server: Server,
    pub(crate) kubelets: Kubelets,
    kubelet_feed: Feed,
    controllers: Slot<Controllers>,
    requests: Requests,
    make_controllers: ControllerMaker,
    schedulers: Vec<Slot<Replica>>,
    blueprint: Blueprint,
    elects: bool,
    n_replicas: u64,
    /// strew's placement controller; `None` until the first Placement.
    placing: Option<Slot<PlacementController>>,
    diligence: Diligence,
    /// The controller that keeps ReplicaSets spread; `None` until the first label asks for it.
    keeping: Option<Slot<Component<Keeping>>>,
    /// The first label that asks for it.
    labelled: Awaited,
    /// The first budget that asks to be kept by zone.
    pub(crate) annotated: Awaited,
    /// How long the webhook's status writes take.
    status_write: Between,
    /// The controller of WorkloadSpreads; `None` until the first WorkloadSpread.
    spreads: Option<Slot<SpreadKeeper>>,
    pub(crate) n_webhooks: usize,
    /// How the webhook's replicas register themselves; `None`: all of them are asked, always.
    registration: Option<RegistrationPlan>,
    autoscaler: Option<Autoscaler>,
    utilisation: BTreeMap<Name, u32>,
    pub(crate) faults: Faults,
    pub(crate) dice: Dice,
    pub(crate) bounds: Bounds,
    n_steps: u64,
    witness: Option<Box<Witness>>,
    /// The witness' position in the log.
    journal: Option<Cursor>,
    /// The position before the first change; `None` once the simulation runs.
    first_change: Option<Cursor>,
    pub(crate) sabotage: Option<Sabotage>,
}

/// One generator per component, so that the draws of one do not change another's.
pub(crate) struct Dice {
    /// Which actor comes next.
    order: Prng,
    controllers: Prng,
    pub(crate) kubelets: Prng,
    autoscaler: Prng,
    /// What faults hit.
    faults: Prng,
    placing: Prng,
    /// The webhook and the controller of WorkloadSpreads.
    spreads: Prng,
    /// The random choices of the scheduler.
    schedulers: Prng,
    /// Which request of a component in transit comes first.
    network: Prng,
    /// The durations of requests.
    requests: Prng,
    /// The controller that keeps ReplicaSets spread.
    keeping: Prng,
    /// The webhook of budgets by zone.
    pub(crate) zones: Prng,
}

impl Simulation {
    /// Second 0 of a cluster with these objects: none of them is newer.
    pub fn start_of(objects: &[Object]) -> Instant {
        START.max(Server::newest_moment(objects))
    }

    /// A cluster at second 0, before any step.
    pub fn new(settings: Settings) -> Self {
        let mut seeds = Prng::new(settings.seed);
        let mut dice = || Prng::new(seeds.next_u64());
        let start = Self::start_of(&settings.objects);
        let mut server = Server::new(settings.options, dice());
        server.install(Box::<Webhooks>::default());
        let first_change = server.listen();
        let mut dice = Dice {
            order: dice(),
            controllers: dice(),
            kubelets: dice(),
            autoscaler: dice(),
            faults: dice(),
            placing: dice(),
            spreads: dice(),
            schedulers: dice(),
            network: dice(),
            requests: dice(),
            keeping: dice(),
            zones: dice(),
        };
        let manager = Manager::new((settings.controllers)(), start, &mut dice.controllers);
        let boot = settings.timing.node_boot;
        let autoscaler = settings.autoscaler.map(|autoscaler| {
            let blueprint = settings.scheduler.clone();
            let dice = &mut dice.autoscaler;
            Autoscaler::new(
                autoscaler,
                settings.groups,
                boot,
                blueprint,
                &server,
                start,
                dice,
            )
        });
        let mut simulation = Self {
            status_write: settings.timing.status_write,
            now: start,
            start,
            kubelets: Kubelets::new(settings.timing),
            kubelet_feed: Feed::new(&server),
            controllers: Slot::new(Controllers {
                manager,
                feed: Feed::new(&server),
            }),
            requests: Requests::default(),
            make_controllers: settings.controllers,
            schedulers: Vec::new(),
            blueprint: settings.scheduler,
            elects: settings.elects,
            n_replicas: 0,
            placing: None,
            diligence: Diligence::AsDecided,
            keeping: None,
            labelled: Awaited::new(&server),
            annotated: Awaited::new(&server),
            spreads: None,
            n_webhooks: spreading::REPLICAS,
            registration: None,
            autoscaler,
            utilisation: BTreeMap::new(),
            faults: Faults::default(),
            dice,
            bounds: Bounds::new(&settings.objects),
            server,
            n_steps: 0,
            witness: None,
            journal: None,
            first_change: Some(first_change),
            sabotage: None,
        };
        let replica = simulation.replica();
        simulation.schedulers.push(Slot::new(replica));
        simulation.fill(settings.objects);
        simulation.begin_spreading();
        simulation
    }

    /// Adds the objects of second 0. All components watch already and see the objects in the order of the files.
    /// Objects that kubectl applies arrive one after another, within the first instant.
    fn fill(&mut self, objects: Vec<Object>) {
        let (applied, there): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_applied);
        for object in there {
            self.server.preload(self.start, object);
        }
        self.server.keep_default_sets(self.start);
        self.requests.apply(applied, &mut self.dice.requests);
    }

    /// A new replica, with a name that is never reused.
    fn replica(&mut self) -> Replica {
        let hostname = format!("scheduler-{}", self.n_replicas);
        self.n_replicas += 1;
        let blueprint = self.blueprint.drawn_from(self.dice.schedulers.next_u64());
        let seed = self.dice.network.next_u64();
        Replica::new(
            &blueprint,
            hostname,
            self.elects,
            &self.server,
            self.now,
            seed,
        )
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The time of second 0.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Span {
        self.now.since(self.start)
    }

    /// The configuration of its schedulers, with the feature gates of this moment.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The API server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The live replicas of the scheduler.
    pub fn schedulers(&self) -> impl Iterator<Item = &Replica> {
        self.schedulers
            .iter()
            .filter_map(|slot| slot.alive.as_ref())
    }

    /// True if a node's kubelet runs.
    pub fn has_kubelet(&self, node: &str) -> bool {
        self.kubelets.is_alive(node)
    }

    /// The number of steps so far.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// A cursor for all changes of the store, from the first object at second 0 on.
    ///
    /// `None` once the simulation runs, and on a second call.
    pub fn listen_from_start(&mut self) -> Option<Cursor> {
        self.first_change.take()
    }

    /// Runs until this long after the start; calls `watch` after every instant.
    ///
    /// # Errors
    /// An instant does not end, or no later one comes.
    pub fn run_until(
        &mut self,
        until: Span,
        watch: &mut dyn FnMut(&mut Self) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Stuck> {
        let end = self.start + until;
        let mut n_at_once = 0;
        loop {
            self.drain()?;
            if watch(self).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let Some(wake) = self.next_wake().filter(|wake| *wake <= end) else {
                break;
            };
            n_at_once = if wake > self.now { 0 } else { n_at_once + 1 };
            if n_at_once > INSTANTS_MAX {
                return Err(Stuck::Standing {
                    after: self.elapsed(),
                    overdue: self.overdue().join(", "),
                });
            }
            self.now = wake.max(self.now);
        }
        self.now = self.now.max(end);
        Ok(ControlFlow::Continue(()))
    }

    /// Steps all components until none has work left at this instant.
    ///
    /// # Errors
    /// The instant does not end.
    pub fn drain(&mut self) -> Result<(), Stuck> {
        self.pass_time();
        self.first_change = None;
        if let Some(witness) = &mut self.witness {
            witness.pass_time(self.now);
        }
        self.check_bounds()?;
        let mut n_steps = 0_u64;
        while self.step() {
            n_steps += 1;
            if n_steps.is_multiple_of(STEPS_MIN) && n_steps > self.steps_max() {
                return Err(self.endless(n_steps));
            }
            if n_steps.is_multiple_of(STEPS_BETWEEN_CHECKS) {
                self.check_bounds()?;
            }
        }
        self.n_steps += n_steps;
        self.testify();
        Ok(())
    }

    fn check_bounds(&mut self) -> Result<(), Stuck> {
        let after = self.elapsed();
        self.bounds.check(&self.server, after)
    }

    /// Pods that terminate are not counted: a loop that makes pods and deletes them has more of them with each step.
    fn steps_max(&self) -> u64 {
        let tables = self.server.tables();
        let leaving = tables.of::<Pod>().iter();
        let n_leaving = leaving.filter(|pod| pod.meta.is_terminating()).count();
        let n_objects = tables.all().len().saturating_sub(n_leaving) as u64;
        (n_objects + 1).saturating_mul(STEPS_PER_OBJECT)
    }

    /// Why the present instant does not end.
    fn endless(&self, steps: u64) -> Stuck {
        let after = self.elapsed();
        match bounds::churn(&self.server, self.now, after) {
            Some(churn) => churn,
            None => Stuck::Endless { steps, after },
        }
    }

    /// Lets one actor take one step. Returns false if none had work.
    fn step(&mut self) -> bool {
        self.begin_placing();
        self.begin_keeping();
        let actors = self.actors();
        let n_actors = actors.clone().count();
        let first = self.dice.order.index(n_actors);
        let mut in_turn = actors.cycle().skip(first).take(n_actors);
        in_turn.any(|actor| self.act(actor))
    }

    fn step_kubelets(&mut self) -> bool {
        let mut told = false;
        let (now, dice) = (self.now, &mut self.dice);
        // Kubelets know their own pods, so their watch has no faults.
        while let Some(change) = self.kubelet_feed.next_plain(&self.server) {
            told = true;
            let server = &mut self.server;
            self.kubelets
                .observe(now, &change, server, &mut dice.kubelets);
        }
        self.kubelets
            .step(now, &mut self.server, &mut dice.kubelets)
            || told
    }

    /// The controllers, and their requests: those that are due come first.
    fn step_controllers_and_requests(&mut self) -> bool {
        (self.requests.is_due() && self.requests.step(self.now, &mut self.server))
            || self.step_controllers()
            || self.requests.step(self.now, &mut self.server)
    }

    fn step_controllers(&mut self) -> bool {
        let (now, dice) = (self.now, &mut self.dice);
        let Some(Controllers { manager, feed }) = &mut self.controllers.alive else {
            return false;
        };
        let doomed = self.controllers.doomed.as_mut();
        let answers = self.requests.take_answers(&mut self.server);
        let mut told = !answers.is_empty();
        let mut client = Client {
            now,
            server: &mut self.server,
            kubelets: &self.kubelets,
            utilisation: &self.utilisation,
            fault: self.faults.write(),
            dice: &mut dice.faults,
            writes_left: doomed.map(|(writes_left, _)| writes_left),
            requests: &mut self.requests,
            pace: &mut dice.requests,
            under_way: Vec::new(),
        };
        // Answers come before the watch shows the created pods.
        for answer in answers {
            manager.answered(now, answer, &mut client, &mut dice.controllers);
        }
        // All workers read one view, until each has read. Source: spec/controllers §13.
        while !manager.is_at_work()
            && let Some(change) = feed.next(
                now,
                client.server,
                manager.cache(),
                self.faults.watch(),
                client.dice,
            )
        {
            told = true;
            match change.new {
                Some(object) => manager.set(now, object),
                None => manager.gone(now, &change.key),
            }
        }
        if !manager.is_ready(now) {
            return told;
        }
        manager.step(now, &mut client, &mut dice.controllers);
        self.requests
            .pass(!manager.is_at_work(), &mut dice.requests);
        self.controllers.meet_doom(now);
        true
    }

    fn step_autoscaler(&mut self) -> bool {
        let dice = &mut self.dice.autoscaler;
        let autoscaler = self.autoscaler.as_mut();
        autoscaler.is_some_and(|autoscaler| autoscaler.step(self.now, &mut self.server, dice))
    }

    fn step_scheduler(&mut self, index: usize) -> bool {
        let Some(slot) = self.schedulers.get_mut(index) else {
            return false;
        };
        let eyes = Eyes {
            witness: self.witness.as_deref_mut(),
            sabotage: self.sabotage,
        };
        let dice = [&mut self.dice.faults, &mut self.dice.network];
        let world = (&mut self.server, &self.faults);
        slot.step(self.now, world, dice, |replica, around| {
            replica.step(around, eyes)
        })
    }
}
