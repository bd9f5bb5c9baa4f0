//! A scheduler of the simulated cluster, with the driver, machine and lease of a real one.
//!
//! Reading order: this file (a replica's steps), `judging` (what the judge sees), `fresh` (a newly started scheduler).

mod fresh;
mod judging;

use strew_apiserver::Tables;
use strew_apiserver::server::Server;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_runtime::scheduler::{SchedulerMachine, watches};
use strew_scheduler::Profile;
use strew_scheduler::machine::Scheduler;
use strew_wire::config::{Configuration, LeaderElection};
use strew_wire::lease::{Election, Input as ElectionInput, Moment, Settings};
use strew_wire::request::{Answer, Request};

use crate::auditor::Witness;
use crate::component::{Component, Surroundings};
use crate::fault::Sabotage;
use crate::limits::MachineLimits;
use crate::network::Sender;
use judging::SchedulerJudge;

/// A fault of binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BindFault {
    /// The longest delay of each bind, and again of its answer.
    pub slow: Span,
    /// Of a million binds, the number that fail.
    pub fail_ppm: u32,
}

/// The configuration of a scheduler.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The names that the profiles use.
    pub names: Interner,
    /// The profiles; at least one.
    pub profiles: Vec<Profile>,
    /// The settings of the scheduler and of the other machines, which share its names and profiles.
    pub limits: MachineLimits,
    /// How replicas elect their leader.
    pub election: LeaderElection,
    /// The number of workers that filter nodes in parallel, at least 1.
    pub parallelism: u32,
}

impl Blueprint {
    /// From a configuration, its waits included; `names` must be the interner of its profiles.
    pub fn of(configuration: &Configuration, names: Interner) -> Self {
        let mut profiles = configuration.profiles.clone();
        // The simulation has a controller that provisions volumes where pods go.
        profiles.iter_mut().for_each(|p| p.binds_claims = true);
        Self {
            names,
            profiles,
            limits: MachineLimits::of(configuration.limits()),
            election: configuration.leader_election.clone(),
            parallelism: configuration.parallelism,
        }
    }

    /// The same scheduler in one run: its random choices are drawn from this seed.
    pub(crate) fn drawn_from(&self, seed: u64) -> Self {
        let mut drawn = self.clone();
        for profile in &mut drawn.profiles {
            *profile = profile.clone().drawn_from(seed, self.parallelism);
        }
        drawn
    }

    fn machine(&self, hostname: &str, now: Instant) -> SchedulerMachine {
        let (names, profiles) = (self.names.clone(), self.profiles.clone());
        let machine = Scheduler::new(names, profiles, self.limits.scheduler, now);
        SchedulerMachine::new(machine, hostname.to_owned())
    }
}

/// One replica of the scheduler.
pub struct Replica {
    component: Component<SchedulerMachine>,
    /// `None`: it is the only replica, and leads.
    election: Option<Election>,
    hostname: String,
    /// For the witness, which checks decisions.
    profiles: Vec<Profile>,
    renew_deadline: Span,
    pub(crate) stats: Stats,
}

/// Counts of a replica's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Binds that were carried out.
    pub n_bound: u64,
    /// Requests that did not succeed.
    pub n_refused: u64,
}

/// Observers of a replica, and defects added by a test.
pub(crate) struct Eyes<'a> {
    pub(crate) witness: Option<&'a mut Witness>,
    pub(crate) sabotage: Option<Sabotage>,
}

impl Replica {
    /// A replica that lists the store first.
    pub(crate) fn new(
        blueprint: &Blueprint,
        hostname: String,
        elects: bool,
        server: &Server,
        now: Instant,
        seed: u64,
    ) -> Self {
        let election = elects.then(|| {
            let settings = Settings::of(&blueprint.election, hostname.clone());
            Election::new(settings, now)
        });
        let machine = blueprint.machine(&hostname, now);
        Self {
            component: Component::new(machine, watches(), Sender::Scheduler, server, now, seed),
            election,
            hostname,
            profiles: blueprint.profiles.clone(),
            renew_deadline: Span::from_secs(blueprint.election.renew_deadline.as_secs()),
            stats: Stats::default(),
        }
    }

    /// Its name; names are never reused.
    pub fn name(&self) -> &str {
        &self.hostname
    }

