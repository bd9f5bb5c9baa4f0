//! Chooses the pods that a rolling update of a DaemonSet replaces now.
//!
//! Source: spec/controllers §4.3; upstream `rollingUpdate`.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSetSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::object::Pod;

use super::on_node::Turnover;

/// The number of nodes that may have no available pod, or two pods, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) unavailable: usize,
    pub(super) surge: usize,
}

impl Limits {
    /// Percentages are rounded up; if both are 0, 1 pod may be unavailable.
    pub(super) fn of(spec: &DaemonSetSpec, desired: usize) -> Self {
        let strategy = spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let unavailable = rolling.and_then(|r| r.max_unavailable.as_ref());
        let surge = rolling.and_then(|r| r.max_surge.as_ref());
        let mut limits = Self {
            unavailable: unavailable.map_or(1, |n| rounded_up(n, desired)),
            surge: surge.map_or(0, |n| rounded_up(n, desired)),
        };
        if limits.unavailable == 0 && limits.surge == 0 {
            limits.unavailable = 1;
        }
        limits
    }
}

/// True if the set surges, for any number of nodes.
pub(super) fn surges(spec: &DaemonSetSpec) -> bool {
    is_rolling(spec) && Limits::of(spec, 1).surge > 0
}

/// True if the update strategy is RollingUpdate.
pub(super) fn is_rolling(spec: &DaemonSetSpec) -> bool {
    let strategy = spec.update_strategy.as_ref();
    let kind = strategy.and_then(|strategy| strategy.type_.as_deref());
    matches!(kind, None | Some("" | "RollingUpdate"))
}

fn rounded_up(given: &IntOrString, of: usize) -> usize {
    match given {
        IntOrString::Int(n) => usize::try_from(*n).unwrap_or(0),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|n| n.parse::<usize>().ok());
            percent.unwrap_or(0).saturating_mul(of).div_ceil(100)
        }
    }
}

/// A node in a rolling update.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) node: &'a Arc<str>,
    pub(super) should_run: bool,
    pub(super) turnover: &'a Turnover,
}

/// The next changes of a rolling update: all of `…_now`, then any `n_more` of the others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RolloutStep {
    pub(super) deletes_now: Vec<Arc<Pod>>,
    pub(super) deletes: Vec<Arc<Pod>>,
    pub(super) creates_now: Vec<Arc<str>>,
    pub(super) creates: Vec<Arc<str>>,
    /// The number of `deletes` or `creates` to do.
    pub(super) n_more: usize,
}

/// Replaces pods without surge: the old pod is deleted, and the new one is created when it is gone.
pub(super) fn replace<'a>(
    nodes: impl Iterator<Item = Candidate<'a>>,
    limits: Limits,
) -> RolloutStep {
    let mut step = RolloutStep::default();
    let mut n_unavailable = 0;
    for Candidate { turnover, .. } in nodes {
        let is_available = match (turnover.is_crowded, turnover.new, &turnover.old) {
            (false, Some(is_available), None) => is_available,
            (false, None, Some((old, true))) => {
                step.deletes.push(Arc::clone(old));
                true
            }
            (false, None, Some((old, false))) => {
                step.deletes_now.push(Arc::clone(old));
                false
            }
            _ => false,
        };
        n_unavailable += usize::from(!is_available);
    }
    let room = limits.unavailable.saturating_sub(n_unavailable);
    step.n_more = room.min(step.deletes.len());
    step
}

