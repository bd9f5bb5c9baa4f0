//! Fleets and placements to measure with.

use strew_model::{Instant, Interner, Labels, Prng, Selector, Symbol};
use strew_placement::facts::cluster::{Amounts, ClusterFact};
use strew_placement::facts::cluster_set::{ClusterSetFact, SetSelector};
use strew_placement::facts::placement::{
    ClusterPredicates, PlacementFact, PlacementSpec, SpreadTerm, TopologyKeyType, WhenUnsatisfiable,
};
use strew_placement::facts::status::PlacementStatus;

/// The time at which everything happens.
pub(crate) const NOW: Instant = Instant::from_secs(1_000);

/// The zones of every fleet.
pub(crate) const ZONES: usize = 100;

/// Cluster `i` is in zone `i % zones`, with ten zones per region and five regions per provider; it belongs to one of
/// twenty teams and one of 100 apps.
pub(crate) fn cluster(
    names: &mut Interner,
    dice: &mut Prng,
    i: usize,
    zones: usize,
) -> ClusterFact {
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

/// The last `n` of three levels.
pub(crate) fn levels(names: &mut Interner, hard: bool, n: usize) -> Box<[SpreadTerm]> {
    let term = |key| SpreadTerm {
        key: names.intern(key),
        key_type: TopologyKeyType::Label,
        max_skew: 1,
        when: match hard {
            true => WhenUnsatisfiable::DoNotSchedule,
            false => WhenUnsatisfiable::ScheduleAnyway,
        },
        weights: None,
        groups: Default::default(),
    };
    let keys = ["provider", "region", "zone"];
    keys[keys.len() - n..].iter().copied().map(term).collect()
}

pub(crate) fn placement(
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

pub(crate) fn everything(names: &mut Interner) -> ClusterSetFact {
    ClusterSetFact {
        name: names.intern("global"),
        selector: SetSelector::Labels(Selector::all_of(vec![])),
    }
}

/// All select by app, and half of them by team too; a quarter spread with hard terms, a half with soft ones.
pub(crate) fn spec(names: &mut Interner, i: usize, n_levels: usize) -> PlacementSpec {
    let label = |names: &mut Interner, key: &str, value: String| -> (Symbol, Symbol) {
        (names.intern(key), names.intern(&value))
    };
    // An app has 50 clusters, a team 250.
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
            kind => levels(names, kind == 0, n_levels),
        },
        ..PlacementSpec::default()
    }
}
