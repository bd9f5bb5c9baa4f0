//! The conditions in a placement's status. Source: spec/placement §2.7, §3.7.

use std::fmt::Write;
use std::sync::Arc;

use strew_model::{Instant, Interner, Symbol};

use ConditionReason as Reason;

use crate::facts::status::{Condition, ConditionReason, ConditionType, PlacementStatus};
use crate::hub::Candidates;
use crate::plan::Problem;
use crate::schedule::Code;
use crate::select::measure::{GroupsUsed, LimitedBy, SpreadReport, Unmet};

/// A condition without its time.
pub type ConditionValue = (bool, ConditionReason, Arc<str>);

/// `PlacementMisconfigured`.
pub fn misconfigured(problem: Option<&Problem>) -> ConditionValue {
    match problem {
        Some(problem) => (true, Reason::Misconfigured, problem.to_string().into()),
        None => {
            let message = "Placement configurations check pass";
            (false, Reason::Succeedconfigured, message.into())
        }
    }
}

/// `PlacementSatisfied`. `sets` is what the specification asks for, `error` the error of a failed run.
pub fn satisfied(
    candidates: &Candidates,
    sets: &[Symbol],
    error: Option<&str>,
    selected: usize,
    unscheduled: usize,
    names: &Interner,
) -> ConditionValue {
    let list = |sets: &[Symbol]| {
        sets.iter()
            .map(|&s| names.text(s))
            .collect::<Vec<_>>()
            .join(",")
    };
    let not = |reason, message: String| (false, reason, message.into());
    if !candidates.bound {
        let message = "No valid ManagedClusterSetBindings found in placement namespace";
        return not(Reason::NoManagedClusterSetBindings, message.to_owned());
    }
    if candidates.eligible.is_empty() {
        let sets = list(sets);
        let message =
            format!("None of ManagedClusterSets [{sets}] is bound to placement namespace");
        return not(Reason::NoIntersection, message);
    }
    if candidates.clusters.is_empty() {
        let sets = list(&candidates.eligible);
        let message = format!("All ManagedClusterSets [{sets}] have no member ManagedCluster");
        return not(Reason::AllManagedClusterSetsEmpty, message);
    }
    if let Some(error) = error {
        return not(Reason::NotAllDecisionsScheduled, error.to_owned());
    }
    if selected == 0 {
        let message = "No ManagedCluster matches any of the cluster predicate";
        return not(Reason::NoManagedClusterMatched, message.to_owned());
    }
    if unscheduled == 0 {
        let message = "All cluster decisions scheduled";
        return (true, Reason::AllDecisionsScheduled, message.into());
    }
    let message = format!("{unscheduled} cluster decisions unscheduled");
    not(Reason::NotAllDecisionsScheduled, message)
}

/// `PlacementSpreadSatisfied`. Keys and values that no cluster has are reported in every case.
pub fn spread(report: &SpreadReport, names: &Interner) -> ConditionValue {
    let (status, reason, mut message) = measured(report, names);
    for unmet in &report.unmet {
        if unmet.value.is_some() || reason != Reason::SpreadKeyMissing {
            message += &format!("; {}", unmet_words(unmet, names));
        }
    }
    (status, reason, message.into())
}

/// The keys and values that no cluster has, as text.
pub fn unmet_words(unmet: &Unmet, names: &Interner) -> String {
    match unmet.value {
        None => no_key(unmet, names),
        Some((value, weight)) => {
            let (key, value) = (names.text(unmet.key), names.text(value));
            format!("no cluster has {key}={value}, which has weight {weight}")
        }
    }
}

/// The number of topologies in use, if it is smaller than asked for.
pub fn too_few_words(groups: &GroupsUsed, names: &Interner) -> String {
    let GroupsUsed { key, used, min, .. } = *groups;
    let noun = if used == 1 { "group" } else { "groups" };
    format!("{} has {used} {noun}, minGroups {min}", names.text(key))
}

