//! Invariants as checks: for tests, and for the auditor of a simulation.
//!
//! Source: spec/workloadspread §8, I1 to I8.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::admission::{Answer, Effect, Untouched, Verdict};
use crate::choose::{Choice, Finding, Ground};
use crate::facts::spec::Spec;
use crate::facts::status::{Row, Status, UNLIMITED};
use crate::marker::Marker;
use crate::quota::{self, Total};

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// I1: more pods than the limit are in a subset.
    OverLimit {
        /// The revision.
        revision: Arc<str>,
        /// The subset.
        subset: Arc<str>,
        /// The pods.
        pods: i64,
        /// The limit.
        max: i64,
    },
    /// I2: a subset was chosen although this earlier one was neither full nor closed.
    SkippedRoom {
        /// The earlier subset.
        earlier: Arc<str>,
    },
    /// I3: a row differs from the pods.
    Drift {
        /// The subset.
        subset: Arc<str>,
        /// The stored row, and the right one.
        rows: Box<[Option<Row>; 2]>,
    },
    /// I4: a pod of this cost was deleted while one of a lower cost was kept.
    WrongSurvivor {
        /// The cost of the deleted one.
        deleted: i32,
        /// The cost of the kept one.
        kept: i32,
    },
    /// I5: a marker names no subset of the WorkloadSpread.
    StrayMarker(Marker),
    /// I6: a replacement went to another subset although only the last one was open.
    WrongReplacement(Option<usize>),
    /// I7: concurrent admissions filled a subset differently from serial ones.
    OtherTotals {
        /// The subset.
        subset: Arc<str>,
        /// The number after serial admissions.
        serial: i64,
        /// The number after concurrent ones.
        concurrent: i64,
    },
    /// I8: a dry run had an effect.
    DryRunActed,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// I1: there are never more than `maxReplicas` pods in a subset and revision, while no entry expired early and the
/// total is stable. `pods` counts existing and admitted pods, without those being deleted.
///
/// # Errors
/// The first subset that is over its limit.
pub fn within_limits(
    spec: &Spec,
    total: Total,
    pods: &BTreeMap<(Arc<str>, Arc<str>), i64>,
) -> Result<(), Broken> {
    for ((revision, subset), &pods) in pods {
        let place = spec.place(subset);
        let max = place.and_then(|p| quota::scaled(spec.subsets[p].max_replicas, total));
        if let Some(max) = max.filter(|&m| m != UNLIMITED).map(i64::from)
            && pods > max
        {
            let (revision, subset) = (revision.clone(), subset.clone());
            return Err(Broken::OverLimit {
                revision,
                subset,
                pods,
                max,
            });
        }
    }
    Ok(())
}

/// I2: a subset is chosen only if every earlier one was full or closed at that instant, or had no node that took the
/// pod. `rows` are the rows of the choice.
///
/// # Errors
/// The earlier subset that had room.
pub fn earlier_ones_are_full(status: &Status, rows: &[Row], choice: &Choice) -> Result<(), Broken> {
    let by_order = !matches!(
        choice.ground(),
        Some(
            Ground::Known | Ground::BelowMinimum { .. } | Ground::OnlyOne | Ground::Fallback { .. }
        )
    );
    let before = choice.place.unwrap_or(rows.len());
    for row in rows.iter().take(before).filter(|_| by_order) {
        let passed = choice
            .steps
            .iter()
            .any(|s| s.subset == row.name && matches!(s.finding, Finding::NoNode(_)));
        if row.has_room() && !status.is_closed(row) && !passed {
            let earlier = row.name.clone();
            return Err(Broken::SkippedRoom { earlier });
        }
    }
    Ok(())
}

