//! Candidates that were not selected, counted by reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strew_model::{Interner, Symbol};
use strew_placement::facts::cluster::{ClusterTaint, TaintEffect};
use strew_placement::{Exclusion, Verdict};

use super::pick;

/// Why a candidate was not selected, in the order of the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// The Placement is misconfigured: no cluster is selected.
    Misconfigured,
    /// No predicate matches.
    NoPredicate,
    /// A taint is not tolerated.
    Taint,
    /// The key of a hard term is missing.
    MissingTopologyKey,
    /// The topology's weight is 0.
    NoTopologyWeight,
    /// The skew limit of a term excludes it.
    MaxSkew,
    /// As many topologies as may be are used, or would be with too few clusters.
    MaxGroups,
    /// What was left to pick was kept for topologies that were not used.
    MinGroups,
    /// Enough other clusters had better scores.
    OthersBetter,
}

/// Candidates with the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotSelected {
    /// The reason.
    pub reason: Reason,
    /// The reason with names and numbers.
    pub message: String,
    /// Their number.
    pub count: usize,
    /// Their names, sorted.
    pub clusters: Vec<String>,
}

/// The candidates that were not selected, by reason, then message.
pub(super) fn of(verdicts: &[(Symbol, Verdict)], names: &Interner) -> Vec<NotSelected> {
    let mut by_reason = BTreeMap::<(Reason, String), Vec<String>>::new();
    for (cluster, verdict) in verdicts {
        if let Some(reason) = Reason::of(verdict) {
            let clusters = by_reason.entry((reason, words(verdict, names)));
            let name = names.text(*cluster).to_owned();
            clusters.or_default().push(name);
        }
    }
    let group = |((reason, message), clusters): (_, Vec<String>)| NotSelected {
        reason,
        message,
        count: clusters.len(),
        clusters,
    };
    by_reason.into_iter().map(group).collect()
}

impl Reason {
    /// The reason in a verdict; `None` if the candidate is selected.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        Some(match verdict {
            Verdict::Selected(_) => return None,
            Verdict::NoPredicate => Self::NoPredicate,
            Verdict::Taint(_) | Verdict::ToleratedBefore(..) => Self::Taint,
            Verdict::LacksTopologyKey(_) => Self::MissingTopologyKey,
            Verdict::TopologyWithoutWeight(_) => Self::NoTopologyWeight,
            Verdict::Excluded(_, Exclusion::MaxSkew(_)) => Self::MaxSkew,
            Verdict::Excluded(_, Exclusion::MaxGroups(_) | Exclusion::TooSmall(_)) => {
                Self::MaxGroups
            }
            Verdict::Excluded(_, Exclusion::MinGroups(_)) => Self::MinGroups,
            Verdict::NotNeeded => Self::OthersBetter,
            Verdict::Undecided => Self::Misconfigured,
        })
    }
}

/// A verdict on a candidate, as a phrase without subject.
pub fn words(verdict: &Verdict, names: &Interner) -> String {
    let text = |symbol: Symbol| names.text(symbol);
    match verdict {
        Verdict::Selected(rank) => format!("pick {}", rank + 1),
        Verdict::NoPredicate => "no predicate matches".to_owned(),
        Verdict::Taint(taint) => format!("taint {} is not tolerated", taint_words(taint, names)),
        Verdict::ToleratedBefore(taint, seconds) => format!(
            "the toleration of {seconds} s is over: taint {} is not tolerated",
            taint_words(taint, names)
        ),
        Verdict::LacksTopologyKey(key) => format!("lacks the topology key {}", text(*key)),
        Verdict::TopologyWithoutWeight(key) => format!("its {} has weight 0", text(*key)),
        Verdict::Excluded(key, by) => {
            format!(
                "excluded by the limit of {}: {}",
                text(*key),
                pick::words(*by)
            )
        }
        Verdict::NotNeeded => "others were better, and enough".to_owned(),
        Verdict::Undecided => "the Placement is misconfigured".to_owned(),
    }
}

/// `key=value:effect`, as `kubectl taint` writes it.
fn taint_words(taint: &ClusterTaint, names: &Interner) -> String {
    let effect = match taint.effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
    };
    let key = names.text(taint.key);
    match names.text(taint.value) {
        "" => format!("{key}:{effect}"),
        value => format!("{key}={value}:{effect}"),
    }
}
