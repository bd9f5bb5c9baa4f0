//! What the controller has done, counted: for metrics.

/// Counts since the machine was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Syncs that came to their end.
    pub synced: u64,
    /// Syncs that failed, to be tried again.
    pub failed: u64,
    /// Strangers that got a marker.
    pub adopted: u64,
    /// Deletion costs that were written.
    pub costs: u64,
    /// Status writes.
    pub written: u64,
    /// Patches, writes and deletions that met another object than they were made for.
    pub conflicts: u64,
    /// Places by which written statuses corrected what the ledger said was free.
    pub drift: u64,
    /// Entries of pods that were admitted and did not appear in time.
    pub creations_expired: u64,
    /// Entries of pods that were to be deleted and stayed.
    pub deletions_expired: u64,
    /// Pods that were deleted to be scheduled elsewhere.
    pub rescheduled: u64,
    /// Subsets that took pods again.
    pub recovered: u64,
}
