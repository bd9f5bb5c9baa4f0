//! Counts that are kept current against the slowest reading there is: every count is made anew from the facts.
//!
//! The other side reads nothing of the cluster's tables: no classes, censuses or columns, only a list of facts.

mod facts;

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;
use strew_cluster::{CensusKey, Cluster, Eligibility, PodFact, Policy, TallyKey};
use strew_model::{Labels, Selector, Symbol, tolerates_all, well_known};

use facts::Facts;

/// More than the usual seeds: `STREW_SEEDS=0..100000`.
fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("STREW_SEEDS").unwrap_or_default();
    let (from, to) = given.split_once("..").unwrap_or(("0", "150"));
    let seed = |text: &str| text.parse().expect("STREW_SEEDS is two numbers: 0..150");
    seed(from)..seed(to)
}

/// Which nodes count: the constraint of a pod.
struct Asked<'a> {
    pod: &'a PodFact,
    key: Symbol,
    affinity: Policy,
    taints: Policy,
    /// Whether nodes without the label count in the domain of the empty value.
    missing_as_empty: bool,
}

/// By value of the key: the number of pods. Every value of a node that counts is there.
type Counts = BTreeMap<Symbol, i32>;

impl Asked<'_> {
    /// By the facts.
    fn plain(&self, facts: &Facts, cluster: &Cluster, of_pod: &dyn Fn(&PodFact) -> i32) -> Counts {
        let mut counts = Counts::new();
        for node in facts.nodes.values() {
            let spec = &self.pod.spec;
            let is_left_out = self.affinity == Policy::Honor
                && !spec
                    .node_affinity
                    .matches(node.name, &node.labels, &cluster.names)
                || self.taints == Policy::Honor && !tolerates_all(&spec.tolerations, &node.taints);
            let missing = self.missing_as_empty.then_some(well_known::EMPTY);
            let (false, Some(value)) = (is_left_out, node.labels.get(self.key).or(missing)) else {
                continue;
            };
            let pods = facts
                .pods
                .values()
                .filter(|pod| pod.node == Some(node.name));
            *counts.entry(value).or_default() += pods.map(of_pod).sum::<i32>();
        }
        counts
    }

    /// By the cluster's tally.
    fn kept(&self, cluster: &mut Cluster, census: CensusKey) -> Counts {
        let class = cluster
            .pod(cluster.find_pod(&self.pod.uid).expect("it was told"))
            .class;
        let policies = (self.affinity, self.taints);
        let rule = Eligibility::of(cluster.tables(), class, Box::new([]), policies);
        let key = TallyKey {
            key: cluster.ensure_column(self.key),
            eligibility: cluster.ensure_eligibility(rule),
            missing_as_empty: self.missing_as_empty,
        };
        let census = cluster.ensure_census(census);
        let id = cluster.ensure_tally(census, key);
        let tally = cluster.tally(id);
        let column = cluster.column(key.key);
        let counts: Counts = tally
            .existing()
            .map(|domain| (column.value(domain), tally.count(domain)))
            .collect();
        assert_eq!(counts.values().min().copied(), tally.minimum());
        assert_eq!(counts.values().max().copied(), tally.maximum());
        assert_eq!(counts.len(), tally.domains() as usize);
        counts
    }
}

/// One question about the cluster, drawn and compared. Returns how much was counted.
fn compare(facts: &mut Facts, cluster: &mut Cluster) -> i32 {
    let Some(pod) = facts.some_pod() else {
        return 0;
    };
    let [affinity, taints] = [(); 2].map(|()| match facts.dice.chance(1, 2) {
        true => Policy::Honor,
        false => Policy::Ignore,
    });
    let asked = Asked {
        pod: &pod,
        key: facts.some_key(),
        affinity,
        taints,
        missing_as_empty: facts.dice.chance(1, 3),
    };
    let (namespace, selector) = (facts.some_namespace(), facts.some_selector());
    let is_counted = |there: &PodFact| {
        let is_it = there.namespace == namespace && selector.matches(&there.labels);
        i32::from(is_it && !there.terminating)
    };
    let plain = asked.plain(facts, cluster, &is_counted);
    let selector = selector.clone();
    let kept = asked.kept(
        cluster,
        CensusKey::Spread {
            namespace,
            selector,
        },
    );
    assert_eq!(kept, plain, "pods that a constraint counts");

    // The terms of pods that are there, against this one. Terms of these facts stay in their own namespace.
    let is_refusing = |there: &PodFact| {
        let terms = there.spec.affinity.required_anti.iter();
        let matching =
            terms.filter(|term| term.key == asked.key && term.selector.matches(&pod.labels));
        matching.count() as i32 * i32::from(there.namespace == pod.namespace)
    };
    let refusing = asked.plain(facts, cluster, &is_refusing);
    let row = cluster.find_pod(&pod.uid).expect("it was told");
    let unwelcome = CensusKey::Unwelcome {
        key: asked.key,
        namespace: pod.namespace,
        labels: cluster.class_of(row).key.labels,
    };
    let kept = asked.kept(cluster, unwelcome);
    assert_eq!(kept, refusing, "terms that refuse the pod");
    plain.values().chain(refusing.values()).sum()
}

