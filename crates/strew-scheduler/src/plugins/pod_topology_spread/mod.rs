//! PodTopologySpread: KEP-1258 (defaults), KEP-3022 (minDomains), KEP-3243 (matchLabelKeys).
//!
//! [`constraints`] finds the constraints that hold for a pod; [`SpreadPlan`] ties them to tallies; [`filter`] and
//! [`score`] read those; [`update`] tries pods out; [`hint`] tells when a refused pod is worth another try.
//! Source: spec/scheduler §1.

pub mod constraints;
pub mod filter;
pub mod hint;
pub mod score;
pub mod update;

use strew_cluster::{
    CensusId, CensusKey, ClassId, Cluster, Eligibility, KeyId, Policy, Sweep, TallyId, TallyKey,
};
use strew_model::{Selector, Symbol, well_known};
use strew_spread::Limit;

use crate::profile::{DefaultConstraints, PluginId, Profile};
pub use constraints::{Effective, Origin};

/// A hard constraint, tied to its tally.
#[derive(Debug, Clone)]
pub struct HardConstraint {
    /// Its place in the pod's spec, or in the list of defaults.
    pub index: usize,
    /// Its numbers.
    pub limit: Limit,
    /// Its topology key.
    pub key: KeyId,
    /// Whether the pod would be counted itself.
    pub self_match: bool,
    /// Counts over the nodes that are included and have the keys of all hard constraints.
    pub tally: TallyId,
}

/// A soft constraint, tied to what it counts.
#[derive(Debug, Clone)]
pub struct SoftConstraint {
    /// Its place in the pod's spec, or in the list of defaults.
    pub index: usize,
    /// Its maxSkew.
    pub max_skew: i32,
    /// Its topology key.
    pub key: KeyId,
    /// Counts per node, whatever the inclusion policies say.
    pub census: CensusId,
    /// Counts per domain over the included nodes; `None` for hostnames, which are counted on the one node.
    pub tally: Option<TallyId>,
}

/// What the plugin reads for a class of pods.
#[derive(Debug, Clone)]
pub struct SpreadPlan {
    /// The constraints as they hold for the class.
    pub effective: Effective,
    /// The hard ones in their order.
    pub hard: Vec<HardConstraint>,
    /// The soft ones in their order.
    pub soft: Vec<SoftConstraint>,
    /// Whether a node must have the keys of all soft constraints to be scored; not so with system defaults.
    pub require_all: bool,
}

impl SpreadPlan {
    /// Finds the constraints of a class and the tallies for them, counting what was not counted before.
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
        let hard_keys = plan.keys(true);
        let soft_keys = if require_all {
            plan.keys(false)
        } else {
            Box::default()
        };
        let missing_as_empty = !require_all;
        for index in 0..plan.effective.constraints.len() {
            let constraint = &plan.effective.constraints[index];
            let enabled = match constraint.hard {
                true => profile.filters_with(PluginId::PodTopologySpread),
                false => profile.weight(PluginId::PodTopologySpread) > 0,
            };
            if !enabled {
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
                let rule = plan.eligibility(cluster, class, index, &hard_keys);
                let tally = derive(cluster, census, column, rule, false);
                plan.hard.push(HardConstraint {
                    index,
                    limit,
                    key: column,
                    self_match,
                    tally,
                });
            } else {
                let by_domain = key != well_known::HOSTNAME;
                let tally = by_domain.then(|| {
                    let rule = plan.eligibility(cluster, class, index, &soft_keys);
                    derive(cluster, census, column, rule, missing_as_empty)
                });
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
            // An empty selector counts nothing although it matches everything (spec/scheduler §1.4).
            selector if selector.is_empty() => Selector::Nothing,
            selector => selector.clone(),
        };
        cluster.ensure_census(CensusKey::Spread {
            namespace,
            selector,
        })
    }

    fn eligibility(
        &self,
        cluster: &Cluster,
        class: ClassId,
        index: usize,
        keys: &[Symbol],
    ) -> Eligibility {
        let constraint = &self.effective.constraints[index];
        let tables = cluster.tables();
        let parts = tables.parts(tables.class(class).key.spec);
        let honors_affinity = constraint.node_affinity_policy == Policy::Honor
            && !tables.node_affinity(parts.node_affinity).is_none();
        Eligibility {
            required_keys: keys.into(),
            node_affinity: honors_affinity.then_some(parts.node_affinity),
            tolerations: (constraint.node_taints_policy == Policy::Honor)
                .then_some(parts.tolerations),
        }
    }

    /// Notes that the tallies are in use.
    pub(crate) fn touch(&self, cluster: &mut Cluster) {
        self.hard
            .iter()
            .for_each(|c| cluster.touch_census(c.tally.census));
        self.soft
            .iter()
            .for_each(|c| cluster.touch_census(c.census));
    }

    /// Notes in a sweep which columns and tallies it reads.
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

fn derive(
    cluster: &mut Cluster,
    census: CensusId,
    key: KeyId,
    rule: Eligibility,
    missing_as_empty: bool,
) -> TallyId {
    let eligibility = cluster.ensure_eligibility(rule);
    cluster.ensure_tally(
        census,
        TallyKey {
            key,
            eligibility,
            missing_as_empty,
        },
    )
}
