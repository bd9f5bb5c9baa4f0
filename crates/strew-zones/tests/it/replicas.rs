//! Replicas of the machine against a model of an API server: late watches, conflicts, lost answers, crashes. No two
//! domains are disrupted at once by evictions.

use std::collections::BTreeMap;

use strew_model::time::{Instant, Span};
use strew_model::{Interner, Labels, Prng, Requirement, Selector, Symbol};
use strew_zones::{
    Answer, Ask, Away, BudgetFact, BudgetKey, Claim, Effect, EffectId, HOLD, Input, Outcome,
    PodRow, RequestId, Zones,
};

const SECOND: Span = Span::from_secs(1);
const N_ZONES: usize = 3;

/// A pod of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pod {
    name: String,
    uid: u64,
    /// The index of its zone; `None`: Pending.
    zone: Option<usize>,
    is_ready: bool,
    is_deleted: bool,
}

/// The budget of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Budget {
    version: u64,
    claim: Option<Claim>,
    allowed: i32,
}

#[derive(Debug, Clone)]
enum Change {
    Pod(String, Option<Pod>),
    Budget(Budget),
}

struct Server {
    pods: BTreeMap<String, Pod>,
    budget: Budget,
    log: Vec<Change>,
    n_uids: u64,
    n_expected: usize,
    /// The zones of evicted pods until they are whole again.
    missing: Vec<usize>,
    n_evicted: usize,
    n_zones_evicted: [usize; N_ZONES],
}

impl Server {
    fn new(per_zone: usize) -> Self {
        let mut server = Self {
            pods: BTreeMap::new(),
            budget: Budget {
                version: 1,
                claim: None,
                allowed: 0,
            },
            log: Vec::new(),
            n_uids: 0,
            n_expected: per_zone * N_ZONES,
            missing: Vec::new(),
            n_evicted: 0,
            n_zones_evicted: [0; N_ZONES],
        };
        for index in 0..server.n_expected {
            server.create(Some(index % N_ZONES), true);
        }
        server.recount();
        server
    }

    fn create(&mut self, zone: Option<usize>, is_ready: bool) {
        self.n_uids += 1;
        let pod = Pod {
            name: format!("web-{}", self.n_uids),
            uid: self.n_uids,
            zone,
            is_ready,
            is_deleted: false,
        };
        self.set(pod);
    }

    fn set(&mut self, pod: Pod) {
        self.log
            .push(Change::Pod(pod.name.clone(), Some(pod.clone())));
        self.pods.insert(pod.name.clone(), pod);
    }

    fn remove(&mut self, name: &str) {
        self.pods.remove(name);
        self.log.push(Change::Pod(name.to_owned(), None));
    }

    fn write(&mut self, change: impl FnOnce(&mut Budget)) {
        let before = self.budget.clone();
        change(&mut self.budget);
        if self.budget != before {
            self.budget.version += 1;
            self.log.push(Change::Budget(self.budget.clone()));
        }
    }

    /// The disruption controller: at least half must be ready.
    fn recount(&mut self) {
        let healthy = self
            .pods
            .values()
            .filter(|pod| pod.is_ready && !pod.is_deleted)
            .count();
        let allowed = healthy.saturating_sub(self.n_expected / 2);
        self.write(|budget| budget.allowed = allowed as i32);
    }

    /// The eviction, after the webhook has allowed it.
    fn evict(&mut self, name: &str) {
        let Some(pod) = self.pods.get(name).cloned() else {
            return;
        };
        let (Some(zone), true, false) = (pod.zone, pod.is_ready, pod.is_deleted) else {
            return;
        };
        if self.budget.allowed <= 0 {
            return;
        }
        self.write(|budget| budget.allowed -= 1);
        let others: Vec<&usize> = self
            .missing
            .iter()
            .filter(|other| **other != zone)
            .collect();
        assert!(
            others.is_empty(),
            "{name} of zone {zone} goes while pods of {others:?} are away"
        );
        self.missing.push(zone);
        self.n_evicted += 1;
        self.n_zones_evicted[zone] += 1;
        self.set(Pod {
            is_deleted: true,
            ..pod
        });
    }

