//! The arithmetic of skew, for the scheduler, WorkloadSpread and placement.
//!
//! A *domain* is a value of a topology key (or a tuple of values, in a hierarchy), given as a dense [`DomainIdx`] whose
//! meaning the caller keeps. A [`Tally`] counts per domain and knows its minimum without searching; [`Sparse`] counts
//! a few replicas over the domains of one. A [`Limit`] is a
//! hard constraint; [`SkewCheck`] is one verdict with its numbers. [`soft`] scores preferences; [`level`] scores
//! domains in a hierarchy, with weights if some should hold more. [`removal`] orders replicas for their removal.
//!
//! A skew must not be computed in a second place.
//!
//! ```
//! use strew_spread::{DomainIdx, Limit, Tally};
//! let (a, b) = (DomainIdx(0), DomainIdx(1));
//! let mut tally = Tally::default();
//! tally.add_place(a);
//! tally.add_place(b);
//! tally.add(a, 2);
//! let check = Limit { max_skew: 1, min_domains: 1 }.check(&tally, a, true);
//! assert_eq!(check.to_string(), "2 there + 1 this pod - 0 in the emptiest domain = 3 > maxSkew 1");
//! ```

pub mod level;
pub mod limit;
pub mod removal;
pub mod soft;
pub mod sparse;
pub mod tally;

pub use limit::{Limit, Minimum, SkewCheck};
pub use sparse::Sparse;
pub use tally::{DomainIdx, Tally};
