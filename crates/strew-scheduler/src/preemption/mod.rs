//! DefaultPreemption: finds victims for a pod of higher priority that fits nowhere.
//!
//! [`preempt`] computes the result and changes nothing. It considers one node at a time: pods of one node are never
//! evicted to repair the skew for another. Source: spec/scheduler §3.16.
//!
//! Reading order: [`eligibility`], `candidates` (nodes to try, choice of the candidate), [`victims`] (the victims on a
//! node), [`budget`], [`nominations`] (room reserved for other pods), [`post_filter`] (kube-scheduler's messages).
//!
//! Difference: upstream begins the search at a random node and takes a random one of equal candidates; strew begins at
//! the first in the order of nodes, and takes the first.
//!
//! ```
//! use strew_cluster::{Cluster, NodeFact, PodFact, PodHistory, PodSpec};
//! use strew_model::{Labels, Resources, well_known};
//! use strew_scheduler::preemption::{Budgets, Nomination, Nominations, preempt};
//! use strew_scheduler::{Decision, Engine, Profile};
//!
//! let mut cluster = Cluster::new();
//! let name = cluster.names.intern("n1");
//! let node = cluster.set_node(NodeFact {
//!     name,
//!     labels: Labels::default(),
//!     taints: [].into(),
//!     unschedulable: false,
//!     allocatable: Resources::of(1000, 0),
//!     pods_max: 10,
//!     images: [].into(),
//! });
//! let mut add = |uid: &str, priority, node| {
//!     let requests = Resources::of(800, 0);
//!     cluster.set_pod(PodFact {
//!         uid: uid.into(),
//!         name: uid.into(),
//!         namespace: well_known::DEFAULT_NAMESPACE,
//!         labels: Labels::default(),
//!         owner: None,
//!         terminating: false,
//!         node,
//!         spec: PodSpec { priority, used: requests.clone(), requests, ..PodSpec::default() },
//!         history: PodHistory::default(),
//!     })
//! };
//! add("batch", 0, Some(name));
//! let urgent = add("urgent", 1000, None);
//!
//! let mut engine = Engine::new(Profile::default());
//! let (budgets, nominations) = (Budgets::default(), Nominations::new());
//! let Decision::Unfit(unfit) = engine.decide_with(&mut cluster, urgent, &nominations) else {
//!     panic!("the node is full");
//! };
//! let now_s = 1_700_000_000;
//! let found = preempt(&mut engine, &mut cluster, urgent, &unfit, &budgets, &nominations, now_s);
//! assert_eq!(found.nomination(), Nomination::Set(node));
//! assert_eq!(found.message(&unfit, &cluster), "0/1 nodes are available: 1 Insufficient cpu.");
//! ```

pub mod budget;
pub(crate) mod candidates;
pub mod eligibility;
pub mod nominations;
pub mod post_filter;
pub(crate) mod tryout;
pub mod victims;

use strew_cluster::{Cluster, NodeIdx, PodIdx};

use crate::engine::Engine;
use crate::profile::{PluginId, PreemptionArgs};
use crate::status::{Code, Reason, Unfit};

pub use budget::{Budget, Budgets};
pub use eligibility::Ineligible;
pub use nominations::Nominations;
pub use post_filter::Nomination;
pub use victims::{Candidate, NotHelped};

/// The start time of pods that have not started, for questions about no time in particular: after all others, and the
/// same in every run.
pub const NOT_STARTED_S: i64 = u32::MAX as i64;

/// The result of preemption for a pod that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// The outcome.
    pub outcome: Outcome,
    /// The nodes where preemption would work, in the order of nodes.
    pub candidates: Vec<Candidate>,
    /// The nodes that were tried without success, in the order of nodes.
    pub not_helped: Vec<(NodeIdx, NotHelped)>,
    /// The number of nodes.
    nodes: usize,
    /// True if `DynamicResources` runs first and reports that there is no claim to deallocate.
    after_claims: bool,
}

/// The outcome of a preemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Victims are evicted.
    Preempt(Eviction),
    /// The pod may not preempt now.
    NotEligible(Ineligible),
    /// No eviction helps.
    NoCandidate,
    /// A node takes the pod without evictions, and no candidate was found: an error upstream.
    FitsAsItIs,
    /// `DynamicResources` failed before preemption, because PreFilter had refused the pod (a quirk of v1.36.3).
    ClaimsNotFound,
    /// Preemption does not run: there is no node, the attempt failed, or the profile does not enable it.
    NotAsked(NotAsked),
}

/// Why preemption does not run for an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAsked {
    /// There is no node, the attempt ended with an error, or no PostFilter plugin handles the refusal.
    NoAttempt,
    /// The pod has a need that strew does not implement.
    Unsupported,
    /// The profile does not enable `DefaultPreemption`.
    Disabled,
}

