//! What programs must recognise of the help of a finding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may prevent a finding about a played step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Advice {
    /// A constraint that counts pods of all revisions gets `matchLabelKeys`.
    MatchLabelKeys,
    /// Constraints do not count nodes with taints.
    HonorTaints,
    /// A Deployment or a ReplicaSet that a scale-down made uneven gets the label of `keep`, whose controller must run.
    Keep,
    /// No change of a manifest alone: pods that run are not moved.
    NotMoved,
}

impl Advice {
    /// The help.
    pub fn help(self) -> &'static str {
        match self {
            Self::MatchLabelKeys => "matchLabelKeys: [pod-template-hash] in the constraint",
            Self::HonorTaints => "nodeTaintsPolicy: Honor in its hard constraints",
            Self::Keep => {
                "the label keep.strew.dev/spread=true on it, and strew controller --controllers=keep"
            }
            Self::NotMoved => {
                "pods that run are not moved by Kubernetes; strew rebalance plans the evictions that make them even again (docs/rebalance.md)"
            }
        }
    }
}
