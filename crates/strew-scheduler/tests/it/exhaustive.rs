//! Every tiny cluster: up to three domains, three nodes and four pods, against the oracle.

use strew_cluster::{Cluster, NodeFact, PodFact, PodIdx, PodSpec, Policy, SpreadConstraint};
use strew_model::{Effect, Labels, Resources, Selector, Symbol, Taint, well_known};
use strew_scheduler::naive::NaiveSpread;
use strew_scheduler::plugins::pod_topology_spread::{filter, score};
use strew_scheduler::{Engine, Profile};

/// A node of a tiny cluster: its zone (0: none), whether it is tainted, and how many matching pods it holds.
type TinyNode = (usize, bool, usize);

/// The symbols of `app` and `web`: the first that every cluster of this file interns.
fn app_web(cluster: &mut Cluster) -> (Symbol, Symbol) {
    (cluster.names.intern("app"), cluster.names.intern("web"))
}

fn build(nodes: &[TinyNode], constraints: &[SpreadConstraint]) -> (Cluster, PodIdx) {
    let mut cluster = Cluster::new();
    let labels = Labels::new(vec![app_web(&mut cluster)]);
    let zones: Vec<Symbol> = ["", "a", "b", "c"]
        .iter()
        .map(|z| cluster.names.intern(z))
        .collect();
    let taint = cluster.names.intern("t");
    let mut n_pods = 0;
    for (i, &(zone, tainted, pods)) in nodes.iter().enumerate() {
        let name = cluster.names.intern(&format!("n{i}"));
        let mut pairs = vec![(well_known::HOSTNAME, name)];
        if zone > 0 {
            pairs.push((well_known::ZONE, zones[zone]));
        }
        let taint = Taint {
            key: taint,
            value: well_known::EMPTY,
            effect: Effect::NoSchedule,
        };
        cluster.set_node(NodeFact {
            name,
            labels: Labels::new(pairs),
            taints: if tainted {
                [taint].into()
            } else {
                Box::default()
            },
            unschedulable: false,
            allocatable: Resources::default(),
            pods_max: 100,
            images: Box::default(),
        });
        for _ in 0..pods {
            let uid = format!("p{n_pods}");
            n_pods += 1;
            cluster.set_pod(pod_fact(
                &uid,
                labels.clone(),
                Some(name),
                PodSpec::default(),
            ));
        }
    }
    let spec = PodSpec {
        spread: constraints.into(),
        ..PodSpec::default()
    };
    let incoming = cluster.set_pod(pod_fact("incoming", labels.clone(), None, spec));
    cluster.refresh_order();
    (cluster, incoming)
}

fn pod_fact(uid: &str, labels: Labels, node: Option<Symbol>, spec: PodSpec) -> PodFact {
    PodFact {
        uid: uid.into(),
        name: uid.into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels,
        owner: None,
        terminating: false,
        history: strew_cluster::PodHistory::default(),
        node,
        spec,
    }
}

/// Three domains of up to three equal nodes each, with up to four pods in all.
fn wide_clusters() -> Vec<Vec<TinyNode>> {
    let mut of_domain: Vec<Vec<usize>> = vec![vec![]];
    for a in 0..=4 {
        of_domain.push(vec![a]);
        for b in a..=4 {
            of_domain.push(vec![a, b]);
            of_domain.extend((b..=4).map(|c| vec![a, b, c]));
        }
    }
    let mut all = Vec::new();
    for a in &of_domain {
        for b in &of_domain {
            for c in &of_domain {
                let nodes = |zone, pods: &[usize]| {
                    pods.iter()
                        .map(|&n| (zone, false, n))
                        .collect::<Vec<TinyNode>>()
                };
                all.push([nodes(1, a), nodes(2, b), nodes(3, c)].concat());
            }
        }
    }
    all.retain(|nodes| nodes.iter().map(|n| n.2).sum::<usize>() <= 4);
    all
}

/// All multisets of up to three nodes, tainted or not, in a zone or none, with up to four pods in all.
fn tiny_clusters() -> Vec<Vec<TinyNode>> {
    let mut kinds: Vec<TinyNode> = Vec::new();
    for zone in 0..4 {
        for tainted in [false, true] {
            kinds.extend((0..=4).map(|pods| (zone, tainted, pods)));
        }
    }
    let mut all = vec![vec![]];
    for (i, &a) in kinds.iter().enumerate() {
        all.push(vec![a]);
        for (j, &b) in kinds.iter().enumerate().skip(i) {
            all.push(vec![a, b]);
            all.extend(kinds.iter().skip(j).map(|&c| vec![a, b, c]));
        }
    }
    all.retain(|nodes| nodes.iter().map(|n| n.2).sum::<usize>() <= 4);
    all
}

fn constraint_lists() -> Vec<Vec<SpreadConstraint>> {
    let (app, web) = app_web(&mut Cluster::new());
    let base = |key, hard| SpreadConstraint {
        max_skew: 1,
        key,
        hard,
        selector: Selector::of_labels([(app, web)]),
        min_domains: None,
        node_affinity_policy: Policy::Honor,
        node_taints_policy: Policy::Ignore,
        match_label_keys: Box::default(),
    };
    let zone = base(well_known::ZONE, true);
    let host = base(well_known::HOSTNAME, true);
    let soft = |c: &SpreadConstraint| SpreadConstraint {
        hard: false,
        ..c.clone()
    };
    vec![
        vec![zone.clone()],
        vec![SpreadConstraint {
            max_skew: 2,
            min_domains: Some(3),
            ..zone.clone()
        }],
        vec![SpreadConstraint {
            node_taints_policy: Policy::Honor,
            min_domains: Some(2),
            ..zone.clone()
        }],
        vec![zone.clone(), host.clone()],
        vec![soft(&zone), soft(&host)],
        vec![SpreadConstraint {
            node_taints_policy: Policy::Honor,
            max_skew: 3,
            ..soft(&zone)
        }],
        vec![host, soft(&zone)],
    ]
}

#[test]
fn every_tiny_cluster_agrees_with_the_oracle() {
    let (tiny, wide) = (tiny_clusters(), wide_clusters());
    assert_eq!(
        (tiny.len(), wide.len()),
        (3_813, 2_482),
        "the enumeration is whole"
    );
    let clusters = [tiny, wide].concat();
    let profile = Profile::default();
    for constraints in constraint_lists() {
        for nodes in &clusters {
            let mut engine = Engine::new(profile.clone());
            let (mut cluster, pod) = build(nodes, &constraints);
            let class = cluster.pod(pod).class;
            let plan = engine.plan(&mut cluster, class).spread.clone();
            let naive = NaiveSpread::new(&cluster, &profile, pod);
            let mut feasible = Vec::new();
            for (node, expected) in naive.filter() {
                let got = filter::filter(&cluster, &plan, node);
                assert_eq!(got, expected, "{nodes:?} {constraints:?}");
                if got.is_none() {
                    feasible.push(node);
                }
            }
            let (mut normalized, mut raw) = (Vec::new(), Vec::new());
            let mut space = score::Workspace::default();
            let scored = score::score(
                &cluster,
                &plan,
                score::Scored::each(&feasible),
                &mut space,
                &mut normalized,
                Some(&mut raw),
            );
            let ours = scored.then(|| {
                raw.into_iter()
                    .zip(normalized.into_iter().map(i64::from))
                    .collect::<Vec<_>>()
            });
            assert_eq!(ours, naive.score(&feasible), "{nodes:?} {constraints:?}");
        }
    }
}
