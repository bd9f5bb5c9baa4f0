//! The worlds that are measured.

use std::sync::Arc;

use strew_cluster::{NodeAffinity, NodeFact, PodFact, PodHistory, PodSpec};
use strew_model::{
    Instant, Interner, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Resources,
    Span, Symbol, well_known,
};
use strew_scheduler::Profile;
use strew_workloadspread::admission::{Admission, Limits, Operation, PodAsked, Request, RequestId};
use strew_workloadspread::{
    Adaptive, Controller, Marked, Marker, MaxReplicas, Phase, Pod, Row, Spec, Status, Strategy,
    Subset, TargetRef, WorkloadFact, WorkloadKey, WorkloadSpread, WsKey,
};

pub(crate) struct BenchCluster {
    pub(crate) names: Interner,
    group: Symbol,
    kind: Symbol,
    pool: Symbol,
    pools: [Symbol; 2],
    targets: Vec<Symbol>,
    nodes: Vec<Symbol>,
}

impl BenchCluster {
    pub(crate) fn new() -> Self {
        let mut names = Interner::new();
        let mut of = |text: &str| names.intern(text);
        let (group, kind, pool) = (of("apps.kruise.io"), of("CloneSet"), of("pool"));
        let pools = [of("a"), of("b")];
        let targets = (0..1_000).map(|i| of(&format!("web-{i}"))).collect();
        let nodes = (0..1_000).map(|i| of(&format!("n{i}"))).collect();
        Self {
            names,
            group,
            kind,
            pool,
            pools,
            targets,
            nodes,
        }
    }

    fn target(&self, i: usize) -> TargetRef {
        TargetRef {
            group: self.group,
            kind: self.kind,
            name: self.targets[i],
        }
    }

    pub(crate) fn node(&mut self, i: usize, pool: usize, cpu_milli: i64) -> NodeFact {
        NodeFact {
            name: self.nodes[i],
            labels: Labels::new(vec![
                (self.pool, self.pools[pool]),
                (well_known::HOSTNAME, self.nodes[i]),
            ]),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(cpu_milli, 256 << 30),
            pods_max: 250,
            images: Box::default(),
        }
    }

    /// A marked pod on a node: five pods per node, one core each.
    pub(crate) fn bound(&self, i: usize) -> (PodFact, Marker) {
        let mut fact = fact(i);
        fact.node = Some(self.nodes[i / 5]);
        let marker = Marker {
            workload_spread: format!("ws-{}", i % 1_000).into(),
            subset: "a".into(),
            uid: None,
        };
        (fact, marker)
    }

    fn in_pool(&self, pool: usize) -> NodeSelectorTerm {
        NodeSelectorTerm::AllOf {
            expressions: [NodeExpression {
                key: self.pool,
                operator: NodeOperator::Label(Operator::In([self.pools[pool]].into())),
            }]
            .into(),
            fields: Box::default(),
        }
    }
}

/// A pod of one of fifty sizes.
fn fact(i: usize) -> PodFact {
    let cpu_milli = 1_000 + (i as i64 % 50);
    let requests = Resources::of(cpu_milli, 1 << 30);
    PodFact {
        uid: format!("uid-{i}").into(),
        name: format!("pod-{i}").into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec: PodSpec {
            used: requests.clone(),
            requests,
            scored: (cpu_milli, 1 << 30),
            used_scored: (cpu_milli, 1 << 30),
            containers: 1,
            ..PodSpec::default()
        },
        history: PodHistory::default(),
    }
}

pub(crate) fn admission(world: &BenchCluster) -> Admission {
    let profiles = vec![Profile::default()];
    // Each admission is measured separately.
    let limits = Limits {
        gather_within: Span::default(),
        ..Limits::production()
    };
    Admission::new(world.names.clone(), profiles, limits, 1)
}

