//! Computes how many replicas a utilisation asks for.
//!
//! Source: spec/controllers §6, "Pods"; kubernetes v1.36.3 pkg/controller/podautoscaler/replica_calculator.go.

use strew_apiserver::object::pod::READY;
use strew_apiserver::object::{Phase, Pod, Truth};
use strew_model::time::{Instant, Span};

/// During this time after a pod's start, its first samples are ignored.
const CPU_INITIALIZATION: Span = Span::from_secs(300);

/// A pod that is not ready this long after its start counts as never having been ready.
const INITIAL_READINESS: Span = Span::from_secs(30);

/// The time that a sample of the metrics server covers.
const SAMPLE: Span = Span::from_secs(15);

/// How a pod counts for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountsAs {
    /// Not at all.
    Ignored,
    Unready,
    /// It should have figures, but has none.
    Missing,
    Measured,
}

/// How a pod counts for a resource. Running pods have figures.
pub(super) fn standing(pod: &Pod, is_cpu: bool, now: Instant) -> CountsAs {
    if pod.meta.is_terminating() || pod.status.phase == Phase::Failed {
        return CountsAs::Ignored;
    }
    match pod.status.phase {
        Phase::Pending => CountsAs::Unready,
        Phase::Running if is_cpu && is_unready(pod, now) => CountsAs::Unready,
        Phase::Running => CountsAs::Measured,
        _ => CountsAs::Missing,
    }
}

fn is_unready(pod: &Pod, now: Instant) -> bool {
    let (Some(ready), Some(start)) = (pod.status.condition(READY), pod.status.started) else {
        return true;
    };
    let is_not_ready = ready.status == Truth::False;
    if start + CPU_INITIALIZATION > now {
        is_not_ready || now < ready.since + SAMPLE
    } else {
        is_not_ready && start + INITIAL_READINESS > ready.since
    }
}

/// Requests of the pods in thousandths, by how the pods count.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    pub(super) measured: Vec<u64>,
    pub(super) unready: Vec<u64>,
    pub(super) missing: Vec<u64>,
}

/// The tolerance around the target, as a share of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerance {
    pub(super) up: f64,
    pub(super) down: f64,
}

impl Tolerance {
    fn covers(self, ratio: f64) -> bool {
        (1.0 - self.down..=1.0 + self.up).contains(&ratio)
    }
}

/// The number of replicas that brings the utilisation to the target. The utilisation is that of every measured pod;
/// both are in percent.
pub(super) fn replicas(
    current: i32,
    pods: &Requests,
    utilisation: u32,
    target: u32,
    tolerance: Tolerance,
) -> i32 {
    let target_share = f64::from(target.max(1));
    let ratio = f64::from(utilisation) / target_share;
    let is_raised_by_unready = !pods.unready.is_empty() && ratio > 1.0;
    if !is_raised_by_unready && pods.missing.is_empty() {
        return match tolerance.covers(ratio) {
            true => current,
            false => product(ratio, pods.measured.len()),
        };
    }
    let sum = |requests: &[u64]| requests.iter().map(|&r| u128::from(r)).sum::<u128>();
    let mut usage = sum(&pods.measured) * u128::from(utilisation) / 100;
    let mut requests = sum(&pods.measured);
    let mut n_counted = pods.measured.len();
    // If the ratio is exactly 1, the missing pods are left out.
    let assumed = (ratio < 1.0)
        .then(|| target.max(100))
        .or((ratio > 1.0).then_some(0));
    if let Some(assumed) = assumed {
        usage += sum(&pods.missing) * u128::from(assumed) / 100;
        requests += sum(&pods.missing);
        n_counted += pods.missing.len();
    }
    if is_raised_by_unready {
        requests += sum(&pods.unready);
        n_counted += pods.unready.len();
    }
    let new = usage.saturating_mul(100).checked_div(requests).unwrap_or(0);
    let new_ratio = f64::from(u32::try_from(new).unwrap_or(u32::MAX)) / target_share;
    let turned = (ratio < 1.0 && new_ratio > 1.0) || (ratio > 1.0 && new_ratio < 1.0);
    if tolerance.covers(new_ratio) || turned {
        return current;
    }
    let wanted = product(new_ratio, n_counted);
    match (new_ratio < 1.0, wanted > current) {
        (true, true) => current,
        (false, _) if wanted < current => current,
        _ => wanted,
    }
}

