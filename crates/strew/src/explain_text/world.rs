//! Worlds for tests as text, one object per line:
//!
//! ```text
//! node a1 zone=a cpu=4 mem=8Gi pods=110 disk=ssd taint:k=v:NoSchedule cordoned
//! pod web-1 on a1 app=web cpu=500m port:80 prio:5
//! pod web-2 app=web spread:zone:1,min=3,honor,keys=rev anti:host:app=web affinity:zone:app=db want:disk=ssd
//! service web app=web
//! replicaset web app=web
//! ```
//! `zone` and `host` stand for the well-known labels; a node has its name as `host`. The last pod is explained.

use strew_cluster::{
    AffinityTerm, Cluster, HostPort, NodeFact, OwnerKind, OwnerRef, PodClaim, PodFact, PodIdx,
    PodSpec, Policy, SpreadConstraint,
};
use strew_manifest::quantity::Quantity;
use strew_model::{
    Effect, FieldMatch, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator,
    Resources, Selector, Symbol, Taint, Toleration, TolerationOperator, well_known,
};

/// A cluster, and the pod to explain.
pub(super) struct DrawnCluster {
    pub(super) cluster: Cluster,
    pub(super) pod: PodIdx,
}

impl DrawnCluster {
    pub(super) fn of(picture: &str) -> Self {
        let mut cluster = Cluster::new();
        let mut pod = None;
        for line in picture.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (kind, name, rest) = (words[0], words[1], &words[2..]);
            match kind {
                "node" => add_node(&mut cluster, name, rest),
                "pod" => pod = Some(add_pod(&mut cluster, name, rest)),
                "service" => {
                    let (name, labels) = (cluster.names.intern(name), labels(&mut cluster, rest));
                    cluster.set_service(well_known::DEFAULT_NAMESPACE, name, Some(labels));
                }
                "replicaset" => {
                    let labels = labels(&mut cluster, rest);
                    let owner = owner(&mut cluster, name);
                    let selector = Selector::of_labels(labels.iter());
                    cluster.set_controller(well_known::DEFAULT_NAMESPACE, owner, Some(selector));
                }
                other => panic!("no such object: {other}"),
            }
        }
        let pod = pod.expect("a picture has a pod to explain");
        Self { cluster, pod }
    }
}

fn key(cluster: &mut Cluster, text: &str) -> Symbol {
    match text {
        "zone" => well_known::ZONE,
        "host" => well_known::HOSTNAME,
        other => cluster.names.intern(other),
    }
}

fn pair(cluster: &mut Cluster, text: &str) -> (Symbol, Symbol) {
    let (k, v) = text.split_once('=').unwrap_or((text, ""));
    (key(cluster, k), cluster.names.intern(v))
}

fn labels(cluster: &mut Cluster, words: &[&str]) -> Labels {
    Labels::new(words.iter().map(|w| pair(cluster, w)).collect())
}

fn selector(cluster: &mut Cluster, text: &str) -> Selector {
    Selector::of_labels([pair(cluster, text)])
}

fn owner(cluster: &mut Cluster, name: &str) -> OwnerRef {
    OwnerRef {
        kind: OwnerKind::ReplicaSet,
        name: cluster.names.intern(name),
    }
}

fn milli(text: &str) -> i64 {
    Quantity::parse(text).unwrap().milli_value()
}

fn units(text: &str) -> i64 {
    Quantity::parse(text).unwrap().value()
}

fn taint(cluster: &mut Cluster, text: &str) -> Taint {
    let (pair_text, effect) = text.rsplit_once(':').unwrap();
    let (key, value) = pair(cluster, pair_text);
    let effect = match effect {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        _ => Effect::NoExecute,
    };
    Taint { key, value, effect }
}

fn add_node(cluster: &mut Cluster, name: &str, words: &[&str]) {
    let name = cluster.names.intern(name);
    let mut fact = NodeFact {
        name,
        labels: Labels::new(vec![(well_known::HOSTNAME, name)]),
        taints: Box::default(),
        unschedulable: false,
        allocatable: Resources::default(),
        pods_max: 110,
        images: Box::default(),
    };
    fact.allocatable.cpu_milli = 4000;
    fact.allocatable.memory = 8 << 30;
    let mut taints = Vec::new();
    for word in words {
        if let Some(text) = word.strip_prefix("taint:") {
            taints.push(taint(cluster, text));
        } else if *word == "cordoned" {
            fact.unschedulable = true;
            taints.push(Taint::UNSCHEDULABLE);
        } else if let Some((what, amount)) = word.split_once('=') {
            match what {
                "cpu" => fact.allocatable.cpu_milli = milli(amount),
                "mem" => fact.allocatable.memory = units(amount),
                "pods" => fact.pods_max = units(amount),
                "gpu" => {
                    let gpu = cluster.names.intern("nvidia.com/gpu");
                    fact.allocatable.set_scalar(gpu, units(amount));
                }
                _ => fact.labels = fact.labels.with([pair(cluster, word)]),
            }
        }
    }
    fact.taints = taints.into();
    cluster.set_node(fact);
}

