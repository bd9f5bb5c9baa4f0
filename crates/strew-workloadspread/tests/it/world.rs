//! Short constructors for facts, and an API server with one WorkloadSpread.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_cluster::{NodeFact, PodFact, PodHistory, PodSpec};
use strew_model::{
    Instant, Interner, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Resources,
    Span, Symbol, well_known,
};
use strew_scheduler::Profile;
use strew_workloadspread::admission::{
    self, Admission, Answer, Input, Limits, Operation, Outcome, PodAsked, Request, RequestId,
    Verdict,
};
use strew_workloadspread::{
    Controller, Marked, Marker, MaxReplicas, NoPatches, Row, Spec, Status, Strategy, Subset,
    TargetRef, WorkloadFact, WorkloadKey, WorkloadSpread, WsKey,
};

/// Symbols that tests use, equal in every interner made here.
pub(crate) struct Words {
    pub(crate) names: Interner,
    pub(crate) kruise: Symbol,
    pub(crate) apps: Symbol,
    pub(crate) clone_set: Symbol,
    pub(crate) deployment: Symbol,
    pub(crate) replica_set: Symbol,
    pub(crate) stateful_set: Symbol,
    pub(crate) batch: Symbol,
    pub(crate) job: Symbol,
    pub(crate) hash: Symbol,
    pub(crate) pool: Symbol,
}

pub(crate) fn words() -> Words {
    let mut names = Interner::new();
    let mut of = |text: &str| names.intern(text);
    let (kruise, apps, clone_set) = (of("apps.kruise.io"), of("apps"), of("CloneSet"));
    let (deployment, replica_set) = (of("Deployment"), of("ReplicaSet"));
    let (stateful_set, batch, job) = (of("StatefulSet"), of("batch"), of("Job"));
    let (hash, pool) = (of("pod-template-hash"), of("pool"));
    for text in ["web", "web-1", "web-2", "v1", "v2", "a", "b", "c", "x"] {
        of(text);
    }
    for i in 0..2000 {
        of(&format!("n{i}"));
    }
    Words {
        names,
        kruise,
        apps,
        clone_set,
        deployment,
        replica_set,
        stateful_set,
        batch,
        job,
        hash,
        pool,
    }
}

impl Words {
    pub(crate) fn of(&self, text: &str) -> Symbol {
        self.names.get(text).expect("a word that tests use")
    }

    pub(crate) fn target(&self, kind: Symbol, name: &str) -> TargetRef {
        let group = match kind {
            k if k == self.clone_set => self.kruise,
            k if k == self.job => self.batch,
            _ => self.apps,
        };
        let name = self.of(name);
        TargetRef { group, kind, name }
    }

    pub(crate) fn web(&self) -> TargetRef {
        self.target(self.clone_set, "web")
    }

    pub(crate) fn in_pool(&self, pool: &str) -> NodeSelectorTerm {
        NodeSelectorTerm::AllOf {
            expressions: [NodeExpression {
                key: self.pool,
                operator: NodeOperator::Label(Operator::In([self.of(pool)].into())),
            }]
            .into(),
            fields: Box::default(),
        }
    }
}

pub(crate) fn subset(name: &str, max: Option<MaxReplicas>) -> Subset {
    Subset {
        name: name.into(),
        max_replicas: max,
        min_replicas: 0,
        required: None,
        preferred: Box::default(),
        tolerations: Box::default(),
        patch: None,
        labels: None,
        form: Default::default(),
    }
}

pub(crate) fn count(n: u32) -> Option<MaxReplicas> {
    Some(MaxReplicas::Count(n))
}

pub(crate) fn percent(n: u32) -> Option<MaxReplicas> {
    Some(MaxReplicas::Percent(n))
}

pub(crate) fn ws_key() -> WsKey {
    WsKey {
        namespace: well_known::DEFAULT_NAMESPACE,
        name: "ws".into(),
    }
}

