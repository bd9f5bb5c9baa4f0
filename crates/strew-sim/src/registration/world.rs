//! Which process reaches which: replicas, controllers and the API server, with what a story does to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::authority::Lifetimes;
use strew_runtime::registration::guard;
use strew_runtime::registration::registrar;
use strew_runtime::registration::way::{Failed, Unreached, bundle_of};
use strew_wire::request::{Answer, Request, Resource, Verb};
use strew_wire::workloadspread::registration::{
    NAME, REGISTERED_BY, Reach, Registration, TIMEOUT_OF_PODS_S,
};

use super::NAMESPACE;
use super::certificates::{self, Draws, Keeping, SECRET};
use super::deed::{Edit, HookDeed, RegistrationPlan};
use super::judge::{Judge, ReviewOutcome, Scene};
use super::known::{Known, Terms};
use super::process::{GuardProcess, Registering};
use super::transit::{Arrived, Weather};
use crate::auditor::Rule;
use crate::fault::{Crash, Faults, Sabotage};
use crate::slot::Slot;

/// A fault of the registered port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Port {
    /// No process reaches it.
    Closed,
    /// Only the API server reaches it.
    Hidden,
}

/// A replica of the webhook, as the registration sees it.
pub(crate) struct Member<'a> {
    pub(crate) number: u64,
    pub(crate) registering: &'a mut Registering,
}

/// The registration with its processes.
pub(crate) struct Registered {
    plan: RegistrationPlan,
    registration: Registration,
    known: Known,
    /// The replica to which the API server has a connection.
    connected: Option<u64>,
    port: Option<(Port, Instant)>,
    /// The places of replicas that do not reach the API server, and until when.
    cut: BTreeMap<usize, Instant>,
    /// The places of replicas that answer their own reviews late.
    busy: BTreeMap<usize, Instant>,
    /// How long a place stays empty after its replica has ended.
    down: BTreeMap<usize, Span>,
    /// When the configuration is applied again.
    applied_at: Option<Instant>,
    guards: Vec<Slot<GuardProcess>>,
    keeping: Keeping,
    /// The number of CAs that were made after the first.
    n_authorities: u64,
    sabotage: Option<Sabotage>,
    rng: Prng,
    judge: Judge,
    /// Since when the replica of each place is reached, and its number.
    reached: BTreeMap<usize, (u64, Instant)>,
}

impl Registered {
    /// An installed webhook that no replica has registered yet.
    pub(crate) fn new(
        plan: RegistrationPlan,
        rng: Prng,
        sabotage: Option<Sabotage>,
        (now, server): (Instant, &mut Server),
    ) -> Self {
        let registration = Registration {
            reach: Reach::Service(NAMESPACE.to_owned()),
            namespace: NAMESPACE.to_owned(),
            failure_policy: "Fail",
            excluded: Vec::new(),
            daemon_sets: false,
        };
        let mut registered = Self {
            plan,
            registration,
            known: Known::default(),
            connected: None,
            port: None,
            cut: BTreeMap::new(),
            busy: BTreeMap::new(),
            down: BTreeMap::new(),
            applied_at: None,
            guards: Vec::new(),
            keeping: Keeping {
                lives: Lifetimes {
                    authority: plan.lives.authority,
                    serving: plan.lives.serving,
                    overlap: plan.lives.overlap,
                },
                is_replaced: sabotage == Some(Sabotage::ReplacesBundle),
                lag: plan.lag,
            },
            n_authorities: 0,
            sabotage,
            rng,
            judge: Judge::new(plan.is_strict),
            reached: BTreeMap::new(),
        };
        let made = Instant(now.0.saturating_sub(plan.lives.age.0));
        certificates::install(now, made, &registered.keeping.lives, server);
        let validating = registered.registration.validating();
        let resource = Resource::VALIDATING_WEBHOOKS;
        server.execute(
            now,
            &Request::of(Verb::Create, resource, ("", NAME), validating),
        );
        registered.apply(now, server);
        for index in 0..plan.n_guards {
            let guard = GuardProcess::new(plan, NAMESPACE, index == 0);
            registered.guards.push(Slot::new(guard));
        }
        registered
    }

    /// A replica's part, as it starts.
    pub(crate) fn registering(&self, number: u64, now: Instant) -> Registering {
        Registering::new(self.plan, &self.registration, number, self.keeping, now)
    }

