//! InterPodAffinity: affinity and anti-affinity between pods, in both directions. Source: spec/scheduler §3.10.
//!
//! Unlike topology spread, it counts terminating pods. [`hint`] decides when a refused pod is worth a retry.

pub mod hint;

use smallvec::SmallVec;
use strew_cluster::{
    CensusKey, ClassId, Cluster, Eligibility, KeyId, NodeIdx, Sweep, TallyId, TallyKey,
};
use strew_model::Symbol;
use strew_spread::Tally;

use crate::profile::{PluginId, Profile};
use crate::status::{Reason, Refusal};

/// Counts per domain of one key.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// The topology key.
    pub key: KeyId,
    /// The counts.
    pub tally: TallyId,
}

/// What the plugin reads for a class of pods.
#[derive(Debug, Clone, Default)]
pub struct AffinityPlan {
    /// Existing pods' required anti-affinity terms that match the pod, by key (E).
    pub unwelcome: Vec<Counted>,
    /// Pods that match all required affinity terms, by each term's key (A).
    pub wanted: Vec<Counted>,
    /// True if the pod matches all its own required affinity terms: then the first pod of a group may go anywhere.
    pub matches_itself: bool,
    /// Pods that match a required anti-affinity term, by that term's key (N).
    pub unwanted: Vec<Counted>,
    /// Weights of preferences in both directions, by key (T).
    pub preferences: Vec<Counted>,
}

impl AffinityPlan {
    /// Finds what to count for a class, and counts what is new.
    pub fn make(cluster: &mut Cluster, profile: &Profile, class: ClassId) -> Self {
        let tables = cluster.tables();
        let key = tables.class(class).key.clone();
        let (namespace, labels) = (key.namespace, key.labels);
        let affinity = tables.parts(key.spec).affinity;
        let own = tables.affinity(affinity).clone();
        let anti_keys: Vec<Symbol> = tables.anti_keys().iter().copied().collect();
        let mut preference_keys: Vec<Symbol> = own.preferred.iter().map(|(_, t)| t.key).collect();
        let considers_existing =
            !profile.ignore_preferred_terms_of_existing_pods || !own.preferred.is_empty();
        if considers_existing {
            preference_keys.extend(tables.preference_keys().iter().copied());
        }
        preference_keys.sort_unstable();
        preference_keys.dedup();
        let hard_weight = profile.hard_pod_affinity_weight;
        let ignore_existing = profile.ignore_preferred_terms_of_existing_pods;

        let mut plan = Self {
            matches_itself: cluster.finds_itself(affinity, class),
            ..Self::default()
        };
        if profile.filters_with(PluginId::InterPodAffinity) {
            for key in anti_keys {
                plan.unwelcome.push(count(
                    cluster,
                    key,
                    CensusKey::Unwelcome {
                        key,
                        namespace,
                        labels,
                    },
                ));
            }
            for term in &own.required {
                plan.wanted.push(count(
                    cluster,
                    term.key,
                    CensusKey::Wanted {
                        namespace,
                        affinity,
                    },
                ));
            }
            for (i, term) in own.required_anti.iter().enumerate() {
                let census = CensusKey::Unwanted {
                    namespace,
                    affinity,
                    term: i as u32,
                };
                plan.unwanted.push(count(cluster, term.key, census));
            }
        }
        if profile.weight(PluginId::InterPodAffinity) > 0 {
            for key in preference_keys {
                let census = CensusKey::Preference {
                    key,
                    namespace,
                    labels,
                    affinity,
                    hard_weight,
                    ignore_existing,
                };
                plan.preferences.push(count(cluster, key, census));
            }
        }
        plan
    }

    fn all(&self) -> impl Iterator<Item = &Counted> {
        let all = [
            &self.unwelcome,
            &self.wanted,
            &self.unwanted,
            &self.preferences,
        ];
        all.into_iter().flatten()
    }