    /// True if every pod has a node again, and those of the evicted zone are ready.
    fn is_whole(&self) -> bool {
        let pods = || self.pods.values();
        let Some(zone) = self.missing.first() else {
            return true;
        };
        let of_zone = pods().filter(|pod| pod.zone == Some(*zone));
        pods().all(|pod| !pod.is_deleted && pod.zone.is_some())
            && pods().count() >= self.n_expected
            && { of_zone }.all(|pod| pod.is_ready)
    }

    /// Controllers, scheduler and kubelets do something.
    fn live(&mut self, rng: &mut Prng) {
        match rng.index(4) {
            0 => {
                let gone = self.pods.values().find(|pod| pod.is_deleted);
                if let Some(name) = gone.map(|pod| pod.name.clone()) {
                    self.remove(&name);
                }
            }
            1 => {
                let there = self.pods.values().filter(|pod| !pod.is_deleted).count();
                if there < self.n_expected {
                    self.create(None, false);
                }
            }
            2 => {
                let waiting = self.pods.values().find(|pod| pod.zone.is_none()).cloned();
                if let Some(pod) = waiting {
                    self.set(Pod {
                        zone: Some(rng.index(N_ZONES)),
                        ..pod
                    });
                }
            }
            _ => {
                let starting = self
                    .pods
                    .values()
                    .find(|pod| pod.zone.is_some() && !pod.is_ready);
                if let Some(pod) = starting.cloned() {
                    self.set(Pod {
                        is_ready: true,
                        ..pod
                    });
                }
            }
        }
        if self.is_whole() {
            self.missing.clear();
        }
        self.recount();
    }
}

/// A replica with its watch.
struct Replica {
    machine: Zones,
    /// The number of changes that it has seen.
    seen: usize,
    /// Effects without an outcome, and when it comes.
    open: Vec<(Instant, EffectId, Outcome)>,
    names: Names,
}

#[derive(Clone, Copy)]
struct Names {
    namespace: Symbol,
    key: Symbol,
    app: Symbol,
    web: Symbol,
    nodes: [Symbol; N_ZONES],
}

impl Replica {
    fn new(server: &Server, now: Instant) -> Self {
        let mut interner = Interner::new();
        let names = Names {
            namespace: interner.intern("shop"),
            key: interner.intern("zone"),
            app: interner.intern("app"),
            web: interner.intern("web"),
            nodes: ["a", "b", "c"].map(|zone| interner.intern(zone)),
        };
        let mut replica = Self {
            machine: Zones::new(interner),
            seen: server.log.len(),
            open: Vec::new(),
            names,
        };
        for node in names.nodes {
            let labels = Labels::new(vec![(names.key, node)]);
            replica
                .machine
                .handle(now, Input::Node(node, Some((labels, true))));
        }
        let pods: Vec<Pod> = server.pods.values().cloned().collect();
        for pod in pods {
            replica.take_in(now, Change::Pod(pod.name.clone(), Some(pod)), server);
        }
        replica.take_in(now, Change::Budget(server.budget.clone()), server);
        replica
    }

    fn key(&self) -> BudgetKey {
        BudgetKey {
            namespace: self.names.namespace,
            name: "web".into(),
        }
    }

    fn fact(&self, budget: &Budget, server: &Server) -> Box<BudgetFact> {
        let names = self.names;
        Box::new(BudgetFact {
            uid: "budget".into(),
            version: budget.version,
            topology_key: names.key,
            selector: Selector::all_of(vec![Requirement::is_in(names.app, vec![names.web])]),
            claim: budget.claim.clone(),
            allowed: budget.allowed,
            expected: server.n_expected as u32,
        })
    }

    fn take_in(&mut self, now: Instant, change: Change, server: &Server) {
        let names = self.names;
        let input = match change {
            Change::Budget(budget) => Input::Budget(self.key(), Some(self.fact(&budget, server))),
            Change::Pod(name, pod) => {
                let row = pod.map(|pod| {
                    Box::new(PodRow {
                        uid: pod.uid.to_string().into(),
                        labels: Labels::new(vec![(names.app, names.web)]),
                        node: pod.zone.map(|zone| names.nodes[zone]),
                        away: match (pod.is_deleted, pod.zone, pod.is_ready) {
                            (true, ..) => Some(Away::Deleted),
                            (_, None, _) => Some(Away::Pending),
                            (.., false) => Some(Away::NotReady),
                            _ => None,
                        },
                    })
                });
                Input::Pod(names.namespace, name.into(), row)
            }
        };
        self.machine.handle(now, input);
    }
}

