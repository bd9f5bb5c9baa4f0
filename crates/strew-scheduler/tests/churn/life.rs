//! Jobs that come and go: pods of ever new labels, each kept off its own kind by a term on them.

use std::collections::VecDeque;
use std::sync::Arc;

use strew_cluster::{AffinityTerm, NodeFact, OwnerKind, OwnerRef, PodFact, PodHistory, PodSpec};
use strew_model::{Instant, Interner, Labels, Resources, Selector, Symbol, well_known};
use strew_scheduler::Profile;
use strew_scheduler::machine::{Effect, Input, Limits, Outcome, Scheduler};

/// How many pods are there at a time.
pub(crate) const ALIVE: usize = 1_000;

/// How many pods a Job has.
pub(crate) const PODS_PER_JOB: usize = 10;

const NODES: usize = 100;

const NOW: Instant = Instant::from_secs(1_000_000);

/// A scheduler, and the pods that it has placed, oldest first.
pub(crate) struct Churn {
    pub(crate) scheduler: Scheduler,
    alive: VecDeque<(usize, Symbol)>,
    next: usize,
}

impl Churn {
    /// Empty nodes in three zones.
    pub(crate) fn new() -> Self {
        let mut names = Interner::new();
        let node_facts: Vec<NodeFact> = (0..NODES).map(|i| node(&mut names, i)).collect();
        let profiles = vec![Profile::default()];
        let mut scheduler = Scheduler::new(names, profiles, Limits::production(), NOW);
        for fact in node_facts {
            scheduler.handle(NOW, Input::NodeSet(fact));
        }
        Self {
            scheduler,
            alive: VecDeque::new(),
            next: 0,
        }
    }

    /// How many pods have come so far.
    pub(crate) fn pods(&self) -> usize {
        self.next
    }

    /// One pod more is created, placed, bound and seen; the oldest one is deleted if there are too many.
    pub(crate) fn step(&mut self) {
        let number = self.next;
        self.next += 1;
        self.set(number, None, false);
        let mut to = None;
        while let Some(effect) = self.scheduler.poll_effect() {
            if let Effect::Bind { id, node, .. } = effect {
                to = Some(node);
                let (effect, outcome) = (id, Outcome::Ok);
                self.scheduler
                    .handle(NOW, Input::Outcome { effect, outcome });
            }
        }
        let node = to.expect("nodes have room for every pod");
        self.set(number, Some(node), false);
        self.alive.push_back((number, node));
        if self.alive.len() > ALIVE
            && let Some((oldest, node)) = self.alive.pop_front()
        {
            self.set(oldest, Some(node), true);
            self.scheduler.handle(NOW, Input::PodGone(uid(oldest)));
        }
    }

    fn set(&mut self, number: usize, node: Option<Symbol>, terminating: bool) {
        let names = self.scheduler.names_mut();
        let fact = Box::new(pod(names, number, node, terminating));
        let condition = None;
        self.scheduler
            .handle(NOW, Input::PodSet { fact, condition });
    }
}

fn uid(number: usize) -> Arc<str> {
    format!("00000000-0000-0000-0000-{number:012}").into()
}

fn node(names: &mut Interner, i: usize) -> NodeFact {
    let (name, zone) = (
        names.intern(&format!("node-{i}")),
        names.intern(&format!("zone-{}", i % 3)),
    );
    NodeFact {
        name,
        labels: Labels::new(vec![(well_known::HOSTNAME, name), (well_known::ZONE, zone)]),
        taints: Box::default(),
        unschedulable: false,
        allocatable: Resources::of(64_000, 256 << 30),
        pods_max: 250,
        images: Box::default(),
    }
}

/// A pod of a Job, with the labels that the Job controller gives.
fn pod(names: &mut Interner, number: usize, node: Option<Symbol>, terminating: bool) -> PodFact {
    let job = number / PODS_PER_JOB;
    let job_name = names.intern(&format!("nightly-report-{job}"));
    let controller_uid = names.intern(&format!("11111111-1111-1111-1111-{job:012}"));
    let key = names.intern("batch.kubernetes.io/job-name");
    let labels = Labels::new(vec![
        (key, job_name),
        (names.intern("job-name"), job_name),
        (
            names.intern("batch.kubernetes.io/controller-uid"),
            controller_uid,
        ),
        (names.intern("controller-uid"), controller_uid),
    ]);
    let requests = Resources::of(100, 128 << 20);
    let mut spec = PodSpec {
        used: requests.clone(),
        requests,
        scored: (100, 128 << 20),
        used_scored: (100, 128 << 20),
        containers: 1,
        ..PodSpec::default()
    };
    spec.affinity.required_anti = [AffinityTerm {
        key: well_known::HOSTNAME,
        selector: Selector::of_labels([(key, job_name)]),
        namespaces: Box::default(),
        namespace_selector: Selector::Nothing,
    }]
    .into();
    PodFact {
        uid: uid(number),
        name: format!("nightly-report-{job}-{number}").into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels,
        owner: Some(OwnerRef {
            kind: OwnerKind::Other,
            name: job_name,
        }),
        terminating,
        node,
        spec,
        history: PodHistory::default(),
    }
}
