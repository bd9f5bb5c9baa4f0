//! Counters of admission, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::effect::Verdict;
use crate::facts::spec::WsKey;

/// Counts since the machine was created.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Pods that got a subset, by WorkloadSpread and subset; removed with the WorkloadSpread.
    pub injected: BTreeMap<(WsKey, Arc<str>), u64>,
    /// Pods that passed unchanged.
    pub untouched: u64,
    /// Deletions that are in a ledger, or may be.
    pub counted: u64,
    /// Refused requests.
    pub denied: u64,
    /// Conflicts on status writes, counted per request.
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
