//! The filter `TaintToleration`. Source: spec/placement §2.3.

use strew_model::Instant;

use crate::facts::cluster::{ClusterFact, ClusterTaint, TaintEffect};
use crate::facts::placement::{ClusterToleration, TolerationOperator};

/// Nanoseconds in a second.
const NANOS: i128 = 1_000_000_000;

/// The message about the first invalid toleration; `None` if all are valid.
pub(crate) fn validate(tolerations: &[ClusterToleration]) -> Result<(), &'static str> {
    for toleration in tolerations {
        let exists = toleration.operator == TolerationOperator::Exists;
        if toleration.key.is_none() && !exists {
            return Err("If the key is empty, operator must be Exists.");
        }
        if exists && toleration.value != strew_model::well_known::EMPTY {
            return Err("If the operator is Exists, the value should be empty.");
        }
    }
    Ok(())
}

/// The result of matching a cluster's taints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tolerance<'a> {
    /// All taints are tolerated. If one of them is tolerated only for a time, the first such time ends then.
    Until(Option<Instant>),
    /// This taint is not tolerated.
    Refused(&'a ClusterTaint),
}

/// Matches a cluster's taints at this time. `decided` is true if the placement holds the cluster.
pub(crate) fn tolerance<'a>(
    cluster: &'a ClusterFact,
    tolerations: &[ClusterToleration],
    decided: bool,
    now: Instant,
) -> Tolerance<'a> {
    let mut first: Option<Instant> = None;
    for taint in &cluster.taints {
        match taint.effect {
            TaintEffect::PreferNoSelect => continue,
            TaintEffect::NoSelectIfNew if decided => continue,
            TaintEffect::NoSelectIfNew | TaintEffect::NoSelect => {}
        }
        let tolerating = |t: &&ClusterToleration| matches(t, taint) && !expired(t, taint, now);
        let Some(toleration) = tolerations.iter().find(tolerating) else {
            return Tolerance::Refused(taint);
        };
        let until = expiry(toleration, taint);
        first = first.into_iter().chain(until).min();
    }
    Tolerance::Until(first)
}

/// The number of seconds for which a taint was tolerated, if that time is over: the longest of several.
pub(crate) fn tolerated_before(
    taint: &ClusterTaint,
    tolerations: &[ClusterToleration],
    now: Instant,
) -> Option<i64> {
    let over = tolerations.iter();
    let over = over.filter(|t| matches(t, taint) && expired(t, taint, now));
    over.filter_map(|toleration| toleration.seconds).max()
}

fn matches(toleration: &ClusterToleration, taint: &ClusterTaint) -> bool {
    toleration.effect.is_none_or(|e| e == taint.effect)
        && toleration.key.is_none_or(|k| k == taint.key)
        && match toleration.operator {
            TolerationOperator::Equal => toleration.value == taint.value,
            TolerationOperator::Exists => true,
            TolerationOperator::Other => false,
        }
}

/// Tolerated while now < added + seconds.
fn expired(toleration: &ClusterToleration, taint: &ClusterTaint, now: Instant) -> bool {
    let Some(seconds) = toleration.seconds else {
        return false;
    };
    let Some(added) = taint.added else {
        return true;
    };
    i128::from(now.0) >= i128::from(added.0) + i128::from(seconds) * NANOS
}

/// The time from which the taint is not tolerated any more; `None`: never.
fn expiry(toleration: &ClusterToleration, taint: &ClusterTaint) -> Option<Instant> {
    let end = i128::from(taint.added?.0) + i128::from(toleration.seconds?) * NANOS;
    u64::try_from(end).ok().map(Instant)
}
