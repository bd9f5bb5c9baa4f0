//! Jobs that come and go, each with a WorkloadSpread of its own, whose pods have a term on their own labels.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strew_cluster::{
    AffinityTerm, NodeAffinity, NodeFact, OwnerKind, OwnerRef, PodFact, PodHistory, PodSpec,
};
use strew_model::{
    Instant, Interner, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Resources,
    Selector, Span, Symbol, well_known,
};
use strew_scheduler::Profile;
use strew_workloadspread::admission::{self, Admission, Operation, PodAsked, Request, RequestId};
use strew_workloadspread::controller::{self, SpreadController};
use strew_workloadspread::{
    Controller, Marked, Marker, MaxReplicas, NoPatches, Phase, Pod, Spec, Status, Strategy, Subset,
    TargetRef, WorkloadFact, WorkloadKey, WorkloadSpread, WsKey,
};

/// The number of pods at a time.
pub(crate) const ALIVE: usize = 1_000;

const PODS_PER_JOB: usize = 10;

const NODES: usize = 100;

/// Both machines, and the pods, oldest first.
pub(crate) struct Churn {
    pub(crate) admission: Admission,
    pub(crate) controller: SpreadController,
    now: Instant,
    alive: VecDeque<usize>,
    /// Version and status of the WorkloadSpread of each Job.
    spreads: BTreeMap<usize, (u64, Arc<Status>)>,
    strategy: Strategy,
    next: usize,
}

impl Churn {
    /// Empty nodes in three zones.
    pub(crate) fn new(strategy: Strategy) -> Self {
        let profiles = vec![Profile::default()];
        let limits = admission::Limits::production();
        let mut admission = Admission::new(Interner::new(), profiles, limits, 1);
        let limits = controller::Limits::production();
        let mut controller = SpreadController::new(Interner::new(), limits);
        let now = Instant::from_secs(1_000);
        for i in 0..NODES {
            let fact = node(admission.names_mut(), i);
            admission.handle(now, admission::Input::NodeSet(Box::new(fact)));
            let NodeFact {
                name,
                labels,
                taints,
                ..
            } = node(controller.names_mut(), i);
            controller.handle(now, controller::Input::NodeSet(name, labels, taints));
        }
        Self {
            admission,
            controller,
            now,
            alive: VecDeque::new(),
            spreads: BTreeMap::new(),
            strategy,
            next: 0,
        }
    }

    /// The number of pods so far.
    pub(crate) fn pods(&self) -> usize {
        self.next
    }

    /// Admits, creates and counts one more pod; deletes the oldest one if there are too many.
    pub(crate) fn step(&mut self) {
        self.now = self.now + Span::from_millis(100);
        let number = self.next;
        self.next += 1;
        let job = number / PODS_PER_JOB;
        if number.is_multiple_of(PODS_PER_JOB) {
            self.begin(job);
        }
        let subset = self.admit(number);
        let marker = Marker {
            workload_spread: spread_name(job),
            subset,
            uid: None,
        };
        // It waits before it is on a node.
        let node = node_name(self.admission.names_mut(), number % NODES);
        for node in [None, Some(node)] {
            let mut fact = pod_fact(self.admission.names_mut(), number);
            fact.node = node;
            let seen = admission::Input::PodSet(Box::new(fact), Some(marker.clone()));
            self.admission.handle(self.now, seen);
        }
        let pod = pod(self.controller.names_mut(), number, marker);
        let seen = controller::Input::PodSet(Box::new(pod));
        self.controller.handle(self.now, seen);
        self.sync();
        self.alive.push_back(number);
        if self.alive.len() > ALIVE
            && let Some(oldest) = self.alive.pop_front()
        {
            let (now, uid) = (self.now, uid(oldest));
            let gone = admission::Input::PodGone(Arc::clone(&uid));
            self.admission.handle(now, gone);
            self.controller.handle(now, controller::Input::PodGone(uid));
            if oldest % PODS_PER_JOB == PODS_PER_JOB - 1 {
                self.end(oldest / PODS_PER_JOB);
            }
        }
    }

    fn begin(&mut self, job: usize) {
        self.spreads.insert(job, (1, Arc::default()));
        let fact = workload(self.admission.names_mut(), job);
        let set = admission::Input::WorkloadSet(Box::new(fact));
        self.admission.handle(self.now, set);
        let fact = workload(self.controller.names_mut(), job);
        let set = controller::Input::WorkloadSet(Box::new(fact));
        self.controller.handle(self.now, set);
        self.tell(job);
        self.sync();
    }

