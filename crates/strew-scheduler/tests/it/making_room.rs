//! Preemption through the machine: nomination, the hold, victims one after another. Source: spec/scheduler §3.16, 6.

use std::sync::Arc;

use strew_cluster::{NodeFact, PodFact, PodHistory, PodSpec};
use strew_model::{Instant, Interner, Labels, Resources, Span, Symbol, well_known};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Effect, EffectId, Input, Limits, Outcome, Scheduler};
use strew_scheduler::queue::Gate;

const NOW: Instant = Instant::from_secs(100);

struct Bench {
    scheduler: Scheduler,
}

fn pod(uid: &str, priority: i32, cpu_milli: i64, node: Option<Symbol>) -> PodFact {
    let requests = Resources::of(cpu_milli, 0);
    PodFact {
        uid: uid.into(),
        name: uid.into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node,
        spec: PodSpec {
            priority,
            used: requests.clone(),
            requests,
            ..PodSpec::default()
        },
        history: PodHistory::default(),
    }
}

impl Bench {
    /// A node of 4 CPUs that four pods of priority 0 fill.
    fn new() -> Self {
        let mut names = Interner::new();
        let node = names.intern("n1");
        let scheduler = Scheduler::new(names, vec![Profile::default()], Limits::production(), NOW);
        let mut bench = Self { scheduler };
        bench.handle(Input::NodeSet(NodeFact {
            name: node,
            labels: Labels::default(),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(4_000, 1 << 40),
            pods_max: 10,
            images: Box::default(),
        }));
        for uid in ["a", "b", "c", "d"] {
            bench.set(pod(uid, 0, 1_000, Some(node)));
        }
        bench
    }

    fn handle(&mut self, input: Input) {
        self.scheduler.handle(NOW, input);
        assert_eq!(self.scheduler.audit(), Ok(()));
    }

    fn set(&mut self, fact: PodFact) {
        self.handle(Input::PodSet {
            fact: Box::new(fact),
            condition: None,
        });
    }

    fn answer(&mut self, effect: EffectId, outcome: Outcome) {
        self.handle(Input::Outcome { effect, outcome });
    }

    /// What is asked for, conditions and events aside; those that are asked to go with the effect to answer.
    fn poll(&mut self) -> (String, Vec<(Arc<str>, EffectId)>) {
        let (mut said, mut victims) = (Vec::new(), Vec::new());
        while let Some(effect) = self.scheduler.poll_effect() {
            match effect {
                Effect::Bind { pod, .. } => said.push(format!("bind {}", pod.uid)),
                Effect::Nominate { pod, node, .. } => {
                    let to = if node.is_some() { "n1" } else { "none" };
                    said.push(format!("nominate {} {to}", pod.uid));
                }
                Effect::DeleteVictim {
                    id,
                    victim,
                    message,
                } => {
                    let expected =
                        "default-scheduler: preempting to accommodate a higher priority pod";
                    assert_eq!(message, expected);
                    said.push(format!("delete {}", victim.uid));
                    victims.push((victim.uid, id));
                }
                Effect::Event(event) if event.related.is_some() => {
                    said.push(event.note.to_string())
                }
                _ => {}
            }
        }
        (said.join(", "), victims)
    }
}

#[test]
fn victims_go_and_the_pod_follows() {
    let mut bench = Bench::new();
    bench.set(pod("big", 9, 2_000, None));
    let (said, victims) = bench.poll();
    let [(first, id)] = &victims[..] else {
        panic!("all but the last are asked first: {said}");
    };
    assert_eq!(said, format!("nominate big n1, delete {first}"));
    assert_eq!(bench.scheduler.gate("big"), Some(Gate::Preemption));
    assert_eq!(
        Gate::Preemption.text(),
        "waiting for the preemption for this pod to be finished"
    );

    bench.answer(*id, Outcome::Ok);
    let (said, victims) = bench.poll();
    let [(last, id)] = &victims[..] else {
        panic!("then the last one: {said}");
    };
    let told = "Preempted by pod big on node n1";
    assert!(
        said.contains(told) && said.contains(&format!("delete {last}")),
        "{said}"
    );
    assert_eq!(bench.scheduler.gate("big"), Some(Gate::Preemption));

    // All were asked: it waits for them to be gone, and no gate keeps it.
    bench.answer(*id, Outcome::Ok);
    assert_eq!(bench.poll().0, told);
    assert_eq!(bench.scheduler.gate("big"), None);
    bench.handle(Input::PodGone(Arc::clone(first)));
    bench.handle(Input::PodGone(Arc::clone(last)));
    assert_eq!(bench.poll().0, "bind big");
}

/// A victim may be gone before anybody says that it was asked to go: the pod is tried all the same.
#[test]
fn facts_may_come_before_outcomes() {
    let mut bench = Bench::new();
    bench.set(pod("big", 9, 1_000, None));
    let (_, victims) = bench.poll();
    let [(only, _)] = &victims[..] else {
        panic!("one is enough");
    };
    bench.handle(Input::PodGone(Arc::clone(only)));
    assert_eq!(bench.scheduler.gate("big"), None);
    assert_eq!(bench.poll().0, "bind big");
}

/// If one of the others cannot be asked, the last one is spared, and the pod is tried again after its backoff: a victim may
/// be refused for ever.
#[test]
fn the_last_one_is_spared() {
    let mut bench = Bench::new();
    bench.set(pod("big", 9, 2_000, None));
    let (_, victims) = bench.poll();
    bench.answer(victims[0].1, Outcome::Failed("no".into()));
    assert_eq!(bench.poll().0, "");
    let later = bench.scheduler.next_wake().expect("it waits");
    assert!(later <= NOW + Span::from_secs(2), "{later:?}");
    bench.scheduler.handle(later, Input::Tick);
    let (said, again) = bench.poll();
    assert_eq!(said, format!("delete {}", again[0].0));
    assert_eq!(again[0].0, victims[0].0);
}

/// A pod of lower priority does not take the room that was made, and a later fact does not unmake the nomination.
#[test]
fn room_is_kept() {
    let mut bench = Bench::new();
    bench.set(pod("big", 9, 1_000, None));
    let (_, victims) = bench.poll();
    bench.answer(victims[0].1, Outcome::Ok);
    // Older than the nomination.
    bench.set(pod("big", 9, 1_000, None));
    bench.set(pod("small", 0, 1_000, None));
    bench.handle(Input::PodGone(Arc::clone(&victims[0].0)));
    let (said, _) = bench.poll();
    assert!(said.ends_with("bind big"), "{said}");
    assert_eq!(
        bench.scheduler.standing("small"),
        Some(strew_scheduler::machine::TrackedAs::Queued)
    );
}