/// I3: the ledger matches the pods once 30 s and a sync have passed since the last event.
///
/// # Errors
/// The first row that differs.
pub fn ledger_is_true(stands: &Status, truth: &Status) -> Result<(), Broken> {
    let mut revisions: Vec<&Arc<str>> = stands.versioned.keys().collect();
    revisions.extend(truth.versioned.keys());
    let versioned = revisions.iter().map(|r| (stands.rows(r), truth.rows(r)));
    for (stands, truth) in versioned.chain([(&stands.overall[..], &truth.overall[..])]) {
        for place in 0..stands.len().max(truth.len()) {
            let of = |rows: &[Row]| rows.get(place).cloned();
            let (stands, truth) = (of(stands), of(truth));
            if stands != truth {
                let row = stands.as_ref().or(truth.as_ref());
                let subset = row.map_or_else(|| "".into(), |r| r.name.clone());
                let rows = Box::new([stands, truth]);
                return Err(Broken::Drift { subset, rows });
            }
        }
    }
    Ok(())
}

/// I4: a scale-in keeps the pods of highest cost, so pods of earlier subsets. Each pod is its cost, and true if it is
/// kept.
///
/// # Errors
/// A deleted pod, and a kept one of lower cost.
pub fn keeps_the_dearest(pods: impl Iterator<Item = (i32, bool)>) -> Result<(), Broken> {
    let (kept, deleted): (Vec<_>, Vec<_>) = pods.partition(|&(_, kept)| kept);
    let cheapest = kept.iter().map(|p| p.0).min();
    let dearest = deleted.iter().map(|p| p.0).max();
    match (dearest, cheapest) {
        (Some(deleted), Some(kept)) if deleted > kept => {
            Err(Broken::WrongSurvivor { deleted, kept })
        }
        _ => Ok(()),
    }
}

/// I5: an injected pod's marker names a subset of the WorkloadSpread.
///
/// # Errors
/// The marker.
pub fn marker_is_sound(spec: &Spec, name: &str, marker: &Marker) -> Result<(), Broken> {
    match &*marker.workload_spread == name && spec.place(&marker.subset).is_some() {
        true => Ok(()),
        false => Err(Broken::StrayMarker(marker.clone())),
    }
}

/// I6: if all subsets but the last are closed and the last is open without limit, a pod goes to the last.
///
/// # Errors
/// The subset that it went to.
pub fn replacement_goes_last(status: &Status, rows: &[Row], choice: &Choice) -> Result<(), Broken> {
    let Some((last, others)) = rows.split_last() else {
        return Ok(());
    };
    let applies = last.missing == UNLIMITED
        && !status.is_closed(last)
        && others.iter().all(|r| status.is_closed(r))
        && !matches!(choice.ground(), Some(Ground::Known));
    match !applies || choice.place == Some(rows.len() - 1) {
        true => Ok(()),
        false => Err(Broken::WrongReplacement(choice.place)),
    }
}

/// I7: admissions through several replicas fill subsets as serial ones do.
///
/// # Errors
/// The first subset that differs.
pub fn same_totals(
    serial: &BTreeMap<Arc<str>, i64>,
    concurrent: &BTreeMap<Arc<str>, i64>,
) -> Result<(), Broken> {
    for subset in serial.keys().chain(concurrent.keys()) {
        let of = |totals: &BTreeMap<Arc<str>, i64>| totals.get(subset).copied().unwrap_or(0);
        let (serial, concurrent) = (of(serial), of(concurrent));
        if serial != concurrent {
            let subset = subset.clone();
            return Err(Broken::OtherTotals {
                subset,
                serial,
                concurrent,
            });
        }
    }
    Ok(())
}

/// I8: a dry run is answered and has no other effect. `effects` are all effects of one.
///
/// # Errors
/// If there is another effect.
pub fn dry_run_changes_nothing(effects: &[Effect]) -> Result<(), Broken> {
    let passes = |answer: &Answer| matches!(answer.verdict, Verdict::Untouched(Untouched::DryRun));
    match effects {
        [Effect::Answer(answer)] if passes(answer) => Ok(()),
        _ => Err(Broken::DryRunActed),
    }
}
