//! One candidate step by step, and two under faults.

use serde_json::{Value, json};
use strew_model::Prng;

use super::*;
use crate::request::Verb;

const START: Instant = Instant::from_secs(1000);

fn settings(identity: &str) -> Settings {
    Settings::of(&LeaderElection::default(), identity.to_owned())
}

/// What of an API server an election needs.
#[derive(Default)]
struct Store {
    lease: Option<Value>,
    version: u64,
}

impl Store {
    fn carry_out(&mut self, request: &Request) -> Answer {
        let version = self
            .lease
            .as_ref()
            .map(|l| &l["metadata"]["resourceVersion"]);
        let code = match (request.verb, version) {
            (Verb::Get, Some(_)) => 200,
            (Verb::Get | Verb::Update, None) => 404,
            (Verb::Create, None) => 201,
            (Verb::Create, Some(_)) => 409,
            (Verb::Update, Some(version)) => {
                let wanted = request.precondition.resource_version.as_deref();
                assert_eq!(request.body["metadata"]["resourceVersion"].as_str(), wanted);
                if version.as_str() == wanted { 200 } else { 409 }
            }
            (verb, _) => panic!("an election does not {verb:?}"),
        };
        if code < 300 && request.verb != Verb::Get {
            self.put(request.body.clone());
        }
        let body = match &self.lease {
            Some(lease) if code < 300 => lease.to_string(),
            _ => "{}".to_owned(),
        };
        Answer::of(code, None, body.as_bytes())
    }

    fn put(&mut self, mut lease: Value) {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(lease);
    }

    fn spec(&self, field: &str) -> &Value {
        &self.lease.as_ref().unwrap()["spec"][field]
    }
}

fn moment(now: Instant) -> Moment {
    let (wall, dice) = (now, 0);
    Moment { now, wall, dice }
}

/// Lets all that is asked for happen at once.
fn settle(election: &mut Election, store: &mut Store, now: Instant) {
    election.handle(moment(now), Input::Tick);
    while let Some(ask) = election.poll_effect() {
        let answer = store.carry_out(&ask.request);
        election.handle(moment(now), Input::Answered(ask.ticket, answer));
    }
}

/// Wakes it as it asks for, until `end`.
fn run(election: &mut Election, store: &mut Store, end: Instant) {
    while let Some(wake) = election.next_wake().filter(|&wake| wake <= end) {
        settle(election, store, wake);
    }
}

fn after(secs: u64) -> Instant {
    START + Span::from_secs(secs)
}

#[test]
fn the_first_one_makes_the_lease_and_renews_it() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    assert!(a.leads(START));
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": "kube-system", "name": "strew-scheduler", "resourceVersion": "1"},
        "spec": {
            "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "1970-01-01T00:16:40.000000Z", "renewTime": "1970-01-01T00:16:40.000000Z",
        },
    });
    assert_eq!(store.lease, Some(lease));
    assert_eq!(a.next_wake(), Some(after(2)));
    run(&mut a, &mut store, after(60));
    assert_eq!(store.version, 31);
    assert_eq!(*store.spec("renewTime"), "1970-01-01T00:17:40.000000Z");
    assert_eq!(*store.spec("acquireTime"), "1970-01-01T00:16:40.000000Z");
}

#[test]
fn a_leader_that_cannot_renew_stops_at_its_deadline() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    assert!(a.leads(Instant(after(10).0 - 1)));
    assert!(!a.leads(after(10)));
    // Refused, again and again: it asks on, and is woken at the deadline.
    let mut woken = Vec::new();
    while let Some(wake) = a.next_wake().filter(|&wake| wake <= after(12)) {
        woken.push(wake.since(START).0 / 1_000_000_000);
        a.handle(moment(wake), Input::Tick);
        while let Some(ask) = a.poll_effect() {
            let refused = Answer::Refused("".into());
            a.handle(moment(wake), Input::Answered(ask.ticket, refused));
        }
    }
    assert!(woken.contains(&10), "{woken:?}");
    assert!(!a.leads(after(12)));
    // No other replica took the lease: it acquires its own lease again.
    run(&mut a, &mut store, after(20));
    assert!(a.leads(after(20)));
    assert_eq!(*store.spec("leaseTransitions"), 0);
}

#[test]
fn another_one_takes_over_after_the_lease_ran_out_by_its_own_clock() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    // Its clock is years ahead, and the lease's times say nothing to it.
    let ahead = |secs: u64| Instant::from_secs(1_000_000_000 + secs);
    let mut b = Election::new(settings("b"), ahead(5));
    run(&mut b, &mut store, ahead(19));
    assert!(!b.leads(ahead(19)));
    assert_eq!(b.holder(), Some("a"));
    run(&mut b, &mut store, ahead(22));
    assert!(b.leads(ahead(22)));
    assert_eq!(*store.spec("leaseTransitions"), 1);
    assert_eq!(*store.spec("holderIdentity"), "b");
    // The old leader learns of it by its next write.
    settle(&mut a, &mut store, after(3));
    assert!(!a.leads(after(3)));
    assert_eq!(a.holder(), Some("b"));
}

