//! Counters of the controller, for metrics.

/// Counts since the machine was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Completed syncs.
    pub synced: u64,
    /// Failed syncs, which are retried.
    pub failed: u64,
    /// Pods without a marker that got one.
    pub adopted: u64,
    /// Deletion costs written.
    pub costs: u64,
    /// Status writes.
    pub written: u64,
    /// Patches, writes and deletions whose precondition failed.
    pub conflicts: u64,
    /// Places by which written statuses corrected the free places of the ledger.
    pub drift: u64,
    /// Entries of admitted pods that did not appear in time.
    pub creations_expired: u64,
    /// Entries of pods with a requested deletion that stayed.
    pub deletions_expired: u64,
    /// Pods deleted to be scheduled elsewhere.
    pub rescheduled: u64,
    /// Subsets that were opened again.
    pub recovered: u64,
}
