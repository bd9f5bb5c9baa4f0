use strew_model::Prng;

use super::*;

const LIMITS: Limits = Limits {
    waiting_max: 100,
    in_hand_max: 4,
    budget: Span::from_millis(250),
    credit: Span::from_millis(500),
};

fn millis(n: u64) -> Instant {
    Instant::default() + Span::from_millis(n)
}

/// A queue, and what is put into it.
struct TimedQueue {
    queue: FairQueue<(), &'static str, &'static str>,
    calls: u64,
    now: Instant,
}

impl TimedQueue {
    fn new() -> Self {
        Self {
            queue: FairQueue::new(LIMITS),
            calls: 0,
            now: millis(0),
        }
    }

    fn put(&mut self, namespace: &'static str) -> bool {
        self.calls += 1;
        let call = CallId(self.calls);
        let put = (self.queue).put(self.now, &((), namespace), call, namespace);
        put.is_ok()
    }

    /// Decides on the next review, which costs this many milliseconds.
    fn decide(&mut self, cost: u64) -> &'static str {
        let turn = self.queue.take(self.now).expect("one waits");
        self.now = self.now + Span::from_millis(cost);
        let key = ((), turn.what);
        self.queue.charge(self.now, &key, Span::from_millis(cost));
        self.queue.done(&key);
        turn.what
    }
}

#[test]
fn who_asks_now_and_then_waits_for_one_decision_at_most() {
    let mut world = TimedQueue::new();
    (0..50).for_each(|_| assert!(world.put("eve")));
    for round in 0..10 {
        // One of the flood is under way when the other comes.
        assert_eq!(world.decide(30), "eve", "round {round}");
        world.put("shop");
        world.put("eve");
        assert_eq!(world.decide(1), "shop", "round {round}");
    }
}

/// However cheap the reviews of some are: CPU time is shared, not reviews.
#[test]
fn namespaces_that_ask_without_end_have_the_same_time() {
    let mut rng = Prng::new(7);
    for _ in 0..50 {
        let mut world = TimedQueue::new();
        let costs = [("a", rng.between(1, 40)), ("b", rng.between(1, 40))];
        let mut spent = BTreeMap::new();
        for (name, _) in costs {
            (0..3).for_each(|_| assert!(world.put(name)));
        }
        for _ in 0..500 {
            let next = world.queue.peers[&()]
                .order
                .ready
                .first()
                .expect("both ask")
                .1;
            let (_, cost) = costs.iter().find(|(name, _)| *name == next).unwrap();
            let name = world.decide(*cost);
            *spent.entry(name).or_insert(0) += cost;
            world.put(name);
        }
        let apart = spent["a"].abs_diff(spent["b"]);
        assert!(apart <= 40, "{costs:?}: {spent:?}");
    }
}

#[test]
fn a_namespace_saves_nothing_up_and_a_flood_ends_its_debt() {
    let mut world = TimedQueue::new();
    world.put("idle");
    world.decide(1);
    for _ in 0..20 {
        world.put("eve");
        world.decide(10);
    }
    // It was away for long, and does not have all of that time at once now.
    for name in ["idle", "idle", "idle", "eve", "eve", "eve"] {
        world.put(name);
    }
    let order: Vec<_> = (0..6).map(|_| world.decide(10)).collect();
    let firsts = order[..4].iter().filter(|name| **name == "eve").count();
    assert!(firsts >= 1, "{order:?}");
}

#[test]
fn reviews_have_bounds_by_namespace() {
    let mut world = TimedQueue::new();
    for n in 0..LIMITS.waiting_max {
        assert!(world.put("eve"), "{n}");
    }
    assert!(!world.put("eve"));
    assert!(world.put("shop"));
    // The loop has as many reviews as it may; the others wait.
    let taken: Vec<_> = std::iter::from_fn(|| world.queue.take(world.now)).collect();
    let of_eve = taken.iter().filter(|turn| turn.what == "eve").count();
    assert_eq!((of_eve, taken.len()), (4, 5));
    assert_eq!(world.queue.n_waiting(), 96);
    assert!(!world.queue.is_ready());
    world.queue.done(&((), "eve"));
    assert!(world.queue.is_ready());
    // One that waits no longer is not decided.
    let waiting: Vec<CallId> = world.queue.tenants[&((), "eve")]
        .waiting
        .iter()
        .map(|w| w.0)
        .collect();
    for call in waiting {
        assert_eq!(world.queue.remove(&((), "eve"), call), Some("eve"));
        assert_eq!(world.queue.remove(&((), "eve"), call), None);
    }
    assert_eq!(
        (world.queue.n_waiting(), world.queue.is_ready()),
        (0, false)
    );
}

