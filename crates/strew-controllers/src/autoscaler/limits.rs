//! Limits a proposed size: stabilization windows, rates, minimum and maximum.

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior,
};
use strew_model::time::{Instant, Span};

/// `--horizontal-pod-autoscaler-downscale-stabilization`
const DOWN_WINDOW: i32 = 300;

/// Earlier proposals and changes of size.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    proposals: Vec<(Instant, i32)>,
    added: Vec<(Instant, i32)>,
    removed: Vec<(Instant, i32)>,
}

/// The present size and its bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) current: i32,
    pub(super) min: i32,
    pub(super) max: i32,
}

/// The new size, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) replicas: i32,
    /// Reason and message of the condition AbleToScale.
    pub(super) able: (&'static str, &'static str),
    /// Status, reason and message of the condition ScalingLimited.
    pub(super) limited: (bool, &'static str, &'static str),
}

const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");
const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const WITHIN: (&str, &str) = (
    "DesiredWithinRange",
    "the desired count is within the acceptable range",
);
const TOO_FEW: (&str, &str) = (
    "TooFewReplicas",
    "the desired replica count is less than the minimum replica count",
);
const TOO_MANY: (&str, &str) = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
);
const UP_LIMIT: (&str, &str) = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
);
const DOWN_LIMIT: (&str, &str) = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);

impl History {
    /// At the first look, the present size counts as proposed.
    pub(super) fn begin(&mut self, now: Instant, current: i32) {
        if self.proposals.is_empty() {
            self.proposals.push((now, current));
        }
    }

    /// Records a change of size.
    pub(super) fn scaled(&mut self, now: Instant, old: i32, new: i32) {
        match new > old {
            true => self.added.push((now, new - old)),
            false => self.removed.push((now, old - new)),
        }
    }

    /// Limits a proposal, and remembers it.
    pub(super) fn decide(
        &mut self,
        now: Instant,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        range: Range,
        proposal: i32,
    ) -> Decision {
        let rules = behavior.map(Rules::of);
        let stable = self.stabilize(now, rules.as_ref(), range.current, proposal);
        let able = match stable == proposal {
            true => READY,
            false if rules.is_some() && proposal >= range.current => UP_STABILIZED,
            false => DOWN_STABILIZED,
        };
        let (replicas, told) = match &rules {
            None => limit_simply(range, stable),
            Some(rules) => self.limit(now, rules, range, stable),
        };
        Decision {
            replicas,
            able,
            limited: (replicas != stable, told.0, told.1),
        }
    }

    fn stabilize(
        &mut self,
        now: Instant,
        rules: Option<&Rules>,
        current: i32,
        proposal: i32,
    ) -> i32 {
        let down = rules.map_or(DOWN_WINDOW, |rules| rules.down.window);
        let up = rules.map_or(0, |rules| rules.up.window);
        let since = |window: i32| now - Span::from_secs(u64::try_from(window).unwrap_or(0));
        let goes_up = rules.is_some() && proposal >= current;
        let window = since(if goes_up { up } else { down });
        // Only without `behavior`, a proposal exactly as old as the window still counts.
        let is_recent = |at: Instant| at > window || (rules.is_none() && at == window);
        let recent = self.proposals.iter().filter(|(at, _)| is_recent(*at));
        let recent = recent.map(|(_, replicas)| *replicas).chain([proposal]);
        let stable = if goes_up { recent.min() } else { recent.max() };
        let oldest = since(up.max(down));
        self.proposals.retain(|(at, _)| *at >= oldest);
        self.proposals.push((now, proposal));
        stable.unwrap_or(proposal)
    }

