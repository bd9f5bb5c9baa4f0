//! `/metrics`: what the scheduler's machine counts, what this process takes, who leads; in Prometheus' texts.
//!
//! The machine belongs to one loop, and pages are answered elsewhere: [`channel`] gives both ends of a question for what
//! was counted. A loop that does not answer in time is an error of that one page.
//!
//! Reading order: [`source`] (the question), [`catalogue`] (what is told beside the machine's), [`process`], [`leader`],
//! [`requests`], `unreadable`, [`text`] (families as text), [`page`]. All metrics are listed in
//! `docs/metrics.md`, which a test compares with the catalogues.

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
