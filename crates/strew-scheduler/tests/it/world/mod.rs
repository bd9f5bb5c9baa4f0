//! Random worlds, facts and pods, drawn from a seed; and (`oracle`) the comparison with the plain recount.

mod churn;
mod oracle;
mod profile;
mod volumes;

use std::sync::Arc;

use strew_cluster::{
    AffinityTerm, Cluster, HostPort, NodeAffinity, NodeFact, OwnerKind, OwnerRef, PodAffinity,
    PodFact, PodHistory, PodIdx, PodSpec, Policy, SpreadConstraint,
};
use strew_model::{
    Effect, FieldMatch, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Prng,
    Requirement, Resources, Selector, Symbol, Taint, Toleration, TolerationOperator, well_known,
};
use strew_scheduler::preemption::{Budget, Budgets};

pub(crate) use oracle::fits_somewhere;
pub(crate) use profile::profile;

/// A cluster, and the dice that change it.
pub(crate) struct RandomCluster {
    pub(crate) cluster: Cluster,
    pub(crate) dice: Prng,
    keys: Vec<Symbol>,
    zones: Vec<Symbol>,
    apps: Vec<Symbol>,
    app: Symbol,
    version: Symbol,
    namespaces: Vec<Symbol>,
    taint: Symbol,
    next_pod: usize,
    /// Whether pods differ in priority, start time and nomination.
    preempts: bool,
    /// Whether pods have claims.
    stores: bool,
}

impl RandomCluster {
    pub(crate) fn new(seed: u64) -> Self {
        let mut cluster = Cluster::new();
        let names = &mut cluster.names;
        let rack = names.intern("rack");
        let mut intern = |texts: &[&str]| texts.iter().map(|t| names.intern(t)).collect::<Vec<_>>();
        let zones = intern(&["a", "b", "c", ""]);
        let apps = intern(&["web", "db"]);
        let namespaces = intern(&["default", "other"]);
        let words = intern(&["app", "version", "dedicated"]);
        let (app, version, taint) = (words[0], words[1], words[2]);
        let keys = vec![well_known::HOSTNAME, well_known::ZONE, rack];
        // All strings of later facts, so that a clone of the interner knows them too.
        for i in 0..8 {
            names.intern(&format!("n{i}"));
        }
        for text in ["0.0.0.0", "TCP"] {
            names.intern(text);
        }
        Self {
            cluster,
            dice: Prng::new(seed),
            keys,
            zones,
            apps,
            app,
            version,
            namespaces,
            taint,
            next_pod: 0,
            preempts: false,
            stores: false,
        }
    }

    /// A world in which some pods may preempt others, with `bound` pods on nodes and `pending` others.
    pub(crate) fn crowded(seed: u64, bound: usize, pending: usize) -> Self {
        let mut world = Self {
            preempts: true,
            ..Self::new(seed)
        };
        (0..12).for_each(|_| world.set_node());
        (0..30).for_each(|_| world.step());
        for i in 0..bound + pending {
            world.set_pod(i < bound);
        }
        world
    }

    /// A pod on no node, of a priority of 1 to 3.
    pub(crate) fn pressing_pod(&mut self) -> PodIdx {
        let pod = self.set_pod(false);
        self.cluster.unbind(pod);
        let priority = self.dice.between(1, 3) as i32;
        let spec = PodSpec {
            priority,
            ..self.cluster.spec_of(pod).clone()
        };
        self.cluster.respec(pod, &spec);
        pod
    }

    /// Priority, and what has become of a pod.
    fn standing(&mut self, bound: bool) -> (i32, PodHistory) {
        if !self.preempts {
            return (0, PodHistory::default());
        }
        let started = self.dice.chance(3, 4);
        let history = PodHistory {
            nominated: (!bound && self.dice.chance(1, 3)).then(|| self.node_name()),
            started_s: started.then(|| self.dice.between(0, 5) as i64),
            preempted: self.dice.chance(1, 2),
        };
        (self.dice.between(0, 3) as i32, history)
    }

