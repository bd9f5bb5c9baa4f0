//! The prioritizers that count, with their weights. Source: spec/placement §2.5, §3.2.

use std::sync::Arc;

use super::prioritizer::Prioritizer;
use crate::facts::placement::{PrioritizerPolicy, ScoreCoordinate};

/// The weight of `Spread` in the mode Additive, unless the policy has another (the OCM spread proposal, "API Example").
const SPREAD_DEFAULT: i32 = 2;

/// The weights of a placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Weights {
    /// Prioritizers with a weight other than 0.
    pub(crate) prioritizers: Vec<(Prioritizer, i32)>,
    /// The weight of `Spread`, which is not a prioritizer but part of the selector.
    pub(crate) spread: i32,
}

/// The meaning of a coordinate, before weights of 0 are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meant {
    Score(Prioritizer),
    Spread,
    Wrong(Arc<str>),
}

impl Weights {
    /// The weights of a policy, or its error.
    pub(crate) fn of(policy: &PrioritizerPolicy) -> Result<Self, Arc<str>> {
        let mut entries: Vec<(Meant, i32)> = match &*policy.mode {
            "Exact" => Vec::new(),
            "Additive" | "" => vec![
                (Meant::Score(Prioritizer::Balance), 1),
                (Meant::Score(Prioritizer::Steady), 1),
                (Meant::Spread, SPREAD_DEFAULT),
            ],
            mode => return Err(format!("incorrect prioritizer policy mode: {mode}").into()),
        };
        for config in &policy.configurations {
            let Some(coordinate) = &config.coordinate else {
                return Err("scoreCoordinate field is required".into());
            };
            let meant = Meant::of(coordinate);
            match entries.iter_mut().find(|(known, _)| *known == meant) {
                Some((_, weight)) => *weight = config.weight,
                None => entries.push((meant, config.weight)),
            }
        }
        let mut weights = Self {
            prioritizers: Vec::new(),
            spread: 0,
        };
        for (meant, weight) in entries.into_iter().filter(|&(_, weight)| weight != 0) {
            match meant {
                Meant::Score(prioritizer) => weights.prioritizers.push((prioritizer, weight)),
                Meant::Spread => weights.spread = weight,
                Meant::Wrong(message) => return Err(message),
            }
        }
        Ok(weights)
    }

    /// The weight of a prioritizer; 0 if it does not count.
    pub(crate) fn weight(&self, prioritizer: Prioritizer) -> i32 {
        let found = self.prioritizers.iter().find(|&&(p, _)| p == prioritizer);
        found.map_or(0, |&(_, weight)| weight)
    }
}

impl Meant {
    fn of(coordinate: &ScoreCoordinate) -> Self {
        match coordinate {
            ScoreCoordinate::BuiltIn(name) => match &**name {
                "Balance" => Self::Score(Prioritizer::Balance),
                "Steady" => Self::Score(Prioritizer::Steady),
                "ResourceAllocatableCPU" => Self::Score(Prioritizer::AllocatableCpu),
                "ResourceAllocatableMemory" => Self::Score(Prioritizer::AllocatableMemory),
                "Spread" => Self::Spread,
                name => Self::Wrong(format!("incorrect builtin prioritizer: {name}").into()),
            },
            ScoreCoordinate::AddOn(Some(add_on)) => Self::Score(Prioritizer::AddOn(*add_on)),
            ScoreCoordinate::AddOn(None) => Self::Wrong("addOn should not be empty".into()),
        }
    }
}
