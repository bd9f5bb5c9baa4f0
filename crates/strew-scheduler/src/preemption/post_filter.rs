//! The result of preemption as kube-scheduler reports it: status, message, nomination.
//!
//! Source: spec/scheduler §2.8, §2.9 and §3.16.

use strew_cluster::{Cluster, NodeIdx};
use strew_model::Interner;

use super::{NotAsked, NotHelped, Outcome, Preemption};
use crate::status::{Code, Unfit, histogram};

/// The effect on the pod's nomination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nomination {
    /// It is set to this node.
    Set(NodeIdx),
    /// It is cleared.
    Clear,
    /// It stays.
    Keep,
}

/// The message of `DynamicResources` for a pod without claims.
const NOTHING_TO_DEALLOCATE: &str = "no new claims to deallocate";

/// The message for nodes without a pod to evict.
const NO_VICTIMS: &str = "No preemption victims found for incoming pod";

/// The message for nodes that were not tried.
const NOT_TRIED: &str = "Preemption is not helpful for scheduling";

impl NotHelped {
    /// kube-scheduler's code.
    pub fn code(&self) -> Code {
        match self {
            Self::NoVictims => Code::UnschedulableAndUnresolvable,
            Self::Refused(refusal) => refusal.code,
            Self::FitsAsItIs => Code::Error,
        }
    }

    /// kube-scheduler's messages. `node` is the name of the node.
    pub fn reasons(&self, node: &str, names: &Interner) -> Vec<String> {
        match self {
            Self::NoVictims => vec![NO_VICTIMS.to_owned()],
            Self::Refused(refusal) => refusal.reasons.iter().map(|r| r.text(names)).collect(),
            Self::FitsAsItIs => vec![format!("expected at least one victim pod on node {node:?}")],
        }
    }
}

impl Preemption {
    /// The effect on the pod's nomination.
    pub fn nomination(&self) -> Nomination {
        match &self.outcome {
            Outcome::Preempt(eviction) => Nomination::Set(eviction.node),
            Outcome::NoCandidate | Outcome::NotAsked(NotAsked::NoAttempt) => Nomination::Clear,
            Outcome::NotEligible(_)
            | Outcome::FitsAsItIs
            | Outcome::ClaimsNotFound
            | Outcome::NotAsked(NotAsked::Unsupported | NotAsked::Disabled) => Nomination::Keep,
        }
    }

    /// The code of all PostFilter plugins together; `None`: success.
    pub fn code(&self) -> Option<Code> {
        match self.outcome {
            Outcome::Preempt(_) => None,
            Outcome::FitsAsItIs | Outcome::ClaimsNotFound => Some(Code::Error),
            _ => Some(Code::Unschedulable),
        }
    }

    /// The message of all PostFilter plugins together; empty if preemption makes room.
    pub fn post_filter_message(&self, cluster: &Cluster) -> String {
        let said = match &self.outcome {
            Outcome::Preempt(_) => return String::new(),
            Outcome::ClaimsNotFound => return "not found".to_owned(),
            Outcome::FitsAsItIs => return format!("preemption: {}", self.errors(cluster)),
            Outcome::NotAsked(NotAsked::Disabled) => return NOTHING_TO_DEALLOCATE.to_owned(),
            Outcome::NotAsked(NotAsked::NoAttempt | NotAsked::Unsupported) => return String::new(),
            Outcome::NotEligible(why) => why.text().to_owned(),
            Outcome::NoCandidate => {
                let nodes = self.nodes;
                format!(
                    "0/{nodes} nodes are available: {}.",
                    self.histogram(cluster)
                )
            }
        };
        match self.after_claims {
            true => format!("{NOTHING_TO_DEALLOCATE}, preemption: {said}"),
            false => format!("preemption: {said}"),
        }
    }

    /// The whole text of the failed attempt, as the pod's condition and event show it.
    pub fn message(&self, unfit: &Unfit, cluster: &Cluster) -> String {
        let refused = unfit.message(self.nodes, &cluster.names);
        match self.post_filter_message(cluster).as_str() {
            "" => refused,
            said => format!("{refused} {said}"),
        }
    }

    pub(super) fn fits_somewhere(&self) -> bool {
        let mut tried = self.not_helped.iter();
        tried.any(|(_, why)| *why == NotHelped::FitsAsItIs)
    }

    fn histogram(&self, cluster: &Cluster) -> String {
        let not_tried = self.nodes - self.not_helped.len();
        let is_empty = |(_, why): &&(NodeIdx, NotHelped)| *why == NotHelped::NoVictims;
        let empty = self.not_helped.iter().filter(is_empty).count();
        let others = self.not_helped.iter().filter(|tried| !is_empty(tried));
        let said = others
            .flat_map(|(node, why)| why.reasons(name(cluster, *node), &cluster.names))
            .map(|sentence| (sentence, 1));
        let alike = [
            (NO_VICTIMS.to_owned(), empty),
            (NOT_TRIED.to_owned(), not_tried),
        ];
        histogram(said.chain(alike))
    }

    /// The errors of all nodes, in the form of upstream's aggregate.
    fn errors(&self, cluster: &Cluster) -> String {
        let errors = self.not_helped.iter();
        let errors = errors.filter(|(_, why)| *why == NotHelped::FitsAsItIs);
        let each: Vec<String> = errors
            .flat_map(|(node, why)| why.reasons(name(cluster, *node), &cluster.names))
            .collect();
        match each.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        }
    }
}

fn name(cluster: &Cluster, node: NodeIdx) -> &str {
    cluster.names.text(cluster.node(node).name())
}
