//! A list of facts that changes at random, and tells each change to a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_cluster::{
    AffinityTerm, Cluster, NodeAffinity, NodeFact, PodAffinity, PodFact, PodHistory, PodSpec,
};
use strew_model::{
    Effect, Interner, Labels, Prng, Requirement, Resources, Selector, Symbol, Taint, Toleration,
    TolerationOperator, well_known,
};

/// What is true, as a list.
#[derive(Clone)]
pub(crate) struct Facts {
    pub(crate) dice: Prng,
    pub(crate) nodes: BTreeMap<Symbol, NodeFact>,
    pub(crate) pods: BTreeMap<Arc<str>, PodFact>,
    n_pods_made: usize,
    names: Vec<Symbol>,
    keys: Vec<Symbol>,
    zones: Vec<Symbol>,
    namespaces: Vec<Symbol>,
    app: Symbol,
    apps: Vec<Symbol>,
    dedicated: Symbol,
}

impl Facts {
    /// No node, no pod; all strings are known to `names` from now on, and stay.
    pub(crate) fn new(seed: u64, names: &mut Interner) -> Self {
        let mut all = |texts: &[&str]| -> Vec<Symbol> {
            texts.iter().map(|text| names.intern(text)).collect()
        };
        let facts = Self {
            dice: Prng::new(seed),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            n_pods_made: 0,
            names: all(&["n0", "n1", "n2", "n3", "n4", "n5", "n6"]),
            keys: vec![well_known::ZONE, well_known::HOSTNAME, all(&["rack"])[0]],
            zones: all(&["a", "b", "c", ""]),
            namespaces: all(&["shop", "bank"]),
            app: all(&["app"])[0],
            apps: all(&["web", "db", "cache"]),
            dedicated: all(&["dedicated"])[0],
        };
        names.pin();
        facts
    }

    /// One change, told to the cluster.
    pub(crate) fn step(&mut self, cluster: &mut Cluster) {
        match self.dice.between(0, 13) {
            0..=2 => {
                let node = self.node();
                self.nodes.insert(node.name, node.clone());
                cluster.set_node(node);
            }
            3 => {
                let name = *self.dice.pick(&self.names);
                self.nodes.remove(&name);
                cluster.remove_node(name);
            }
            4..=7 => {
                let pod = self.pod();
                self.pods.insert(pod.uid.clone(), pod.clone());
                cluster.set_pod(pod);
            }
            8..=9 => {
                let Some(mut pod) = self.some_pod() else {
                    return;
                };
                match self.dice.between(0, 2) {
                    0 => pod.terminating = true,
                    1 => pod.labels = self.labels(),
                    _ => pod.node = self.some_node(),
                }
                self.pods.insert(pod.uid.clone(), pod.clone());
                cluster.set_pod(pod);
            }
            10..=11 => self.assume(cluster),
            _ => {
                let Some(pod) = self.some_pod() else { return };
                self.pods.remove(&pod.uid);
                cluster.remove_pod(&pod.uid);
            }
        }
    }

    /// A decision: a pod is bound to a node that is there, or taken off its node again.
    fn assume(&mut self, cluster: &mut Cluster) {
        let Some(mut pod) = self.some_pod() else {
            return;
        };
        let row = cluster.find_pod(&pod.uid).expect("it was told");
        let name = *self.dice.pick(&self.names);
        match self.nodes.contains_key(&name) && self.dice.chance(2, 3) {
            true => {
                pod.node = Some(name);
                cluster.bind(row, cluster.find_node(name).expect("it was told"));
            }
            false => {
                pod.node = None;
                cluster.unbind(row);
            }
        }
        self.pods.insert(pod.uid.clone(), pod);
    }

    /// Tells everything in a random order, some of it twice, to a cluster that knows nothing.
    pub(crate) fn tell_all(&mut self, cluster: &mut Cluster) {
        Self::new(0, &mut cluster.names);
        let nodes = self.nodes.values().cloned().map(Fact::Node);
        let pods = self
            .pods
            .values()
            .cloned()
            .map(|pod| Fact::Pod(Box::new(pod)));
        let mut all: Vec<Fact> = nodes.chain(pods).collect();
        self.dice.shuffle(&mut all);
        for fact in all {
            for _ in 0..self.dice.between(1, 2) {
                match fact.clone() {
                    Fact::Node(node) => {
                        cluster.set_node(node);
                    }
                    Fact::Pod(pod) => {
                        cluster.set_pod(*pod);
                    }
                }
            }
        }
    }

