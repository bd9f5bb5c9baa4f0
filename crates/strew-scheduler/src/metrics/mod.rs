//! What a scheduler counts and measures of itself, and how it is told: plain integers here, texts in the world.
//!
//! Counting needs no clock. Durations need one, which the world gives as a [`Stopwatch`]: what it reads is added to
//! [`Histogram`]s and to nothing else, so that no decision can depend on it. Without one no clock is read, and the way
//! of a decision is the same but for a branch at each point that could be measured.
//!
//! [`Family`]s are made when somebody asks ([`Scheduler::metrics`](crate::machine::Scheduler::metrics)), by the
//! [`mod@catalogue`]: names, labels and buckets are kube-scheduler's where the thing is the same.
//!
//! Reading order: [`histogram`], [`family`], [`mod@catalogue`], `meter` (of an engine's decisions), `counters` (of the
//! machine), `spread` (how even the workloads are).
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

/// Reads a clock that only grows: nanoseconds since any moment.
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

/// What a point came to: the name of kube-scheduler's status code.
pub(crate) type Status = &'static str;

/// The status where nothing is wrong.
pub(crate) const SUCCESS: Status = "Success";
