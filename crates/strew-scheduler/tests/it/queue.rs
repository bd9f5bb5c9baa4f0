//! Which pod is tried when: turns, back-off, flushes, gates. Source: spec/scheduler §4.

use std::sync::Arc;

use strew_cluster::{NodeFact, PodFact, PodHistory, PodSpec, Policy, SpreadConstraint};
use strew_model::{Instant, Interner, Labels, Resources, Selector, Span, Symbol, well_known};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Effect, EventKind, Input, Limits, Outcome, Scheduler};
use strew_scheduler::queue::Counts;

/// A scheduler and a clock.
pub(crate) struct Bench {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Instant,
    pub(crate) app: Symbol,
    pub(crate) web: Symbol,
    gate: Symbol,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let mut names = Interner::new();
        let mut name = |text: &str| names.intern(text);
        let (app, web, gate) = (name("app"), name("web"), name("gate"));
        for text in ["n1", "n2", "n3", "a", "b", "TCP", "0.0.0.0"] {
            name(text);
        }
        let now = Instant::from_secs(100);
        let scheduler = Scheduler::new(names, vec![Profile::default()], Limits::production(), now);
        Self {
            scheduler,
            now,
            app,
            web,
            gate,
        }
    }

    pub(crate) fn name(&mut self, text: &str) -> Symbol {
        self.scheduler.names_mut().intern(text)
    }

    pub(crate) fn handle(&mut self, input: Input) {
        self.scheduler.handle(self.now, input);
        assert_eq!(self.scheduler.audit(), Ok(()));
    }

    pub(crate) fn node(&mut self, name: &str, zone: &str) -> NodeFact {
        let (name, zone) = (self.name(name), self.name(zone));
        NodeFact {
            name,
            labels: Labels::new(vec![(well_known::HOSTNAME, name), (well_known::ZONE, zone)]),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(4_000, 4_000),
            pods_max: 10,
            images: Box::default(),
        }
    }

    pub(crate) fn pod(&mut self, uid: &str, change: impl FnOnce(&mut PodSpec)) -> PodFact {
        let requests = Resources::of(1_000, 1_000);
        let mut spec = PodSpec {
            used: requests.clone(),
            requests,
            scored: (1_000, 1_000),
            used_scored: (1_000, 1_000),
            containers: 1,
            ..PodSpec::default()
        };
        change(&mut spec);
        PodFact {
            uid: uid.into(),
            name: uid.into(),
            namespace: well_known::DEFAULT_NAMESPACE,
            labels: Labels::new(vec![(self.app, self.web)]),
            owner: None,
            terminating: false,
            node: None,
            spec,
            history: PodHistory::default(),
        }
    }

    pub(crate) fn bound(&mut self, uid: &str, node: &str) -> PodFact {
        let node = self.name(node);
        let mut pod = self.pod(uid, |spec| spec.used = Resources::of(3_500, 100));
        pod.node = Some(node);
        pod
    }

    pub(crate) fn set(&mut self, pod: &PodFact) {
        self.handle(pod_set(pod));
    }

    /// Carries out conditions only; returns the pods that were to be bound, and whether any attempt failed.
    pub(crate) fn poll(&mut self) -> (Vec<Arc<str>>, usize) {
        let (mut binds, mut failures) = (Vec::new(), 0);
        while let Some(effect) = self.scheduler.poll_effect() {
            match effect {
                Effect::Bind { pod, .. } => binds.push(pod.uid),
                Effect::Event(event) if event.kind == EventKind::FailedScheduling => failures += 1,
                Effect::PodCondition { id: effect, .. } => {
                    let outcome = Outcome::Ok;
                    self.handle(Input::Outcome { effect, outcome });
                }
                _ => {}
            }
        }
        assert_eq!(self.scheduler.audit(), Ok(()));
        (binds, failures)
    }

    fn tick(&mut self, at: Instant) {
        self.now = at;
        self.handle(Input::Tick);
    }

    pub(crate) fn counts(&self) -> Counts {
        self.scheduler.queue_counts()
    }

    pub(crate) fn constraint(&self) -> SpreadConstraint {
        SpreadConstraint {
            max_skew: 1,
            key: well_known::ZONE,
            hard: true,
            selector: Selector::of_labels([(self.app, self.web)]),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        }
    }
}

pub(crate) fn pod_set(fact: &PodFact) -> Input {
    Input::PodSet {
        fact: Box::new(fact.clone()),
        condition: None,
    }
}