/// Everything that the cluster tells of its nodes and pods, by name.
fn compare_tables(facts: &Facts, cluster: &mut Cluster) {
    cluster.refresh_order();
    let order = cluster.node_order().iter();
    let listed: Vec<Symbol> = order.map(|&node| cluster.node(node).name()).collect();
    let names: BTreeSet<Symbol> = facts.nodes.keys().copied().collect();
    assert_eq!(
        listed.len(),
        names.len(),
        "each node stands in the order once"
    );
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), names);
    assert_eq!(cluster.nodes_present(), names.len());
    for node in facts.nodes.values() {
        let row = cluster.node(cluster.find_node(node.name).expect("it was told"));
        assert_eq!(row.fact(), Some(node));
        let of_row: BTreeSet<&str> = row.pods().iter().map(|&p| &*cluster.pod(p).uid).collect();
        let on_it = facts
            .pods
            .values()
            .filter(|pod| pod.node == Some(node.name));
        let mut cpu = 0;
        let on_it = on_it.inspect(|pod| cpu += pod.spec.used.cpu_milli);
        assert_eq!(of_row, on_it.map(|pod| &*pod.uid).collect::<BTreeSet<_>>());
        assert_eq!(row.used().cpu_milli, cpu);
    }
    let pods = cluster.pods().map(|(index, pod)| {
        let labels: Labels = cluster.labels_of(index).clone();
        let node = pod.node.map(|node| cluster.node(node).name());
        (pod.uid.clone(), (labels, node))
    });
    let by_facts = facts.pods.values();
    let by_facts = by_facts.map(|pod| (pod.uid.clone(), (pod.labels.clone(), pod.node)));
    assert_eq!(pods.collect::<BTreeMap<_, _>>(), by_facts.collect());
    cluster.audit().expect("a recount agrees");
}

#[test]
fn counts_that_are_kept_are_those_of_the_facts() {
    let (mut n_sweeps, mut n_counted) = (0, 0);
    for seed in seeds() {
        let mut cluster = Cluster::new();
        let mut facts = Facts::new(seed, &mut cluster.names);
        if seed % 3 == 1 {
            // So small a budget that each census is dropped when the next one is made.
            cluster.set_census_bytes_max(1);
        }
        for step in 0..100 {
            facts.step(&mut cluster);
            n_counted += compare(&mut facts, &mut cluster);
            if step % 10 == 9 {
                compare_tables(&facts, &mut cluster);
            }
            if seed % 2 == 0 && facts.dice.chance(1, 12) {
                let sweep = cluster.begin_sweep(&FxHashSet::default());
                cluster.end_sweep(sweep, |_| {});
                n_sweeps += 1;
            }
        }
    }
    assert!(n_sweeps > 0, "memory was freed meanwhile");
    assert!(n_counted > 10_000, "only {n_counted} were counted");
}

/// Whatever the order in which facts arrive, and however often they do.
#[test]
fn the_order_of_facts_changes_no_count() {
    let mut n_counted = 0;
    for seed in seeds() {
        let mut grown = Cluster::new();
        let mut facts = Facts::new(seed, &mut grown.names);
        (0..60).for_each(|_| facts.step(&mut grown));
        let mut listed = Cluster::new();
        facts.tell_all(&mut listed);
        for cluster in [&mut grown, &mut listed] {
            let mut facts = facts.clone();
            compare_tables(&facts, cluster);
            let counted = (0..20).map(|_| compare(&mut facts, cluster));
            n_counted += counted.sum::<i32>();
        }
    }
    assert!(n_counted > 5_000, "only {n_counted} were counted");
}

/// A selector that is missing counts nothing, an empty one everything.
#[test]
fn no_selector_and_an_empty_one_are_two_things() {
    for seed in 0..20 {
        let mut cluster = Cluster::new();
        let mut facts = Facts::new(seed, &mut cluster.names);
        (0..60).for_each(|_| facts.step(&mut cluster));
        let Some(pod) = facts.some_pod() else {
            continue;
        };
        let n_of = |cluster: &mut Cluster, selector: Selector| {
            let namespace = pod.namespace;
            let census = cluster.ensure_census(CensusKey::Spread {
                namespace,
                selector,
            });
            cluster.census(census).per_node().iter().sum::<i32>()
        };
        let is_there = |other: &&PodFact| {
            other.namespace == pod.namespace && other.node.is_some() && !other.terminating
        };
        let n_there = facts.pods.values().filter(is_there).count();
        assert_eq!(n_of(&mut cluster, Selector::Nothing), 0);
        assert_eq!(
            n_of(&mut cluster, Selector::all_of(Vec::new())),
            n_there as i32
        );
    }
}