    fn limit(
        &mut self,
        now: Instant,
        rules: &Rules,
        range: Range,
        wanted: i32,
    ) -> (i32, (&'static str, &'static str)) {
        let current = range.current;
        if wanted > current {
            forget(&mut self.added, &rules.up, now);
            let most = rules.up.most(current, &self.added, now).max(current);
            let (most, told) = match range.max > most {
                true => (most, UP_LIMIT),
                false => (range.max, TOO_MANY),
            };
            if wanted > most {
                return (most, told);
            }
        } else if wanted < current {
            forget(&mut self.removed, &rules.down, now);
            let least = rules.down.least(current, &self.removed, now).min(current);
            let (least, told) = match range.min < least {
                true => (least, DOWN_LIMIT),
                false => (range.min, TOO_FEW),
            };
            if wanted < least {
                return (least, told);
            }
        }
        (wanted, WITHIN)
    }
}

fn limit_simply(range: Range, wanted: i32) -> (i32, (&'static str, &'static str)) {
    let fast = range.current.saturating_mul(2).max(4);
    let (most, told) = match range.max > fast {
        true => (fast, UP_LIMIT),
        false => (range.max, TOO_MANY),
    };
    if wanted < range.min {
        (range.min, TOO_FEW)
    } else if wanted > most {
        (most, told)
    } else {
        (wanted, WITHIN)
    }
}

/// `behavior` with its defaults.
struct Rules {
    up: Direction,
    down: Direction,
}

struct Direction {
    window: i32,
    policies: Vec<HPAScalingPolicy>,
    select: Select,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Select {
    Max,
    Min,
    Disabled,
}

impl Rules {
    fn of(behavior: &HorizontalPodAutoscalerBehavior) -> Self {
        let policy = |kind: &str, value| HPAScalingPolicy {
            type_: kind.to_owned(),
            value,
            period_seconds: 15,
        };
        let up = vec![policy("Pods", 4), policy("Percent", 100)];
        let down = vec![policy("Percent", 100)];
        Self {
            up: Direction::of(behavior.scale_up.as_ref(), 0, up),
            down: Direction::of(behavior.scale_down.as_ref(), DOWN_WINDOW, down),
        }
    }
}

impl Direction {
    fn of(rules: Option<&HPAScalingRules>, window: i32, policies: Vec<HPAScalingPolicy>) -> Self {
        let given = rules.and_then(|rules| rules.policies.clone());
        Self {
            window: rules
                .and_then(|rules| rules.stabilization_window_seconds)
                .unwrap_or(window),
            policies: given.filter(|given| !given.is_empty()).unwrap_or(policies),
            select: match rules.and_then(|rules| rules.select_policy.as_deref()) {
                Some("Min") => Select::Min,
                Some("Disabled") => Select::Disabled,
                _ => Select::Max,
            },
        }
    }

    /// The largest size allowed now.
    fn most(&self, current: i32, added: &[(Instant, i32)], now: Instant) -> i32 {
        let limits = self.policies.iter().map(|policy| {
            let start = i64::from(current) - changed(added, policy, now);
            let value = i64::from(policy.value);
            match policy.type_ == "Pods" {
                true => start + value,
                // Rounded up: otherwise a single pod would never become two.
                false => -((-start * (100 + value)).div_euclid(100)),
            }
        });
        match self.select {
            Select::Disabled => current,
            Select::Min => clamp(limits.min().unwrap_or(0)),
            Select::Max => clamp(limits.max().unwrap_or(0)),
        }
    }

