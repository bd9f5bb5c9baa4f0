//! Changes carried out on a draft of a cluster, which can take them back.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use strew_cluster::scale_down::{self, Candidate, Properties};
use strew_cluster::{
    Cluster, Draft, NodeFact, NodeIdx, OwnerKind, PodFact, PodIdx, PodSpec, SpreadConstraint,
};
use strew_model::{Labels, Prng, Symbol, Taint, well_known};
use strew_scheduler::plugins::node_affinity::narrow;
use strew_scheduler::plugins::node_resources_fit::{Lacking, Shortage};

use crate::change::Change;
use crate::edit::set_amount;
use crate::lives::{Lived, Lives};

/// The pods that changes of "the pod" are made to.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) pods: &'a [PodIdx],
    /// The constraints as the pods could have them themselves.
    pub(crate) constraints: &'a [SpreadConstraint],
    pub(crate) lives: &'a Lives,
}

/// What a change did to pods.
#[derive(Default)]
pub(crate) struct Applied {
    /// The pods that left their nodes, with the names of these.
    pub(crate) left: Vec<(PodIdx, Symbol)>,
    /// The pods that ask for something else now.
    pub(crate) edited: Vec<PodIdx>,
    /// The pods that are there now.
    pub(crate) added: Vec<PodIdx>,
    /// The pods that their workload has no more.
    pub(crate) scaled_away: Vec<PodIdx>,
    /// The pods that a drain wants to leave their nodes.
    pub(crate) asked_to_leave: Vec<PodIdx>,
}

impl Change {
    /// Carries the change out, and returns what it did to pods.
    pub(crate) fn apply(&self, draft: &mut Draft<'_>, subject: Subject<'_>) -> Applied {
        let mut applied = Applied::default();
        let left = &mut applied.left;
        match self {
            Self::LoseNode { node } => lose(draft, *node, left),
            Self::LoseDomain { key, value } => {
                for node in domain(draft, *key, *value) {
                    lose(draft, node, left);
                }
            }
            Self::DrainNode { node } => {
                set_node(draft, *node, cordon);
                let name = draft.node(*node).name();
                let pods = draft.node(*node).pods().iter().copied();
                let leave = pods.filter(|&pod| !is_made_for(draft, pod, name));
                applied.asked_to_leave = leave.collect();
            }
            Self::Cordon { node } | Self::Shift { node } => set_node(draft, *node, cordon),
            Self::Scale { to } => {
                // Pods that terminate are no replicas any more.
                let is_active = |pod: &&PodIdx| !draft.class_of(**pod).key.terminating;
                let active: Vec<PodIdx> = subject.pods.iter().filter(is_active).copied().collect();
                for pod in first_to_go(
                    draft,
                    &active,
                    active.len().saturating_sub(*to),
                    subject.lives,
                ) {
                    take_off(draft, pod, left);
                    applied.scaled_away.push(pod);
                }
                let like = active.first();
                let numbers = active.len()..*to;
                let added = like.map(|&like| numbers.map(move |n| (like, n)));
                for (like, number) in added.into_iter().flatten() {
                    applied.added.push(add_pod(draft, like, number));
                }
            }
            // Budgets are not part of the cluster.
            Self::AllowDisruptions { .. } => {}
            Self::Uncordon { node } => set_node(draft, *node, uncordon),
            Self::TaintNode { node, taint: new } => {
                set_node(draft, *node, |fact| taint(fact, new));
                leave(draft, *node, |c, pod| is_evicted(c, pod, new), left);
            }
            Self::UntaintNode { node, key, effect } => {
                let stays = |t: &&Taint| t.key != *key || effect.is_some_and(|e| e != t.effect);
                let untaint = |fact: &mut NodeFact| {
                    fact.taints = fact.taints.iter().filter(stays).cloned().collect();
                };
                set_node(draft, *node, untaint);
            }
            Self::LabelNode {
                node, key, value, ..
            } => {
                let label = |fact: &mut NodeFact| fact.labels = fact.labels.with([(*key, *value)]);
                set_node(draft, *node, label);
            }
            Self::UnlabelNode { node, key } => {
                let unlabel = |fact: &mut NodeFact| {
                    let rest = fact.labels.iter().filter(|(k, _)| k != key);
                    fact.labels = Labels::new(rest.collect());
                };
                set_node(draft, *node, unlabel);
            }
            Self::FreeResources { node, short } => {
                set_node(draft, *node, |fact| free(fact, short));
            }
            Self::DeletePod { pod } => take_off(draft, *pod, left),
            Self::MovePod { pod, to } => {
                take_off(draft, *pod, left);
                draft.bind(*pod, *to);
            }
            Self::AddNodeLike { like, .. } => add_node(draft, *like, None),
            Self::AddNodeInNewDomain { like, key } => add_node(draft, *like, Some(*key)),
            Self::AddFirstNode => {
                if let Some(&pod) = subject.pods.first() {
                    add_first_node(draft, pod, subject.constraints);
                }
            }
            Self::StartPod {
                node,
                namespace,
                labels,
            } => start_pod(draft, *node, *namespace, labels),
            Self::Tolerate { .. }
            | Self::Policy { .. }
            | Self::MaxSkew { .. }
            | Self::MinDomains { .. }
            | Self::ScheduleAnyway { .. }
            | Self::DropConstraint { .. }
            | Self::AddConstraint { .. }
            | Self::RequestLess { .. }
            | Self::DropNodeSelector { .. }
            | Self::DropNodeExpression { .. }
            | Self::DropNodeAffinity
            | Self::DropPodAffinity { .. }
            | Self::DropHostPort { .. }
            | Self::DropClaim { .. }
            | Self::DropUnsupported { .. } => {
                for &pod in subject.pods {
                    let mut spec = draft.spec_of(pod).clone();
                    self.edit(&mut spec, subject.constraints);
                    draft.respec(pod, &spec);
                    applied.edited.push(pod);
                }
            }
        }
        applied
    }
}

