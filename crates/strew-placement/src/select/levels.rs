//! The checked spread constraints. Source: spec/placement §3.1, §3.8, §3.10.

use std::sync::Arc;

use strew_model::{Interner, Symbol};
use strew_spread::Limit;
use strew_spread::level::LEVELS_MAX;

use crate::facts::cluster::ClusterFact;
use crate::facts::placement::{
    GroupBounds, PlacementSpec, SpreadTerm, TopologyKeyType, TopologyWeights, WhenUnsatisfiable,
};
use crate::hub::topologies::{self, Source};

/// The largest weight of a topology.
const WEIGHT_MAX: i64 = 1000;

/// One level of the hierarchy of topologies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) key: Symbol,
    from_claims: bool,
    /// True if its limit excludes clusters.
    pub(crate) hard: bool,
    pub(crate) limit: Limit,
    weights: Option<TopologyWeights>,
    /// The bounds on the number of its topologies that a selection uses.
    pub(crate) groups: Groups,
}

/// The checked bounds on the number of topologies of a level that a selection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Groups {
    /// 0: no bound.
    pub(crate) min: u32,
    /// At least 1; `None`: no bound.
    pub(crate) max: Option<u32>,
}

impl Level {
    /// The value of a cluster at this level, read from the key's source only.
    pub(crate) fn value(&self, cluster: &ClusterFact) -> Option<Symbol> {
        topologies::value(cluster, self.source())
    }

    /// The source of its values.
    pub(crate) fn source(&self) -> Source {
        (self.key, self.from_claims)
    }

    /// True if topologies have shares by weight.
    pub(crate) fn weighted(&self) -> bool {
        self.weights.is_some()
    }

    /// The values that have a weight of their own.
    pub(crate) fn weighted_values(&self) -> &[(Symbol, i64)] {
        self.weights.as_ref().map_or(&[], |weights| &weights.values)
    }

    /// The weight of a value.
    pub(crate) fn weight(&self, value: Symbol) -> u32 {
        let weights = self.weights.as_ref();
        // Its range was checked when the level was made.
        weights.map_or(1, |w| w.of(value).clamp(0, WEIGHT_MAX) as u32)
    }
}

/// The levels of a specification, or its error.
pub(crate) fn of(spec: &PlacementSpec, names: &Interner) -> Result<Vec<Level>, Arc<str>> {
    if spec.spread.is_empty() {
        return Ok(Vec::new());
    }
    if spec.spread.len() > LEVELS_MAX {
        let n = spec.spread.len();
        return Err(format!("spreadConstraints: {n} terms, must have at most {LEVELS_MAX}").into());
    }
    let annotated = spec.topology_weights.as_ref().map_err(Arc::clone)?;
    let bounds = spec.topology_groups.as_ref().map_err(Arc::clone)?;
    let mut levels: Vec<Level> = Vec::with_capacity(spec.spread.len());
    for (i, term) in spec.spread.iter().enumerate() {
        let of_key = annotated.iter().find(|(key, _)| *key == term.key);
        let weights = term.weights.as_ref().or(of_key.map(|(_, weights)| weights));
        let of_key = bounds.iter().find(|(key, _)| *key == term.key);
        let of_key = of_key.map(|&(_, bounds)| bounds).unwrap_or_default();
        let bounds = GroupBounds {
            min: term.groups.min.or(of_key.min),
            max: term.groups.max.or(of_key.max),
        };
        let checked = bounds.check(spec.number_of_clusters);
        checked.map_err(|wrong| format!("spreadConstraints[{i}]: {}", wrong.message))?;
        let level = level(i, term, weights.cloned(), bounds)?;
        if levels.iter().any(|l| l.source() == level.source()) {
            let (key, kind) = (names.text(term.key), term.key_type.name());
            let text =
                format!("spreadConstraints[{i}]: duplicate topologyKey {key} of type {kind}");
            return Err(text.into());
        }
        check_weights(&level, names)?;
        levels.push(level);
    }
    Ok(levels)
}

fn level(
    i: usize,
    term: &SpreadTerm,
    weights: Option<TopologyWeights>,
    bounds: GroupBounds,
) -> Result<Level, Arc<str>> {
    let from_claims = match &term.key_type {
        TopologyKeyType::Label => false,
        TopologyKeyType::Claim => true,
        TopologyKeyType::Unknown(text) => {
            return Err(format!("spreadConstraints[{i}]: unknown topologyKeyType: {text}").into());
        }
    };
    // It was checked to be positive.
    let number = |bound: i64| u32::try_from(bound).unwrap_or(u32::MAX);
    let hard = match &term.when {
        WhenUnsatisfiable::DoNotSchedule => true,
        WhenUnsatisfiable::ScheduleAnyway => false,
        WhenUnsatisfiable::Unknown(text) => {
            return Err(
                format!("spreadConstraints[{i}]: unknown whenUnsatisfiable: {text}").into(),
            );
        }
    };
    Ok(Level {
        key: term.key,
        from_claims,
        hard,
        limit: Limit {
            max_skew: term.max_skew.max(1),
            min_domains: 1,
        },
        weights,
        groups: Groups {
            min: bounds.min.map_or(0, number),
            max: bounds.max.map(number),
        },
    })
}

fn check_weights(level: &Level, names: &Interner) -> Result<(), Arc<str>> {
    let Some(weights) = &level.weights else {
        return Ok(());
    };
    let named = weights.values.iter().map(|&(v, w)| (names.text(v), w));
    for (value, weight) in named.chain([("*", weights.default)]) {
        if !(0..=WEIGHT_MAX).contains(&weight) {
            let key = names.text(level.key);
            let text = format!("topology weight of {key}={value} is {weight}, not 0..{WEIGHT_MAX}");
            return Err(text.into());
        }
    }
    Ok(())
}
