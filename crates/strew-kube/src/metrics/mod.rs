//! `/metrics`: the machine's counters, the process' resources and its leadership, in Prometheus' text formats.
//!
//! The machine belongs to one loop, and pages are served by other tasks; [`channel`] connects them. If the loop does
//! not answer in time, that one page fails.
//!
//! Reading order: [`source`] (asking the loop), [`catalogue`] (metrics of the process), [`process`], [`leader`],
//! [`requests`], `unreadable`, [`text`] (the formats), [`page`]. A test compares `docs/metrics.md` with the catalogues.

pub mod catalogue;
pub mod leader;
pub mod page;
pub mod process;
pub mod requests;
pub mod source;
pub mod text;
mod unreadable;

pub use leader::Leader;
pub use page::Metrics;
pub use requests::Requests;
pub use source::{MetricsRequest, MetricsRequests, MetricsSource, SourceError, channel};
pub(crate) use unreadable::unreadable;

#[cfg(test)]
mod tests;