struct ReplicatedWebhook {
    server: Server,
    replicas: Vec<Replica>,
    now: Instant,
    /// Evictions that the webhook has allowed, and when the API server carries them out.
    allowed: Vec<(Instant, String)>,
    asked: BTreeMap<RequestId, String>,
    n_asked: u64,
    n_refused: usize,
    n_open: usize,
}

impl ReplicatedWebhook {
    fn step(&mut self, rng: &mut Prng, lag_max: Span) {
        self.now = self.now + Span(rng.between(1, SECOND.0 / 2));
        let now = self.now;
        match rng.index(10) {
            0..=2 => self.server.live(rng),
            3 | 4 => {
                let pods: Vec<&Pod> = self.server.pods.values().collect();
                let Some(pod) = (!pods.is_empty()).then(|| rng.pick(&pods).name.clone()) else {
                    return;
                };
                self.n_asked += 1;
                let id = RequestId(self.n_asked);
                self.asked.insert(id, pod.clone());
                let n = self.replicas.len();
                let replica = &mut self.replicas[rng.index(n)];
                let ask = Ask {
                    id,
                    namespace: replica.names.namespace,
                    pod: pod.into(),
                    is_dry_run: false,
                };
                replica.machine.handle(now, Input::Asked(ask));
            }
            5 if rng.chance(1, 20) => {
                let n = self.replicas.len();
                self.replicas[rng.index(n)] = Replica::new(&self.server, now);
            }
            _ => {}
        }
        for index in 0..self.replicas.len() {
            self.step_replica(index, rng, lag_max);
        }
        let (due, later) = std::mem::take(&mut self.allowed)
            .into_iter()
            .partition(|(at, _)| *at <= now);
        self.allowed = later;
        let due: Vec<(Instant, String)> = due;
        for (_, pod) in due {
            self.server.evict(&pod);
        }
    }

    fn step_replica(&mut self, index: usize, rng: &mut Prng, lag_max: Span) {
        let now = self.now;
        let Self {
            server, replicas, ..
        } = self;
        let replica = &mut replicas[index];
        // Each change is seen within `lag_max`: a step takes at most half a second.
        let behind = server.log.len() - replica.seen;
        let must = behind.saturating_sub((lag_max.0 / SECOND.0) as usize);
        let n = must.max(rng.index(behind + 1));
        for change in server.log[replica.seen..replica.seen + n].iter().cloned() {
            replica.take_in(now, change, server);
        }
        replica.seen += n;
        let (due, later) = std::mem::take(&mut replica.open)
            .into_iter()
            .partition(|(at, ..)| *at <= now);
        replica.open = later;
        let due: Vec<(Instant, EffectId, Outcome)> = due;
        for (_, id, outcome) in due {
            replica.machine.handle(now, Input::Outcome(id, outcome));
        }
        replica.machine.handle(now, Input::Tick);
        while let Some(effect) = replica.machine.poll_effect() {
            let at = now + Span(rng.between(0, SECOND.0));
            match effect {
                Effect::Answer(id, answer) => {
                    let Some(pod) = self.asked.remove(&id) else {
                        continue;
                    };
                    match answer {
                        // The pod was not ready when a watch last showed it. If it is by now, the plain budget alone
                        // bounds its eviction (docs/budgets.md).
                        Answer::Pass => {}
                        Answer::Granted => {
                            // The API server tries for at most 10 s.
                            let at = now + Span(rng.between(0, 10 * SECOND.0));
                            self.allowed.push((at, pod));
                        }
                        Answer::Open => self.n_open += 1,
                        Answer::Refused(_) => self.n_refused += 1,
                    }
                }
                Effect::WriteClaim {
                    id, version, claim, ..
                } => {
                    let is_current = server.budget.version == version;
                    let is_lost = rng.chance(1, 10);
                    let is_done = is_current && (!is_lost || rng.chance(1, 2));
                    if is_done {
                        server.write(|budget| budget.claim = claim);
                    }
                    let outcome = match (is_lost, is_current) {
                        (true, _) => Outcome::Lost,
                        (false, true) => Outcome::Written(server.budget.version),
                        (false, false) => Outcome::Conflict,
                    };
                    replica.open.push((at, id, outcome));
                }
                Effect::Read { id, .. } => {
                    let fact = replica.fact(&server.budget, server);
                    replica.open.push((at, id, Outcome::Read(Some(fact))));
                }
            }
        }
    }
}

