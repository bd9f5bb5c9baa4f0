//! Compares what components maintain incrementally with recounts and with the store.

use strew_apiserver::Tables;
use strew_apiserver::server::Server;
use strew_scheduler::machine::TrackedAs;

use super::verdict::recount;
use super::witness::{Assumed, difference, versions};
use super::{Rule, Witness};
use crate::scheduler::Replica;

/// Recounts the indexes of the store.
pub(crate) fn server(server: &Server, witness: &mut Witness) {
    tables(server.tables(), "the store", witness);
    witness.compare(server.tables());
}

/// Recounts the tables of a component.
pub(crate) fn tables(tables: &Tables, whose: &str, witness: &mut Witness) {
    if let Err(text) = tables.audit() {
        witness.blame(Rule::Index, whose, text);
    }
}

/// At rest a component has seen every stored object that it watches.
pub(crate) fn cache(seen: &Tables, stored: &Tables, whose: &str, witness: &mut Witness) {
    let (seen, stored) = (versions(seen), versions(stored));
    if let Some(text) = difference(&seen, &stored) {
        witness.blame(Rule::Cache, whose, text);
    }
}

/// Audits a replica of the scheduler, and compares its cluster with one built from what its watch delivered.
pub(crate) fn replica(replica: &Replica, witness: &mut Witness) {
    tables(replica.seen(), replica.name(), witness);
    let machine = replica.machine();
    if let Err(text) = machine.audit() {
        witness.blame(Rule::SchedulerState, replica.name(), text);
    }
    let assumed = witness.assumed(replica.name(), replica.seen());
    if let Some(text) = facts_differ(replica, &assumed) {
        witness.blame(Rule::SchedulerFacts, replica.name(), text);
    }
}

fn facts_differ(replica: &Replica, assumed: &Assumed) -> Option<String> {
    let machine = replica.machine();
    let told = recount(replica.seen(), machine, assumed);
    let kept = machine.cluster();
    if kept.nodes_present() != told.nodes_present() {
        let (kept, told) = (kept.nodes_present(), told.nodes_present());
        return Some(format!("{kept} nodes are known, {told} were told"));
    }
    let (n_kept, n_told) = (kept.pods().count(), told.pods().count());
    if n_kept != n_told {
        return Some(format!("{n_kept} pods are known, {n_told} were told"));
    }
    for (idx, pod) in told.pods() {
        let Some(known) = kept.find_pod(&pod.uid) else {
            return Some(format!("pod {} is not known", pod.name));
        };
        let (a, b) = (kept.class_of(known), told.class_of(idx));
        let node = |cluster: &strew_cluster::Cluster, pod| {
            let row: &strew_cluster::PodRow = cluster.pod(pod);
            row.node.map(|node| cluster.node(node).name())
        };
        let is_same = node(kept, known) == node(&told, idx)
            && a.key.terminating == b.key.terminating
            && kept.labels_of(known) == told.labels_of(idx)
            && kept.spec_of(known) == told.spec_of(idx);
        if !is_same {
            let standing: Option<TrackedAs> = machine.standing(&pod.uid);
            let name = &pod.name;
            return Some(format!("pod {name} ({standing:?}) is not as it was told"));
        }
    }
    for node in (0..told.node_rows()).map(strew_cluster::NodeIdx::from) {
        let Some(fact) = told.node(node).fact() else {
            continue;
        };
        let known = kept.find_node(fact.name);
        if known.and_then(|known| kept.node(known).fact()) != Some(fact) {
            let name = told.names.text(fact.name);
            return Some(format!("node {name} is not as it was told"));
        }
    }
    None
}
