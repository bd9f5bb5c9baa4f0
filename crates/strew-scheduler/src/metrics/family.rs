//! A metric family: all series of one name.

use std::borrow::Cow;

use super::histogram::{Buckets, Histogram};

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and shrinks.
    Gauge,
    /// Counts by size.
    Histogram(Buckets),
}

/// The description of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Info {
    /// Its full name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The help text, a sentence without a full stop.
    pub help: &'static str,
}

/// One number, or one histogram.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// For a counter of things.
    Count(u64),
    /// For a gauge, or a counter of another quantity.
    Number(f64),
    /// For a histogram.
    Histogram(Box<Histogram>),
}

/// A value with its labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The values of the metric's labels, in their order.
    pub labels: Vec<Cow<'static, str>>,
    /// The value.
    pub value: Value,
}

/// All values of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The metric.
    pub info: &'static Info,
    /// Its values.
    pub samples: Vec<Sample>,
}

impl Family {
    /// A metric without any value.
    pub fn new(info: &'static Info) -> Self {
        let samples = Vec::new();
        Self { info, samples }
    }

    /// A metric with a value.
    pub fn of(info: &'static Info, value: Value) -> Self {
        let mut family = Self::new(info);
        family.push([], value);
        family
    }

    /// Adds a value with these labels.
    pub fn push<const N: usize>(&mut self, labels: [Cow<'static, str>; N], value: Value) {
        debug_assert_eq!(N, self.info.labels.len(), "{}", self.info.name);
        self.samples.push(Sample {
            labels: labels.into(),
            value,
        });
    }
}

impl Value {
    /// A gauge with a number of things.
    pub fn number(things: usize) -> Self {
        Self::Number(things as f64)
    }

    /// A histogram's.
    pub fn histogram(histogram: &Histogram) -> Self {
        Self::Histogram(Box::new(histogram.clone()))
    }
}

/// Declares metrics: a static per metric, and `ALL` of them in the order of the output.
#[macro_export]
macro_rules! catalogue {
    ($($id:ident = $name:literal, $kind:ident $(($buckets:expr))?, [$($label:literal),*], $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help, ".")]
            pub static $id: $crate::metrics::Info = $crate::metrics::Info {
                name: $name,
                kind: $crate::metrics::Kind::$kind $(($buckets))?,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All of them, in the order of the output.
        pub static ALL: &[&$crate::metrics::Info] = &[$(&$id),*];
    };
}
