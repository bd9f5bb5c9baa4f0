//! The cluster of the measurements: zones, applications, and a pod of each application on each node in turn.

use strew_cluster::{
    Cluster, NodeFact, OwnerKind, OwnerRef, PodFact, PodSpec, Policy, SpreadConstraint,
};
use strew_model::{Interner, Labels, Resources, Selector, Symbol, well_known};
use strew_scheduler::Profile;

/// How large.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) pods_per_node: usize,
    pub(crate) zones: usize,
    pub(crate) apps: usize,
}

impl Size {
    pub(crate) fn pods(self) -> usize {
        self.nodes * self.pods_per_node
    }
}

/// What the pods ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Config {
    /// (i) Nothing of their own; a Service and a ReplicaSet each: system defaults.
    SystemDefaults,
    /// (ii) Zone DoNotSchedule and hostname ScheduleAnyway, maxSkew 1.
    ZoneAndHost,
    /// (iii) Nothing at all, and no Service.
    Nothing,
    /// (iv) As (i), with the legacy SelectorSpread score instead of defaults.
    SelectorSpread,
    /// (v) As (ii), with minDomains.
    MinDomains,
    /// (vi) As (ii), with matchLabelKeys.
    MatchLabelKeys,
}

impl Config {
    pub(crate) const ALL: [Config; 6] = [
        Self::SystemDefaults,
        Self::ZoneAndHost,
        Self::Nothing,
        Self::SelectorSpread,
        Self::MinDomains,
        Self::MatchLabelKeys,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SystemDefaults => "i-system-defaults",
            Self::ZoneAndHost => "ii-zone-hard-host-soft",
            Self::Nothing => "iii-none",
            Self::SelectorSpread => "iv-selector-spread",
            Self::MinDomains => "v-min-domains",
            Self::MatchLabelKeys => "vi-match-label-keys",
        }
    }

    pub(crate) fn profile(self) -> Profile {
        match self {
            Self::SelectorSpread => Profile::with_selector_spread(),
            _ => Profile::default(),
        }
    }
}

/// Makes facts of a size and configuration.
pub(crate) struct Maker {
    size: Size,
    config: Config,
    app_key: Symbol,
    hash_key: Symbol,
    apps: Vec<Symbol>,
    nodes: Vec<Symbol>,
    zones: Vec<Symbol>,
}

impl Maker {
    pub(crate) fn new(names: &mut Interner, size: Size, config: Config) -> Self {
        let mut each = |n: usize, prefix: &str| -> Vec<Symbol> {
            (0..n)
                .map(|i| names.intern(&format!("{prefix}-{i}")))
                .collect()
        };
        let (apps, nodes, zones) = (
            each(size.apps, "app"),
            each(size.nodes, "node"),
            each(size.zones, "zone"),
        );
        let (app_key, hash_key) = (names.intern("app"), names.intern("pod-template-hash"));
        Self {
            size,
            config,
            app_key,
            hash_key,
            apps,
            nodes,
            zones,
        }
    }

    pub(crate) fn fill(&self, cluster: &mut Cluster) {
        self.node_facts().into_iter().for_each(|fact| {
            cluster.set_node(fact);
        });
        for (namespace, name, selector) in self.services() {
            cluster.set_service(namespace, name, Some(selector));
            let selector = Selector::of_labels([(self.app_key, name), (self.hash_key, name)]);
            cluster.set_controller(namespace, owner(name), Some(selector));
        }
        self.pod_facts().for_each(|fact| {
            cluster.set_pod(fact);
        });
    }

    /// A Service for each application, unless there are to be none: namespace, name and selector.
    pub(crate) fn services(&self) -> impl Iterator<Item = (Symbol, Symbol, Labels)> + '_ {
        let apps = match self.config {
            Config::Nothing => 0,
            _ => self.size.apps,
        };
        self.apps[..apps].iter().map(|&name| {
            let selector = Labels::new(vec![(self.app_key, name)]);
            (well_known::DEFAULT_NAMESPACE, name, selector)
        })
    }

    pub(crate) fn node_facts(&self) -> Vec<NodeFact> {
        let fact = |i: usize| NodeFact {
            name: self.nodes[i],
            labels: Labels::new(vec![
                (well_known::HOSTNAME, self.nodes[i]),
                (well_known::ZONE, self.zones[i % self.size.zones]),
            ]),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(64_000, 256 << 30),
            pods_max: 250,
            images: Box::default(),
        };
        (0..self.size.nodes).map(fact).collect()
    }

    /// The pods that are there: each node holds pods of different applications.
    pub(crate) fn pod_facts(&self) -> impl Iterator<Item = PodFact> + '_ {
        (0..self.size.pods()).map(|k| {
            let app = (k / self.size.nodes + k) % self.size.apps;
            self.pod(k, app, Some(self.nodes[k % self.size.nodes]))
        })
    }

    fn labels(&self, app: usize) -> Labels {
        let name = self.apps[app];
        Labels::new(vec![(self.app_key, name), (self.hash_key, name)])
    }

    /// A pod of an application; all of one application are of one class.
    pub(crate) fn pod(&self, number: usize, app: usize, node: Option<Symbol>) -> PodFact {
        let requests = Resources::of(100, 128 << 20);
        PodFact {
            uid: format!("00000000-0000-0000-0000-{number:012}").into(),
            name: format!("app-{app}-{number}").into(),
            namespace: well_known::DEFAULT_NAMESPACE,
            labels: self.labels(app),
            owner: (self.config != Config::Nothing).then(|| owner(self.apps[app])),
            terminating: false,
            history: strew_cluster::PodHistory::default(),
            node,
            spec: PodSpec {
                used: requests.clone(),
                requests,
                scored: (100, 128 << 20),
                used_scored: (100, 128 << 20),
                spread: self.constraints(app).into(),
                containers: 1,
                ..PodSpec::default()
            },
        }
    }

    fn constraints(&self, app: usize) -> Vec<SpreadConstraint> {
        let constraint = |key, hard| SpreadConstraint {
            max_skew: 1,
            key,
            hard,
            selector: Selector::of_labels([(self.app_key, self.apps[app])]),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        };
        let (mut zone, mut host) = (
            constraint(well_known::ZONE, true),
            constraint(well_known::HOSTNAME, false),
        );
        match self.config {
            Config::SystemDefaults | Config::Nothing | Config::SelectorSpread => return Vec::new(),
            Config::ZoneAndHost => {}
            Config::MinDomains => zone.min_domains = Some(3),
            Config::MatchLabelKeys => {
                zone.match_label_keys = [self.hash_key].into();
                host.match_label_keys = [self.hash_key].into();
            }
        }
        vec![zone, host]
    }
}

fn owner(name: Symbol) -> OwnerRef {
    OwnerRef {
        kind: OwnerKind::ReplicaSet,
        name,
    }
}
