//! A scheduler of the simulated cluster: the very machine that decides in a real one, and what carries its effects out.
//!
//! Reading order: this file (a replica's steps), `facts` (objects into facts), `sending` (requests that are sent
//! again).

mod facts;
mod fresh;
mod sending;

use std::sync::Arc;

use strew_api::config::{Configuration, LeaderElection};
use strew_api::lease::{Election, Input as ElectionInput, Moment, Settings};
use strew_api::request::{Answer, Context, Request, requests_of};
use strew_apiserver::Tables;
use strew_apiserver::object::pod::POD_SCHEDULED;
use strew_apiserver::object::{Name, Pod, Truth};
use strew_model::time::{Instant, Span};
use strew_model::{Interner, Prng};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Effect, EffectId, Hold, Input, PodName, Scheduler};

use crate::auditor::{Rule, Witness, preemption, verdict};
use crate::fault::{LeaseFault, Sabotage};
use crate::feed::{Feed, WatchFault};
use crate::limits::MachineLimits;
pub use facts::{Facts, wire_of};
use sending::{Done, Outbox, Sender};
use strew_apiserver::server::Server;

/// What befalls binds for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BindFault {
    /// At most so much later; each bind's delay is drawn.
    pub slow: Span,
    /// Of a million binds so many fail.
    pub fail_ppm: u32,
}

/// What a scheduler is made of.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The names that the profiles use.
    pub names: Interner,
    /// Never empty.
    pub profiles: Vec<Profile>,
    /// Of the scheduler, and of the other machines, which are built with the same names and profiles.
    pub limits: MachineLimits,
    /// How replicas elect their leader.
    pub election: LeaderElection,
    /// How many workers filter nodes at the same time, at least 1.
    pub parallelism: u32,
}

impl Blueprint {
    /// What a configuration says, its waits included; `names` are those that its profiles were made with.
    pub fn of(configuration: &Configuration, names: Interner) -> Self {
        Self {
            names,
            profiles: configuration.profiles.clone(),
            limits: MachineLimits::of(configuration.limits()),
            election: configuration.leader_election.clone(),
            parallelism: configuration.parallelism,
        }
    }

    /// The same scheduler in a life of the cluster: what its decisions leave to chance is drawn from this seed.
    pub(crate) fn drawn_from(&self, seed: u64) -> Self {
        let mut drawn = self.clone();
        for profile in &mut drawn.profiles {
            *profile = profile.clone().drawn_from(seed, self.parallelism);
        }
        drawn
    }
}

/// One replica of the scheduler.
pub struct Replica {
    machine: Scheduler,
    feed: Feed,
    seen: Tables,
    facts: Facts,
    outbox: Outbox,
    /// `None`: it is the only one, and leads.
    election: Option<Election>,
    /// By so much its clock is ahead of the others'.
    pub(crate) ahead: Span,
    hostname: String,
    /// For the witness, who judges decisions once more.
    profiles: Vec<Profile>,
    renew_deadline: Span,
    pub(crate) stats: Stats,
}

/// What a replica has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Binds that were carried out.
    pub n_bound: u64,
    /// Requests that were answered with something else than success.
    pub n_refused: u64,
}

/// What a replica may use in a step.
pub(crate) struct Surroundings<'a> {
    pub(crate) now: Instant,
    pub(crate) server: &'a mut Server,
    pub(crate) watch_fault: Option<&'a WatchFault>,
    pub(crate) bind_fault: Option<&'a BindFault>,
    pub(crate) lease_fault: Option<&'a LeaseFault>,
    pub(crate) conflict_ppm: u32,
    pub(crate) dice: &'a mut Prng,
    /// How many more requests the replica lives to send.
    pub(crate) writes_left: Option<&'a mut u32>,
    /// Who sees what is decided and sent.
    pub(crate) witness: Option<&'a mut Witness>,
    /// What a test breaks.
    pub(crate) sabotage: Option<Sabotage>,
}

impl Replica {
    /// A replica that begins by listing what there is.
    pub(crate) fn new(
        blueprint: &Blueprint,
        hostname: String,
        elects: bool,
        server: &Server,
        now: Instant,
    ) -> Self {
        let election = elects.then(|| {
            let settings = Settings::of(&blueprint.election, hostname.clone());
            Election::new(settings, now)
        });
        let names = blueprint.names.clone();
        Self {
            machine: Scheduler::new(
                names,
                blueprint.profiles.clone(),
                blueprint.limits.scheduler,
                now,
            ),
            feed: Feed::new(server),
            seen: Tables::default(),
            facts: Facts::default(),
            outbox: Outbox::default(),
            election,
            ahead: Span::default(),
            hostname,
            profiles: blueprint.profiles.clone(),
            renew_deadline: Span::from_secs(blueprint.election.renew_deadline.as_secs()),
            stats: Stats::default(),
        }
    }

