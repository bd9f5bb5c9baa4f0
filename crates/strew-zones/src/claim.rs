//! The domain in which evictions are granted.

use std::collections::BTreeSet;

/// What a budget says about granted evictions. It is taken out when the domain is whole again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// The domain; `None`: nodes without the label.
    pub domain: Option<Box<str>>,
    /// The number of grants in it. Each grant raises it, so that each one is a write which another replica notices.
    pub grants: u64,
    /// Uids of pods that were on no node when the domain was claimed: the evictions in it are not the cause. At most
    /// [`WAITING_MAX`].
    pub waiting: BTreeSet<Box<str>>,
    /// The number of pods that the workload lacked when the domain was claimed.
    pub missing: u32,
}

/// The most pods that a claim lists as waiting from before; further ones count for the claimed domain.
pub const WAITING_MAX: usize = 64;