    /// The counts that can distinguish nodes at present: those that are not all 0, and those of required affinity, for
    /// which a node needs the label even if nothing is counted.
    pub(crate) fn active<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = &'a Counted> {
        let others = [&self.unwelcome, &self.unwanted, &self.preferences];
        let counted = others
            .into_iter()
            .flatten()
            .filter(|c| counts_something(cluster, c));
        self.wanted.iter().chain(counted)
    }

    /// The counts that are [`active`](Self::active), one bit each; `None` if there are more than 64.
    pub(crate) fn activity(&self, cluster: &Cluster) -> Option<u64> {
        let bit =
            |(i, counted): (usize, &Counted)| u64::from(counts_something(cluster, counted)) << i;
        (self.all().count() <= 64).then(|| self.all().enumerate().map(bit).sum())
    }

    /// Marks the tallies as used.
    pub(crate) fn touch(&self, cluster: &mut Cluster) {
        self.all()
            .for_each(|c| cluster.touch_census(c.tally.census));
    }

    /// Marks the columns and tallies that it reads, in a sweep.
    pub(crate) fn keep(&self, sweep: &mut Sweep) {
        for counted in self.all() {
            sweep.touch_column(counted.key);
            sweep.touch_tally(counted.tally);
        }
    }

    /// True if PreFilter skips Filter, because it would have no effect.
    pub fn filter_is_skipped(&self, cluster: &Cluster) -> bool {
        self.wanted.is_empty()
            && self.unwanted.is_empty()
            && self.unwelcome.iter().all(|c| !any(cluster, c))
    }
}

fn count(cluster: &mut Cluster, key: Symbol, census: CensusKey) -> Counted {
    let key = cluster.ensure_column(key);
    let eligibility = cluster.ensure_eligibility(Eligibility::default());
    let census = cluster.ensure_census(census);
    let tally = cluster.ensure_tally(
        census,
        TallyKey {
            key,
            eligibility,
            missing_as_empty: false,
        },
    );
    Counted { key, tally }
}

fn counts_something(cluster: &Cluster, counted: &Counted) -> bool {
    let tally = cluster.tally(counted.tally);
    tally.maximum().unwrap_or(0) > 0 || tally.minimum().unwrap_or(0) < 0
}

/// True if anything is counted in any domain.
fn any(cluster: &Cluster, counted: &Counted) -> bool {
    cluster.tally(counted.tally).maximum().unwrap_or(0) > 0
}

/// The count in a node's domain; `None` if the node lacks the label.
fn count_at(cluster: &Cluster, counted: &Counted, node: NodeIdx) -> Option<i32> {
    count_in(cluster, counted, cluster.tally(counted.tally), node)
}

fn count_in(cluster: &Cluster, counted: &Counted, tally: &Tally, node: NodeIdx) -> Option<i32> {
    let domain = cluster.column(counted.key).domain(node)?;
    Some(tally.count(domain))
}

/// Why a node is refused; `None` if it passes.
pub fn filter(cluster: &Cluster, plan: &AffinityPlan, node: NodeIdx) -> Option<Refusal> {
    filter_with(cluster, plan, node, |counted| cluster.tally(counted.tally))
}

/// As [`filter`], with tallies of the caller.
pub fn filter_with<'a>(
    cluster: &'a Cluster,
    plan: &AffinityPlan,
    node: NodeIdx,
    tally: impl Fn(&Counted) -> &'a Tally,
) -> Option<Refusal> {
    let plugin = PluginId::InterPodAffinity;
    if !wanted_with(cluster, plan, node, &tally) {
        return Some(Refusal::unresolvable(plugin, Reason::PodAffinity));
    }
    let there =
        |counted: &Counted| count_in(cluster, counted, tally(counted), node).is_some_and(|n| n > 0);
    if plan.unwanted.iter().any(there) {
        return Some(Refusal::unschedulable(plugin, Reason::PodAntiAffinity));
    }
    if plan.unwelcome.iter().any(there) {
        return Some(Refusal::unschedulable(plugin, Reason::ExistingAntiAffinity));
    }
    None
}

/// True if anything is counted in the node's domain.
pub fn is_there(cluster: &Cluster, counted: &Counted, node: NodeIdx) -> bool {
    count_at(cluster, counted, node).is_some_and(|n| n > 0)
}

