//! What a cluster loses with a domain, how it comes back, why, and what would prevent it.
//!
//! Each case plays the plan of the built-in story up to its rest, then one event, with the code that the story uses for
//! its loss: `run` plays, `expect` judges.
//!
//! Reading order: [`values`] (the results), `steps` (the steps of a case), [`play`] (one case), `cause` (why a workload
//! is hurt), `callers` (who calls a Service), [`seeds`] (a case with several seeds), [`fix`] (changes that may prevent
//! it), [`at_once`] (what is left in the instant of a loss, without a play).

pub mod at_once;
mod callers;
mod cause;
pub mod fix;
pub mod play;
pub mod seeds;
mod steps;
#[cfg(test)]
mod tests;
pub mod values;

use std::collections::{BTreeMap, BTreeSet};

use strew_apiserver::object::{Kind, Object};
use strew_sim::Size;

use crate::run::Plan;
pub use crate::story::ZONE_KEYS;
use values::{Domain, Event};

/// A case to play: an event that takes these domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The topology key.
    pub key: String,
    /// What happens to them.
    pub event: Event,
    /// One domain, or several at once.
    pub domains: Vec<String>,
    /// True if a StatefulSet without the majority of its pods is LOST.
    pub quorum: bool,
}

/// The topology keys of nodes, and their values with nodes.
pub fn keys(objects: &[Object]) -> BTreeMap<String, BTreeSet<String>> {
    let mut keys: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in objects.iter().filter(|object| object.kind() == Kind::Node) {
        for (key, value) in node.meta().labels.iter() {
            let values = keys.entry(key.to_string()).or_default();
            values.insert(value.to_string());
        }
    }
    keys
}

/// The domains of a key among these objects, by name, with nodes and pods that run there now; and the number of nodes
/// without the key.
pub fn domains(objects: &[Object], key: &str) -> (Vec<Domain>, usize) {
    let mut of_node = BTreeMap::new();
    let mut domains: BTreeMap<String, Domain> = BTreeMap::new();
    let mut n_without = 0;
    for node in objects.iter().filter(|object| object.kind() == Kind::Node) {
        let Some(value) = node.meta().label(key) else {
            n_without += 1;
            continue;
        };
        of_node.insert(&*node.meta().name.name, value);
        let domain = domains.entry(value.to_owned());
        domain
            .or_insert_with(|| Domain {
                name: value.to_owned(),
                nodes: 0,
                pods: 0,
            })
            .nodes += 1;
    }
    for object in objects {
        if let Object::Pod(pod) = object
            && let Some(value) = pod.node.as_deref().and_then(|node| of_node.get(node))
            && pod.is_active()
            && let Some(domain) = domains.get_mut(*value)
        {
            domain.pods += 1;
        }
    }
    let mut domains: Vec<Domain> = domains.into_values().collect();
    domains.sort_by(|a, b| strew_view::natural_order::natural_order(&a.name, &b.name));
    (domains, n_without)
}

/// The cases of these domains, `at_once` of them in each, events in their order for each set of domains.
pub fn questions(key: &str, domains: &[Domain], events: &[Event], at_once: usize) -> Vec<Question> {
    let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..at_once.max(1) {
        sets = { sets.iter() }
            .flat_map(|set| {
                let next = set.last().map_or(0, |last| last + 1);
                (next..domains.len()).map(|place| [set.as_slice(), &[place]].concat())
            })
            .collect();
    }
    let named = |set: &Vec<usize>| -> Vec<String> {
        { set.iter() }
            .map(|&place| domains[place].name.clone())
            .collect()
    };
    let each = sets.iter().flat_map(|set| {
        events.iter().map(|&event| Question {
            key: key.to_owned(),
            event,
            domains: named(set),
            quorum: false,
        })
    });
    each.collect()
}

/// The size of the cluster at second 0.
pub fn size(plan: &Plan) -> Size {
    Size::of(plan.objects())
}