    pub(crate) fn node_name(&mut self) -> Symbol {
        let name = format!("n{}", self.dice.between(0, 7));
        self.cluster.names.intern(&name)
    }

    /// Some change of the facts.
    pub(crate) fn step(&mut self) {
        if self.stores && self.dice.chance(1, 4) {
            return self.set_storage();
        }
        match self.dice.between(0, 11) {
            0..=2 => self.set_node(),
            3 => {
                let name = self.node_name();
                self.cluster.remove_node(name);
            }
            4..=7 => {
                let bound = self.dice.chance(4, 5);
                self.set_pod(bound);
            }
            8 => self.remove_pod(),
            9 => self.rebind_or_change(),
            10 => self.set_owner(),
            _ => self.set_namespace(),
        }
    }

    pub(crate) fn set_node(&mut self) {
        let fact = self.node_fact();
        self.cluster.set_node(fact);
    }

    /// Some node, new or changed.
    pub(crate) fn node_fact(&mut self) -> NodeFact {
        let name = self.node_name();
        self.node_fact_named(name)
    }

    pub(crate) fn set_node_named(&mut self, name: Symbol) {
        let fact = self.node_fact_named(name);
        self.cluster.set_node(fact);
    }

    fn node_fact_named(&mut self, name: Symbol) -> NodeFact {
        let mut labels = Vec::new();
        if self.dice.chance(9, 10) {
            labels.push((well_known::HOSTNAME, name));
        }
        for key in [well_known::ZONE, self.keys[2], well_known::REGION] {
            if self.dice.chance(4, 5) {
                labels.push((key, *self.dice.pick(&self.zones)));
            }
        }
        let effects = [
            Effect::NoSchedule,
            Effect::PreferNoSchedule,
            Effect::NoExecute,
        ];
        let taints = (0..self.dice.between(0, 1))
            .map(|_| Taint {
                key: self.taint,
                value: well_known::EMPTY,
                effect: *self.dice.pick(&effects),
            })
            .collect();
        let (cpu, memory) = (
            self.dice.between(1, 8) as i64,
            self.dice.between(1, 8) as i64,
        );
        let allocatable = Resources::of(1000 * cpu, 1000 * memory);
        NodeFact {
            name,
            labels: Labels::new(labels),
            taints,
            unschedulable: self.dice.chance(1, 10),
            allocatable,
            pods_max: self.dice.between(2, 30) as i64,
            images: Box::default(),
        }
    }

    fn selector(&mut self) -> Selector {
        let app = *self.dice.pick(&self.apps);
        match self.dice.between(0, 7) {
            0 => Selector::Nothing,
            1 => Selector::all_of(vec![]),
            2 => Selector::all_of(vec![Requirement {
                key: self.app,
                operator: Operator::Exists,
            }]),
            3 => Selector::all_of(vec![Requirement::is_not_in(self.app, vec![app])]),
            _ => Selector::of_labels([(self.app, app)]),
        }
    }

    fn constraint(&mut self) -> SpreadConstraint {
        let policies = [Policy::Honor, Policy::Ignore];
        let match_key = self.dice.chance(1, 4);
        SpreadConstraint {
            max_skew: self.dice.between(1, 3) as i32,
            key: *self.dice.pick(&self.keys),
            hard: self.dice.chance(1, 2),
            selector: self.selector(),
            min_domains: self
                .dice
                .chance(1, 3)
                .then(|| self.dice.between(1, 4) as i32),
            node_affinity_policy: *self.dice.pick(&policies),
            node_taints_policy: *self.dice.pick(&policies),
            match_label_keys: if match_key {
                [self.version].into()
            } else {
                Box::default()
            },
        }
    }

