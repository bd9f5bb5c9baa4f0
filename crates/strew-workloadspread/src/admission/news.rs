//! Waits for newer facts: the client that creates a pod knows more about its target than the watches have reported.
//!
//! Facts come by several watches, and requests by none of them: when a Deployment is scaled, its controllers read the
//! new number and create pods before this process sees the number, or sees that pods have finished. With a share of the
//! old number, these pods would pass over subsets with room for them.
//!
//! Source: spec/workloadspread §4.3, §5.6.

use strew_model::Instant;

use super::machine::Admission;
use super::spread_queue::PendingRequest;
use crate::choose::{self, Choice, Finding, SubsetFinding};
use crate::facts::kinds::Kind;
use crate::facts::spec::WorkloadSpread;
use crate::facts::status::{Row, Status};
use crate::revision::VERSION_IGNORED;

impl Admission {
    /// The time until which a pod waits before it passes over a full subset; `None` if it does not wait. It waits if,
    /// by the known facts, its target asks for no more pods than exist: then the facts are outdated.
    pub(super) fn waits_for_news(
        &self,
        base: &WorkloadSpread,
        status: &Status,
        pending: &PendingRequest,
        choice: &Choice,
    ) -> Option<Instant> {
        let is_full = |step: &SubsetFinding| {
            matches!(step.finding, Finding::Full { .. } | Finding::Ordinal { .. })
        };
        if !choice.steps.iter().any(is_full) || !self.is_one_too_many(base, status, pending) {
            return None;
        }
        let until = pending.came + self.limits.news_within;
        (self.now < until).then_some(until)
    }

    /// True if a new pod is one more than its target asks for, by the known facts.
    fn is_one_too_many(
        &self,
        base: &WorkloadSpread,
        status: &Status,
        pending: &PendingRequest,
    ) -> bool {
        let (Some(target), Ok(total)) = (base.spec.target, self.total_or_why(base)) else {
            return false;
        };
        match self.kinds.of(target.kind) {
            Kind::StatefulSet => {
                let name = pending.request.pod.name.as_deref();
                choose::ordinal(name.unwrap_or(""), self.target(base)) >= total
            }
            // The pods of all its revisions share one row, and it may surge.
            Kind::Custom => total == 0,
            // Rows over all revisions: during a rollout there are more pods than the target asks for.
            _ if *pending.revision == *VERSION_IGNORED && self.is_rolling(base) => false,
            _ => {
                let rows = status.rows(&pending.revision);
                rows.iter().map(Row::expected).sum::<i64>() >= total
            }
        }
    }

    /// True if a target has pods of several revisions, by the known facts.
    fn is_rolling(&self, base: &WorkloadSpread) -> bool {
        let mut targets = self.workloads.targets_of(base).iter();
        targets.any(|target| {
            if let Some([current, update]) = target.revisions {
                return current != update;
            }
            let sets = self.workloads.controlled_by(&target.uid);
            sets.filter(|set| set.replicas.unwrap_or(0) > 0).count() > 1
        })
    }
}