/// Rounded up.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a conversion of a float saturates"
)]
fn product(ratio: f64, n: usize) -> i32 {
    (ratio * f64::from(u32::try_from(n).unwrap_or(u32::MAX))).ceil() as i32
}

#[cfg(test)]
mod tests {
    use strew_apiserver::object::{Meta, Name, PodStatus};

    use super::*;

    #[test]
    fn utilisation_becomes_a_number_of_pods() {
        // measured, unready, missing; utilisation, target: replicas
        for (measured, unready, missing, utilisation, target, expected) in [
            (4, 0, 0, 80, 80, 4),
            (4, 0, 0, 88, 80, 4),
            (4, 0, 0, 89, 80, 5),
            (4, 0, 0, 72, 80, 4),
            (4, 0, 0, 71, 80, 4),
            (4, 0, 0, 60, 80, 3),
            (4, 0, 0, 160, 80, 8),
            (4, 0, 0, 0, 80, 0),
            // Unready pods at 0: 3 * 160 / 4 = 120.
            (3, 1, 0, 160, 80, 6),
            // 2 * 160 / 4 = 80: no change.
            (2, 2, 0, 160, 80, 4),
            // 1 * 160 / 4 = 40: the other side.
            (1, 3, 0, 160, 80, 4),
            // When scaling down, unready pods do not count.
            (3, 1, 0, 40, 80, 2),
            // Missing ones at 100: (2 * 20 + 2 * 100) / 4 = 60.
            (2, 0, 2, 20, 80, 3),
            (3, 0, 1, 40, 80, 3),
            // Missing ones at 0: 3 * 160 / 4 = 120.
            (3, 0, 1, 160, 80, 6),
        ] {
            let pods = Requests {
                measured: vec![100; measured],
                unready: vec![100; unready],
                missing: vec![100; missing],
            };
            let current = i32::try_from(measured + unready + missing).unwrap();
            let tolerance = Tolerance { up: 0.1, down: 0.1 };
            let found = replicas(current, &pods, utilisation, target, tolerance);
            let case = (measured, unready, missing, utilisation, target);
            assert_eq!(found, expected, "{case:?}");
        }
    }

    #[test]
    fn young_pods_are_believed_when_a_whole_sample_is_theirs() {
        let at = Instant::from_secs;
        // phase, started, ready or not since, now
        for (phase, started, ready, now, expected) in [
            (Phase::Pending, None, None, 100, CountsAs::Unready),
            (Phase::Running, None, None, 100, CountsAs::Unready),
            (
                Phase::Running,
                Some(100),
                Some((true, 110)),
                120,
                CountsAs::Unready,
            ),
            (
                Phase::Running,
                Some(100),
                Some((true, 110)),
                125,
                CountsAs::Measured,
            ),
            (
                Phase::Running,
                Some(100),
                Some((false, 100)),
                399,
                CountsAs::Unready,
            ),
            (
                Phase::Running,
                Some(100),
                Some((false, 100)),
                400,
                CountsAs::Unready,
            ),
            (
                Phase::Running,
                Some(100),
                Some((false, 200)),
                400,
                CountsAs::Measured,
            ),
            (Phase::Failed, None, None, 100, CountsAs::Ignored),
            (Phase::Succeeded, None, None, 100, CountsAs::Missing),
        ] {
            let mut pod = Pod {
                meta: Meta::new(Name::new("ns", "x")),
                spec: Default::default(),
                node: None,
                status: PodStatus::default(),
            };
            pod.status.phase = phase;
            pod.status.started = started.map(at);
            if let Some((is_ready, since)) = ready {
                let truth = Truth::from(is_ready);
                pod.status.set_condition(READY, truth, "", "", at(since));
            }
            let found = standing(&pod, true, at(now));
            assert_eq!(found, expected, "{phase:?} {started:?} {ready:?} {now}");
        }
    }
}