fn add_pod(cluster: &mut Cluster, name: &str, words: &[&str]) -> PodIdx {
    let mut fact = PodFact {
        uid: name.into(),
        name: name.into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        history: strew_cluster::PodHistory::default(),
        node: None,
        spec: PodSpec::default(),
    };
    let mut spread = Vec::new();
    let (mut required, mut anti) = (Vec::new(), Vec::new());
    let spec = &mut fact.spec;
    for word in words {
        let (what, text) = word.split_once(':').unwrap_or((word, ""));
        match what {
            "spread" => spread.push(text),
            "anti" => anti.push(term(cluster, text)),
            "affinity" => required.push(term(cluster, text)),
            "want" => {
                let more = [pair(cluster, text)];
                spec.node_affinity.node_selector = spec.node_affinity.node_selector.with(more);
            }
            "names" => spec.node_affinity.terms = Some(named(cluster, text)),
            "terms" => spec.node_affinity.terms = Some(terms(cluster, text)),
            "tolerate" => {
                let taint = taint(cluster, text);
                spec.tolerations = [Toleration {
                    key: Some(taint.key),
                    operator: TolerationOperator::Equal,
                    value: taint.value,
                    effect: Some(taint.effect),
                }]
                .into();
            }
            "gate" => spec.gates = [cluster.names.intern(text)].into(),
            "claim" => {
                let claim = cluster.names.intern(text);
                spec.claims = [PodClaim {
                    volume: claim,
                    named: Some(claim),
                }]
                .into();
            }
            "owner" => fact.owner = Some(owner(cluster, text)),
            "prio" => spec.priority = text.parse().unwrap(),
            "port" => {
                spec.host_ports = [HostPort {
                    ip: cluster.names.intern("0.0.0.0"),
                    any_ip: true,
                    protocol: cluster.names.intern("TCP"),
                    port: text.parse().unwrap(),
                }]
                .into();
            }
            "on" => {}
            _ => match word.split_once('=') {
                Some(("cpu", amount)) => spec.requests.cpu_milli = milli(amount),
                Some(("mem", amount)) => spec.requests.memory = units(amount),
                Some(("gpu", amount)) => {
                    let gpu = cluster.names.intern("nvidia.com/gpu");
                    spec.requests.set_scalar(gpu, units(amount));
                }
                Some(_) => fact.labels = fact.labels.with([pair(cluster, word)]),
                None => fact.node = Some(cluster.names.intern(word)),
            },
        }
    }
    spec.used = spec.requests.clone();
    spec.scored = (spec.requests.cpu_milli, spec.requests.memory);
    spec.used_scored = spec.scored;
    spec.affinity.required = required.into();
    spec.affinity.required_anti = anti.into();
    let labels = &fact.labels;
    spec.spread = spread
        .iter()
        .map(|text| constraint(cluster, text, labels))
        .collect();
    cluster.set_pod(fact)
}

fn named(cluster: &mut Cluster, text: &str) -> Box<[NodeSelectorTerm]> {
    let term = |name: &str| NodeSelectorTerm::AllOf {
        expressions: Box::default(),
        fields: [FieldMatch {
            name: cluster.names.intern(name),
            is_in: true,
        }]
        .into(),
    };
    text.split(',').map(term).collect()
}

/// `KEY=VALUE` or `KEY>NUMBER`; `&` joins those of one term, `,` separates terms.
fn terms(cluster: &mut Cluster, text: &str) -> Box<[NodeSelectorTerm]> {
    let mut expression = |test: &str| {
        let (key_text, operator) = match test.split_once('>') {
            Some((key, bound)) => (key, NodeOperator::Gt(bound.parse().unwrap())),
            None => {
                let (key, value) = test.split_once('=').unwrap();
                let value = cluster.names.intern(value);
                (key, NodeOperator::Label(Operator::In([value].into())))
            }
        };
        NodeExpression {
            key: key(cluster, key_text),
            operator,
        }
    };
    let term = |text: &str| NodeSelectorTerm::AllOf {
        expressions: text.split('&').map(&mut expression).collect(),
        fields: Box::default(),
    };
    text.split(',').map(term).collect()
}

fn term(cluster: &mut Cluster, text: &str) -> AffinityTerm {
    let (topology, labels) = text.split_once(':').unwrap();
    AffinityTerm {
        key: key(cluster, topology),
        selector: selector(cluster, labels),
        namespaces: Box::default(),
        namespace_selector: Selector::Nothing,
    }
}

/// `KEY:MAXSKEW[,soft][,min=N][,honor][,anynode][,keys=LABEL][,select=LABELS|none|all]`, selecting the pod's own `app`.
pub(super) fn constraint(cluster: &mut Cluster, text: &str, labels: &Labels) -> SpreadConstraint {
    let mut parts = text.split(',');
    let (topology, max_skew) = parts.next().unwrap().split_once(':').unwrap();
    let app = cluster.names.intern("app");
    let own = labels.get(app).map(|value| (app, value));
    let mut constraint = SpreadConstraint {
        max_skew: max_skew.parse().unwrap(),
        key: key(cluster, topology),
        hard: true,
        selector: Selector::of_labels(own),
        min_domains: None,
        node_affinity_policy: Policy::Honor,
        node_taints_policy: Policy::Ignore,
        match_label_keys: Box::default(),
    };
    for part in parts {
        match part.split_once('=') {
            None if part == "soft" => constraint.hard = false,
            None if part == "anynode" => constraint.node_affinity_policy = Policy::Ignore,
            None => constraint.node_taints_policy = Policy::Honor,
            Some(("min", n)) => constraint.min_domains = Some(n.parse().unwrap()),
            Some(("keys", k)) => constraint.match_label_keys = [cluster.names.intern(k)].into(),
            Some(("select", "none")) => constraint.selector = Selector::Nothing,
            Some(("select", "all")) => constraint.selector = Selector::all_of(Vec::new()),
            Some((_, text)) => constraint.selector = selector(cluster, text),
        }
    }
    constraint
}
