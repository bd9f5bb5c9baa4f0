//! PodTopologySpread: KEP-1258 (defaults), KEP-3022 (minDomains), KEP-3243 (matchLabelKeys).
//!
//! [`constraints`] finds the constraints of a pod; [`SpreadPlan`] connects them to tallies; [`filter`] and [`score`]
//! read those; [`update`] adds and removes pods on copies; [`hint`] decides when a refused pod is worth a retry.
//! Source: spec/scheduler §1.

pub mod constraints;
pub mod filter;
pub mod hint;
pub mod score;
pub mod update;

use strew_cluster::{
    CensusId, CensusKey, ClassId, Cluster, Eligibility, KeyId, Sweep, TallyId, TallyKey,
};
use strew_model::{Selector, Symbol, well_known};
use strew_spread::Limit;

use crate::profile::{DefaultConstraints, PluginId, Profile};
pub use constraints::{Effective, Origin};

/// A hard constraint with its tally.
#[derive(Debug, Clone)]
pub struct HardConstraint {
    /// Its index in the pod's spec, or in the defaults.
    pub index: usize,
    /// Its numbers.
    pub limit: Limit,
    /// Its topology key.
    pub key: KeyId,
    /// True if the pod would be counted itself.
    pub self_match: bool,
    /// Counts over the included nodes that have the keys of all hard constraints.
    pub tally: TallyId,
}

/// A soft constraint with its counts.
#[derive(Debug, Clone)]
pub struct SoftConstraint {
    /// Its index in the pod's spec, or in the defaults.
    pub index: usize,
    /// Its maxSkew.
    pub max_skew: i32,
    /// Its topology key.
    pub key: KeyId,
    /// Counts per node, whatever the inclusion policies say.
    pub census: CensusId,
    /// Counts per domain over the included nodes; `None` for hostnames, which are counted per node.
    pub tally: Option<TallyId>,
}

/// What the plugin reads for a class of pods.
#[derive(Debug, Clone)]
pub struct SpreadPlan {
    /// The effective constraints of the class.
    pub effective: Effective,
    /// The hard ones in their order.
    pub hard: Vec<HardConstraint>,
    /// The soft ones in their order.
    pub soft: Vec<SoftConstraint>,
    /// True if a node needs the keys of all soft constraints to be scored; false with system defaults.
    pub require_all: bool,
}

impl SpreadPlan {
    /// Finds the constraints of a class and their tallies, and counts what is new.
    pub fn make(cluster: &mut Cluster, profile: &Profile, class: ClassId) -> Self {
        let effective = Effective::of(cluster, profile, class);
        let require_all = effective.origin == Origin::Pod
            || matches!(profile.default_constraints, DefaultConstraints::List(_));
        let mut plan = Self {
            effective,
            hard: Vec::new(),
            soft: Vec::new(),
            require_all,
        };
        for index in 0..plan.effective.constraints.len() {
            let constraint = &plan.effective.constraints[index];
            if !Self::is_on(profile, constraint.hard) {
                continue;
            }
            let (key, max_skew) = (constraint.key, constraint.max_skew);
            let limit = Limit {
                max_skew,
                min_domains: constraint.min_domains.unwrap_or(1),
            };
            let (hard, self_match) = (constraint.hard, plan.effective.self_match[index]);
            let census = plan.census(cluster, class, index);
            let column = cluster.ensure_column(key);
            if hard {
                let tally = plan.tally(cluster, class, index, census, column);
                plan.hard.push(HardConstraint {
                    index,
                    limit,
                    key: column,
                    self_match,
                    tally,
                });
            } else {
                let by_domain = key != well_known::HOSTNAME;
                let tally = by_domain.then(|| plan.tally(cluster, class, index, census, column));
                plan.soft.push(SoftConstraint {
                    index,
                    max_skew,
                    key: column,
                    census,
                    tally,
                });
            }
        }
        plan
    }