/// Higher priority first, then first come, first served.
#[test]
fn turns() {
    let mut bench = Bench::new();
    for (uid, priority) in [("a", 0), ("b", 7), ("c", 0), ("d", 7), ("e", -3)] {
        let pod = bench.pod(uid, |spec| {
            spec.priority = priority;
            spec.requests = Resources::default();
        });
        bench.set(&pod);
    }
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let (binds, _) = bench.poll();
    assert_eq!(binds.join(" "), "b d a c e");
}

/// A bind that fails again and again is tried after 1, 2, 4, 8, 10 and 10 seconds: from the second after the one in
/// which the wait ends. Nothing else to do does not shorten it.
#[test]
fn errors_wait_in_whole_seconds() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let pod = bench.pod("p", |_| {});
    bench.now = Instant::from_secs(100) + Span::from_millis(700);
    bench.set(&pod);
    for wait in [1, 2, 4, 8, 10, 10] {
        let mut effects = std::iter::from_fn(|| bench.scheduler.poll_effect());
        let id = effects.find_map(|effect| match effect {
            Effect::Bind { id, .. } => Some(id),
            _ => None,
        });
        let outcome = Outcome::Failed("no".into());
        bench.handle(Input::Outcome {
            effect: id.expect("the pod is tried"),
            outcome,
        });
        assert_eq!(bench.poll(), (vec![], 1));
        assert_eq!(bench.counts().error_backoff, 1);
        let due = Instant::from_secs(bench.now.secs() + wait + 1);
        assert_eq!(bench.scheduler.next_wake(), Some(due), "after {wait} s");
        bench.tick(due - Span(1));
        assert_eq!(bench.counts().error_backoff, 1, "after {wait} s");
        bench.tick(due);
        assert_eq!(bench.counts().active, 1, "after {wait} s");
    }
}

/// A decision that does not come true wakes the pods that wait for the room it held: after a bind that failed, and when
/// a fact shows the pod on another node. Its outcome is no longer waited for.
#[test]
fn room_of_a_decision_undone_is_told() {
    for elsewhere in [false, true] {
        let mut bench = Bench::new();
        let large = bench.node("n1", "a");
        bench.handle(Input::NodeSet(large));
        let mut small = bench.node("n2", "a");
        small.allocatable.cpu_milli = 1_000;
        bench.handle(Input::NodeSet(small));
        let most = Resources::of(3_000, 1_000);
        let [mut first, second] = ["first", "second"].map(|uid| {
            bench.pod(uid, |spec| {
                spec.requests = most.clone();
                spec.used = most.clone();
            })
        });
        bench.set(&first);
        let Some(Effect::Bind { id: effect, .. }) = bench.scheduler.poll_effect() else {
            panic!("the first pod has room");
        };
        bench.set(&second);
        assert_eq!(bench.poll(), (vec![], 1));
        assert_eq!(bench.counts().unschedulable, 1);
        if elsewhere {
            first.node = Some(bench.name("n2"));
            bench.set(&first);
        } else {
            let outcome = Outcome::Conflict("no".into());
            bench.handle(Input::Outcome { effect, outcome });
        }
        assert_eq!(bench.counts().backoff, 1, "{elsewhere}");
        let (binds, _) = bench.poll();
        assert_eq!(binds.join(" "), "second", "{elsewhere}");
        assert_eq!(bench.scheduler.effects_pending(), 1, "{elsewhere}");
    }
}

/// Without a node no plugin rejects: the pod is tried again and again, as upstream.
#[test]
fn no_node_is_an_error_of_the_queue() {
    let mut bench = Bench::new();
    let pod = bench.pod("p", |_| {});
    bench.set(&pod);
    assert_eq!(bench.poll(), (vec![], 1));
    assert_eq!(bench.counts().error_backoff, 1);
}

/// A pod that is worth another try, but must still wait, is tried early if there is nothing else to do.
#[test]
fn backoff_is_cut_short_when_idle() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let pod = bench.pod("p", |spec| spec.requests.cpu_milli = 5_000);
    bench.set(&pod);
    assert_eq!(bench.poll(), (vec![], 1));
    let mut node = bench.node("n1", "a");
    node.allocatable.cpu_milli = 8_000;
    bench.handle(Input::NodeSet(node));
    assert_eq!(bench.counts().backoff, 1);
    assert_eq!(bench.poll().0.join(" "), "p");
}

