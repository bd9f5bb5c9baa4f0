//! A copy of a cluster in which changes are carried out and pods are decided again.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use rustc_hash::FxHashSet;
use strew_cluster::{ClassId, Cluster, NodeIdx, OwnerRef, PodIdx, SpreadConstraint};
use strew_model::Symbol;
use strew_scheduler::plugins::pod_topology_spread::Origin;
use strew_scheduler::preemption::Nominations;
use strew_scheduler::profiles::Profiles;
use strew_scheduler::{Decision, Profile, Unfit};

use crate::apply::{Subject, is_made_for};
use crate::change::Change;
use crate::suggest::own_constraints;

/// A copy of a cluster in which changes are carried out and pods are decided again.
///
/// A pod that a change takes off its node stands for the pod that its controller makes instead, with the same row. A pod
/// without a controller, and one made for a node that is gone or evicts it, has no such pod: it is [gone](Fate::Gone).
/// No pod is preempted, and PodDisruptionBudgets are not asked.
pub struct Trial<'a> {
    base: &'a Cluster,
    cluster: Cluster,
    profiles: Profiles,
    nominations: Nominations,
    gone: BTreeSet<PodIdx>,
    refused: BTreeMap<PodIdx, Rc<Unfit>>,
}

/// A pod for which changes made a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    /// The pod.
    pub pod: PodIdx,
    /// Its node before; a row of the cluster before. `None`: it was Pending.
    pub from: Option<NodeIdx>,
    /// What became of it.
    pub to: Fate,
}

/// What becomes of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is on this node, a row of the cluster after.
    On(NodeIdx),
    /// It is Pending; why, if one of the profiles decides for it.
    Pending(Option<Rc<Unfit>>),
    /// No controller makes another one.
    Gone,
}

/// How a constraint of a workload is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skew {
    /// The namespace of its pods.
    pub namespace: Symbol,
    /// The controller of its pods.
    pub owner: Option<OwnerRef>,
    /// The constraint, its selector complete.
    pub constraint: SpreadConstraint,
    /// Its index in the pods' spec, or in the defaults.
    pub index: usize,
    /// Whether it is a default of the cluster.
    pub is_default: bool,
    /// The most pods of a domain less the fewest; `None`: no node is in a domain that counts.
    pub skew: Option<i32>,
}

impl<'a> Trial<'a> {
    /// A copy. Cost: a copy of the cluster; its counts come with it.
    pub fn new(base: &'a Cluster, profiles: &[Profile]) -> Self {
        let mut cluster = base.clone();
        let profiles = Profiles::new(&mut cluster.names, profiles.to_vec());
        Self {
            base,
            nominations: Nominations::of(&cluster),
            cluster,
            profiles,
            gone: BTreeSet::new(),
            refused: BTreeMap::new(),
        }
    }

    /// The cluster as it is now.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster as it is now; a pod that is gone has a row there still, on no node.
    pub fn into_cluster(self) -> Cluster {
        self.cluster
    }

    /// Carries a change out; changes of "the pod" are made to these pods, which are alike: those of a workload. What
    /// leaves its node waits for [`decide`](Self::decide), and so do pods that ask for something else now: others are
    /// made in their place, all at once.
    pub fn apply(&mut self, change: &Change, pods: &[PodIdx]) {
        let constraints = pods.first().map(|&pod| self.constraints(pod));
        let subject = Subject {
            pods,
            constraints: constraints.as_deref().unwrap_or_default(),
        };
        let applied = change.apply(&mut self.cluster, subject);
        applied.edited().for_each(|pod| self.cluster.unbind(pod));
        for (pod, node) in applied.left() {
            let row = self.cluster.pod(pod);
            // A DaemonSet makes another pod for the same node, unless the node is gone or keeps it off.
            let is_asked = matches!(change, Change::DeletePod { .. });
            let is_alone = self.cluster.class_of(pod).key.owner.is_none();
            let is_orphan = is_alone || (!is_asked && is_made_for(self.base, pod, node));
            if row.node.is_none() && is_orphan {
                self.gone.insert(pod);
            }
        }
    }

