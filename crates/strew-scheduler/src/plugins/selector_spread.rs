//! SelectorSpread: the spreading score that default constraints replaced. Source: spec/scheduler §6.

use rustc_hash::FxHashMap;
use strew_cluster::node_order::{ZoneKey, zone_key};
use strew_cluster::{CensusId, CensusKey, ClassId, Cluster, NodeIdx};
use strew_model::well_known;

/// What the plugin reads for a class of pods.
pub struct SelectorSpreadPlan {
    /// True if the pod has its own constraints: then the plugin does not score it.
    own_constraints: bool,
    /// The pods of the Services and controller of the pod; `None` if it has none.
    census: Option<CensusId>,
}

impl SelectorSpreadPlan {
    pub(crate) fn make(cluster: &mut Cluster, class: ClassId) -> Self {
        let tables = cluster.tables();
        let key = &tables.class(class).key;
        let (namespace, owner) = (key.namespace, key.owner);
        let selector = cluster
            .owners()
            .deduce(namespace, tables.labels(key.labels), owner);
        let own_constraints = !tables.spec(key.spec).spread.is_empty();
        let counts = !own_constraints && !selector.is_empty();
        let census = counts.then(|| {
            cluster.ensure_census(CensusKey::Spread {
                namespace,
                selector,
            })
        });
        Self {
            own_constraints,
            census,
        }
    }
}

impl SelectorSpreadPlan {
    /// The census that it reads.
    pub(crate) fn census(&self) -> Option<CensusId> {
        self.census
    }
}

/// Scores the feasible nodes. Returns false if the plugin does not score the pod.
pub(crate) fn score(
    cluster: &Cluster,
    plan: &SelectorSpreadPlan,
    feasible: &[NodeIdx],
    out: &mut Vec<i32>,
) -> bool {
    out.clear();
    if plan.own_constraints {
        return false;
    }
    let Some(census) = plan.census else {
        out.resize(feasible.len(), 100);
        return true;
    };
    let per_node = cluster.census(census).per_node();
    let zone_of = |node: NodeIdx| cluster.node(node).fact().map(|f| zone_key(&f.labels));
    let none: ZoneKey = (well_known::EMPTY, well_known::EMPTY);
    let mut by_zone: FxHashMap<ZoneKey, i64> = FxHashMap::default();
    let mut max_node = 0;
    for &node in feasible {
        let count = i64::from(per_node[node.index()]);
        max_node = max_node.max(count);
        if let Some(zone) = zone_of(node).filter(|&z| z != none) {
            *by_zone.entry(zone).or_default() += count;
        }
    }
    let max_zone = by_zone.values().copied().max().unwrap_or(0);
    let share = |max: i64, count: i64| match max > 0 {
        true => 100.0 * ((max - count) as f64 / max as f64),
        false => 100.0,
    };
    const ZONE_WEIGHT: f64 = 2.0 / 3.0;
    out.extend(feasible.iter().map(|&node| {
        let mut score = share(max_node, i64::from(per_node[node.index()]));
        if let Some(&in_zone) = zone_of(node).and_then(|z| by_zone.get(&z)) {
            score = score * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * share(max_zone, in_zone);
        }
        score as i32
    }));
    true
}