pub(crate) fn workload(world: &BenchCluster, i: usize) -> WorkloadFact {
    WorkloadFact {
        key: WorkloadKey {
            namespace: well_known::DEFAULT_NAMESPACE,
            target: world.target(i),
        },
        uid: format!("owner-{i}").into(),
        deleting: false,
        controller: None,
        replicas: Some(10_000),
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

fn subset(name: &str, max: Option<u32>, required: Option<NodeSelectorTerm>) -> Subset {
    Subset {
        name: name.into(),
        max_replicas: max.map(MaxReplicas::Count),
        min_replicas: 0,
        required,
        preferred: Box::default(),
        tolerations: Box::default(),
        patch: None,
        labels: None,
        form: Default::default(),
    }
}

/// A WorkloadSpread of two pools with room in both; five admitted pods of the first are not seen yet.
pub(crate) fn spread(world: &BenchCluster, i: usize, simulates: bool) -> WorkloadSpread {
    let strategy = match simulates {
        true => Strategy::Adaptive(Adaptive::default()),
        false => Strategy::Fixed,
    };
    let subsets = vec![
        subset("a", Some(100), Some(world.in_pool(0))),
        subset("b", None, Some(world.in_pool(1))),
    ];
    let mut row = Row::new("a".into(), 95);
    for k in 0..5 {
        row.creating
            .insert(format!("earlier-{i}-{k}").into(), Instant::from_secs(999));
    }
    let mut status = Status::default();
    let rows = vec![row, Row::new("b".into(), -1)];
    status.versioned.insert("versionIgnored".into(), rows);
    made(world, i, subsets, strategy, status)
}

/// A WorkloadSpread of four subsets.
pub(crate) fn spread_of_four(world: &BenchCluster) -> WorkloadSpread {
    let names = ["a", "b", "c", "d"];
    let subsets = names.map(|n| subset(n, (n != "d").then_some(3_000), None));
    made(
        world,
        0,
        subsets.to_vec(),
        Strategy::Fixed,
        Status::default(),
    )
}

fn made(
    world: &BenchCluster,
    i: usize,
    subsets: Vec<Subset>,
    strategy: Strategy,
    status: Status,
) -> WorkloadSpread {
    WorkloadSpread {
        key: WsKey {
            namespace: well_known::DEFAULT_NAMESPACE,
            name: format!("ws-{i}").into(),
        },
        uid: format!("ws-uid-{i}").into(),
        version: 1,
        generation: 1,
        created: Instant(0),
        deleting: false,
        ignore_patch_of_existing: false,
        spec: Arc::new(Spec {
            any_kind: false,
            target: Some(world.target(i)),
            also: None,
            filter: None,
            subsets: subsets.into(),
            strategy,
            limit_scope: Default::default(),
            when_no_room: Default::default(),
            move_back: None,
            deletion_costs: false,
        }),
        status: Arc::new(status),
    }
}

pub(crate) fn request(world: &BenchCluster, id: u64, i: usize) -> Request {
    let owner = workload(world, i);
    Request {
        id: RequestId(id),
        operation: Operation::Create {
            fact: Some(Box::new(fact(id as usize))),
            fresh_uid: format!("fresh-{id}").into(),
        },
        dry_run: false,
        subresource: false,
        pod: PodAsked {
            namespace: well_known::DEFAULT_NAMESPACE,
            name: Some(format!("new-{id}").into()),
            labels: Labels::default(),
            controller: Some(Controller {
                target: owner.key.target,
                uid: owner.uid,
            }),
            active: true,
            marker: Marked::No,
        },
    }
}

/// A pod as the controller sees it: a quarter of the pods in each subset, each with its right cost.
pub(crate) fn pod(owner: &WorkloadFact, i: usize) -> Pod {
    let (subset, cost) = [("a", "400"), ("b", "300"), ("c", "200"), ("d", "100")][i % 4];
    Pod {
        uid: format!("uid-{i}").into(),
        name: format!("pod-{i}").into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owners: [owner.uid.clone()].into(),
        controller: Some(Controller {
            target: owner.key.target,
            uid: owner.uid.clone(),
        }),
        phase: Phase::Running,
        deleting: false,
        node: Some(well_known::HOSTNAME),
        created: Instant::from_secs(100),
        unschedulable: false,
        gated: false,
        ready_since: Some(Instant::from_secs(200)),
        restarts: 0,
        marker: Marked::As(Marker {
            workload_spread: "ws-0".into(),
            subset: subset.into(),
            uid: None,
        }),
        cost: Some(cost.into()),
        node_affinity: NodeAffinity::default(),
        tolerations: Box::default(),
    }
}