    pub(crate) fn some_pod(&mut self) -> Option<PodFact> {
        let all: Vec<_> = self.pods.values().collect();
        (!all.is_empty()).then(|| (*self.dice.pick(&all)).clone())
    }

    pub(crate) fn some_key(&mut self) -> Symbol {
        *self.dice.pick(&self.keys)
    }

    pub(crate) fn some_namespace(&mut self) -> Symbol {
        *self.dice.pick(&self.namespaces)
    }

    pub(crate) fn some_selector(&mut self) -> Selector {
        let values = vec![*self.dice.pick(&self.apps), *self.dice.pick(&self.apps)];
        match self.dice.between(0, 3) {
            0 => Selector::all_of(Vec::new()),
            1 => Selector::all_of(vec![Requirement::is_not_in(self.app, values)]),
            _ => Selector::all_of(vec![Requirement::is_in(self.app, values)]),
        }
    }

    /// The name of a node, which need not be there; or none.
    fn some_node(&mut self) -> Option<Symbol> {
        let name = *self.dice.pick(&self.names);
        self.dice.chance(4, 5).then_some(name)
    }

    fn labels(&mut self) -> Labels {
        let app = *self.dice.pick(&self.apps);
        match self.dice.chance(9, 10) {
            true => Labels::new(vec![(self.app, app)]),
            false => Labels::default(),
        }
    }

    fn node(&mut self) -> NodeFact {
        let name = *self.dice.pick(&self.names);
        let mut labels = vec![(well_known::HOSTNAME, name)];
        for key in [self.keys[0], self.keys[2]] {
            let zone = *self.dice.pick(&self.zones);
            labels.extend(self.dice.chance(5, 6).then_some((key, zone)));
        }
        let taint = Taint {
            key: self.dedicated,
            value: *self.dice.pick(&self.apps),
            effect: *self.dice.pick(&[
                Effect::NoSchedule,
                Effect::NoExecute,
                Effect::PreferNoSchedule,
            ]),
        };
        let is_tainted = self.dice.chance(1, 4);
        NodeFact {
            name,
            labels: Labels::new(labels),
            taints: is_tainted.then_some(taint).into_iter().collect(),
            unschedulable: self.dice.chance(1, 6),
            allocatable: Resources::of(4000, 1 << 32),
            pods_max: 110,
            images: Box::new([]),
        }
    }

    fn pod(&mut self) -> PodFact {
        self.n_pods_made += 1;
        let text = format!("p{}", self.n_pods_made);
        let rack = (self.keys[2], *self.dice.pick(&self.zones));
        let wants_rack = self.dice.chance(1, 3);
        let tolerates = self.dice.chance(1, 3);
        let toleration = Toleration {
            key: Some(self.dedicated),
            operator: TolerationOperator::Equal,
            value: *self.dice.pick(&self.apps),
            effect: None,
        };
        let term = AffinityTerm {
            key: self.some_key(),
            selector: self.some_selector(),
            namespaces: Box::new([]),
            namespace_selector: Selector::Nothing,
        };
        let is_anti = self.dice.chance(1, 4);
        let spec = PodSpec {
            used: Resources::of(self.dice.between(0, 3) as i64 * 100, 0),
            node_affinity: NodeAffinity {
                node_selector: Labels::new(wants_rack.then_some(rack).into_iter().collect()),
                terms: None,
            },
            tolerations: tolerates.then_some(toleration).into_iter().collect(),
            affinity: PodAffinity {
                required_anti: is_anti.then_some(term).into_iter().collect(),
                ..PodAffinity::default()
            },
            ..PodSpec::default()
        };
        PodFact {
            uid: text.as_str().into(),
            name: text.as_str().into(),
            namespace: self.some_namespace(),
            labels: self.labels(),
            owner: None,
            terminating: self.dice.chance(1, 10),
            node: self.some_node(),
            spec,
            history: PodHistory::default(),
        }
    }
}

#[derive(Clone)]
enum Fact {
    Node(NodeFact),
    Pod(Box<PodFact>),
}