    /// The constraints as a pod could have them itself.
    fn constraints(&mut self, pod: PodIdx) -> Vec<SpreadConstraint> {
        let cluster = &mut self.cluster;
        let class = cluster.pod(pod).class;
        let Some(engine) = self.profiles.engine_of(cluster, class) else {
            return cluster.spec_of(pod).spread.to_vec();
        };
        let plan = engine.plan(cluster, class).spread.clone();
        own_constraints(&plan, cluster.spec_of(pod))
    }

    /// Decides for all pods that wait, those of higher priority first, then those that waited before the changes.
    pub fn decide(&mut self) {
        let waits = |(pod, row): &(PodIdx, &strew_cluster::PodRow)| {
            row.node.is_none() && !self.gone.contains(pod)
        };
        let waiting = self.cluster.pods().filter(waits);
        let mut waiting: Vec<PodIdx> = waiting.map(|(pod, _)| pod).collect();
        waiting.retain(|&pod| {
            let is_leaving = self.cluster.class_of(pod).key.terminating;
            !is_leaving && self.cluster.spec_of(pod).gates.is_empty()
        });
        waiting.sort_by_key(|&pod| {
            let priority = self.cluster.spec_of(pod).priority;
            (
                std::cmp::Reverse(priority),
                self.node_before(pod).is_some(),
                pod,
            )
        });
        for pod in waiting {
            let class = self.cluster.pod(pod).class;
            let Some(engine) = self.profiles.engine_of(&self.cluster, class) else {
                continue;
            };
            match engine.decide_with(&mut self.cluster, pod, &self.nominations) {
                Decision::Place { node, .. } => {
                    self.cluster.bind(pod, node);
                    self.refused.remove(&pod);
                }
                Decision::Unfit(unfit) => {
                    self.refused.insert(pod, unfit);
                }
            }
        }
    }

    /// The pods that are not where they were, by row.
    pub fn turned(&self) -> Vec<Turned> {
        let turned = |(pod, row): (PodIdx, &strew_cluster::PodRow)| {
            let from = self.node_before(pod);
            let to = match row.node {
                _ if self.gone.contains(&pod) => Fate::Gone,
                Some(node) => Fate::On(node),
                None => Fate::Pending(self.refused.get(&pod).cloned()),
            };
            let is_same = match &to {
                Fate::On(node) => from == Some(*node),
                Fate::Pending(_) => from.is_none(),
                Fate::Gone => false,
            };
            (!is_same).then_some(Turned { pod, from, to })
        };
        self.cluster.pods().filter_map(turned).collect()
    }

    fn node_before(&self, pod: PodIdx) -> Option<NodeIdx> {
        let uid = &self.cluster.pod(pod).uid;
        self.base.pod(self.base.find_pod(uid)?).node
    }

    /// Each constraint of each workload with its skew, by the first pod that has it.
    ///
    /// Cost: the counts of every constraint are made where no decision has needed them yet.
    pub fn skews(&mut self) -> Vec<Skew> {
        let classes: BTreeSet<ClassId> = {
            let pods = self.cluster.pods();
            let stay = pods.filter(|(pod, _)| !self.gone.contains(pod));
            stay.map(|(_, row)| row.class).collect()
        };
        let mut skews: Vec<Skew> = Vec::new();
        let mut seen: FxHashSet<(Symbol, Option<OwnerRef>, usize, SpreadConstraint)> =
            FxHashSet::default();
        for class in classes {
            let cluster = &mut self.cluster;
            let Some(engine) = self.profiles.engine_of(cluster, class) else {
                continue;
            };
            let plan = engine.plan(cluster, class).spread.clone();
            let key = cluster.tables().class(class).key.clone();
            for (index, constraint) in plan.effective.constraints.iter().enumerate() {
                let identity = (key.namespace, key.owner, index, constraint.clone());
                if key.terminating || !seen.insert(identity) {
                    continue;
                }
                let (_, tally) = plan.counted(cluster, class, index);
                let tally = cluster.tally(tally);
                skews.push(Skew {
                    namespace: key.namespace,
                    owner: key.owner,
                    constraint: constraint.clone(),
                    index,
                    is_default: plan.effective.origin != Origin::Pod,
                    skew: (tally.domains() > 0).then(|| tally.skew()),
                });
            }
        }
        skews
    }
}