    /// The machine.
    pub fn machine(&self) -> &Scheduler {
        self.component.machine().machine()
    }

    /// The objects that its watches have delivered.
    pub fn seen(&self) -> &Tables {
        self.component.seen()
    }

    /// The stored objects that its watches would deliver.
    pub(crate) fn watched(&self, tables: &Tables) -> Tables {
        self.component.watched(tables)
    }

    /// Moves its clock ahead.
    pub(crate) fn jump_clock(&mut self, by: Span) {
        self.component.jump(by);
    }

    pub(crate) fn leads(&self, now: Instant) -> bool {
        self.election
            .as_ref()
            .is_none_or(|election| election.leads(self.component.clock(now)))
    }

    /// The next time at which it has something to do without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let election = self.election.as_ref().and_then(Election::next_wake);
        let election = election.map(|own| self.component.true_time(own));
        let wakes = [election, self.component.next_wake()];
        wakes.into_iter().flatten().min()
    }

    /// Takes one step: takes in watch events, requests its lease, decides, or lets a request arrive. Returns false if
    /// there was nothing to do.
    pub(crate) fn step(&mut self, around: &mut Surroundings<'_>, eyes: Eyes<'_>) -> bool {
        let Eyes {
            mut witness,
            sabotage,
        } = eyes;
        let heard = self.component.listen(around);
        if self.elect(around, witness.as_deref_mut()) {
            return true;
        }
        if let Some(election) = &self.election {
            let until = election.leads_until().unwrap_or_default();
            self.component.lease(until);
        }
        let mut judge = SchedulerJudge {
            clock: self.component.clock(around.now),
            hostname: &self.hostname,
            profiles: &self.profiles,
            elects: self.election.is_some(),
            stats: &mut self.stats,
            witness,
            sabotage,
        };
        judge.show_holds(self.component.machine().machine(), None);
        self.component.act(around, &mut judge) || heard
    }

    fn elect(&mut self, around: &mut Surroundings<'_>, witness: Option<&mut Witness>) -> bool {
        let clock = self.component.clock(around.now);
        let at = Moment {
            now: clock,
            wall: clock,
            dice: 0,
        };
        let Some(election) = &mut self.election else {
            return false;
        };
        if election.next_wake().is_some_and(|wake| wake <= at.now) {
            let dice = around.draws.faults.next_u64();
            election.handle(Moment { dice, ..at }, ElectionInput::Tick);
        }
        let Some(ask) = election.poll_effect() else {
            return false;
        };
        let answer = ask_server(&ask.request, around);
        if let Some(witness) = witness
            && answer.object().is_some()
            && ask.request.body["spec"]["holderIdentity"] == self.hostname.as_str()
        {
            witness.renewed(&self.hostname, at.now, self.renew_deadline);
        }
        let dice = around.draws.faults.next_u64();
        election.handle(
            Moment { dice, ..at },
            ElectionInput::Answered(ask.ticket, answer),
        );
        true
    }
}

/// Sends a request about the Lease to the server, subject to the active faults.
fn ask_server(request: &Request, around: &mut Surroundings<'_>) -> Answer {
    let ppm = around.faults.lease().map_or(0, |fault| fault.lost_ppm);
    if ppm == 0 || !around.draws.faults.chance(u64::from(ppm), 1_000_000) {
        return around.server.execute(around.now, request);
    }
    if around.draws.faults.chance(1, 2) {
        around.server.execute(around.now, request);
    }
    Answer::Lost("the connection was cut".into())
}

#[cfg(test)]
mod tests {
    use strew_manifest::read::Sources;
    use strew_wire::config::{FeatureGates, Given, configure};

    use super::*;

    #[test]
    fn a_blueprint_has_the_waits_of_its_configuration() {
        let mut sources = Sources::new();
        sources.add(
            "config.yaml",
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 7\n",
        );
        let mut names = Interner::new();
        let gates = FeatureGates::default();
        let configuration = configure(Given::Files(&sources), &gates, &mut names).unwrap();
        let backoff = Blueprint::of(&configuration, names)
            .limits
            .scheduler
            .queue
            .backoff;
        assert_eq!(backoff.initial, Span::from_secs(3));
        assert_eq!(backoff.max, Span::from_secs(7));
    }
}
