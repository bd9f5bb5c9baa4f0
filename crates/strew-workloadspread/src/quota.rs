//! The limits of subsets.
//!
//! Source: spec/workloadspread §5.3, §5.6.

use std::sync::Arc;

use crate::facts::kinds::{Kind, Kinds};
use crate::facts::spec::{FilterSelector, MaxReplicas, Spec};
use crate::facts::status::{Row, UNLIMITED};
use crate::facts::workload::WorkloadFact;

/// The number of replicas that percentages refer to; -1 if it is unknown.
pub type Total = i64;

/// The limit of a subset at a total: [`UNLIMITED`] or a number. `None` if it is unusable: it cannot be parsed, or is
/// 100 % of an unknown total (which upstream refuses, too).
///
/// Percentages round up: 30 % of 7 is 3. An unknown total (-1) gives 0.
pub fn scaled(max: Option<MaxReplicas>, total: Total) -> Option<i32> {
    match max {
        None => Some(UNLIMITED),
        Some(MaxReplicas::Count(count)) => Some(clamp(i64::from(count))),
        Some(MaxReplicas::Broken) => None,
        Some(MaxReplicas::Percent(percent)) => {
            let product = i64::from(percent).saturating_mul(total);
            let floor = product.div_euclid(100);
            let ceil = floor.saturating_add(i64::from(product.rem_euclid(100) > 0));
            (ceil >= 0).then(|| clamp(ceil))
        }
    }
}

/// The limit as admission takes it: an unusable one is 0 (spec/workloadspread §4.3, step 1).
pub fn scaled_or_zero(max: Option<MaxReplicas>, total: Total) -> i32 {
    scaled(max, total).unwrap_or(0)
}

fn clamp(number: i64) -> i32 {
    i32::try_from(number.max(0)).unwrap_or(i32::MAX)
}

/// Why pods cannot be counted: the sync fails and writes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CannotCount {
    /// The target has no integer at this path of the filter.
    Path(Arc<str>),
    /// The selector of the filter cannot be parsed.
    Selector,
}

/// The total of a WorkloadSpread: the sum of its filter's paths, or what the target asks for.
///
/// # Errors
/// A path at which the target has no integer (an empty path is ignored), or a selector that cannot be parsed.
pub fn total(
    spec: &Spec,
    target: Option<&WorkloadFact>,
    kinds: &Kinds,
) -> Result<Total, CannotCount> {
    let Some(fact) = target.filter(|t| !t.deleting) else {
        return Ok(0);
    };
    let selector = spec.filter.as_ref().map(|f| &f.selector);
    if selector == Some(&FilterSelector::Broken) {
        return Err(CannotCount::Selector);
    }
    let paths = spec.filter.as_ref().map_or(&[][..], |f| &f.replicas_paths);
    if paths.is_empty() {
        let builtin = kinds.of(fact.key.target.kind) != Kind::Custom;
        return Ok(fact.replicas.unwrap_or(if builtin { 1 } else { -1 }));
    }
    let mut sum: Total = 0;
    for path in paths.iter().filter(|p| !p.is_empty()) {
        let number = fact.number(path);
        sum = sum.saturating_add(number.ok_or_else(|| CannotCount::Path(path.clone()))?);
    }
    Ok(sum)
}

/// `missingReplicas` of a subset: the limit minus its pods, admitted ones included.
///
/// Upstream's own loop gives the same if the subset is not over-full; otherwise its result depends on the order of pods
/// (spec/workloadspread F7).
pub fn missing(max: i32, active: i64, deleting: i64, creating: i64) -> i32 {
    if max == UNLIMITED {
        return UNLIMITED;
    }
    let left = i64::from(max) - (active - deleting) - creating;
    clamp(left.clamp(0, i64::from(max)))
}

/// `missingReplicas` by the pods of a row: those at the last sync, admitted ones, and those being deleted.
pub fn missing_in(row: &Row, max: i32) -> i32 {
    let (creating, deleting) = (row.creating.len() as i64, row.deleting.len() as i64);
    missing(max, i64::from(row.replicas), deleting, creating)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_up_exactly() {
        for (percent, total, expected) in [
            (30, 7, Some(3)),
            (34, 3, Some(2)),
            (33, 3, Some(1)),
            (100, 0, Some(0)),
            (50, 0, Some(0)),
            (80, 5, Some(4)),
            (50, 14, Some(7)),
            (50, -1, Some(0)),
            (99, -1, Some(0)),
            (100, -1, None),
            (100, i64::MAX, Some(i32::MAX)),
        ] {
            let max = Some(MaxReplicas::Percent(percent));
            assert_eq!(scaled(max, total), expected, "{percent} % of {total}");
        }
        assert_eq!(scaled(None, 5), Some(UNLIMITED));
        assert_eq!(scaled(Some(MaxReplicas::Broken), 5), None);
        assert_eq!(scaled(Some(MaxReplicas::Count(0)), 5), Some(0));
    }

    #[test]
    fn what_is_missing_is_never_negative_nor_above_the_limit() {
        for (max, active, deleting, creating, expected) in [
            (5, 0, 0, 0, 5),
            (5, 1, 0, 1, 3),
            (5, 5, 1, 0, 1),
            (5, 9, 2, 0, 0),
            (5, 1, 3, 0, 5),
            (UNLIMITED, 9, 0, 3, UNLIMITED),
        ] {
            assert_eq!(missing(max, active, deleting, creating), expected);
        }
    }
}