/// Whether a pod is made for one node, as those of DaemonSets and of a kubelet's own files are: it goes with the node.
pub(crate) fn is_made_for(cluster: &Cluster, pod: PodIdx, name: Symbol) -> bool {
    let owner = cluster.class_of(pod).key.owner;
    let affinity = &cluster.spec_of(pod).node_affinity;
    let is_named = || matches!(narrow(affinity), Ok(Some(names)) if names == [name]);
    owner.is_some_and(|owner| owner.name == name) || is_named()
}

fn is_evicted(cluster: &Cluster, pod: PodIdx, taint: &Taint) -> bool {
    let tolerations = &cluster.spec_of(pod).tolerations;
    taint.effect == strew_model::Effect::NoExecute
        && !tolerations.iter().any(|t| t.tolerates(taint))
}

/// The nodes of a domain.
fn domain(cluster: &Cluster, key: Symbol, value: Symbol) -> Vec<NodeIdx> {
    let is_in = |node: &NodeIdx| {
        let fact = cluster.node(*node).fact();
        fact.is_some_and(|fact| fact.labels.get(key) == Some(value))
    };
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    rows.filter(is_in).collect()
}

fn set_node(draft: &mut Draft<'_>, node: NodeIdx, change: impl FnOnce(&mut NodeFact)) {
    if let Some(mut fact) = draft.node(node).fact().cloned() {
        change(&mut fact);
        draft.set_node(fact);
    }
}

fn take_off(draft: &mut Draft<'_>, pod: PodIdx, left: &mut Vec<(PodIdx, Symbol)>) {
    if let Some(node) = draft.pod(pod).node {
        left.push((pod, draft.node(node).name()));
        draft.unbind(pod);
    }
}

fn leave(
    draft: &mut Draft<'_>,
    node: NodeIdx,
    does: impl Fn(&Cluster, PodIdx) -> bool,
    left: &mut Vec<(PodIdx, Symbol)>,
) {
    for pod in draft.node(node).pods().to_vec() {
        if does(draft, pod) {
            take_off(draft, pod, left);
        }
    }
}

fn lose(draft: &mut Draft<'_>, node: NodeIdx, left: &mut Vec<(PodIdx, Symbol)>) {
    leave(draft, node, |_, _| true, left);
    let name = draft.node(node).name();
    draft.remove_node(name);
}

fn cordon(fact: &mut NodeFact) {
    fact.unschedulable = true;
    taint(fact, &Taint::UNSCHEDULABLE);
}

fn uncordon(fact: &mut NodeFact) {
    fact.unschedulable = false;
    let rest = fact.taints.iter().filter(|t| **t != Taint::UNSCHEDULABLE);
    fact.taints = rest.cloned().collect();
}

fn taint(fact: &mut NodeFact, taint: &Taint) {
    let is_other = |t: &&Taint| (t.key, t.effect) != (taint.key, taint.effect);
    let others = fact.taints.iter().filter(is_other);
    fact.taints = others.chain([taint]).cloned().collect();
}

fn free(fact: &mut NodeFact, short: &[Shortage]) {
    for shortage in short {
        let more = shortage.requested - shortage.free;
        match shortage.resource {
            Lacking::Pods => fact.pods_max += more,
            resource => {
                let amount = shortage.allocatable.saturating_add(more);
                set_amount(&mut fact.allocatable, resource, amount);
            }
        }
    }
}

/// Names of what is made up, which no object can have.
pub(crate) const NEW_NODE: &str = "(the new node)";
const NEW_DOMAIN: &str = "(a new domain)";
const NEW_POD: &str = "(the new pod)";