/// The changes that make room. The pod is nominated to the node first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// The node that the pod is nominated to.
    pub node: NodeIdx,
    /// The victims, at least one, most important first.
    pub victims: Vec<PodIdx>,
    /// The number of victims whose eviction violates a disruption budget.
    pub violations: usize,
    /// The victims to delete; the others are terminating already.
    pub deleted: Vec<PodIdx>,
    /// Pods of lower priority whose nomination to the node is cleared; empty if there is nothing to delete.
    pub cleared: Vec<PodIdx>,
}

/// Finds how to make room for a pod that fits nowhere. The cluster's facts do not change, but new tallies may be
/// counted.
///
/// `unfit` is the last decision on the pod, on the same state of the cluster. `now_s` (seconds since 1970) is the start
/// time of pods that have not started.
///
/// Cost: nodes refused as `Unschedulable`, at most as many candidates as [`PreemptionArgs`] say, × their pods × all
/// filters.
pub fn preempt(
    engine: &mut Engine,
    cluster: &mut Cluster,
    pod: PodIdx,
    unfit: &Unfit,
    budgets: &Budgets,
    nominations: &Nominations,
    now_s: i64,
) -> Preemption {
    let profile = engine.profile();
    let after_claims = profile.filters_with(PluginId::DynamicResources);
    let args = profile.preemption;
    cluster.refresh_order();
    let mut preemption = Preemption {
        outcome: Outcome::NoCandidate,
        candidates: Vec::new(),
        not_helped: Vec::new(),
        nodes: cluster.nodes_present(),
        after_claims,
    };
    let args = match preliminary(cluster, pod, unfit, after_claims, args) {
        Ok(args) => args,
        Err(outcome) => {
            preemption.outcome = outcome;
            return preemption;
        }
    };
    let nodes = candidates::nodes_to_try(cluster, unfit);
    if nodes.is_empty() {
        return preemption;
    }
    let wanted = candidates::candidates_wanted(&args, nodes.len());
    let priority = cluster.spec_of(pod).priority;
    let mut tryout = engine.tryout(cluster, pod);
    let cluster = tryout.cluster();
    for node in nodes {
        let beside = nominations.beside(cluster, pod, node);
        match victims::dry_run(&mut tryout, node, priority, &beside, budgets, now_s) {
            Ok(candidate) => preemption.candidates.push(candidate),
            Err(why) => preemption.not_helped.push((node, why)),
        }
        let found = &preemption.candidates;
        if found.len() >= wanted && found.iter().any(|c| c.violations == 0) {
            break;
        }
    }
    preemption.outcome = match candidates::choose(cluster, &preemption.candidates, now_s) {
        Some(taken) => Outcome::Preempt(eviction(cluster, pod, taken, nominations)),
        None if preemption.fits_somewhere() => Outcome::FitsAsItIs,
        None => Outcome::NoCandidate,
    };
    preemption
}

/// The outcome that is clear before any node is tried.
fn preliminary(
    cluster: &Cluster,
    pod: PodIdx,
    unfit: &Unfit,
    after_claims: bool,
    args: Option<PreemptionArgs>,
) -> Result<PreemptionArgs, Outcome> {
    match unfit {
        Unfit::NoNodes => return Err(Outcome::NotAsked(NotAsked::NoAttempt)),
        Unfit::PreFilter(refusal) => {
            let unsupported = |reason: &Reason| matches!(reason, Reason::Unsupported(_));
            if refusal.code == Code::Error {
                return Err(Outcome::NotAsked(NotAsked::NoAttempt));
            }
            if refusal.reasons.iter().any(unsupported) {
                return Err(Outcome::NotAsked(NotAsked::Unsupported));
            }
            // With code `Unschedulable`, PreFilter of all plugins has run, that of DynamicResources included.
            if after_claims && refusal.code == Code::UnschedulableAndUnresolvable {
                return Err(Outcome::ClaimsNotFound);
            }
        }
        Unfit::EveryNode(_) => {}
    }
    let Some(args) = args else {
        return Err(Outcome::NotAsked(match after_claims {
            true => NotAsked::Disabled,
            false => NotAsked::NoAttempt,
        }));
    };
    match eligibility::ineligible(cluster, pod, unfit) {
        Some(why) => Err(Outcome::NotEligible(why)),
        None => Ok(args),
    }
}

fn eviction(
    cluster: &Cluster,
    pod: PodIdx,
    taken: &Candidate,
    nominations: &Nominations,
) -> Eviction {
    let stays = |&&pod: &&PodIdx| !cluster.class_of(pod).key.terminating;
    let deleted: Vec<PodIdx> = taken.victims.iter().filter(stays).copied().collect();
    let cleared = match deleted.is_empty() {
        true => Vec::new(),
        false => nominations.below(cluster, pod, taken.node),
    };
    Eviction {
        node: taken.node,
        victims: taken.victims.clone(),
        violations: taken.violations,
        deleted,
        cleared,
    }
}