/// What no event helps is tried after five minutes, at the next half minute.
#[test]
fn the_flush() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    bench.now = Instant::from_secs(110);
    let pod = bench.pod("p", |spec| spec.requests.cpu_milli = 5_000);
    bench.set(&pod);
    assert_eq!(bench.poll(), (vec![], 1));
    // Started at 100 s: looked at each 30 s, thus at 400 s (not yet) and at 430 s.
    let due = Instant::from_secs(430);
    assert_eq!(bench.scheduler.next_wake(), Some(due));
    bench.tick(due - Span(1));
    assert_eq!(bench.counts().unschedulable, 1);
    bench.tick(due);
    assert_eq!(bench.counts().active, 1);
    assert_eq!(bench.poll(), (vec![], 1));
    assert_eq!(bench.scheduler.next_wake(), Some(Instant::from_secs(760)));
}

/// A gated pod is not tried whatever happens, until its gates are gone.
#[test]
fn gates() {
    let mut bench = Bench::new();
    let gate = bench.gate;
    let pod = bench.pod("p", |spec| spec.gates = [gate].into());
    bench.set(&pod);
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    bench.tick(Instant::from_secs(10_000));
    assert_eq!(bench.counts().gated, 1);
    assert_eq!(bench.poll(), (vec![], 0));
    assert_eq!(bench.scheduler.next_wake(), None);
    let pod = bench.pod("p", |_| {});
    bench.set(&pod);
    assert_eq!(bench.poll().0.join(" "), "p");
}

/// A pod that is being deleted is not placed.
#[test]
fn deleted_pods_are_skipped() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let mut pod = bench.pod("p", |_| {});
    pod.terminating = true;
    bench.set(&pod);
    let Some(Effect::Event(event)) = bench.scheduler.poll_effect() else {
        panic!("an event tells why");
    };
    assert_eq!(&*event.note, "skip schedule deleting pod: default/p");
    // Told again, nothing is said again.
    bench.set(&pod);
    assert_eq!(bench.poll(), (vec![], 0));
}

/// The condition is patched when it changes, and not again after it was taken.
#[test]
fn conditions_are_patched_once() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    let pod = bench.pod("p", |spec| spec.requests.cpu_milli = 5_000);
    bench.set(&pod);
    for (attempt, patched) in [(0, true), (1, false), (2, true)] {
        let effects: Vec<Effect> = std::iter::from_fn(|| bench.scheduler.poll_effect()).collect();
        let patch = effects
            .iter()
            .find(|e| matches!(e, Effect::PodCondition { .. }));
        assert_eq!(patch.is_some(), patched, "attempt {attempt}");
        if let Some(effect) = patch.and_then(Effect::id) {
            // The second patch is lost: the third attempt makes it again.
            let outcome = Outcome::Ok;
            bench.handle(Input::Outcome { effect, outcome });
        }
        if attempt == 1 {
            let mut node = bench.node("n2", "a");
            node.pods_max = 0;
            bench.handle(Input::NodeSet(node));
        }
        let at = bench.now + Span::from_secs(400);
        bench.tick(at);
    }
}

/// A bind that fails gives room back: pods that were refused for lack of it are tried again.
#[test]
fn a_failed_bind_helps_others() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    for uid in ["first", "second"] {
        let pod = bench.pod(uid, |spec| {
            spec.used.cpu_milli = 3_000;
            spec.requests.cpu_milli = 3_000;
        });
        bench.set(&pod);
    }
    let Some(Effect::Bind { id: effect, .. }) = bench.scheduler.poll_effect() else {
        panic!("there is room for one");
    };
    assert_eq!(bench.poll(), (vec![], 1));
    let outcome = Outcome::Conflict("no".into());
    bench.handle(Input::Outcome { effect, outcome });
    assert_eq!(bench.poll().0.join(" "), "second");
}

/// Pods of two Deployments that fit nowhere take turns: the second of each is refused with what was found for the first.
#[test]
fn refusals_of_classes_that_take_turns_are_found_once() {
    let mut bench = Bench::new();
    let node = bench.node("n1", "a");
    bench.handle(Input::NodeSet(node));
    for (uid, cpu) in [
        ("a-1", 9_000),
        ("b-1", 8_000),
        ("a-2", 9_000),
        ("b-2", 8_000),
    ] {
        let fact = bench.pod(uid, |spec| spec.requests = Resources::of(cpu, 1_000));
        bench.handle(Input::PodSet {
            fact: Box::new(fact),
            condition: None,
        });
    }
    let mut told = Vec::new();
    while let Some(effect) = bench.scheduler.poll_effect() {
        if let Effect::PodCondition { pod, condition, .. } = effect {
            told.push((pod.name.to_string(), condition.message));
        }
    }
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a-1", "b-1", "a-2", "b-2"]);
    // Not only equal: the text of the first.
    assert!(Arc::ptr_eq(&told[0].1, &told[2].1));
    assert!(Arc::ptr_eq(&told[1].1, &told[3].1));
}
