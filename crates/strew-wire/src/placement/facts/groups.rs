//! Bounds on how many topologies are used: the annotation, and the fields of a term. Source: spec/placement §3.10.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use strew_model::{Interner, Symbol};
use strew_placement::facts::placement::GroupBounds;

use strew_manifest::ocm::{SpreadConstraintsTerm, TOPOLOGY_GROUPS_ANNOTATION};

/// The bounds of a topology key in the annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Bounds {
    /// The least number of topologies.
    pub min_groups: Option<i64>,
    /// The largest number of topologies.
    pub max_groups: Option<i64>,
}

/// Reads the annotation, by topology key.
///
/// # Errors
/// A text that is no object of such bounds.
pub fn groups_by_key(text: &str) -> Result<BTreeMap<String, Bounds>, String> {
    let read = serde_json::from_str(text);
    read.map_err(|error| format!("annotation {TOPOLOGY_GROUPS_ANNOTATION}: {error}"))
}

/// The annotation, its topology keys in their order.
///
/// # Errors
/// As [`groups_by_key`].
pub(super) fn annotated(
    text: Option<&str>,
    names: &mut Interner,
) -> Result<Box<[(Symbol, GroupBounds)]>, Arc<str>> {
    let Some(text) = text else {
        return Ok(Box::default());
    };
    let read = groups_by_key(text)?;
    let keys = read.iter();
    Ok(keys
        .map(|(key, bounds)| (names.intern(key), bounds.fact()))
        .collect())
}

impl Bounds {
    fn fact(self) -> GroupBounds {
        GroupBounds {
            min: self.min_groups,
            max: self.max_groups,
        }
    }
}

/// The fields of a term.
pub fn of_term(wire: &SpreadConstraintsTerm) -> GroupBounds {
    GroupBounds {
        min: wire.min_groups.map(i64::from),
        max: wire.max_groups.map(i64::from),
    }
}

/// The bounds that hold for a term: each of its own fields, or what the annotation says of its key.
pub fn bounds_of(
    term: &SpreadConstraintsTerm,
    annotated: &BTreeMap<String, Bounds>,
) -> GroupBounds {
    let own = of_term(term);
    let of_key = annotated
        .get(&term.topology_key)
        .copied()
        .unwrap_or_default();
    GroupBounds {
        min: own.min.or(of_key.min_groups),
        max: own.max.or(of_key.max_groups),
    }
}
