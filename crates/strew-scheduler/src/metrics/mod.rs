//! The scheduler's metrics: plain integers inside, texts at the boundary.
//!
//! Counting needs no clock. Durations need one, which the caller provides as a [`Stopwatch`]. Its readings go into
//! [`Histogram`]s only, so that no decision can depend on them. Without a stopwatch, a decision takes the same path
//! except for a branch at each point that could be measured.
//!
//! [`Family`]s are made on request ([`Scheduler::metrics`](crate::machine::Scheduler::metrics)), by the
//! [`mod@catalogue`]: names, labels and buckets are kube-scheduler's if the metric is the same.
//!
//! Reading order: [`histogram`], [`family`], [`mod@catalogue`], `meter` (an engine's decisions), `counters` (the
//! machine), `spread` (the skew of workloads).
//!
//! Source: spec/scheduler §5.7.

pub mod catalogue;
pub(crate) mod counters;
pub mod family;
pub mod histogram;
pub(crate) mod meter;
pub(crate) mod spread;

pub use family::{Family, Info, Kind, Sample, Value};
pub use histogram::{Buckets, Histogram, Unit};

/// Reads a monotonic clock: nanoseconds since any moment.
pub type Stopwatch = fn() -> u64;

/// An extension point, with kube-scheduler's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    PreFilter,
    Filter,
    PostFilter,
    Score,
    Bind,
}

impl Point {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PreFilter => "PreFilter",
            Self::Filter => "Filter",
            Self::PostFilter => "PostFilter",
            Self::Score => "Score",
            Self::Bind => "Bind",
        }
    }
}

/// The status of a point, by kube-scheduler's name of its code.
pub(crate) type Status = &'static str;

/// The status of success.
pub(crate) const SUCCESS: Status = "Success";
