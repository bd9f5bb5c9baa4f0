//! What admission has done, counted: for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::effect::Verdict;
use crate::facts::spec::WsKey;

/// Counts since the machine was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Pods that got a subset, by WorkloadSpread and subset; forgotten with the WorkloadSpread.
    pub injected: BTreeMap<(WsKey, Arc<str>), u64>,
    /// Pods that passed as they were.
    pub untouched: u64,
    /// Deletes that went into a ledger, or may have.
    pub counted: u64,
    /// Requests that were refused.
    pub denied: u64,
    /// Races for a status that were lost, by request.
    pub conflicts: u64,
    /// Status writes.
    pub written: u64,
}

impl Counters {
    pub(super) fn answered(&mut self, key: Option<&WsKey>, verdict: &Verdict, conflicts: u32) {
        self.conflicts += u64::from(conflicts);
        match verdict {
            Verdict::Untouched(_) | Verdict::Gate => self.untouched += 1,
            Verdict::Counted => self.counted += 1,
            Verdict::Deny(_) => self.denied += 1,
            Verdict::Inject(injection) => {
                if let Some(key) = key {
                    let of = (key.clone(), Arc::clone(&injection.subset().name));
                    *self.injected.entry(of).or_default() += 1;
                }
            }
        }
    }

    pub(super) fn forget(&mut self, key: &WsKey) {
        self.injected.retain(|(of, _), _| of != key);
    }
}