    fn term(&mut self) -> AffinityTerm {
        let namespaces = if self.dice.chance(1, 3) {
            vec![*self.dice.pick(&self.namespaces)]
        } else {
            vec![]
        };
        let namespace_selector = if self.dice.chance(1, 3) {
            self.selector()
        } else {
            Selector::Nothing
        };
        AffinityTerm {
            key: *self.dice.pick(&self.keys),
            selector: self.selector(),
            namespaces: namespaces.into(),
            namespace_selector,
        }
    }

    fn spec(&mut self) -> PodSpec {
        let (cpu, memory) = (
            self.dice.between(0, 3) as i64,
            self.dice.between(0, 3) as i64,
        );
        let requests = Resources::of(500 * cpu, 500 * memory);
        let scored = (requests.cpu_milli.max(100), requests.memory.max(200));
        let tolerates = self.dice.chance(1, 3);
        let toleration = Toleration {
            key: Some(self.taint),
            operator: TolerationOperator::Exists,
            value: well_known::EMPTY,
            effect: None,
        };
        let in_zone = |world: &mut Self| NodeSelectorTerm::AllOf {
            expressions: [NodeExpression {
                key: well_known::ZONE,
                operator: NodeOperator::Label(Operator::In(
                    [*world.dice.pick(&world.zones)].into(),
                )),
            }]
            .into(),
            fields: Box::default(),
        };
        let terms = match self.dice.between(0, 19) {
            0..=3 => Some([in_zone(self)].into()),
            4 => {
                let name = self.node_name();
                let fields = [FieldMatch { name, is_in: true }].into();
                Some(
                    [NodeSelectorTerm::AllOf {
                        expressions: Box::default(),
                        fields,
                    }]
                    .into(),
                )
            }
            _ => None,
        };
        let preferred_nodes = if self.dice.chance(1, 5) {
            [(7, in_zone(self))].into()
        } else {
            Box::default()
        };
        let spread = (0..self.dice.between(0, 2))
            .map(|_| self.constraint())
            .collect();
        let mut affinity = PodAffinity::default();
        if self.dice.chance(1, 4) {
            affinity.required_anti = [self.term()].into();
        }
        if self.dice.chance(1, 5) {
            affinity.required = (0..self.dice.between(1, 2)).map(|_| self.term()).collect();
        }
        if self.dice.chance(1, 4) {
            affinity.preferred = [(self.dice.between(1, 100) as i32 - 50, self.term())].into();
        }
        let any_ip = self.cluster.names.intern("0.0.0.0");
        let tcp = self.cluster.names.intern("TCP");
        let port = HostPort {
            ip: any_ip,
            any_ip: true,
            protocol: tcp,
            port: 80,
        };
        let host_ports = if self.dice.chance(1, 8) {
            [port].into()
        } else {
            Box::default()
        };
        PodSpec {
            used: requests.clone(),
            requests,
            scored,
            used_scored: scored,
            node_affinity: NodeAffinity {
                node_selector: Labels::default(),
                terms,
            },
            preferred_nodes,
            tolerations: if tolerates {
                [toleration].into()
            } else {
                Box::default()
            },
            host_ports,
            spread,
            affinity,
            containers: 1,
            ..PodSpec::default()
        }
    }

    pub(crate) fn set_pod(&mut self, bound: bool) -> PodIdx {
        let fact = self.pod_fact(bound);
        self.cluster.set_pod(fact)
    }

    /// Some pod, mostly a new one.
    pub(crate) fn pod_fact(&mut self, bound: bool) -> PodFact {
        // Now and then an update of a pod that may be there.
        let number = if self.dice.chance(1, 6) {
            self.dice.index(self.next_pod + 1)
        } else {
            self.next_pod
        };
        self.next_pod = self.next_pod.max(number + 1);
        let uid: Arc<str> = format!("p{number}").into();
        let mut labels = vec![(self.app, *self.dice.pick(&self.apps))];
        if self.dice.chance(1, 2) {
            labels.push((self.version, *self.dice.pick(&self.apps)));
        }
        let owner = OwnerRef {
            kind: OwnerKind::ReplicaSet,
            name: self.apps[0],
        };
        let (priority, history) = self.standing(bound);
        let claims = self.claims(&uid);
        PodFact {
            uid: uid.clone(),
            name: uid,
            namespace: *self.dice.pick(&self.namespaces),
            labels: Labels::new(labels),
            owner: self.dice.chance(1, 3).then_some(owner),
            terminating: self.dice.chance(1, 8),
            history,
            node: bound.then(|| self.node_name()),
            spec: PodSpec {
                priority,
                claims,
                ..self.spec()
            },
        }
    }