    /// Its name; no other replica ever has it.
    pub fn name(&self) -> &str {
        &self.hostname
    }

    /// The machine.
    pub fn machine(&self) -> &Scheduler {
        &self.machine
    }

    /// What its watch has brought.
    pub fn seen(&self) -> &Tables {
        &self.seen
    }

    fn clock(&self, now: Instant) -> Instant {
        now + self.ahead
    }

    pub(crate) fn leads(&self, now: Instant) -> bool {
        self.election
            .as_ref()
            .is_none_or(|election| election.leads(self.clock(now)))
    }

    /// When time alone gives it something to do.
    pub(crate) fn next_wake(&self, now: Instant) -> Option<Instant> {
        let own = |at: Instant| Instant(at.0.saturating_sub(self.ahead.0));
        let election = self
            .election
            .as_ref()
            .and_then(Election::next_wake)
            .map(own);
        let machine = self
            .machine
            .next_wake()
            .filter(|_| self.leads(now))
            .map(own);
        let outbox = self.outbox.next_wake();
        let wakes = [election, machine, outbox, self.feed.next_wake()];
        wakes.into_iter().flatten().min()
    }

    /// Does one thing: takes in what its watch tells, sends one request, or decides. Whether there was anything.
    pub(crate) fn step(&mut self, around: &mut Surroundings<'_>) -> bool {
        let told = self.listen(around);
        if self.elect(around) || self.resend(around) {
            return true;
        }
        if !self.leads(around.now) {
            return told;
        }
        self.machine.handle(self.clock(around.now), Input::Tick);
        self.show_holds(around, false);
        let Some(effect) = self.machine.poll_effect() else {
            return told;
        };
        self.show_holds(around, true);
        self.show_bind(&effect, around);
        if let (Some(Sabotage::ForgetsAssumed), Effect::Bind { pod, .. }) =
            (around.sabotage, &effect)
        {
            let gone = Input::PodGone(Arc::clone(&pod.uid));
            self.machine.handle(self.clock(around.now), gone);
        }
        self.carry_out(&effect, around);
        true
    }

    fn listen(&mut self, around: &mut Surroundings<'_>) -> bool {
        let mut told = false;
        let now = self.clock(around.now);
        while let Some(change) = self.feed.next(
            around.now,
            around.server,
            &self.seen,
            around.watch_fault,
            around.dice,
        ) {
            told = true;
            self.facts
                .take_in(&mut self.machine, &mut self.seen, now, change);
        }
        told
    }

    fn elect(&mut self, around: &mut Surroundings<'_>) -> bool {
        let at = Moment {
            now: self.clock(around.now),
            wall: self.clock(around.now),
            dice: 0,
        };
        let Some(election) = &mut self.election else {
            return false;
        };
        if election.next_wake().is_some_and(|wake| wake <= at.now) {
            let dice = around.dice.next_u64();
            election.handle(Moment { dice, ..at }, ElectionInput::Tick);
        }
        let Some(ask) = election.poll_effect() else {
            return false;
        };
        let answer = ask_server(&ask.request, around);
        if let Some(witness) = around.witness.as_deref_mut()
            && answer.object().is_some()
            && ask.request.body["spec"]["holderIdentity"] == self.hostname.as_str()
        {
            witness.renewed(&self.hostname, at.now, self.renew_deadline);
        }
        let dice = around.dice.next_u64();
        election.handle(
            Moment { dice, ..at },
            ElectionInput::Answered(ask.ticket, answer),
        );
        true
    }

    /// Lets the witness judge a bind, as the facts are on which it was decided.
    fn show_bind(&mut self, effect: &Effect, around: &mut Surroundings<'_>) {
        let (Some(witness), Effect::Bind { pod, node, .. }) =
            (around.witness.as_deref_mut(), effect)
        else {
            return;
        };
        witness.n_judged += 1;
        let assumed = witness.assumed(&self.hostname, &self.seen);
        let cluster = verdict::recount(&self.seen, &self.machine, &assumed);
        if let Err(text) = verdict::judge(cluster, &self.profiles, &pod.uid, *node) {
            let node = self.machine.cluster().names.text(*node);
            let text = format!("binds {} to {node}: {text}", pod.name);
            witness.blame(Rule::Bind, self.hostname.as_str(), text);
        }
        witness.decided(&self.hostname, &pod.uid, *node);
    }