/// A node like another, as it would join: empty, and nothing wrong with it.
fn add_node(draft: &mut Draft<'_>, like: NodeIdx, new_domain_of: Option<Symbol>) {
    let Some(mut fact) = draft.node(like).fact().cloned() else {
        return;
    };
    let name = draft.intern(NEW_NODE);
    fact.name = name;
    uncordon(&mut fact);
    // Taints that the control plane sets when something is wrong with a node.
    let names = &draft.names;
    let is_trouble = |t: &Taint| names.text(t.key).starts_with("node.kubernetes.io/");
    fact.taints = fact
        .taints
        .iter()
        .filter(|t| !is_trouble(t))
        .cloned()
        .collect();
    if fact.labels.get(well_known::HOSTNAME).is_some() {
        fact.labels = fact.labels.with([(well_known::HOSTNAME, name)]);
    }
    if let Some(key) = new_domain_of {
        let value = draft.intern(NEW_DOMAIN);
        fact.labels = fact.labels.with([(key, value)]);
    }
    draft.set_node(fact);
}

fn add_first_node(draft: &mut Draft<'_>, pod: PodIdx, constraints: &[SpreadConstraint]) {
    let name = draft.intern(NEW_NODE);
    let domain = draft.intern(NEW_DOMAIN);
    let spec = draft.spec_of(pod);
    let keys = constraints
        .iter()
        .filter(|c| c.hard)
        .map(|c| (c.key, domain));
    let labels = Labels::new(vec![(well_known::HOSTNAME, name)]);
    let labels = labels
        .with(keys)
        .with(spec.node_affinity.node_selector.iter());
    let fact = NodeFact {
        name,
        labels,
        taints: Box::default(),
        unschedulable: false,
        allocatable: spec.requests.clone(),
        pods_max: 1,
        images: Box::default(),
    };
    draft.set_node(fact);
}

/// A further pod of the workload of a pod, on no node. A StatefulSet names it by its number.
fn add_pod(draft: &mut Draft<'_>, like: PodIdx, number: usize) -> PodIdx {
    let key = draft.class_of(like).key.clone();
    let name = match key.owner {
        Some(owner) if owner.kind == OwnerKind::StatefulSet => {
            format!("{}-{number}", draft.names.text(owner.name))
        }
        Some(owner) => format!("{}-(new {number})", draft.names.text(owner.name)),
        None => format!("{}-(new {number})", draft.pod(like).name),
    };
    draft.add_pod(PodFact {
        uid: format!("(new) {}/{name}", draft.names.text(key.namespace)).into(),
        name: name.into(),
        namespace: key.namespace,
        labels: draft.labels_of(like).clone(),
        owner: key.owner,
        terminating: false,
        history: strew_cluster::PodHistory::default(),
        node: None,
        spec: draft.spec_of(like).clone(),
    })
}

/// The pods that go when a workload has `n` fewer: of a StatefulSet those of the highest ordinals, otherwise those that
/// a ReplicaSet's controller takes. Where its rules leave a choice, a fixed seed decides.
fn first_to_go(cluster: &Cluster, pods: &[PodIdx], n: usize, lives: &Lives) -> Vec<PodIdx> {
    let is_numbered = |pod: &PodIdx| {
        let owner = cluster.class_of(*pod).key.owner;
        owner.is_some_and(|owner| owner.kind == OwnerKind::StatefulSet)
    };
    if pods.iter().any(is_numbered) {
        return highest_ordinals(cluster, pods, n);
    }
    let mut n_beside: BTreeMap<NodeIdx, usize> = BTreeMap::new();
    for node in pods.iter().filter_map(|&pod| cluster.pod(pod).node) {
        *n_beside.entry(node).or_default() += 1;
    }
    let candidate = |&pod: &PodIdx| {
        let row = cluster.pod(pod);
        let Lived {
            life,
            counts_beside,
        } = lives.of.get(&row.uid).copied().unwrap_or_default();
        let node = row.node.filter(|_| counts_beside);
        Candidate {
            pod,
            rank: node.map_or(0, |node| n_beside[&node]),
            properties: Properties {
                uid: &row.uid,
                is_assigned: row.node.is_some(),
                life,
            },
        }
    };
    let candidates = pods.iter().map(candidate).collect();
    scale_down::first_to_go(candidates, n, lives.now, &mut Prng::new(0))
}

fn highest_ordinals(cluster: &Cluster, pods: &[PodIdx], n: usize) -> Vec<PodIdx> {
    let ordinal = |pod: PodIdx| {
        let (_, ordinal) = cluster.pod(pod).name.rsplit_once('-')?;
        ordinal.parse::<u32>().ok()
    };
    let mut ranked = pods.to_vec();
    ranked.sort_by_key(|&pod| Reverse((ordinal(pod), pod)));
    ranked.truncate(n);
    ranked
}

fn start_pod(draft: &mut Draft<'_>, node: NodeIdx, namespace: Symbol, labels: &[(Symbol, Symbol)]) {
    let node = draft.node(node).name();
    draft.add_pod(PodFact {
        uid: NEW_POD.into(),
        name: NEW_POD.into(),
        namespace,
        labels: Labels::new(labels.to_vec()),
        owner: None,
        terminating: false,
        history: strew_cluster::PodHistory::default(),
        node: Some(node),
        spec: PodSpec::default(),
    });
}
