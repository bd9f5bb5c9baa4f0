//! What placing costs. JSON lines on stdout, one a measurement.
//!
//! Targets: one placement of 1,000 out of 10,000 clusters in 100 zones under three levels in 5 ms; 2,000 placements over
//! 5,000 clusters from nothing in 10 s and 300 MiB; one cluster's label change afterwards in 50 ms.

use std::hint::black_box;

use strew_model::{Instant, Interner, Labels, Prng, Selector, Symbol};
use strew_placement::facts::cluster::{Amounts, ClusterFact};
use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
use strew_placement::facts::placement::{
    ClusterPredicates, PlacementFact, PlacementSpec, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::facts::status::PlacementStatus;
use strew_placement::machine::{Effect, Input, Limits, Outcome, Placer};
use strew_placement::{Hub, NoCel, schedule};

/// CPU time comes in ticks of some milliseconds: enough rounds make the mean good.
const ROUNDS: usize = 100;

const NOW: Instant = Instant::from_secs(1_000);

fn main() {
    for hard in [false, true] {
        one(10_000, 100, 3, hard);
    }
    growth();
    fleet();
}

/// How one placement grows with clusters and levels; the last line has as many clusters a zone as zones.
fn growth() {
    for clusters in [1_250, 2_500, 5_000] {
        one(clusters, 100, 3, false);
    }
    for levels in [1, 2] {
        one(10_000, 100, levels, false);
    }
    one(10_000, 100, 1, true);
}

/// Cluster `i` in zone `i % zones`, ten zones a region, five regions a provider; one of twenty teams, one of 100 apps.
fn cluster(names: &mut Interner, dice: &mut Prng, i: usize, zones: usize) -> ClusterFact {
    let zone = i % zones;
    let labels = [
        ("provider", format!("provider-{}", zone / 50)),
        ("region", format!("region-{}", zone / 10)),
        ("zone", format!("zone-{zone}")),
        ("team", format!("team-{}", dice.between(0, 19))),
        ("app", format!("app-{}", dice.between(0, 99))),
    ];
    let pair = |(key, value): &(&str, String)| (names.intern(key), names.intern(value));
    let labels = Labels::new(labels.iter().map(pair).collect());
    ClusterFact {
        labels,
        cpu: Amounts {
            allocatable: Some(dice.between(1, 64) as i64 * 1_000),
            capacity: Some(64_000),
        },
        ..ClusterFact::named(names.intern(&format!("cluster-{i:05}")))
    }
}

fn terms(names: &mut Interner, hard: bool) -> Box<[SpreadTerm]> {
    levels(names, hard, 3)
}

/// The last so many of three levels.
fn levels(names: &mut Interner, hard: bool, n: usize) -> Box<[SpreadTerm]> {
    let term = |key| SpreadTerm {
        key: names.intern(key),
        key_type: TopologyKeyType::Label,
        max_skew: 1,
        when: match hard {
            true => WhenUnsatisfiable::DoNotSchedule,
            false => WhenUnsatisfiable::ScheduleAnyway,
        },
        weights: None,
    };
    let keys = ["provider", "region", "zone"];
    keys[keys.len() - n..].iter().copied().map(term).collect()
}

fn placement(
    names: &mut Interner,
    namespace: &str,
    name: &str,
    spec: PlacementSpec,
) -> PlacementFact {
    PlacementFact {
        namespace: names.intern(namespace),
        name: names.intern(name),
        uid: name.into(),
        spec,
        status: PlacementStatus::default(),
        ignored: false,
        revision: 1,
    }
}

fn everything(names: &mut Interner) -> ClusterSetFact {
    ClusterSetFact {
        name: names.intern("global"),
        selector: SetSelector::Labels(Selector::all_of(vec![])),
    }
}

/// One large placement: a tenth of its clusters.
fn one(clusters: usize, zones: usize, n_levels: usize, hard: bool) {
    let mut hub = Hub::new(Interner::new());
    let mut dice = Prng::new(1);
    let set = everything(&mut hub.names);
    let namespace = hub.names.intern("ns");
    hub.set_binding(namespace, set.name);
    hub.set_cluster_set(set);
    for i in 0..clusters {
        let fact = cluster(&mut hub.names, &mut dice, i, zones);
        hub.set_cluster(fact);
    }
    let picks = clusters / 10;
    let spec = PlacementSpec {
        number_of_clusters: i32::try_from(picks).ok(),
        spread: levels(&mut hub.names, hard, n_levels),
        ..PlacementSpec::default()
    };
    let placement = placement(&mut hub.names, "ns", "large", spec);
    let start = cpu_ns();
    for _ in 0..ROUNDS {
        let schedule = black_box(schedule::schedule(&hub, NOW, &placement, &NoCel));
        assert_eq!(schedule.picks.len(), picks);
    }
    let mean = (cpu_ns() - start) as f64 / 1e6 / ROUNDS as f64;
    println!(
        "{{\"bench\":\"one\",\"clusters\":{clusters},\"zones\":{zones},\"levels\":{n_levels},\"picks\":{picks},\"hard\":{hard},\"cpu_ms\":{mean:.2},\"target_ms\":5}}"
    );
}

/// Many placements, then one cluster changes.
fn fleet() {
    let mut placer = Placer::new(Interner::new(), Limits::default(), NOW);
    let mut dice = Prng::new(2);
    let set = everything(placer.names_mut());
    let global = set.name;
    placer.handle(NOW, Input::ClusterSetSet(set));
    let mut clusters = Vec::new();
    for i in 0..5_000 {
        let fact = cluster(placer.names_mut(), &mut dice, i, 100);
        clusters.push(fact.clone());
        placer.handle(NOW, Input::ClusterSet(fact));
    }
    for i in 0..50 {
        let namespace = placer.names_mut().intern(&format!("ns-{i}"));
        let name = global;
        placer.handle(NOW, Input::BindingSet { namespace, name });
    }
    for i in 0..2_000 {
        let spec = spec(placer.names_mut(), i);
        let namespace = format!("ns-{}", i % 50);
        let fact = placement(placer.names_mut(), &namespace, &format!("p-{i}"), spec);
        placer.handle(NOW, Input::PlacementSet(Box::new(fact)));
    }
    let before = rss_mib();
    let start = cpu_ns();
    let writes = rest(&mut placer);
    let (seconds, rss) = ((cpu_ns() - start) as f64 / 1e9, rss_mib());
    println!(
        "{{\"bench\":\"fleet\",\"clusters\":5000,\"placements\":2000,\"writes\":{writes},\"cpu_s\":{seconds:.2},\"target_s\":10,\"rss_before_mib\":{before:.0},\"rss_mib\":{rss:.0},\"target_mib\":300}}"
    );
    for (key, value) in [
        ("team", "team-new"),
        ("app", "app-7"),
        ("noise", "1"),
        ("zone", "zone-new"),
    ] {
        let names = placer.names_mut();
        let pair = (names.intern(key), names.intern(value));
        let fact = ClusterFact {
            labels: clusters[17].labels.with([pair]),
            ..clusters[17].clone()
        };
        change(&mut placer, key, [&fact, &clusters[17]]);
    }
}

/// All select by app and half of them by team too; a quarter spread hard, a half softly.
fn spec(names: &mut Interner, i: usize) -> PlacementSpec {
    let label = |names: &mut Interner, key: &str, value: String| -> (Symbol, Symbol) {
        (names.intern(key), names.intern(&value))
    };
    // An app's clusters are 50, a team's 250.
    let wanted = match i % 4 {
        0 => vec![label(names, "team", format!("team-{}", i / 4 % 20))],
        1 => vec![label(names, "app", format!("app-{}", i / 4 % 100))],
        _ => vec![label(names, "provider", format!("provider-{}", i / 4 % 2))],
    };
    PlacementSpec {
        number_of_clusters: Some(20),
        predicates: Ok([ClusterPredicates {
            labels: Selector::of_labels(wanted),
            ..ClusterPredicates::default()
        }]
        .into()),
        spread: match i % 4 {
            3 => Box::default(),
            kind => terms(names, kind == 0),
        },
        ..PlacementSpec::default()
    }
}

/// A label comes and goes, again and again.
fn change(placer: &mut Placer, label: &str, facts: [&ClusterFact; 2]) {
    let rounds = ROUNDS / 5;
    let runs = placer.counters().decided;
    let start = cpu_ns();
    for round in 0..rounds {
        placer.handle(NOW, Input::ClusterSet(facts[round % 2].clone()));
        rest(placer);
    }
    let ms = (cpu_ns() - start) as f64 / 1e6 / rounds as f64;
    let runs = (placer.counters().decided - runs) as usize / rounds;
    println!(
        "{{\"bench\":\"change\",\"label\":\"{label}\",\"runs\":{runs},\"cpu_ms\":{ms:.2},\"target_ms\":50}}"
    );
}

/// Carries everything out at once; returns how many writes there were.
fn rest(placer: &mut Placer) -> usize {
    let mut writes = 0;
    while let Some(effect) = placer.poll_effect(&NoCel) {
        let (Effect::WriteDecision { id, .. } | Effect::WriteStatus { id, .. }) = effect else {
            continue;
        };
        writes += 1;
        let outcome = Outcome::Ok {
            revision: 10 + writes as u64,
        };
        placer.handle(
            NOW,
            Input::Outcome {
                effect: id,
                outcome,
            },
        );
    }
    writes
}

/// CPU time of this thread so far, in nanoseconds: other work on the machine does not count.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Resident memory of this process, in MiB.
fn rss_mib() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