    /// The violations since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<(Rule, String, String)> {
        self.judge.take()
    }

    // === the API server ===

    /// How the API server asks about a new pod; `None` if no webhook is registered, as far as it knows.
    pub(crate) fn terms(&mut self, now: Instant, server: &Server) -> Option<Terms> {
        self.known.update(now, server, self.plan.lag, &mut self.rng);
        self.known.terms().cloned()
    }

    /// How the API server asks about deletions of pods: they are carried out without an answer too.
    pub(crate) fn terms_of_deletions(&self, server: &Server) -> Terms {
        let stored = server.document(Resource::VALIDATING_WEBHOOKS, "", NAME);
        let config = stored.map(|object| &object["webhooks"][0]["clientConfig"]);
        Terms {
            timeout: Span::from_secs(u64::from(TIMEOUT_OF_PODS_S)),
            is_needed: false,
            bundle: config.map(bundle_of).unwrap_or_default(),
        }
    }

    /// The place of the replica that the API server asks.
    ///
    /// # Errors
    /// It reaches none, or does not trust the one that it reaches.
    pub(crate) fn choose(
        &mut self,
        now: Instant,
        members: &[(usize, Member<'_>)],
        terms: &Terms,
    ) -> Result<usize, ReviewOutcome> {
        if self.port_is(Port::Closed) || members.is_empty() {
            self.connected = None;
            return Err(ReviewOutcome::Unreached);
        }
        let keeps = |(_, member): &&(usize, Member<'_>)| {
            Some(member.number) == self.connected && !member.registering.machine.is_cut_off()
        };
        let (index, member) = match members.iter().find(keeps) {
            Some(kept) => kept,
            None => self.rng.pick(members),
        };
        match member.registering.is_trusted(now, &terms.bundle) {
            true => {
                self.connected = Some(member.number);
                Ok(*index)
            }
            false => {
                self.connected = None;
                // A replica that is cut off hears of no other CA, and one that starts has no certificate yet.
                let is_known = member.registering.signer(now).is_some() && !terms.bundle.is_empty();
                match is_known && !self.cut.contains_key(index) {
                    true => Err(ReviewOutcome::Untrusted),
                    false => Err(ReviewOutcome::Unreached),
                }
            }
        }
    }

    /// Notes what became of a question about a new pod.
    pub(crate) fn called(&mut self, now: Instant, outcome: ReviewOutcome) {
        self.judge.called(now, outcome);
    }

    /// True if the replica at this place reaches the API server.
    pub(crate) fn is_cut(&self, index: usize) -> bool {
        self.cut.contains_key(&index)
    }

    fn port_is(&self, port: Port) -> bool {
        self.port.is_some_and(|(is, _)| is == port)
    }

    // === time ===

    /// The next time at which something happens without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let guards = self.guards.iter().flat_map(|slot| {
            let work = slot.alive.as_ref().and_then(GuardProcess::next_wake);
            [work, slot.restart]
        });
        let faults = self.cut.values().chain(self.busy.values()).copied();
        let faults = faults.chain(self.port.map(|(_, until)| until));
        let known = [self.known.next_wake(), self.applied_at];
        guards.chain(known).flatten().chain(faults).min()
    }

    /// Ends faults that are over, restarts controllers, and applies the configuration again.
    pub(crate) fn pass_time(&mut self, now: Instant, server: &mut Server) {
        self.cut.retain(|_, until| *until > now);
        self.busy.retain(|_, until| *until > now);
        self.port = self.port.filter(|(_, until)| *until > now);
        for index in 0..self.guards.len() {
            if self.guards[index].is_due(now) {
                let guard = GuardProcess::new(self.plan, NAMESPACE, index == 0);
                self.guards[index] = Slot::new(guard);
            }
        }
        if self.applied_at.is_some_and(|at| at <= now) {
            self.apply(now, server);
        }
    }

    /// Ends all faults.
    pub(crate) fn calm(&mut self, now: Instant, server: &mut Server) {
        self.cut.clear();
        self.busy.clear();
        self.port = None;
        for slot in &mut self.guards {
            slot.calm(now);
        }
        if self.applied_at.is_some() {
            self.apply(now, server);
        }
    }

    /// Crashes the controllers.
    pub(crate) fn crash_guards(&mut self, now: Instant, crash: Crash) {
        for slot in &mut self.guards {
            // Their requests do not count: they crash at once.
            slot.crash(now, 0, crash.down);
        }
    }

    // === users ===

    /// Applies the configuration as `strew install` prints it.
    fn apply(&mut self, now: Instant, server: &mut Server) {
        self.applied_at = None;
        self.judge.edited(now);
        server.execute(now, &configure(Verb::Create, self.registration.mutating()));
    }

    /// Does what a story says.
    pub(crate) fn act(
        &mut self,
        now: Instant,
        server: &mut Server,
        members: Vec<(usize, Member<'_>)>,
        deed: HookDeed,
    ) {
        let until = |lasts: Span| now + lasts;
        match deed {
            HookDeed::End(place, down) => {
                let place = usize::from(place);
                for (index, member) in members {
                    if index == place {
                        member.registering.end(now);
                        self.down.insert(place, down);
                    }
                }
            }
            HookDeed::Cut(place, lasts) => {
                self.cut.insert(usize::from(place), until(lasts));
            }
            HookDeed::Busy(place, lasts) => {
                self.busy.insert(usize::from(place), until(lasts));
            }
            HookDeed::Closed(lasts) => self.port = Some((Port::Closed, until(lasts))),
            HookDeed::Hidden(lasts) => self.port = Some((Port::Hidden, until(lasts))),
            HookDeed::Delete(back) => {
                self.judge.edited(now);
                server.execute(now, &configure(Verb::Delete, Value::Null));
                self.applied_at = Some(until(back));
            }
            HookDeed::Edit(edit) => {
                self.judge.edited(now);
                if matches!(edit, Edit::Bundle | Edit::Secret) {
                    self.judge.doubted();
                }
                let edit = match edit {
                    Edit::Secret => {
                        let secret = (NAMESPACE, SECRET);
                        Request::of(Verb::Delete, Resource::SECRETS, secret, Value::Null)
                    }
                    edit => configure(Verb::JsonPatch, patch_of(edit)),
                };
                server.execute(now, &edit);
            }
        }
    }

    // === steps ===

    /// Lets each process take a step. Returns false if there was nothing to do, and the places of replicas that end.
    pub(crate) fn step(
        &mut self,
        now: Instant,
        server: &mut Server,
        mut members: Vec<(usize, Member<'_>)>,
        faults: &Faults,
    ) -> (bool, Vec<(usize, Span)>) {
        let write = faults.write().copied().unwrap_or_default();
        let mut acted = self.known.update(now, server, self.plan.lag, &mut self.rng);
        let all: Vec<(usize, Arc<str>)> = members
            .iter()
            .filter_map(|(index, member)| Some((*index, member.registering.signer(now)?)))
            .collect();
        let mut ended = Vec::new();
        for (index, member) in &mut members {
            let weather = Weather {
                is_cut: self.is_cut(*index),
                write,
            };
            let mut draws = Draws {
                rng: &mut self.rng,
                n_authorities: &mut self.n_authorities,
            };
            let certificates = &mut member.registering.certificates;
            acted |= certificates.step(now, server, weather, &mut draws);
            acted |= self.step_replica(now, server, (*index, member), weather, &all, &mut ended);
        }
        for index in 0..self.guards.len() {
            let weather = Weather {
                is_cut: false,
                write,
            };
            acted |= self.step_guard(now, server, index, weather, &all);
        }
        let is_stormy = write.lost_ppm > 0 || write.conflict_ppm > 0 || !self.cut.is_empty();
        self.see(now, server, &members, is_stormy);
        (acted, ended)
    }

    fn step_replica(
        &mut self,
        now: Instant,
        server: &mut Server,
        (index, member): (usize, &mut Member<'_>),
        weather: Weather,
        all: &[(usize, Arc<str>)],
        ended: &mut Vec<(usize, Span)>,
    ) -> bool {
        let own = &mut *member.registering;
        let is_over = own.ends_by.is_some_and(|at| at <= now);
        if is_over {
            ended.push((index, self.down.remove(&index).unwrap_or_default()));
            return true;
        }
        if !own.transit.is_empty() {
            return match own.transit.step(now, server, weather, &mut self.rng) {
                Err(()) => false,
                Ok(arrived) => {
                    if let Some(arrived) = arrived {
                        own.take(now, arrived, &mut self.rng);
                    }
                    true
                }
            };
        }
        match own.next(now) {
            registrar::Task::Wait(until) => {
                own.wake = Some(until);
                return false;
            }
            registrar::Task::Review(_) => {
                let is_late = self.busy.contains_key(&index);
                let result = match is_late {
                    true => Err(Failed::Late("no answer in time".to_owned())),
                    false => Ok(()),
                };
                let result = Arrived::Reviewed(result);
                own.transit.ask(now, result, is_late, &mut self.rng);
            }
            registrar::Task::Ask(_, bundle) => {
                let (result, is_late) = self.question(&bundle, all);
                let result = Arrived::Asked(result);
                own.transit.ask(now, result, is_late, &mut self.rng);
            }
            registrar::Task::Send(request) => own.transit.send(now, request, &mut self.rng),
            registrar::Task::Done => {
                ended.push((index, self.down.remove(&index).unwrap_or_default()));
            }
        }
        true
    }

    fn step_guard(
        &mut self,
        now: Instant,
        server: &mut Server,
        index: usize,
        weather: Weather,
        all: &[(usize, Arc<str>)],
    ) -> bool {
        let Some(mut guard) = self.guards[index].alive.take() else {
            return false;
        };
        let acted = self.step_of(&mut guard, now, server, weather, all);
        self.guards[index].alive = Some(guard);
        acted
    }

    fn step_of(
        &mut self,
        own: &mut GuardProcess,
        now: Instant,
        server: &mut Server,
        weather: Weather,
        all: &[(usize, Arc<str>)],
    ) -> bool {
        if !own.transit.is_empty() {
            return match own.transit.step(now, server, weather, &mut self.rng) {
                Err(()) => false,
                Ok(arrived) => {
                    if let Some(arrived) = arrived {
                        own.take(now, arrived);
                    }
                    true
                }
            };
        }
        match own.machine.next(now) {
            guard::Task::Wait(until) => {
                own.wake = Some(until);
                return false;
            }
            guard::Task::Say(_) => {}
            guard::Task::Ask(_, bundle) => {
                let (result, is_late) = self.question(&bundle, all);
                let result = Arrived::Asked(result);
                own.transit.ask(now, result, is_late, &mut self.rng);
            }
            guard::Task::Send(request)
                if request.verb == Verb::JsonPatch
                    && self.sabotage == Some(Sabotage::KeepsRegistration) =>
            {
                own.machine.answered(now, &Answer::of(403, None, b"{}"));
            }
            guard::Task::Send(request) => own.transit.send(now, request, &mut self.rng),
        }
        true
    }

    /// The result of a question by the registered way, and whether it gets no answer. A replica that the Service leads
    /// to answers, whichever it is.
    fn question(
        &mut self,
        bundle: &str,
        all: &[(usize, Arc<str>)],
    ) -> (Result<(), Unreached>, bool) {
        let unreached = |why: &str, is_certain| {
            let why = why.to_owned();
            Err(Unreached { why, is_certain })
        };
        if self.port_is(Port::Hidden) {
            return (unreached("no answer in time", false), true);
        }
        if self.port_is(Port::Closed) || all.is_empty() {
            return (unreached("connection refused", true), false);
        }
        let (index, signer) = self.rng.pick(all);
        if !bundle.contains(&**signer) {
            return (unreached("invalid peer certificate", true), false);
        }
        match self.busy.contains_key(index) && self.rng.chance(1, 2) {
            true => (unreached("no answer in time", false), true),
            false => (Ok(()), false),
        }
    }

    // === the judge ===

    fn see(
        &mut self,
        now: Instant,
        server: &Server,
        members: &[(usize, Member<'_>)],
        is_stormy: bool,
    ) {
        let stored = server.document(Resource::MUTATING_WEBHOOKS, "", NAME);
        let is_registered = stored.is_some_and(|object| {
            object["webhooks"][0].is_object()
                && object["metadata"]["annotations"][REGISTERED_BY].is_string()
        });
        let is_closed = self.port_is(Port::Closed);
        self.note_reached(now, members, is_closed);
        let wells = self.guards.iter().filter_map(|slot| slot.alive.as_ref());
        // Those that have a certificate and hear of other CAs.
        let certified = members.iter().filter(|(index, member)| {
            !self.is_cut(*index) && member.registering.signer(now).is_some()
        });
        let certified: Vec<&Registering> =
            certified.map(|(_, member)| &*member.registering).collect();
        let trusts = |terms: &Terms| {
            let mut all = certified.iter();
            all.all(|own| own.is_trusted(now, &terms.bundle))
        };
        let is_asked = self.known.terms().is_some();
        let is_trusted = self.known.terms().is_none_or(trusts);
        let of_deletions = self.terms_of_deletions(server);
        let scene = Scene {
            is_registered,
            is_installed: stored.is_some(),
            is_blocked: self.is_blocked(now, members, is_closed),
            reached_since: self.reached.values().map(|(_, since)| *since).min(),
            guarded_since: wells.filter_map(|guard| guard.well_since).min(),
            is_stormy: is_stormy || is_closed,
            is_busy: !self.busy.is_empty(),
            is_trusted,
            is_proven: is_trusted && is_asked && !certified.is_empty() && trusts(&of_deletions),
        };
        self.judge.see(now, scene);
    }

    /// What is wrong with the registration at rest, where every replica is reached; `None`: nothing.
    pub(crate) fn fault_at_rest(
        &self,
        now: Instant,
        server: &Server,
        members: &[(usize, Member<'_>)],
    ) -> Option<&'static str> {
        let terms = self.known.terms();
        let is_trusted = |(_, member): &(usize, Member<'_>)| {
            terms.is_some_and(|terms| member.registering.is_trusted(now, &terms.bundle))
        };
        match () {
            () if members.is_empty() => None,
            () if server
                .document(Resource::MUTATING_WEBHOOKS, "", NAME)
                .is_none() =>
            {
                None
            }
            () if terms.is_none() => Some("no webhook is registered, though replicas are reached"),
            () if terms.is_some_and(|terms| !terms.is_needed) => {
                Some("a policy that was edited by hand has not come back")
            }
            () if !members.iter().all(is_trusted) => Some("a replica is not trusted"),
            () => None,
        }
    }

    fn note_reached(&mut self, now: Instant, members: &[(usize, Member<'_>)], is_closed: bool) {
        let mut reached = BTreeMap::new();
        for (index, member) in members {
            let own = &member.registering;
            let is_ending = own.ends_by.is_some();
            if is_closed || self.is_cut(*index) || is_ending || own.signer(now).is_none() {
                continue;
            }
            let known = self.reached.get(index);
            let known = known.filter(|(number, _)| *number == member.number);
            let since = known.map_or(now, |(_, since)| *since);
            reached.insert(*index, (member.number, since));
        }
        self.reached = reached;
    }

    /// True if a creation would be refused, as no replica can decide about it.
    fn is_blocked(&self, now: Instant, members: &[(usize, Member<'_>)], is_closed: bool) -> bool {
        let Some(terms) = self.known.terms().filter(|terms| terms.is_needed) else {
            return false;
        };
        let decides = |(index, member): &(usize, Member<'_>)| {
            !self.is_cut(*index) && member.registering.is_trusted(now, &terms.bundle)
        };
        let keeps = |(_, member): &&(usize, Member<'_>)| {
            Some(member.number) == self.connected && !member.registering.machine.is_cut_off()
        };
        match members.iter().find(keeps) {
            _ if is_closed => true,
            Some(kept) => !decides(kept),
            None => !members.iter().any(decides),
        }
    }
}

fn configure(verb: Verb, body: Value) -> Request {
    Request::of(verb, Resource::MUTATING_WEBHOOKS, ("", NAME), body)
}

fn patch_of(edit: Edit) -> Value {
    match edit {
        Edit::Secret | Edit::Empty => json!([{"op": "replace", "path": "/webhooks", "value": []}]),
        Edit::Bundle => {
            json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": "b3RoZXI="}])
        }
        Edit::Ignore => {
            json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}])
        }
        Edit::Mark => {
            let path = format!("/metadata/annotations/{}", REGISTERED_BY.replace('/', "~1"));
            json!([{"op": "remove", "path": path}])
        }
    }
}
