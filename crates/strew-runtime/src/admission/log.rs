//! The decision log.

use strew_wire::workloadspread::review::{Decision, Operation, Review};
use strew_workloadspread::admission::Verdict;
use tracing::Level;

/// The subject of a decision.
pub(super) struct About {
    operation: Operation,
    /// Namespace and name; a name that the API server has yet to generate ends with `*`.
    pod: String,
}

impl About {
    /// `None` if decisions are not logged.
    pub(super) fn of(review: &Review) -> Option<Self> {
        if !tracing::enabled!(target: "strew::decision", Level::DEBUG) {
            return None;
        }
        let metadata = &review.pod["metadata"];
        let [name, begin] = ["name", "generateName"].map(|key| metadata[key].as_str());
        let name = [name, Some(review.name.as_str())];
        let name = name.into_iter().flatten().find(|name| !name.is_empty());
        let name = name.map_or_else(|| format!("{}*", begin.unwrap_or_default()), str::to_owned);
        Some(Self {
            operation: review.operation,
            pod: format!("{}/{name}", review.namespace),
        })
    }

    /// Logs a decision with its reason.
    pub(super) fn log(self, verdict: &Verdict, decision: &Decision) {
        let (marker, what, why) = match (verdict, &decision.refusal) {
            (_, Some((_, text))) => (None, "deny", Some(text.clone())),
            (Verdict::Inject(injection), None) => (Some(&injection.marker), "inject", None),
            (Verdict::Gate, None) => (None, "gate", Some("NoRoom".to_owned())),
            (Verdict::Untouched(why), None) => (None, "pass", Some(format!("{why:?}"))),
            (Verdict::Counted | Verdict::Deny(_), None) => (None, "count", None),
        };
        tracing::debug!(
            target: "strew::decision",
            operation = ?self.operation,
            pod = self.pod,
            workloadspread = marker.map(|marker| &*marker.workload_spread),
            subset = marker.map(|marker| &*marker.subset),
            why,
            "{what}"
        );
    }
}