fn measured(report: &SpreadReport, names: &Interner) -> (bool, ConditionReason, String) {
    let (selected, asked) = (report.selected, report.asked);
    if let Some(groups) = report.too_few() {
        let mut message = too_few_words(groups, names);
        if selected < asked {
            message += &format!("; {selected} of {asked} selected");
        }
        return (false, Reason::SpreadTooFewGroups, message);
    }
    if let Some(limited) = report.limited {
        let key = names.text(limited.key);
        let (blocked, lacking) = (limited.blocked, limited.lacking);
        let rule = match limited.by {
            LimitedBy::MaxSkew(max) => Some(format!("maxSkew {max} allows no more")),
            LimitedBy::MaxGroups(max) => Some(format!("maxGroups {max} allows no more")),
            LimitedBy::MinGroups(min) => Some(format!("minGroups {min} keeps the rest")),
            LimitedBy::Key => None,
        };
        let message = match rule {
            Some(rule) => format!(
                "{selected} of {asked} selected: {key} {rule}; blocked {}, {lacking} lack a topology key",
                clusters(blocked)
            ),
            None => format!(
                "{selected} of {asked} selected: {} without the key of a DoNotSchedule term, {key} first",
                clusters(lacking)
            ),
        };
        return (false, Reason::SpreadLimited, message);
    }
    if let Some(unmet) = report.unmet.iter().find(|unmet| unmet.value.is_none()) {
        let message = format!(
            "{}: {} not spread by it",
            no_key(unmet, names),
            clusters(selected)
        );
        return (false, Reason::SpreadKeyMissing, message);
    }
    if let Some(exceeded) = report.exceeded {
        let (key, value) = (names.text(exceeded.key), names.text(exceeded.value));
        let (there, minimum) = (exceeded.there, exceeded.minimum);
        let message = format!("{key}={value} has {there}, minimum {minimum}");
        return (
            false,
            Reason::SpreadSkewExceeded,
            message + &lacking(report, names),
        );
    }
    let topologies = report.topologies;
    let mut message = format!("{selected} clusters over {topologies} topologies, max skew");
    for (i, &(key, skew)) in report.skews.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(message, "{comma} {} {skew}", names.text(key));
    }
    (
        true,
        Reason::SpreadSatisfied,
        message + &lacking(report, names),
    )
}

/// The number of selected clusters without a key, as text.
fn lacking(report: &SpreadReport, names: &Interner) -> String {
    let each = report.lacking.iter().map(|&(key, n)| {
        let verb = if n == 1 { "lacks" } else { "lack" };
        format!("; {n} {verb} {}", names.text(key))
    });
    each.collect()
}

fn no_key(unmet: &Unmet, names: &Interner) -> String {
    let kind = if unmet.from_claims { "claim" } else { "label" };
    format!("no cluster has the {kind} {}", names.text(unmet.key))
}

fn clusters(n: usize) -> String {
    match n {
        1 => "1 cluster".to_owned(),
        n => format!("{n} clusters"),
    }
}

/// The problem of a code; `None` if the specification is valid.
pub(crate) fn problem(code: &Code) -> Option<&Problem> {
    match code {
        Code::Misconfigured(problem) => Some(problem),
        Code::Success | Code::Warning(_) => None,
    }
}

/// Adds times to conditions. A time changes only when the status changes.
pub(crate) fn timed(
    verdicts: impl IntoIterator<Item = (ConditionType, ConditionValue)>,
    before: &PlacementStatus,
    now: Instant,
) -> Vec<Condition> {
    let timed = |(kind, (status, reason, message)): (ConditionType, ConditionValue)| {
        let same = before.condition(kind).filter(|c| c.status == status);
        Condition {
            kind,
            status,
            reason,
            message,
            since: same.map_or(now, |c| c.since),
        }
    };
    verdicts.into_iter().map(timed).collect()
}
