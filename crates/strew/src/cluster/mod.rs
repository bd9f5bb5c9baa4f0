//! A live cluster: which API server ([`access`]), and all of its objects at one time ([`fetch`]).
//!
//! Without the feature `cluster` a program has no client of API servers, and says so.

pub(crate) mod access;
#[cfg(feature = "cluster")]
mod live;
#[cfg(not(feature = "cluster"))]
mod without;

#[cfg(feature = "cluster")]
pub(crate) use live::{ask, fetch, fetch_wanted, runtime};
#[cfg(feature = "cluster")]
pub(crate) use strew_kube::causes::causes;
#[cfg(not(feature = "cluster"))]
pub(crate) use without::{causes, fetch, fetch_wanted, missing};

/// Which objects to fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All objects that decisions read.
    Everything,
    /// The objects that Placements read.
    Hub,
}