    /// Another pod of the class of a fact, on no node.
    pub(crate) fn twin(&mut self, of: &PodFact) -> PodIdx {
        let uid: Arc<str> = format!("twin{}", self.next_pod).into();
        self.next_pod += 1;
        let twin = PodFact {
            uid: uid.clone(),
            name: uid,
            node: None,
            ..of.clone()
        };
        self.cluster.set_pod(twin)
    }

    /// What a workload's pods have in common.
    pub(crate) fn template(&mut self) -> PodFact {
        let pod = self.set_pod(false);
        let key = self.cluster.class_of(pod).key.clone();
        let tables = self.cluster.tables();
        PodFact {
            uid: "template".into(),
            name: "template".into(),
            namespace: key.namespace,
            labels: tables.labels(key.labels).clone(),
            owner: key.owner,
            terminating: false,
            history: PodHistory::default(),
            node: None,
            spec: tables.spec(key.spec).clone(),
        }
    }

    /// Budgets over the apps, some of them used up.
    pub(crate) fn budgets(&mut self) -> Budgets {
        let mut budgets = Budgets::default();
        for name in self.apps.clone() {
            let budget = Budget {
                selector: self.selector(),
                counted: true,
                disruptions_allowed: self.dice.between(0, 2) as i32,
                zone: None,
                disrupted: Default::default(),
            };
            let there = self.dice.chance(2, 3);
            budgets.set(
                *self.dice.pick(&self.namespaces),
                name,
                there.then_some(budget),
            );
        }
        budgets
    }

    fn some_pod(&mut self) -> Option<PodIdx> {
        let pods: Vec<PodIdx> = self.cluster.pods().map(|(i, _)| i).collect();
        (!pods.is_empty()).then(|| *self.dice.pick(&pods))
    }

    fn remove_pod(&mut self) {
        if let Some(pod) = self.some_pod() {
            let uid = self.cluster.pod(pod).uid.clone();
            self.cluster.remove_pod(&uid);
        }
    }

    fn rebind_or_change(&mut self) {
        let Some(pod) = self.some_pod() else {
            return;
        };
        match self.dice.between(0, 2) {
            0 => self.cluster.unbind(pod),
            1 => {
                let labels = self.cluster.labels_of(pod).with([(self.app, self.apps[1])]);
                self.cluster.relabel(pod, &labels);
            }
            _ => {
                let name = self.node_name();
                if let Some(node) = self.cluster.find_node(name) {
                    self.cluster.bind(pod, node);
                }
            }
        }
    }

    fn set_owner(&mut self) {
        let namespace = *self.dice.pick(&self.namespaces);
        let app = *self.dice.pick(&self.apps);
        let pairs = Labels::new(vec![(self.app, app)]);
        let there = self.dice.chance(3, 4);
        if self.dice.chance(1, 2) {
            self.cluster
                .set_service(namespace, app, there.then_some(pairs));
        } else {
            let owner = OwnerRef {
                kind: OwnerKind::ReplicaSet,
                name: app,
            };
            let selector = Selector::of_labels(pairs.iter());
            self.cluster
                .set_controller(namespace, owner, there.then_some(selector));
        }
    }

    fn set_namespace(&mut self) {
        let namespace = *self.dice.pick(&self.namespaces);
        let labels = Labels::new(vec![(self.app, *self.dice.pick(&self.apps))]);
        let there = self.dice.chance(3, 4);
        self.cluster
            .set_namespace(namespace, there.then_some(labels));
    }
}
