//! Explains why a pod is on its node, or on none: a typed tree, made by running the deciding code again.
//!
//! Nothing that decides is computed here: refusals come from the engine, sums from strew-spread, scores from the score
//! plugins. This module collects what the fast path does not keep. Symbols stand for names; the wire form (strew-wire)
//! has the names.
//!
//! Reading order: [`Explanation`], [`constraint`] (domain by domain), [`refused`] (node by node), [`volumes`],
//! [`choice`] (scores). `strew-plan` finds changes that would place the pod.

pub mod choice;
pub mod constraint;
pub mod refused;
pub mod volumes;

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_model::{Interner, Symbol};

use crate::engine::{Engine, Evaluation};
use crate::plugins::pod_topology_spread::Origin;
use crate::preemption::Nominations;
use crate::status::{Refusal, Unfit};
pub use choice::{Choice, ScoreRow, SoftShare};
pub use constraint::{
    Deduced, Domain, HardExplained, MergedKey, SoftExplained, SpreadOff, Warning,
};
pub use refused::{Blockers, Cause, RefusedNode};
pub use volumes::VolumeCause;

/// The state of the pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// On no node, and no node takes it now.
    Pending,
    /// On no node; a decision now would choose this one.
    WouldGo {
        /// The node.
        node: NodeIdx,
    },
    /// On a node. The rest of the explanation evaluates it as if it were placed now, without that node's binding.
    Placed {
        /// Its node.
        node: NodeIdx,
        /// The node that a decision now would choose; `None`: none.
        would_go: Option<NodeIdx>,
    },
    /// Held by `spec.schedulingGates`. The rest of the explanation evaluates it as if it had none.
    Gated {
        /// The gates.
        gates: Vec<Symbol>,
        /// The node without gates; `None`: none.
        would_go: Option<NodeIdx>,
    },
}

impl Whereabouts {
    /// The node that a decision now would choose.
    pub fn would_go(&self) -> Option<NodeIdx> {
        match *self {
            Self::Pending => None,
            Self::WouldGo { node } => Some(node),
            Self::Placed { would_go, .. } | Self::Gated { would_go, .. } => would_go,
        }
    }
}

/// Why a pod is on its node, or on none.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The pod.
    pub pod: PodIdx,
    /// Its state.
    pub standing: Whereabouts,
    /// kube-scheduler's message about the state.
    pub sentence: String,
    /// kube-scheduler's message about the decision that the rest explains, if it differs.
    pub sentence_now: Option<String>,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of feasible nodes.
    pub feasible: usize,
    /// The origin of its topology spread constraints.
    pub origin: Origin,
    /// The source of the selector of default constraints, for a pod without constraints of its own.
    pub deduced: Option<Deduced>,
    /// Constraints that filter, in order.
    pub hard: Vec<HardExplained>,
    /// Constraints that score, in order.
    pub soft: Vec<SoftExplained>,
    /// The parts of `PodTopologySpread` that the profile disables; `None`: none.
    pub spread_off: Option<SpreadOff>,
    /// The refusal of the pod as a whole, before any node was checked.
    pub refused_outright: Option<Refusal>,
    /// The nodes that refuse it, in the order of the search.
    pub refused: Vec<RefusedNode>,
    /// How a node is chosen among the feasible ones.
    pub choice: Option<Choice>,
}

/// Explains a pod. Afterwards the cluster is unchanged, except for caches.
///
/// A pod on a node is unbound, evaluated and bound again.
///
/// ```
/// use strew_cluster::{Cluster, PodFact, PodSpec};
/// use strew_model::{Labels, well_known};
/// use strew_scheduler::{Engine, Profile, explain};
/// let mut cluster = Cluster::new();
/// let pod = cluster.set_pod(PodFact {
///     uid: "1".into(),
///     name: "web".into(),
///     namespace: well_known::DEFAULT_NAMESPACE,
///     labels: Labels::default(),
///     owner: None,
///     terminating: false,
///     node: None,
///     spec: PodSpec::default(),
///     history: strew_cluster::PodHistory::default(),
/// });
/// let explanation = explain(&mut Engine::new(Profile::default()), &mut cluster, pod);
/// assert_eq!(explanation.sentence, "no nodes available to schedule pods");
/// ```
///
/// Cost: a few passes over the nodes.
pub fn explain(engine: &mut Engine, cluster: &mut Cluster, pod: PodIdx) -> Explanation {
    explain_with(engine, cluster, pod, &Nominations::new(), None)
}

