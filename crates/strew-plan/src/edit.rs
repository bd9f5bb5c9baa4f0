//! Changes of what a pod asks for.

use strew_cluster::{PodSpec, SpreadConstraint};
use strew_model::{
    Labels, NodeExpression, NodeSelectorTerm, Resources, Taint, Toleration, TolerationOperator,
};
use strew_scheduler::plugins::node_resources_fit::Lacking;

use crate::change::Change;

impl Change {
    /// Changes what the pod asks for; a change of nodes or of other pods leaves it as it is.
    pub(crate) fn edit(&self, spec: &mut PodSpec, constraints: &[SpreadConstraint]) {
        // A default becomes a constraint of the pod's own, with the selector that was deduced: the same verdicts.
        let mut constrain = |index: usize, change: &dyn Fn(&mut SpreadConstraint)| {
            let mut own = constraints.to_vec();
            if let Some(constraint) = own.get_mut(index) {
                change(constraint);
            }
            spec.spread = own.into();
        };
        match self {
            Self::Policy {
                constraint,
                on_taints: true,
                to,
            } => constrain(*constraint, &|own| own.node_taints_policy = *to),
            Self::Policy {
                constraint,
                on_taints: false,
                to,
            } => constrain(*constraint, &|own| own.node_affinity_policy = *to),
            Self::MaxSkew { constraint, to, .. } => {
                constrain(*constraint, &|own| own.max_skew = *to);
            }
            Self::MinDomains { constraint, to, .. } => {
                constrain(*constraint, &|own| own.min_domains = Some(*to));
            }
            Self::ScheduleAnyway { constraint } => constrain(*constraint, &|own| {
                own.hard = false;
                own.min_domains = None;
            }),
            Self::DropConstraint { constraint } => {
                spec.spread = constraints.into();
                remove(&mut spec.spread, *constraint);
            }
            Self::AddConstraint { constraint } => {
                spec.spread = constraints.into();
                push(&mut spec.spread, constraint.clone());
            }
            Self::Tolerate { taint, .. } => push(&mut spec.tolerations, toleration(taint)),
            Self::RequestLess { resource, from, to } => {
                set_amount(&mut spec.requests, *resource, *to);
                match resource {
                    Lacking::Cpu => spec.scored.0 -= from - to,
                    Lacking::Memory => spec.scored.1 -= from - to,
                    Lacking::Pods | Lacking::EphemeralStorage | Lacking::Scalar(_) => {}
                }
            }
            Self::DropNodeSelector { key, .. } => {
                let pairs = spec.node_affinity.node_selector.iter();
                let rest = pairs.filter(|(k, _)| k != key).collect();
                spec.node_affinity.node_selector = Labels::new(rest);
            }
            Self::DropNodeExpression { term, expression } => {
                drop_expression(&mut spec.node_affinity.terms, *term, expression);
            }
            Self::DropNodeAffinity => spec.node_affinity.terms = None,
            Self::DropPodAffinity { term, anti: true } => {
                remove(&mut spec.affinity.required_anti, *term);
            }
            Self::DropPodAffinity { term, anti: false } => {
                remove(&mut spec.affinity.required, *term);
            }
            Self::DropHostPort { port } => {
                let rest = spec.host_ports.iter().filter(|p| p.port != *port);
                spec.host_ports = rest.copied().collect();
            }
            Self::DropClaim { claim } => remove(&mut spec.claims, *claim),
            Self::DropUnsupported { need } => remove(&mut spec.unsupported, *need),
            Self::LoseNode { .. }
            | Self::LoseDomain { .. }
            | Self::DrainNode { .. }
            | Self::Shift { .. }
            | Self::Scale { .. }
            | Self::AllowDisruptions { .. }
            | Self::Cordon { .. }
            | Self::Uncordon { .. }
            | Self::TaintNode { .. }
            | Self::UntaintNode { .. }
            | Self::LabelNode { .. }
            | Self::UnlabelNode { .. }
            | Self::FreeResources { .. }
            | Self::AddNodeLike { .. }
            | Self::AddNodeInNewDomain { .. }
            | Self::AddFirstNode
            | Self::StartPod { .. }
            | Self::DeletePod { .. }
            | Self::MovePod { .. } => {}
        }
    }
}

/// The toleration of just this taint.
fn toleration(taint: &Taint) -> Toleration {
    Toleration {
        key: Some(taint.key),
        operator: TolerationOperator::Equal,
        value: taint.value,
        effect: Some(taint.effect),
    }
}

pub(crate) fn set_amount(amounts: &mut Resources, resource: Lacking, amount: i64) {
    match resource {
        Lacking::Pods => {}
        Lacking::Cpu => amounts.cpu_milli = amount,
        Lacking::Memory => amounts.memory = amount,
        Lacking::EphemeralStorage => amounts.ephemeral_storage = amount,
        Lacking::Scalar(name) => amounts.set_scalar(name, amount),
    }
}

fn drop_expression(
    terms: &mut Option<Box<[NodeSelectorTerm]>>,
    term: usize,
    dropped: &NodeExpression,
) {
    let Some(NodeSelectorTerm::AllOf { expressions, .. }) =
        terms.as_mut().and_then(|t| t.get_mut(term))
    else {
        return;
    };
    let rest = expressions.iter().filter(|e| *e != dropped);
    *expressions = rest.cloned().collect();
}

fn push<T>(list: &mut Box<[T]>, item: T) {
    let mut items = std::mem::take(list).into_vec();
    items.push(item);
    *list = items.into();
}

fn remove<T>(list: &mut Box<[T]>, place: usize) {
    let mut items = std::mem::take(list).into_vec();
    if place < items.len() {
        items.remove(place);
    }
    *list = items.into();
}