    /// The smallest size allowed now.
    fn least(&self, current: i32, removed: &[(Instant, i32)], now: Instant) -> i32 {
        let limits = self.policies.iter().map(|policy| {
            let start = i64::from(current) + changed(removed, policy, now);
            let value = i64::from(policy.value);
            match policy.type_ == "Pods" {
                true => start - value,
                false => start * (100 - value) / 100,
            }
        });
        match self.select {
            Select::Disabled => current,
            Select::Min => clamp(limits.max().unwrap_or(0)),
            Select::Max => clamp(limits.min().unwrap_or(0)),
        }
    }
}

fn clamp(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

/// The change of size within a policy's period.
fn changed(changes: &[(Instant, i32)], policy: &HPAScalingPolicy, now: Instant) -> i64 {
    let since = now - period(policy);
    let recent = changes.iter().filter(|(at, _)| *at > since);
    recent.map(|(_, change)| i64::from(*change)).sum()
}

fn period(policy: &HPAScalingPolicy) -> Span {
    Span::from_secs(u64::try_from(policy.period_seconds).unwrap_or(0))
}

/// Forgets changes that are older than the period of every policy.
fn forget(changes: &mut Vec<(Instant, i32)>, direction: &Direction, now: Instant) {
    let longest = direction
        .policies
        .iter()
        .map(period)
        .max()
        .unwrap_or_default();
    changes.retain(|(at, _)| *at >= now - longest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Proposals, one every 15 s, with the resulting size and reason.
    #[track_caller]
    fn check(behavior: Option<Value>, (min, max): (i32, i32), start: i32, steps: &[(i32, &str)]) {
        let behavior = behavior.map(|b| serde_json::from_value(b).unwrap());
        let mut history = History::default();
        let mut now = Instant::from_secs(1_000_000);
        let mut current = start;
        let mut told = Vec::new();
        history.begin(now, current);
        for (proposal, _) in steps {
            let range = Range { current, min, max };
            let decision = history.decide(now, behavior.as_ref(), range, *proposal);
            if decision.replicas != current {
                history.scaled(now, current, decision.replicas);
            }
            current = decision.replicas;
            let reason = match decision.limited {
                (true, reason, _) => reason,
                _ => decision.able.0,
            };
            told.push(format!("{current} {reason}"));
            now = now + Span::from_secs(15);
        }
        let expected: Vec<&str> = steps.iter().map(|(_, expected)| *expected).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn without_behavior_the_size_doubles_at_most() {
        check(
            None,
            (2, 20),
            1,
            &[
                (9, "4 ScaleUpLimit"),
                (9, "8 ScaleUpLimit"),
                (30, "16 ScaleUpLimit"),
                (30, "20 TooManyReplicas"),
                (3, "20 TooManyReplicas"),
            ],
        );
    }

    #[test]
    fn without_behavior_the_highest_proposal_of_five_minutes_counts() {
        let mut steps = vec![(6, "6 ReadyForNewScale")];
        steps.extend([(1, "6 ScaleDownStabilized"); 20]);
        steps.push((1, "2 TooFewReplicas"));
        check(None, (2, 20), 6, &steps);
    }

    #[test]
    fn policies_bound_the_speed() {
        let up =
            json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}});
        check(
            Some(up),
            (1, 20),
            1,
            &[
                (9, "3 ScaleUpLimit"),
                (9, "3 ScaleUpLimit"),
                (9, "3 ScaleUpLimit"),
                (9, "3 ScaleUpLimit"),
                (9, "5 ScaleUpLimit"),
            ],
        );
        let down = json!({"scaleDown": {
            "stabilizationWindowSeconds": 0,
            "policies": [{"type": "Percent", "value": 10, "periodSeconds": 15}]
        }});
        check(
            Some(down),
            (1, 50),
            30,
            &[
                (1, "27 ScaleDownLimit"),
                (1, "24 ScaleDownLimit"),
                (1, "21 ScaleDownLimit"),
            ],
        );
        check(
            Some(json!({})),
            (1, 50),
            3,
            &[(50, "7 ScaleUpLimit"), (50, "14 ScaleUpLimit")],
        );
        let off = json!({"scaleUp": {"selectPolicy": "Disabled"}});
        check(Some(off), (1, 50), 3, &[(50, "3 ScaleUpLimit")]);
    }

    #[test]
    fn a_window_upwards_takes_the_lowest() {
        let slow = json!({"scaleUp": {"stabilizationWindowSeconds": 30}});
        check(
            Some(slow),
            (1, 50),
            3,
            &[
                (7, "3 ScaleUpStabilized"),
                (6, "3 ScaleUpStabilized"),
                (7, "6 ScaleUpStabilized"),
                (7, "7 ReadyForNewScale"),
            ],
        );
    }
}