#[test]
fn a_follower_leads_within_two_seconds_of_the_leases_end() {
    for seed in 0..200 {
        let mut dice = Prng::new(seed);
        let mut store = Store::default();
        let mut a = Election::new(settings("a"), START);
        let mut b = Election::new(settings("b"), START + Span(dice.between(1, 2_000_000_000)));
        let dies = START + Span(dice.between(10_000_000_000, 20_000_000_000));
        let mut renewed = START;
        let mut wake = START;
        while !b.leads(wake) {
            let of_a = a.next_wake().filter(|&wake| wake <= dies);
            let of_b = b.next_wake().unwrap();
            let version = store.version;
            wake = of_a.unwrap_or(of_b).min(of_b);
            let now = wake;
            let who = if of_a == Some(now) { &mut a } else { &mut b };
            let at = |dice: &mut Prng| Moment {
                dice: dice.next_u64(),
                ..moment(now)
            };
            who.handle(at(&mut dice), Input::Tick);
            while let Some(ask) = who.poll_effect() {
                let answer = store.carry_out(&ask.request);
                who.handle(at(&mut dice), Input::Answered(ask.ticket, answer));
            }
            if store.version > version && !b.leads(now) {
                renewed = now;
            }
        }
        let end = renewed + settings("a").lease_duration;
        assert!(wake >= end, "seed {seed}: {wake:?} is before {end:?}");
        assert!(
            wake <= end + Span::from_secs(2),
            "seed {seed}: {wake:?} {end:?}"
        );
    }
}

#[test]
fn a_lease_that_was_given_back_is_taken_at_once() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    store.lease.as_mut().unwrap()["metadata"]["labels"] = json!({"team": "x"});
    a.handle(moment(after(1)), Input::Shutdown);
    assert!(!a.leads(after(1)));
    settle(&mut a, &mut store, after(1));
    assert_eq!(a.next_wake(), None);
    assert_eq!(*store.spec("holderIdentity"), "");
    let mut b = Election::new(settings("b"), after(1));
    settle(&mut b, &mut store, after(1));
    assert!(b.leads(after(1)));
    assert_eq!(*store.spec("leaseTransitions"), 1);
}

#[test]
fn a_renewal_in_flight_is_waited_for_before_the_lease_is_given_back() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    a.handle(moment(after(2)), Input::Tick);
    let renewal = a.poll_effect().unwrap();
    a.handle(moment(after(2)), Input::Shutdown);
    assert!(!a.leads(after(2)));
    assert_eq!(a.poll_effect(), None);
    let answer = store.carry_out(&renewal.request);
    a.handle(moment(after(3)), Input::Answered(renewal.ticket, answer));
    assert!(!a.leads(after(3)));
    settle(&mut a, &mut store, after(3));
    assert_eq!(*store.spec("holderIdentity"), "");
    assert_eq!((a.next_wake(), store.version), (None, 3));
}

#[test]
fn a_deleted_lease_is_waited_for() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    let mut b = Election::new(settings("b"), START);
    settle(&mut b, &mut store, START);
    store.lease = None;
    run(&mut b, &mut store, after(14));
    assert!(!b.leads(after(14)));
    assert_eq!(store.lease, None);
    run(&mut b, &mut store, after(18));
    assert!(b.leads(after(18)));
}

#[test]
fn what_others_wrote_into_the_lease_stays() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    let mut lease = store.lease.clone().unwrap();
    lease["metadata"]["labels"] = json!({"team": "x"});
    store.put(lease);
    run(&mut a, &mut store, after(8));
    assert!(a.leads(after(16)));
    let labels = &store.lease.as_ref().unwrap()["metadata"]["labels"];
    assert_eq!(*labels, json!({"team": "x"}));
}

#[test]
fn a_candidates_clock_that_jumps_makes_it_no_earlier() {
    let mut store = Store::default();
    let mut a = Election::new(settings("a"), START);
    settle(&mut a, &mut store, START);
    let mut b = Election::new(settings("b"), START);
    settle(&mut b, &mut store, START);
    settle(&mut b, &mut store, after(3600));
    assert!(!b.leads(after(3600)));
    run(&mut b, &mut store, after(3614));
    assert!(!b.leads(after(3614)));
    run(&mut b, &mut store, after(3618));
    assert!(b.leads(after(3618)));
}

/// A message on its way, to arrive at a true time in milliseconds.
struct Message {
    at: u64,
    to: To,
}

enum To {
    Store(usize, u64, Ask),
    Candidate(usize, u64, Ticket, Answer),
}

struct Candidate {
    election: Election,
    /// How much its clock is ahead of the true time, in milliseconds.
    ahead: u64,
    life: u64,
    stalled_until: u64,
    small_jump_at: u64,
}

impl Candidate {
    fn new(place: usize, life: u64, ahead: u64, now: u64) -> Self {
        let identity = format!("{place}_{life}");
        let local = START + Span::from_millis(now + ahead);
        Self {
            election: Election::new(settings(&identity), local),
            ahead,
            life,
            stalled_until: now,
            small_jump_at: now,
        }
    }