pub(crate) fn spread(target: TargetRef, subsets: Vec<Subset>) -> WorkloadSpread {
    WorkloadSpread {
        key: ws_key(),
        uid: "ws-uid".into(),
        version: 1,
        generation: 1,
        created: Instant(0),
        deleting: false,
        ignore_patch_of_existing: false,
        spec: Arc::new(Spec {
            any_kind: false,
            target: Some(target),
            also: None,
            filter: None,
            subsets: subsets.into(),
            strategy: Strategy::Fixed,
            limit_scope: Default::default(),
            when_no_room: Default::default(),
            move_back: None,
            deletion_costs: false,
        }),
        status: Arc::new(Status::default()),
    }
}

pub(crate) fn workload(target: TargetRef, replicas: i64) -> WorkloadFact {
    WorkloadFact {
        key: WorkloadKey {
            namespace: well_known::DEFAULT_NAMESPACE,
            target,
        },
        uid: format!("uid-{}-{}", target.kind.index(), target.name.index()).into(),
        deleting: false,
        controller: None,
        replicas: Some(replicas),
        numbers: Box::default(),
        selector: None,
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

pub(crate) fn controller(fact: &WorkloadFact) -> Controller {
    Controller {
        target: fact.key.target,
        uid: fact.uid.clone(),
    }
}

pub(crate) fn row(name: &str, missing: i32) -> Row {
    Row::new(name.into(), missing)
}

pub(crate) fn secs(secs: u64) -> Instant {
    Instant::from_secs(secs)
}

pub(crate) fn asked(owner: &WorkloadFact, name: Option<&str>, labels: Labels) -> PodAsked {
    PodAsked {
        namespace: well_known::DEFAULT_NAMESPACE,
        name: name.map(Arc::from),
        labels,
        controller: Some(controller(owner)),
        active: true,
        marker: Marked::No,
    }
}

pub(crate) fn create(id: u64, pod: PodAsked, fact: Option<PodFact>) -> Request {
    Request {
        id: RequestId(id),
        operation: Operation::Create {
            fact: fact.map(Box::new),
            fresh_uid: format!("fresh-{id}").into(),
        },
        dry_run: false,
        subresource: false,
        pod,
    }
}

pub(crate) fn marked(subset: &str) -> Marked {
    Marked::As(Marker {
        workload_spread: "ws".into(),
        subset: subset.into(),
        uid: None,
    })
}

pub(crate) fn delete(id: u64, mut pod: PodAsked, subset: &str) -> Request {
    pod.marker = marked(subset);
    Request {
        id: RequestId(id),
        operation: Operation::Delete,
        dry_run: false,
        subresource: false,
        pod,
    }
}

pub(crate) fn node(words: &Words, name: &str, pool: &str, cpu_milli: i64) -> NodeFact {
    NodeFact {
        name: words.of(name),
        labels: Labels::new(vec![(words.pool, words.of(pool))]),
        taints: Box::default(),
        unschedulable: false,
        allocatable: Resources::of(cpu_milli, 64 << 30),
        pods_max: 1000,
        images: Box::default(),
    }
}

pub(crate) fn pod_fact(uid: &str, cpu_milli: i64) -> PodFact {
    let requests = Resources::of(cpu_milli, 1 << 20);
    PodFact {
        uid: uid.into(),
        name: uid.into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec: PodSpec {
            requests: requests.clone(),
            used: requests,
            scored: (cpu_milli, 1 << 20),
            used_scored: (cpu_milli, 1 << 20),
            containers: 1,
            ..PodSpec::default()
        },
        history: PodHistory::default(),
    }
}

/// Settings with which each request has its own write: nothing is gathered.
pub(crate) fn alone() -> Limits {
    Limits {
        gather_within: Span::default(),
        ..Limits::production()
    }
}

/// One replica of admission, and the object that it writes to. Effects are carried out at once.
pub(crate) struct Server {
    pub(crate) machine: Admission,
    pub(crate) ws: WorkloadSpread,
    pub(crate) answers: BTreeMap<RequestId, Answer>,
    pub(crate) writes: usize,
    /// Refuses this number of writes from now on.
    pub(crate) conflicts: usize,
    pub(crate) now: Instant,
}

impl Server {
    pub(crate) fn new(words: &Words, ws: WorkloadSpread, workloads: &[WorkloadFact]) -> Self {
        Self::with(words, ws, workloads, alone())
    }

    pub(crate) fn with(
        words: &Words,
        ws: WorkloadSpread,
        workloads: &[WorkloadFact],
        limits: Limits,
    ) -> Self {
        Self::seeded(words, ws, workloads, limits, 7)
    }

    pub(crate) fn seeded(
        words: &Words,
        ws: WorkloadSpread,
        workloads: &[WorkloadFact],
        limits: Limits,
        seed: u64,
    ) -> Self {
        let profiles = vec![Profile::default()];
        let mut machine = Admission::new(words.names.clone(), profiles, limits, seed);
        let now = secs(1000);
        machine.handle(now, Input::SpreadSet(Box::new(ws.clone())));
        for fact in workloads {
            machine.handle(now, Input::WorkloadSet(Box::new(fact.clone())));
        }
        Self {
            machine,
            ws,
            answers: BTreeMap::new(),
            writes: 0,
            conflicts: 0,
            now,
        }
    }

    pub(crate) fn tell(&mut self, input: Input) {
        self.machine.handle(self.now, input);
    }

    pub(crate) fn ask(&mut self, request: Request) {
        self.tell(Input::AdmitAsked(Box::new(request)));
    }

    /// Carries out all effects.
    pub(crate) fn flow(&mut self) {
        while let Some(effect) = self.machine.poll_effect(&mut NoPatches) {
            self.carry_out(effect);
        }
    }

    /// Carries out all effects, and lets pauses pass.
    pub(crate) fn run(&mut self) {
        loop {
            self.flow();
            if self.machine.waiting() == 0 {
                return;
            }
            self.now = self
                .machine
                .next_wake()
                .expect("somebody waits for something");
            self.tell(Input::Tick);
        }
    }

    fn carry_out(&mut self, effect: admission::Effect) {
        match effect {
            admission::Effect::Answer(answer) => {
                let twice = self.answers.insert(answer.request, *answer);
                assert!(twice.is_none(), "a request is answered once");
            }
            admission::Effect::ReadSpread { id, .. } => {
                let read = Outcome::Read(Box::new(self.ws.clone()));
                self.tell(Input::Outcome(id, read));
            }
            admission::Effect::WriteStatus {
                id,
                version,
                status,
                ..
            } => {
                if self.conflicts > 0 {
                    self.conflicts -= 1;
                    self.ws.version += 1;
                }
                let outcome = match version == self.ws.version {
                    true => {
                        self.ws.version += 1;
                        self.ws.status = status;
                        self.writes += 1;
                        Outcome::Written(self.ws.version)
                    }
                    false => Outcome::Conflict,
                };
                self.tell(Input::Outcome(id, outcome));
            }
        }
    }

    pub(crate) fn answer(&self, id: u64) -> &Answer {
        &self.answers[&RequestId(id)]
    }

    /// The subset of an answer; `None` if the pod passes unchanged.
    pub(crate) fn subset(&self, id: u64) -> Option<String> {
        match &self.answer(id).verdict {
            Verdict::Inject(injection) => Some(injection.marker.subset.to_string()),
            Verdict::Untouched(_) | Verdict::Gate | Verdict::Counted => None,
            Verdict::Deny(why) => panic!("request {id} is refused: {why:?}"),
        }
    }

    /// The number of creates that went to each subset.
    pub(crate) fn by_subset(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for id in self.answers.keys() {
            if let Some(subset) = self.subset(id.0) {
                *counts.entry(subset).or_default() += 1;
            }
        }
        counts
    }

    /// The ledger of a revision: name, missing, creating, deleting.
    pub(crate) fn ledger(&self, revision: &str) -> Vec<String> {
        let of = |entries: &strew_workloadspread::Entries| {
            entries
                .keys()
                .map(|k| k.to_string())
                .collect::<Vec<_>>()
                .join(",")
        };
        let line = |r: &Row| {
            format!(
                "{} m{} c[{}] d[{}]",
                r.name,
                r.missing,
                of(&r.creating),
                of(&r.deleting)
            )
        };
        self.ws.status.rows(revision).iter().map(line).collect()
    }
}
