//! The smallest single changes that would turn a refusal, each verified by deciding again on the changed cluster.
//!
//! Causes only say what is worth a try; whether it helps is decided by the engine. Changes are carried out on a draft of
//! the cluster and taken back.

use strew_cluster::{Cluster, Draft, PodIdx, PodSpec, SpreadConstraint};
use strew_scheduler::plugins::pod_topology_spread::{Origin, SpreadPlan};
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{Decision, Engine, Explanation, Profile};

use crate::apply::{NEW_NODE, Subject};
use crate::candidates::Candidates;
use crate::change::{Change, ChangeKind, Target};
use crate::lives::Lives;

/// How many changes are tried at most.
pub const TRIES_MAX: usize = 96;

/// How many changes of one kind are tried before the next kind has its turn.
pub(crate) const TRIES_OF_A_KIND_MAX: usize = 8;

/// How many that help are kept of one kind.
const KEPT_OF_A_KIND_MAX: usize = 2;

/// A change that helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The change.
    pub change: Change,
    /// Where the pod goes then.
    pub target: Target,
}

/// What was tried, and what helps.
#[derive(Debug, Clone, Default)]
pub struct WhatIf {
    /// The changes that help, the smallest first.
    pub suggestions: Vec<Suggestion>,
    /// How many changes were decided on.
    pub tried: usize,
    /// The kinds of those that do not help.
    pub in_vain: Vec<ChangeKind>,
}

/// Finds the changes after which a refused pod has a node; `None` if it has one already. The cluster stays as it is.
///
/// The explanation must be of this cluster, profile and nominations.
///
/// Cost: a decision for each change that is tried (at most [`TRIES_MAX`]).
pub fn suggest(
    profile: &Profile,
    cluster: &mut Cluster,
    nominations: &Nominations,
    explanation: &Explanation,
) -> Option<WhatIf> {
    if explanation.standing.would_go().is_some() {
        return None;
    }
    let mut bench = Bench::new(profile, cluster, nominations, explanation.pod);
    let kinds = bench.candidates(explanation);
    let mut found = WhatIf::default();
    for changes in kinds {
        try_kind(&mut bench, changes, &mut found);
    }
    found.suggestions.sort_by_key(|s| s.change.kind());
    let helps: Vec<ChangeKind> = found.suggestions.iter().map(|s| s.change.kind()).collect();
    found.in_vain.retain(|kind| !helps.contains(kind));
    Some(found)
}

/// Where the pod goes after a change of the cluster, beside the pods that are nominated; `None`: nowhere. The cluster
/// itself stays as it is.
///
/// Cost: a decision that remembers nothing.
pub fn decide_after(
    profile: &Profile,
    cluster: &mut Cluster,
    pod: PodIdx,
    nominations: &Nominations,
    change: &Change,
) -> Option<Target> {
    let mut bench = Bench::new(profile, cluster, nominations, pod);
    bench.decide_after(change)
}

/// Tries the changes of one kind, best first, until enough of them help.
fn try_kind(bench: &mut Bench<'_>, changes: Vec<Change>, found: &mut WhatIf) {
    let mut kept = 0;
    let mut in_vain = None;
    for change in changes.into_iter().take(TRIES_OF_A_KIND_MAX) {
        if kept == KEPT_OF_A_KIND_MAX || found.tried == TRIES_MAX {
            break;
        }
        found.tried += 1;
        // Of ever larger maxSkews the first that works is the one that is meant.
        let is_least = matches!(change, Change::MaxSkew { .. });
        match bench.decide_after(&change) {
            Some(target) => {
                kept += if is_least { KEPT_OF_A_KIND_MAX } else { 1 };
                found.suggestions.push(Suggestion { change, target });
            }
            None => in_vain = Some(change.kind()),
        }
    }
    if let Some(kind) = in_vain.filter(|kind| kept == 0 && !found.in_vain.contains(kind)) {
        found.in_vain.push(kind);
    }
}

/// The constraints as the pod could have them itself.
pub(crate) fn own_constraints(plan: &SpreadPlan, spec: &PodSpec) -> Vec<SpreadConstraint> {
    if plan.effective.origin == Origin::Pod {
        return spec.spread.to_vec();
    }
    let deduced = plan.effective.constraints.iter().cloned();
    let complete = |c: SpreadConstraint| SpreadConstraint {
        match_label_keys: Box::default(),
        ..c
    };
    deduced.map(complete).collect()
}

/// A draft of the cluster to try changes on; the pod is on no node in it.
struct Bench<'a> {
    work: Draft<'a>,
    engine: Engine,
    nominations: &'a Nominations,
    plan: SpreadPlan,
    /// The constraints as the pod could have them itself.
    constraints: Vec<SpreadConstraint>,
    pod: PodIdx,
}

impl<'a> Bench<'a> {
    fn new(
        profile: &Profile,
        cluster: &'a mut Cluster,
        nominations: &'a Nominations,
        pod: PodIdx,
    ) -> Self {
        let mut work = Draft::new(cluster);
        work.unbind(pod);
        let mut engine = Engine::new(profile.clone());
        let class = work.pod(pod).class;
        let plan = engine.plan(work.deciding(), class).spread.clone();
        let constraints = own_constraints(&plan, work.spec_of(pod));
        Self {
            work,
            engine,
            nominations,
            plan,
            constraints,
            pod,
        }
    }

    /// The changes to try, kind by kind.
    fn candidates(&self, explanation: &Explanation) -> Vec<Vec<Change>> {
        Candidates {
            cluster: &self.work,
            pod: self.pod,
            plan: &self.plan,
            refused: &explanation.refused,
            constraints: &self.constraints,
        }
        .all(explanation)
    }

    /// Where the pod goes after a change; `None`: still nowhere.
    fn decide_after(&mut self, change: &Change) -> Option<Target> {
        let lives = Lives::default();
        let subject = Subject {
            pods: &[self.pod],
            constraints: &self.constraints,
            lives: &lives,
        };
        let start = self.work.n_changes();
        change.apply(&mut self.work, subject);
        let cluster = self.work.deciding();
        let decision = self.engine.decide_with(cluster, self.pod, self.nominations);
        self.engine.rewind();
        let target = match decision {
            Decision::Place { node, .. } => {
                let name = self.work.node(node).name();
                Some(match self.work.names.text(name) {
                    NEW_NODE => Target::NewNode,
                    _ => Target::Node(node),
                })
            }
            Decision::Unfit(_) => None,
        };
        self.work.undo_to(start);
        target
    }
}