/// Replaces pods with surge: the new pod starts beside the old one, which is deleted when the new one is available or
/// the old one is not.
pub(super) fn surge<'a>(
    nodes: impl Iterator<Item = Candidate<'a>>,
    desired: usize,
    limits: Limits,
) -> RolloutStep {
    let mut step = RolloutStep::default();
    let (mut n_surging, mut n_available) = (0, 0);
    let mut unwanted = Vec::new();
    for candidate in nodes {
        let turnover = candidate.turnover;
        if turnover.is_crowded {
            n_surging += 1;
            continue;
        }
        let Some((old, is_old_available)) = &turnover.old else {
            n_available += usize::from(turnover.new == Some(true));
            continue;
        };
        n_available += usize::from(*is_old_available);
        match turnover.new {
            // No new pod will come there.
            None if !candidate.should_run => unwanted.push(Arc::clone(old)),
            None if *is_old_available => step.creates.push(Arc::clone(candidate.node)),
            None => step.creates_now.push(Arc::clone(candidate.node)),
            Some(is_new_available) if is_new_available || !is_old_available => {
                step.deletes_now.push(Arc::clone(old));
            }
            Some(_) => n_surging += 1,
        }
    }
    let spare = (n_available + limits.unavailable).saturating_sub(desired);
    step.deletes_now.extend(unwanted.into_iter().take(spare));
    let room = limits.surge.saturating_sub(n_surging);
    step.n_more = room.min(step.creates.len());
    step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod_of;
    use serde_json::{Value, json};

    /// A node for each word: the old pod, the new pod; `+` available, `-` not available, `.` none, `x` crowded.
    fn nodes(picture: &str) -> Vec<(Arc<str>, Turnover)> {
        let words = picture.split_whitespace().enumerate();
        words
            .map(|(index, word)| {
                let name: Arc<str> = format!("n{index}").into();
                let states: Vec<char> = word.chars().collect();
                let available = |state: char| (state != '.').then_some(state == '+');
                let turnover = Turnover {
                    is_crowded: word == "xx",
                    old: available(states[0]).map(|is| (Arc::new(pod_of("set", &name)), is)),
                    new: available(states[1]),
                };
                (name, turnover)
            })
            .collect()
    }

    fn candidates(nodes: &[(Arc<str>, Turnover)]) -> impl Iterator<Item = Candidate<'_>> {
        nodes.iter().map(|(node, turnover)| Candidate {
            node,
            should_run: true,
            turnover,
        })
    }

    fn names(pods: &[Arc<Pod>]) -> String {
        let names: Vec<&str> = pods.iter().map(|pod| &*pod.meta.name.name).collect();
        names.join(" ")
    }

    #[test]
    fn limits() {
        for (rolling, desired, expected) in [
            (Value::Null, 10, (1, 0)),
            (json!({"maxUnavailable": "25%"}), 10, (3, 0)),
            (json!({"maxUnavailable": 0, "maxSurge": "10%"}), 11, (0, 2)),
            (json!({"maxUnavailable": 0, "maxSurge": 0}), 11, (1, 0)),
            (json!({"maxUnavailable": "10%"}), 0, (1, 0)),
        ] {
            let spec = json!({
                "selector": {}, "template": {},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            });
            let limits = Limits::of(&serde_json::from_value(spec).unwrap(), desired);
            assert_eq!((limits.unavailable, limits.surge), expected, "{rolling}");
        }
    }

    #[test]
    fn without_surge() {
        for (picture, unavailable, now, n_more) in [
            ("+. +. +.", 1, "", 1),
            ("+. +. +.", 2, "", 2),
            (".- +. +.", 1, "", 0),
            (".. +. +.", 1, "", 0),
            (".+ +. +.", 1, "", 1),
            ("-. +. +.", 1, "n0", 0),
            ("-. -. +.", 3, "n0 n1", 1),
            ("++ +. +.", 1, "", 0),
            ("xx +. +.", 2, "", 1),
        ] {
            let limits = Limits {
                unavailable,
                surge: 0,
            };
            let step = replace(candidates(&nodes(picture)), limits);
            assert_eq!(
                (&*names(&step.deletes_now), step.n_more),
                (now, n_more),
                "{picture}"
            );
        }
    }

    #[test]
    fn with_surge() {
        for (picture, surge_max, deletes, creates_now, n_more) in [
            ("+. +. +.", 1, "", "", 1),
            ("+. +. +.", 2, "", "", 2),
            ("+- +. +.", 1, "", "", 0),
            ("++ +. +.", 1, "n0", "", 1),
            ("-- +. +.", 1, "n0", "", 1),
            ("-. +. +.", 1, "", "n0", 1),
            ("xx +. +.", 1, "", "", 0),
            (".+ .+ .+", 1, "", "", 0),
        ] {
            let limits = Limits {
                unavailable: 0,
                surge: surge_max,
            };
            let step = surge(candidates(&nodes(picture)), 3, limits);
            let created = step.creates_now.join(" ");
            assert_eq!(
                (&*names(&step.deletes_now), &*created, step.n_more),
                (deletes, creates_now, n_more),
                "{picture}"
            );
        }
    }
}