/// True if required affinity holds: there are pods for every term, or the pod is the first of its group.
pub fn wanted_are_there(cluster: &Cluster, plan: &AffinityPlan, node: NodeIdx) -> bool {
    wanted_with(cluster, plan, node, &|counted| cluster.tally(counted.tally))
}

fn wanted_with<'a>(
    cluster: &'a Cluster,
    plan: &AffinityPlan,
    node: NodeIdx,
    tally: &impl Fn(&Counted) -> &'a Tally,
) -> bool {
    let mut all = true;
    for counted in &plan.wanted {
        match count_in(cluster, counted, tally(counted), node) {
            None => return false,
            Some(count) => all &= count > 0,
        }
    }
    let anywhere = |counted: &Counted| tally(counted).maximum().unwrap_or(0) > 0;
    all || (plan.matches_itself && !plan.wanted.iter().any(anywhere))
}

/// A copy of Filter's counts, to be changed: AddPod and RemovePod.
///
/// Terminating pods count here, so adding and removing pods only changes counts.
#[derive(Debug, Clone)]
pub struct Trial {
    tallies: Vec<(Counted, Tally)>,
}

impl Trial {
    /// The counts of the cluster as it is.
    pub fn new(cluster: &Cluster, plan: &AffinityPlan) -> Self {
        let mut tallies: Vec<(Counted, Tally)> = Vec::new();
        for &counted in plan
            .unwelcome
            .iter()
            .chain(&plan.wanted)
            .chain(&plan.unwanted)
        {
            // Terms with the same key share a tally.
            if tallies.iter().all(|(c, _)| c.tally != counted.tally) {
                tallies.push((counted, cluster.tally(counted.tally).clone()));
            }
        }
        Self { tallies }
    }

    /// Adds (1) or removes (-1) a pod of class `other` on a node.
    pub fn update(&mut self, cluster: &Cluster, other: ClassId, node: NodeIdx, delta: i32) {
        let counted_in = &cluster.tables().class(other).counted_in;
        for (counted, tally) in &mut self.tallies {
            let census = counted.tally.census;
            let weight = counted_in.iter().find(|(id, _)| *id == census);
            let domain = cluster.column(counted.key).domain(node);
            let included = cluster.tally_nodes(counted.tally).contains(node.index());
            if let (Some(&(_, count)), Some(domain), true) = (weight, domain, included) {
                tally.add(domain, delta * count);
            }
        }
    }

    /// Why a node is refused with these counts; `None` if it passes.
    pub fn filter(&self, cluster: &Cluster, plan: &AffinityPlan, node: NodeIdx) -> Option<Refusal> {
        filter_with(cluster, plan, node, |counted| {
            let tried = self.tallies.iter().find(|(c, _)| c.tally == counted.tally);
            tried.map_or_else(|| cluster.tally(counted.tally), |(_, tally)| tally)
        })
    }
}

/// Scores the feasible nodes. Returns false, and scores nothing, if there are no preferences.
pub(crate) fn score(
    cluster: &Cluster,
    plan: &AffinityPlan,
    feasible: &[NodeIdx],
    out: &mut Vec<i32>,
) -> bool {
    out.clear();
    let used = plan
        .preferences
        .iter()
        .filter(|c| counts_something(cluster, c));
    let used: SmallVec<[&Counted; 4]> = used.collect();
    if used.is_empty() {
        return false;
    }
    let sum = |node: &NodeIdx| {
        used.iter()
            .filter_map(|c| count_at(cluster, c, *node))
            .sum::<i32>()
    };
    out.extend(feasible.iter().map(sum));
    let (min, max) = (
        out.iter().copied().min().unwrap_or(0),
        out.iter().copied().max().unwrap_or(0),
    );
    let range = i64::from(max) - i64::from(min);
    for score in out.iter_mut() {
        *score = match range {
            0 => 0,
            range => (100.0 * ((i64::from(*score) - i64::from(min)) as f64 / range as f64)) as i32,
        };
    }
    true
}