#[test]
fn beyond_its_budget_a_namespace_is_decided_without_simulation() {
    let mut world = TimedQueue::new();
    let is_within = |world: &mut TimedQueue, name: &'static str| {
        world.put(name);
        let turn = world.queue.take(world.now).expect("one waits");
        world.queue.done(&((), turn.what));
        turn.is_within_budget
    };
    world.put("eve");
    world.decide(500);
    assert!(is_within(&mut world, "eve"), "this much is credit");
    world.put("eve");
    world.decide(100);
    assert!(!is_within(&mut world, "eve"));
    assert!(is_within(&mut world, "shop"));
    world.now = world.now + Span::from_secs(1);
    assert!(is_within(&mut world, "eve"), "a second covers 250 ms");
}

#[test]
fn namespaces_that_owe_nothing_are_forgotten() {
    let mut queue = FairQueue::new(LIMITS);
    for n in 0..10_000_u64 {
        let (now, name) = (millis(n), (n / 100, format!("n{n}")));
        queue.put(now, &name, CallId(n), ()).unwrap();
        queue.take(now).unwrap();
        queue.charge(now, &name, Span::from_millis(1));
        queue.done(&name);
        assert!(queue.tenants.len() <= 64, "{}", queue.tenants.len());
        assert!(queue.peers.len() <= 64, "{}", queue.peers.len());
    }
}

/// The rule: an entry of a peer that has nothing waiting comes after one turn of each other peer at most, whatever they
/// do and however many namespaces they name.
#[test]
fn a_quiet_peer_waits_for_one_turn_of_each_other() {
    for seed in 0..300 {
        let mut rng = Prng::new(seed);
        let n_others = rng.between(1, 12);
        let n_namespaces = rng.between(1, 40);
        let mut queue: FairQueue<u64, u64, (u64, u64)> = FairQueue::new(LIMITS);
        // No time passes: a peer whose debt is covered may be forgotten, and is new when it comes again.
        let (now, mut calls) = (millis(0), 0);
        let mut put = |queue: &mut FairQueue<u64, u64, (u64, u64)>, now, key| {
            calls += 1;
            let _ = queue.put(now, &key, CallId(calls), key);
        };
        let mut waits_since = None;
        for step in 0..500 {
            for _ in 0..rng.between(0, 3) {
                let key = (rng.between(1, n_others), rng.between(1, n_namespaces));
                put(&mut queue, now, key);
            }
            if waits_since.is_none() && rng.chance(1, 4) {
                put(&mut queue, now, (0, rng.between(1, n_namespaces)));
                waits_since = Some(step);
            }
            let Some(turn) = queue.take(now) else {
                continue;
            };
            queue.charge(now, &turn.what, Span::from_millis(1));
            queue.done(&turn.what);
            if turn.what.0 == 0 {
                let waited = step - waits_since.take().expect("it waits");
                assert!(waited <= n_others, "seed {seed}: {waited} turns");
            }
        }
    }
}

/// Namespaces of one peer, the API server, have turns as peers do.
#[test]
fn a_quiet_namespace_of_a_peer_waits_for_one_turn_of_each_other() {
    for seed in 0..300 {
        let mut rng = Prng::new(seed);
        let n_others = rng.between(1, 12);
        let mut queue = FairQueue::new(LIMITS);
        let (now, mut calls) = (millis(0), 0);
        let mut waits_since = None;
        for step in 0..500 {
            let mut put = |key| {
                calls += 1;
                let _ = queue.put(now, &key, CallId(calls), key);
            };
            (0..rng.between(1, 3)).for_each(|_| put(((), rng.between(1, n_others))));
            if waits_since.is_none() && rng.chance(1, 4) {
                put(((), 0));
                waits_since = Some(step);
            }
            let turn = queue.take(now).expect("one waits");
            queue.charge(now, &turn.what, Span::from_millis(1));
            queue.done(&turn.what);
            if turn.what.1 == 0 {
                let waited = step - waits_since.take().expect("it waits");
                assert!(waited <= n_others, "seed {seed}: {waited} turns");
            }
        }
    }
}