    fn end(&mut self, job: usize) {
        self.spreads.remove(&job);
        let (now, key) = (self.now, spread_key(job));
        let gone = admission::Input::SpreadGone(key.clone());
        self.admission.handle(now, gone);
        self.controller
            .handle(now, controller::Input::SpreadGone(key));
        let key = workload(self.admission.names_mut(), job).key;
        let gone = admission::Input::WorkloadGone(key);
        self.admission.handle(now, gone);
        let key = workload(self.controller.names_mut(), job).key;
        let gone = controller::Input::WorkloadGone(key);
        self.controller.handle(now, gone);
    }

    /// Reports the stored WorkloadSpread of a Job to both machines.
    fn tell(&mut self, job: usize) {
        let Some(stored) = self.spreads.get(&job) else {
            return;
        };
        let ws = spread(self.admission.names_mut(), job, stored, self.strategy);
        let set = admission::Input::SpreadSet(Box::new(ws));
        self.admission.handle(self.now, set);
        let ws = spread(self.controller.names_mut(), job, stored, self.strategy);
        let set = controller::Input::SpreadSet(Box::new(ws));
        self.controller.handle(self.now, set);
    }

    fn store(&mut self, job: usize, status: Arc<Status>) -> u64 {
        let stored = self.spreads.entry(job).or_default();
        *stored = (stored.0 + 1, status);
        stored.0
    }

    /// Admits a pod. Returns its subset.
    fn admit(&mut self, number: usize) -> Arc<str> {
        use admission::{Effect, Input, Outcome, Verdict};
        let job = number / PODS_PER_JOB;
        let request = request(self.admission.names_mut(), number);
        let asked = Input::AdmitAsked(Box::new(request));
        self.admission.handle(self.now, asked);
        loop {
            match self.admission.poll_effect(&mut NoPatches) {
                Some(Effect::WriteStatus { id, status, .. }) => {
                    let version = self.store(job, status);
                    let written = Input::Outcome(id, Outcome::Written(version));
                    self.admission.handle(self.now, written);
                    self.tell(job);
                }
                Some(Effect::Answer(answer)) => match answer.verdict {
                    Verdict::Inject(injection) => return injection.marker.subset,
                    other => panic!("pod {number} is not injected: {other:?}"),
                },
                other => panic!("pod {number} is not answered: {other:?}"),
            }
        }
    }

    fn sync(&mut self) {
        use controller::{Effect, Input, Outcome};
        while let Some(effect) = self.controller.poll_effect(&mut NoPatches) {
            let id = match effect {
                Effect::WriteStatus {
                    id, key, status, ..
                } => {
                    let job = key.name.rsplit('-').next().and_then(|n| n.parse().ok());
                    let job = job.expect("a Job's number ends its name");
                    self.store(job, status);
                    self.tell(job);
                    id
                }
                Effect::Adopt { id, .. }
                | Effect::SetCost { id, .. }
                | Effect::DeletePod { id, .. } => id,
                Effect::Event(_) => continue,
            };
            self.controller
                .handle(self.now, Input::Outcome(id, Outcome::Ok));
        }
        self.controller.handle(self.now, Input::Tick);
    }
}

// === facts ===

fn uid(number: usize) -> Arc<str> {
    format!("00000000-0000-0000-0000-{number:012}").into()
}

fn spread_name(job: usize) -> Arc<str> {
    format!("nightly-report-{job}").into()
}

fn spread_key(job: usize) -> WsKey {
    WsKey {
        namespace: well_known::DEFAULT_NAMESPACE,
        name: spread_name(job),
    }
}

fn node_name(names: &mut Interner, i: usize) -> Symbol {
    names.intern(&format!("node-{i}"))
}