/// As [`explain`], with nominations, as [`Engine::decide_with`] decides. If the node `drawn` is one of the best, it is
/// the chosen one: a simulation draws which of several it takes.
pub fn explain_with(
    engine: &mut Engine,
    cluster: &mut Cluster,
    pod: PodIdx,
    nominations: &Nominations,
    drawn: Option<NodeIdx>,
) -> Explanation {
    let on = cluster.pod(pod).node;
    if on.is_some() {
        cluster.unbind(pod);
    }
    let explanation = explain_unplaced(engine, cluster, pod, nominations, on, drawn);
    if let Some(node) = on {
        cluster.bind(pod, node);
    }
    explanation
}

fn explain_unplaced(
    engine: &mut Engine,
    cluster: &mut Cluster,
    pod: PodIdx,
    nominations: &Nominations,
    on: Option<NodeIdx>,
    drawn: Option<NodeIdx>,
) -> Explanation {
    let mut evaluation = engine.evaluate_with(cluster, pod, nominations);
    let by_rule = evaluation.taken;
    if let Some(drawn) = drawn {
        let mut best = evaluation.best.iter().copied();
        let place = best.find(|&place| evaluation.feasible[place] == drawn);
        evaluation.taken = place.or(by_rule);
    }
    let refused = refused::refused_nodes(engine, cluster, pod, nominations, &evaluation);
    let class = cluster.pod(pod).class;
    let spread = engine.plan(cluster, class).spread.clone();
    let hard = constraint::hard(cluster, class, &spread, &refused);
    let soft = constraint::soft(
        engine,
        cluster,
        class,
        &spread,
        &evaluation.feasible,
        &refused,
    );
    let mut choice = choice::choice(engine, cluster, &spread, &evaluation, on);
    if let Some(choice) = &mut choice {
        choice.is_drawn = evaluation.taken != by_rule;
    }
    let would_go = evaluation.taken.map(|place| evaluation.feasible[place]);
    let gates = cluster.spec_of(pod).gates.to_vec();
    let now = sentence_now(cluster, pod, &evaluation, would_go);
    let (standing, sentence) = match (on, would_go) {
        (Some(node), would_go) => (
            Whereabouts::Placed { node, would_go },
            assigned(cluster, pod, node),
        ),
        (None, would_go) if !gates.is_empty() => {
            let sentence = gated(&gates, &cluster.names);
            (Whereabouts::Gated { gates, would_go }, sentence)
        }
        (None, Some(node)) => (Whereabouts::WouldGo { node }, now.clone()),
        (None, None) => (Whereabouts::Pending, now.clone()),
    };
    Explanation {
        pod,
        standing,
        sentence_now: (now != sentence).then_some(now),
        sentence,
        nodes: cluster.nodes_present(),
        feasible: evaluation.feasible.len(),
        origin: spread.effective.origin,
        deduced: constraint::deduced(engine.profile(), cluster, class),
        hard,
        soft,
        spread_off: constraint::spread_off(engine.profile(), &spread),
        refused_outright: match evaluation.refused {
            Some(Unfit::PreFilter(refusal)) => Some(refusal),
            _ => None,
        },
        refused,
        choice,
    }
}

/// kube-scheduler's message about the decision.
fn sentence_now(
    cluster: &Cluster,
    pod: PodIdx,
    evaluation: &Evaluation,
    would_go: Option<NodeIdx>,
) -> String {
    match (would_go, &evaluation.refused) {
        (Some(node), _) => assigned(cluster, pod, node),
        (None, Some(unfit)) => unfit.message(cluster.nodes_present(), &cluster.names),
        (None, None) => String::new(),
    }
}

/// The event of a placed pod. Source: spec/scheduler §5.9.
fn assigned(cluster: &Cluster, pod: PodIdx, node: NodeIdx) -> String {
    let namespace = cluster.names.text(cluster.class_of(pod).key.namespace);
    let name = &cluster.pod(pod).name;
    let node = cluster.names.text(cluster.node(node).name());
    format!("Successfully assigned {namespace}/{name} to {node}")
}

/// The refusal of a gated pod. Source: spec/scheduler §3.1.
fn gated(gates: &[Symbol], names: &Interner) -> String {
    let gates: Vec<&str> = gates.iter().map(|&gate| names.text(gate)).collect();
    format!("waiting for scheduling gates: [{}]", gates.join(" "))
}
