//! Waiting for news: whoever creates a pod knows more of its target than the watches have told here.
//!
//! Facts come by several watches, and requests by none: a Deployment is scaled, its controllers have read so, and ask for
//! pods before this process hears of the number, or of pods that have finished. A share of the old number would send them
//! past subsets that are theirs.
//!
//! Source: spec/workloadspread §4.3, §5.6.

use strew_model::Instant;

use super::machine::Admission;
use super::spread_queue::PendingRequest;
use crate::choose::{self, Choice, Finding, Step};
use crate::facts::kinds::Kind;
use crate::facts::spec::WorkloadSpread;
use crate::facts::status::{Row, Status};
use crate::revision::VERSION_IGNORED;

impl Admission {
    /// Until when a pod waits that passes over a full subset, while by what is known its target asks for no more pods than
    /// there are: whoever creates it knows more than has been told here.
    pub(super) fn waits_for_news(
        &self,
        base: &WorkloadSpread,
        status: &Status,
        pending: &PendingRequest,
        choice: &Choice,
    ) -> Option<Instant> {
        let is_full =
            |step: &Step| matches!(step.finding, Finding::Full { .. } | Finding::Ordinal { .. });
        if !choice.steps.iter().any(is_full) || !self.is_one_too_many(base, status, pending) {
            return None;
        }
        let until = pending.came + self.limits.news_within;
        (self.now < until).then_some(until)
    }

    /// Whether a new pod is one more than its target asks for, by what is known.
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
            // Its pods of all revisions are one row's, and it may surge.
            Kind::Custom => total == 0,
            // Rows of all revisions: pods of a rollout are more than the target asks for.
            _ if *pending.revision == *VERSION_IGNORED && self.is_rolling(base) => false,
            _ => {
                let rows = status.rows(&pending.revision);
                rows.iter().map(Row::expected).sum::<i64>() >= total
            }
        }
    }

    /// Whether a target has pods of several revisions, by what is known.
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