    /// Shows the witness for which pods room is being made, and lets it judge those that were `just` decided on.
    fn show_holds(&mut self, around: &mut Surroundings<'_>, just: bool) {
        let Some(witness) = around.witness.as_deref_mut() else {
            return;
        };
        let holds: Vec<Hold> = self.machine.holds().collect();
        let new = witness.making_room(&self.hostname, &holds);
        for hold in new.into_iter().filter(|_| just) {
            let assumed = witness.assumed(&self.hostname, &self.seen);
            let cluster = verdict::recount(&self.seen, &self.machine, &assumed);
            if let Err(text) = preemption::judge(cluster, &self.profiles, hold) {
                let node = self.machine.cluster().names.text(hold.node);
                let text = format!("makes room on {node} for {}: {text}", hold.pod);
                witness.blame(Rule::Preemption, self.hostname.as_str(), text);
            }
        }
    }

    fn sender(&self, now: Instant) -> Sender {
        Sender {
            replica: self.hostname.clone(),
            clock: self.clock(now),
            elects: self.election.is_some(),
            leads: self.leads(now),
        }
    }

    fn carry_out(&mut self, effect: &Effect, around: &mut Surroundings<'_>) {
        let clock = self.clock(around.now);
        let pod = pod_of(effect).and_then(|pod| {
            let namespace = self.machine.cluster().names.text(pod.namespace);
            self.seen.get::<Pod>(&Name::new(namespace, &*pod.name))
        });
        let unscheduled_since = pod.and_then(|pod| {
            let condition = pod.status.condition(POD_SCHEDULED)?;
            (condition.status == Truth::False).then_some(condition.since)
        });
        let context = Context {
            names: &self.machine.cluster().names,
            now: clock,
            hostname: &self.hostname,
            generation: pod.map(|pod| pod.meta.generation),
            unscheduled_since,
        };
        let requests: Vec<Request> = requests_of(effect, &context);
        let sender = self.sender(around.now);
        let done = self.outbox.send(effect.id(), requests, &sender, around);
        self.tell(done, around);
    }

    fn resend(&mut self, around: &mut Surroundings<'_>) -> bool {
        let sender = self.sender(around.now);
        match self.outbox.resend(&sender, around) {
            Some(done) => {
                self.tell(done, around);
                true
            }
            None => false,
        }
    }

    fn tell(&mut self, done: Option<Done>, around: &mut Surroundings<'_>) {
        let Some(Done {
            effect,
            outcome,
            binds,
        }) = done
        else {
            return;
        };
        let is_ok = outcome == strew_scheduler::machine::Outcome::Ok;
        match is_ok {
            true => self.stats.n_bound += u64::from(binds.is_some()),
            false => self.stats.n_refused += 1,
        }
        if let (Some(uid), Some(witness), false) = (binds, &mut around.witness, is_ok) {
            witness.failed(&self.hostname, &uid);
        }
        if let Some(effect) = effect {
            let input = Input::Outcome { effect, outcome };
            self.machine.handle(self.clock(around.now), input);
        }
    }
}

/// Brings a request about the Lease to the server, through the faults of the moment.
fn ask_server(request: &Request, around: &mut Surroundings<'_>) -> Answer {
    let ppm = around.lease_fault.map_or(0, |fault| fault.lost_ppm);
    if ppm == 0 || !around.dice.chance(u64::from(ppm), 1_000_000) {
        return around.server.execute(around.now, request);
    }
    if around.dice.chance(1, 2) {
        around.server.execute(around.now, request);
    }
    Answer::Lost("the connection was cut".into())
}

fn pod_of(effect: &Effect) -> Option<&PodName> {
    match effect {
        Effect::Bind { pod, .. }
        | Effect::PodCondition { pod, .. }
        | Effect::Nominate { pod, .. } => Some(pod),
        Effect::DeleteVictim { victim, .. } => Some(victim),
        Effect::Event(_) => None,
    }
}

/// Names an effect, where its outcome is waited for.
type Waiting = Option<EffectId>;

#[cfg(test)]
mod tests {
    use strew_api::config::{FeatureGates, Given, configure};
    use strew_api::read::Sources;

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
