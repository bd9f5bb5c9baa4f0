//! CPU time, and the bounds of measurements.

use std::fs;

/// CPU time of this thread so far, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// The mean time of `n` operations since `began`, in microseconds.
pub(crate) fn mean_us(began: u64, n: u64) -> f64 {
    (cpu_ns() - began) as f64 / n as f64 / 1_000.0
}

/// A number and its bound.
pub(crate) struct Measured {
    value: f64,
    bound: f64,
    unit: &'static str,
    less_is_better: bool,
}

impl Measured {
    pub(crate) fn time_us(value: f64, bound: f64) -> Self {
        Self {
            value,
            bound,
            unit: "us",
            less_is_better: true,
        }
    }

    pub(crate) fn pods_a_write(value: f64, bound: f64) -> Self {
        Self {
            value,
            bound,
            unit: "pods_per_write",
            less_is_better: false,
        }
    }

    pub(crate) fn is_met(&self) -> bool {
        match self.less_is_better {
            true => self.value <= self.bound,
            false => self.value >= self.bound,
        }
    }

    pub(crate) fn line(&self, name: &str) -> String {
        let Self {
            value, bound, unit, ..
        } = self;
        let met = self.is_met();
        format!(r#"{{"name":"{name}","{unit}":{value:.1},"bound":{bound},"met":{met}}}"#)
    }
}
