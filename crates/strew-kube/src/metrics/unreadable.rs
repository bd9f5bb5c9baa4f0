//! Counts objects that cannot be decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_scheduler::metrics::{Family, Value};

use super::catalogue;

/// Objects that cannot be decoded, by kind; counts of one kind are added.
pub(crate) fn unreadable(told: impl Iterator<Item = (Arc<str>, usize)>) -> Family {
    let mut by_kind: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    for (kind, n) in told {
        *by_kind.entry(kind).or_default() += n;
    }
    let mut family = Family::new(&catalogue::OBJECTS_UNREADABLE);
    for (kind, n) in by_kind {
        family.push([kind.to_string().into()], Value::number(n));
    }
    family
}