fn play(seed: u64, n_replicas: usize) -> ReplicatedWebhook {
    let mut rng = Prng::new(seed);
    let server = Server::new(2 + rng.index(4));
    let now = Instant::from_secs(1000);
    let replicas = (0..n_replicas)
        .map(|_| Replica::new(&server, now))
        .collect();
    let mut world = ReplicatedWebhook {
        server,
        replicas,
        now,
        allowed: Vec::new(),
        asked: BTreeMap::new(),
        n_asked: 0,
        n_refused: 0,
        n_open: 0,
    };
    for _ in 0..1500 {
        world.step(&mut rng, Span::from_secs(3));
    }
    world
}

#[test]
fn no_two_zones_are_disrupted_at_once() {
    let mut sums = [0; 4];
    for seed in 0..60 {
        let world = play(seed, 1 + (seed % 3) as usize);
        let zones = world
            .server
            .n_zones_evicted
            .iter()
            .filter(|n| **n > 0)
            .count();
        for (sum, n) in
            sums.iter_mut()
                .zip([world.server.n_evicted, world.n_refused, zones, world.n_open])
        {
            *sum += n;
        }
    }
    // It is no proof if nothing was evicted, or of one zone only.
    assert!(sums[0] > 600 && sums[1] > 600 && sums[2] > 100, "{sums:?}");
    assert_eq!(sums[3], 0);
}

#[test]
fn a_claim_is_taken_out_when_the_zone_is_whole() {
    let mut server = Server::new(2);
    let mut now = Instant::from_secs(1000);
    let mut replica = Replica::new(&server, now);
    let ask = |replica: &Replica, id: u64, pod: &str| {
        Input::Asked(Ask {
            id: RequestId(id),
            namespace: replica.names.namespace,
            pod: pod.into(),
            is_dry_run: false,
        })
    };
    let first = ask(&replica, 1, "web-1");
    replica.machine.handle(now, first);
    let Some(Effect::WriteClaim {
        id, version, claim, ..
    }) = replica.machine.poll_effect()
    else {
        panic!("a claim is written");
    };
    assert_eq!(version, server.budget.version);
    server.write(|budget| budget.claim = claim);
    replica.machine.handle(
        now,
        Input::Outcome(id, Outcome::Written(server.budget.version)),
    );
    assert_eq!(
        replica.machine.poll_effect(),
        Some(Effect::Answer(RequestId(1), Answer::Granted))
    );
    assert_eq!(replica.machine.next_wake(), Some(now + HOLD));
    // The API server did not carry it out: another zone has to wait for a while, nothing else.
    let second = ask(&replica, 2, "web-2");
    replica.machine.handle(now, second);
    let Some(Effect::Answer(_, Answer::Refused(text))) = replica.machine.poll_effect() else {
        panic!("it is refused");
    };
    assert_eq!(
        &*text,
        "The disruption budget web lets pods of one zone be evicted at a time, and a pod of \"a\" was evicted just \
         now. Pods of \"b\" can be evicted when they are ready."
    );
    now = now + HOLD;
    replica.machine.handle(now, Input::Tick);
    let taken_out = replica.machine.poll_effect();
    assert!(
        matches!(taken_out, Some(Effect::WriteClaim { claim: None, .. })),
        "{taken_out:?}"
    );
}

#[test]
fn without_the_right_to_write_claims_the_plain_budget_decides() {
    let server = Server::new(2);
    let now = Instant::from_secs(1000);
    let mut replica = Replica::new(&server, now);
    let ask = Ask {
        id: RequestId(1),
        namespace: replica.names.namespace,
        pod: "web-1".into(),
        is_dry_run: false,
    };
    replica.machine.handle(now, Input::Asked(ask));
    let Some(Effect::WriteClaim { id, .. }) = replica.machine.poll_effect() else {
        panic!("a claim is written");
    };
    replica
        .machine
        .handle(now, Input::Outcome(id, Outcome::Failed));
    assert_eq!(
        replica.machine.poll_effect(),
        Some(Effect::Answer(RequestId(1), Answer::Open))
    );
    assert_eq!(replica.machine.counters().open, 1);
}