    fn local(&self, now: u64) -> Instant {
        START + Span::from_millis(now + self.ahead)
    }
}

struct Candidates {
    dice: Prng,
    store: Store,
    candidates: Vec<Candidate>,
    messages: Vec<Message>,
    delay_max: u64,
    loss: u64,
    changes: usize,
    leader: Option<(usize, u64)>,
}

impl Candidates {
    fn new(seed: u64) -> Self {
        let mut dice = Prng::new(seed);
        let mut candidate = |place| Candidate::new(place, 0, dice.between(0, 1_000_000), 0);
        let candidates = vec![candidate(0), candidate(1)];
        let (delay_max, loss) = (*dice.pick(&[10, 500, 3000, 12_000]), dice.between(0, 40));
        Self {
            dice,
            store: Store::default(),
            candidates,
            messages: Vec::new(),
            delay_max,
            loss,
            changes: 0,
            leader: None,
        }
    }

    fn step(&mut self, now: u64, faults: bool) {
        if !faults {
            (self.delay_max, self.loss) = (10, 0);
        }
        if faults && self.dice.chance(1, 100) {
            self.fault(now);
        }
        self.deliver(now);
        for place in 0..self.candidates.len() {
            let candidate = &self.candidates[place];
            let wake = candidate.election.next_wake();
            let is_due = wake.is_some_and(|wake| wake <= candidate.local(now));
            if is_due && candidate.stalled_until <= now {
                self.tell(place, now, Input::Tick);
            }
        }
        let leads = |c: &Candidate| c.election.leads(c.local(now));
        let leading: Vec<usize> = (0..2).filter(|&p| leads(&self.candidates[p])).collect();
        assert!(leading.len() < 2, "both lead at {now} ms");
        if let Some(&place) = leading.first() {
            let leader = Some((place, self.candidates[place].life));
            self.changes += usize::from(self.leader != leader);
            self.leader = leader;
        }
    }

    fn fault(&mut self, now: u64) {
        let place = self.dice.index(2);
        let drawn = self.dice.between(0, 9);
        let long = self.dice.between(4000, 30_000);
        let candidate = &mut self.candidates[place];
        match drawn {
            // It crashes, and another one is started in its place.
            0 => {
                let (life, ahead) = (candidate.life + 1, candidate.ahead);
                *candidate = Candidate::new(place, life, ahead, now);
            }
            1 => self.tell(place, now, Input::Shutdown),
            2..=4 => candidate.stalled_until = now + long,
            5..=7 => candidate.ahead += long,
            // Jumps too small to be told from waiting must be rare.
            _ if now >= candidate.small_jump_at => {
                candidate.ahead += long % 4000;
                candidate.small_jump_at = now + 30_000;
            }
            _ => {}
        }
    }

    fn deliver(&mut self, now: u64) {
        let (due, later) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition::<Vec<_>, _>(|m| m.at <= now);
        self.messages = later;
        for message in due {
            match message.to {
                To::Store(from, life, ask) => {
                    let answer = self.store.carry_out(&ask.request);
                    self.send(now, To::Candidate(from, life, ask.ticket, answer));
                }
                To::Candidate(place, life, ticket, answer) => {
                    let candidate = &self.candidates[place];
                    let is_stalled = candidate.stalled_until > now;
                    if is_stalled && candidate.life == life {
                        let at = candidate.stalled_until;
                        let to = To::Candidate(place, life, ticket, answer);
                        self.messages.push(Message { at, to });
                    } else if candidate.life == life {
                        self.tell(place, now, Input::Answered(ticket, answer));
                    }
                }
            }
        }
    }

    fn tell(&mut self, place: usize, now: u64, input: Input) {
        let at = Moment {
            now: self.candidates[place].local(now),
            wall: Instant(self.dice.next_u64()),
            dice: self.dice.next_u64(),
        };
        let candidate = &mut self.candidates[place];
        candidate.election.handle(at, input);
        let (asked, life) = (candidate.election.poll_effect(), candidate.life);
        if let Some(ask) = asked {
            self.send(now, To::Store(place, life, ask));
        }
        let candidate = &self.candidates[place];
        if candidate.election.next_wake().is_none() {
            let (life, ahead) = (candidate.life + 1, candidate.ahead);
            self.candidates[place] = Candidate::new(place, life, ahead, now);
        }
    }

    fn send(&mut self, now: u64, to: To) {
        if !self.dice.chance(self.loss, 100) {
            let at = now + self.dice.between(0, self.delay_max);
            self.messages.push(Message { at, to });
        }
    }
}

#[test]
fn two_never_lead_at_once_and_one_leads_after_the_faults() {
    let mut changes = 0;
    for seed in 0..300 {
        let mut world = Candidates::new(seed);
        for now in (0..240_000).step_by(50) {
            world.step(now, now < 180_000);
        }
        let leads = |c: &Candidate| c.election.leads(c.local(239_950));
        assert!(
            world.candidates.iter().any(leads),
            "nobody leads: seed {seed}"
        );
        changes += world.changes;
    }
    // The faults were hard enough to matter.
    assert!(changes > 600, "{changes}");
}
