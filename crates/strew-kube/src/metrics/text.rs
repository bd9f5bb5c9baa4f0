//! Metric families as text.
//!
//! The two formats differ in counters: OpenMetrics names a counter `x` and its value `x_total`, and ends with `# EOF`.
//! Prometheus' older text (0.0.4), which every tool reads, uses `x_total` for both and has no end mark.
//! prometheus-client writes the first; the second is derived from it.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use strew_scheduler::metrics::{Family, Kind, Value};

/// The text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text 0.0.4.
    Plain,
}

impl Form {
    /// The format for a request's `Accept`: OpenMetrics if it is named and its quality is not 0.
    pub fn accepted(accept: &str) -> Self {
        let mut ranges = accept.split(',').map(str::trim);
        let named = ranges.any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0"));
            name.eq_ignore_ascii_case("application/openmetrics-text") && !refused
        });
        if named {
            Self::OpenMetrics
        } else {
            Self::Plain
        }
    }

    /// Its `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The text of families.
    ///
    /// # Errors
    /// A value does not fit the type of its family.
    pub fn write(self, families: Vec<Family>) -> Result<String, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Collected(families)));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(match self {
            Self::OpenMetrics => text,
            Self::Plain => plain(&text),
        })
    }
}

/// The suffix of counters.
const TOTAL: &str = "_total";

/// Converts OpenMetrics into the older format.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let suffix = if kind == "counter" { TOTAL } else { "" };
            if let Some((_, help)) = help.take() {
                out.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// Passes families to prometheus-client.
#[derive(Debug)]
struct Collected(Vec<Family>);

impl Collector for Collected {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Family { info, samples } in &self.0 {
            let (name, kind) = match info.kind {
                Kind::Counter => {
                    let name = info.name.strip_suffix(TOTAL).unwrap_or(info.name);
                    (name, MetricType::Counter)
                }
                Kind::Gauge => (info.name, MetricType::Gauge),
                Kind::Histogram(_) => (info.name, MetricType::Histogram),
            };
            let mut encoder = encoder.encode_descriptor(name, info.help, None, kind)?;
            for sample in samples {
                let labels = info.labels.iter().copied().zip(&sample.labels);
                let labels: Vec<(&str, &str)> = labels.map(|(k, v)| (k, &**v)).collect();
                match labels.is_empty() {
                    true => write(info.kind, &sample.value, &mut encoder)?,
                    false => {
                        let mut encoder = encoder.encode_family(&labels)?;
                        write(info.kind, &sample.value, &mut encoder)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write(kind: Kind, value: &Value, encoder: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
    match (kind, value) {
        (Kind::Counter, Value::Count(count)) => {
            encoder.encode_counter::<NoLabelSet, u64, u64>(count, None)
        }
        (Kind::Counter, Value::Number(number)) => {
            encoder.encode_counter::<NoLabelSet, f64, f64>(number, None)
        }
        (Kind::Gauge, Value::Number(number)) => encoder.encode_gauge(number),
        (Kind::Histogram(_), Value::Histogram(histogram)) => {
            let buckets: Vec<(f64, u64)> = histogram.buckets().collect();
            let (sum, count) = (histogram.sum(), histogram.count());
            encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
        }
        _ => Err(fmt::Error),
    }
}