    /// True if the profile enables the part of the plugin for hard constraints (its filter), or for soft ones (its
    /// score).
    pub fn is_on(profile: &Profile, hard: bool) -> bool {
        match hard {
            true => profile.filters_with(PluginId::PodTopologySpread),
            false => profile.weight(PluginId::PodTopologySpread) > 0,
        }
    }

    /// True if constraint `index` has no effect, because the profile disables the part of the plugin for it.
    pub fn is_off(&self, index: usize) -> bool {
        let hard = self.hard.iter().map(|constraint| constraint.index);
        let soft = self.soft.iter().map(|constraint| constraint.index);
        hard.chain(soft).all(|on| on != index)
    }

    /// The distinct topology keys of the hard or the soft constraints, sorted.
    fn keys(&self, hard: bool) -> Box<[Symbol]> {
        let constraints = self.effective.constraints.iter();
        let mut keys: Vec<Symbol> = constraints
            .filter(|c| c.hard == hard)
            .map(|c| c.key)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into()
    }

    fn census(&self, cluster: &mut Cluster, class: ClassId, index: usize) -> CensusId {
        let namespace = cluster.tables().class(class).key.namespace;
        let selector = match &self.effective.constraints[index].selector {
            // An empty selector counts nothing, although it matches everything (spec/scheduler §1.4).
            selector if selector.is_empty() => Selector::Nothing,
            selector => selector.clone(),
        };
        cluster.ensure_census(CensusKey::Spread {
            namespace,
            selector,
        })
    }

    /// The tally of constraint `index`: pods by domain over the nodes that count for it. A soft constraint over
    /// hostnames has one too, although scoring counts its pods per node.
    pub fn counted(&self, cluster: &mut Cluster, class: ClassId, index: usize) -> (KeyId, TallyId) {
        if let Some(hard) = self.hard.iter().find(|c| c.index == index) {
            return (hard.key, hard.tally);
        }
        let soft = self.soft.iter().find(|c| c.index == index);
        if let Some((key, tally)) = soft.and_then(|c| Some((c.key, c.tally?))) {
            return (key, tally);
        }
        let census = match soft {
            Some(soft) => soft.census,
            None => self.census(cluster, class, index),
        };
        let key = cluster.ensure_column(self.effective.constraints[index].key);
        (key, self.tally(cluster, class, index, census, key))
    }

    fn tally(
        &self,
        cluster: &mut Cluster,
        class: ClassId,
        index: usize,
        census: CensusId,
        key: KeyId,
    ) -> TallyId {
        let rule = self.eligibility(cluster, class, index);
        let eligibility = cluster.ensure_eligibility(rule);
        let missing_as_empty = !self.effective.constraints[index].hard && !self.require_all;
        let key = TallyKey {
            key,
            eligibility,
            missing_as_empty,
        };
        cluster.ensure_tally(census, key)
    }

    /// The nodes that count for constraint `index`: its inclusion policies, and the keys that a node needs.
    pub fn eligibility(&self, cluster: &Cluster, class: ClassId, index: usize) -> Eligibility {
        let constraint = &self.effective.constraints[index];
        let required_keys = match constraint.hard || self.require_all {
            true => self.keys(constraint.hard),
            false => Box::default(),
        };
        let policies = (
            constraint.node_affinity_policy,
            constraint.node_taints_policy,
        );
        Eligibility::of(cluster.tables(), class, required_keys, policies)
    }

    /// Marks the tallies as used.
    pub(crate) fn touch(&self, cluster: &mut Cluster) {
        self.hard
            .iter()
            .for_each(|c| cluster.touch_census(c.tally.census));
        self.soft
            .iter()
            .for_each(|c| cluster.touch_census(c.census));
    }

    /// Marks the columns and tallies that it reads, in a sweep.
    pub(crate) fn keep(&self, sweep: &mut Sweep) {
        for constraint in &self.hard {
            sweep.touch_column(constraint.key);
            sweep.touch_tally(constraint.tally);
        }
        for constraint in &self.soft {
            sweep.touch_column(constraint.key);
            constraint.tally.iter().for_each(|&t| sweep.touch_tally(t));
        }
    }
}
