//! The victims of a preemption as text.

use strew_view::blocked::Eviction;

use super::count;

/// The number of victims that are named.
const VICTIMS_SHOWN: usize = 5;

/// `would preempt 2 pods on node n1: default/web-1, shop/db-0`
pub(crate) fn plan(eviction: &Eviction) -> String {
    format!("would preempt {}", whom(eviction))
}

/// `waits for 2 pods on node n1: default/web-1, shop/db-0`
pub(crate) fn wait(eviction: &Eviction) -> String {
    match eviction.victims.len() {
        0 => format!("has room kept for it on node {}", eviction.node),
        _ => format!("waits for {}", whom(eviction)),
    }
}

/// At most [`VICTIMS_SHOWN`] by name.
fn whom(eviction: &Eviction) -> String {
    let Eviction { node, victims } = eviction;
    let shown = victims.iter().take(VICTIMS_SHOWN);
    let mut names: Vec<String> = shown
        .map(|victim| format!("{}/{}", victim.namespace, victim.pod))
        .collect();
    if victims.len() > VICTIMS_SHOWN {
        names.push(format!("… and {} more", victims.len() - VICTIMS_SHOWN));
    }
    let pods = count(victims.len(), "pod");
    format!("{pods} on node {node}: {}", names.join(", "))
}