fn node(names: &mut Interner, i: usize) -> NodeFact {
    let (name, zone) = (
        node_name(names, i),
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

fn workload(names: &mut Interner, job: usize) -> WorkloadFact {
    WorkloadFact {
        key: WorkloadKey {
            namespace: well_known::DEFAULT_NAMESPACE,
            target: target(names, job),
        },
        uid: job_uid(job),
        deleting: false,
        controller: None,
        replicas: Some(PODS_PER_JOB as i64),
        numbers: Box::default(),
        selector: Some(Selector::of_labels(labels(names, job).iter())),
        finds: None,
        pod_labels: None,
        template: None,
        template_hash: None,
        revision: None,
        revisions: None,
        first_ordinal: 0,
        reserved_ordinals: Box::default(),
        ignores_disruption: false,
        rolling: None,
    }
}

fn job_uid(job: usize) -> Arc<str> {
    format!("11111111-1111-1111-1111-{job:012}").into()
}

fn target(names: &mut Interner, job: usize) -> TargetRef {
    TargetRef {
        group: names.intern("batch"),
        kind: names.intern("Job"),
        name: names.intern(&spread_name(job)),
    }
}

fn labels(names: &mut Interner, job: usize) -> Labels {
    let name = names.intern(&spread_name(job));
    let controller_uid = names.intern(&job_uid(job));
    Labels::new(vec![
        (names.intern("batch.kubernetes.io/job-name"), name),
        (
            names.intern("batch.kubernetes.io/controller-uid"),
            controller_uid,
        ),
    ])
}

/// Six pods in the first zone, the others anywhere.
fn spread(
    names: &mut Interner,
    job: usize,
    (version, status): &(u64, Arc<Status>),
    strategy: Strategy,
) -> WorkloadSpread {
    let zone = names.intern("zone-0");
    let in_zone = NodeSelectorTerm::AllOf {
        expressions: [NodeExpression {
            key: well_known::ZONE,
            operator: NodeOperator::Label(Operator::In([zone].into())),
        }]
        .into(),
        fields: Box::default(),
    };
    let subset = |name: &str, max: Option<u32>, required| Subset {
        name: name.into(),
        max_replicas: max.map(MaxReplicas::Count),
        min_replicas: 0,
        required,
        preferred: Box::default(),
        tolerations: Box::default(),
        patch: None,
        labels: None,
        form: Default::default(),
    };
    WorkloadSpread {
        key: spread_key(job),
        uid: format!("22222222-2222-2222-2222-{job:012}").into(),
        version: *version,
        generation: 1,
        created: Instant(0),
        deleting: false,
        ignore_patch_of_existing: false,
        spec: Arc::new(Spec {
            any_kind: false,
            target: Some(target(names, job)),
            also: None,
            filter: None,
            subsets: [subset("a", Some(6), Some(in_zone)), subset("b", None, None)].into(),
            strategy,
            limit_scope: Default::default(),
            when_no_room: Default::default(),
            move_back: None,
            deletion_costs: false,
        }),
        status: Arc::clone(status),
    }
}

fn controlled(names: &mut Interner, job: usize) -> Controller {
    Controller {
        target: target(names, job),
        uid: job_uid(job),
    }
}

fn pod_fact(names: &mut Interner, number: usize) -> PodFact {
    let job = number / PODS_PER_JOB;
    let name = names.intern(&spread_name(job));
    let key = names.intern("batch.kubernetes.io/job-name");
    let requests = Resources::of(100, 128 << 20);
    let mut spec = PodSpec {
        scheduler_name: names.intern("default-scheduler"),
        used: requests.clone(),
        requests,
        scored: (100, 128 << 20),
        used_scored: (100, 128 << 20),
        containers: 1,
        ..PodSpec::default()
    };
    spec.affinity.required_anti = [AffinityTerm {
        key: well_known::HOSTNAME,
        selector: Selector::of_labels([(key, name)]),
        namespaces: Box::default(),
        namespace_selector: Selector::Nothing,
    }]
    .into();
    PodFact {
        uid: uid(number),
        name: format!("nightly-report-{job}-{number}").into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: labels(names, job),
        owner: Some(OwnerRef {
            kind: OwnerKind::Other,
            name,
        }),
        terminating: false,
        node: None,
        spec,
        history: PodHistory::default(),
    }
}

fn request(names: &mut Interner, number: usize) -> Request {
    let fact = pod_fact(names, number);
    Request {
        id: RequestId(number as u64),
        dry_run: false,
        subresource: false,
        pod: PodAsked {
            namespace: fact.namespace,
            name: Some(Arc::clone(&fact.name)),
            labels: fact.labels.clone(),
            controller: Some(controlled(names, number / PODS_PER_JOB)),
            active: true,
            marker: Marked::No,
        },
        operation: Operation::Create {
            fact: Some(Box::new(fact)),
            fresh_uid: uid(number),
        },
    }
}

fn pod(names: &mut Interner, number: usize, marker: Marker) -> Pod {
    let job = number / PODS_PER_JOB;
    Pod {
        uid: uid(number),
        name: format!("nightly-report-{job}-{number}").into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: labels(names, job),
        owners: [job_uid(job)].into(),
        controller: Some(controlled(names, job)),
        phase: Phase::Running,
        deleting: false,
        node: Some(node_name(names, number % NODES)),
        created: Instant::from_secs(100),
        unschedulable: false,
        gated: false,
        ready_since: Some(Instant::from_secs(200)),
        restarts: 0,
        marker: Marked::As(marker),
        cost: None,
        node_affinity: NodeAffinity::default(),
        tolerations: Box::default(),
    }
}
