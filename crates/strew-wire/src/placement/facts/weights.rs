//! Weights of topologies, from the annotation and from the field of a term. Source: spec/placement §3.8.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_model::{Interner, Symbol};
use strew_placement::facts::placement::TopologyWeights;

use strew_manifest::ocm::{TOPOLOGY_WEIGHTS_ANNOTATION, TopologyWeight};

/// The value that stands for all other values.
const OTHERS: &str = "*";

/// The annotation: weights by topology key and value.
pub(in crate::placement) type Annotation = BTreeMap<String, BTreeMap<String, i64>>;

/// Reads the annotation.
///
/// # Errors
/// The text is no JSON object of objects of whole numbers.
pub fn weights_by_key(text: &str) -> Result<Annotation, String> {
    let read = serde_json::from_str(text);
    read.map_err(|error| format!("annotation {TOPOLOGY_WEIGHTS_ANNOTATION}: {error}"))
}

/// The annotation, its topology keys in their order.
///
/// # Errors
/// As [`weights_by_key`].
pub(super) fn annotated(
    text: Option<&str>,
    names: &mut Interner,
) -> Result<Box<[(Symbol, TopologyWeights)]>, Arc<str>> {
    let Some(text) = text else {
        return Ok(Box::default());
    };
    let read = weights_by_key(text)?;
    let keys = read.iter().map(|(key, values)| {
        let values = values
            .iter()
            .map(|(value, &weight)| (value.as_str(), weight));
        let weights = weights(values, names);
        (names.intern(key), weights)
    });
    Ok(keys.collect())
}

/// The field of a term.
pub(super) fn of_term(wire: &[TopologyWeight], names: &mut Interner) -> TopologyWeights {
    let values = wire
        .iter()
        .map(|entry| (entry.value.as_str(), entry.weight));
    weights(values, names)
}

fn weights<'a>(
    values: impl Iterator<Item = (&'a str, i64)>,
    names: &mut Interner,
) -> TopologyWeights {
    let mut weights = TopologyWeights {
        values: Box::default(),
        default: 1,
    };
    let mut named = Vec::new();
    for (value, weight) in values {
        match value {
            OTHERS => weights.default = weight,
            value => named.push((names.intern(value), weight)),
        }
    }
    weights.values = named.into();
    weights
}
