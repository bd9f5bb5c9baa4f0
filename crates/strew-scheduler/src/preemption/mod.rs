//! DefaultPreemption: the victims that make room for a pod of higher priority that fits nowhere.
//!
//! [`preempt`] answers what would be done, and changes nothing. One node at a time is looked at: pods never go from
//! one node to repair the skew for another. Source: spec/scheduler §3.16.
//!
//! Reading order: [`eligibility`], `candidates` (which nodes are tried, which is taken), [`victims`] (who must go
//! from a node), [`budget`], [`nominations`] (room that was made for others), [`post_filter`] (what kube-scheduler
//! says of it).
//!
//! Where strew differs: upstream begins the search at a random node and takes a random one of equal candidates; strew
//! begins at the first in the order of nodes, and takes the first.
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

/// What preemption comes to for a pod that fits nowhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// What comes of it.
    pub outcome: Outcome,
    /// The nodes that would do, in the order of nodes.
    pub candidates: Vec<Candidate>,
    /// The nodes that were tried in vain, in the order of nodes.
    pub not_helped: Vec<(NodeIdx, NotHelped)>,
    /// How many nodes there are.
    nodes: usize,
    /// Whether `DynamicResources` has its say first: that there is no claim to take back.
    after_claims: bool,
}

/// What comes of a preemption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Room is made.
    Preempt(Eviction),
    /// The pod may not make others go now.
    NotEligible(Ineligible),
    /// No eviction helps.
    NoCandidate,
    /// Some node takes the pod without any eviction, and no other node would do: an error upstream.
    FitsAsItIs,
    /// `DynamicResources` failed before preemption was reached: PreFilter had refused the pod (a quirk of v1.36.3).
    ClaimsNotFound,
    /// Preemption has no part in this: there is no node, the attempt failed, or the profile does not enable it.
    NotAsked(NotAsked),
}

/// Why preemption has no part in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotAsked {
    /// There is no node, or the attempt ended with an error, or no plugin acts on a pod that fits nowhere.
    NoAttempt,
    /// The pod needs what strew does not implement.
    Unsupported,
    /// The profile does not enable `DefaultPreemption`.
    Disabled,
}

/// What is to be done to make room. The pod is nominated to the node first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// The node that the pod is nominated to.
    pub node: NodeIdx,
    /// The pods that must go, at least one, most important first.
    pub victims: Vec<PodIdx>,
    /// How many of them break a disruption budget.
    pub violations: usize,
    /// The victims that are still to be deleted: the others are terminating already.
    pub deleted: Vec<PodIdx>,
    /// Pods of lower priority whose nomination to the node is cleared; none if nothing is left to delete.
    pub cleared: Vec<PodIdx>,
}

/// Finds out how room can be made for a pod that fits nowhere. Nothing is changed in the cluster but what is counted.
///
/// `unfit` is the last decision on the pod, on this very cluster. `now_s` (seconds since 1970) stands for the start of
/// pods that have not started.
///
/// Cost: nodes refused as `Unschedulable`, at most [`PreemptionArgs`] many candidates, x their pods x all filters.
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

/// What settles the matter before any node is tried.
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
            // With `Unschedulable` the other plugins' PreFilter, thus that of DynamicResources, has run.
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
