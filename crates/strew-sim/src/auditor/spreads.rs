//! Judges WorkloadSpreads at rest.
//!
//! Source: spec/workloadspread §8, I3.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Object, Pod, WorkloadSpread};
use strew_wire::workloadspread::annotations::TARGET_SELECTOR;
use strew_wire::workloadspread::marker;
use strew_wire::workloadspread::pending_reviews::{NoPods, Patcher};
use strew_workloadspread::controller::{Effect, plan};
use strew_workloadspread::{MARKER_ANNOTATION, Marked, invariants};

use super::rest::Resting;
use super::{Rule, Witness};
use crate::workloadspread::SpreadKeeper;

/// A newly started controller would write nothing, the ledger is what it would write, and the numbers equal a plain
/// recount.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    let spreads = world.server.tables().of::<WorkloadSpread>();
    if spreads.is_empty() {
        return;
    }
    let mut keeper = SpreadKeeper::fresh(world.blueprint.limits.spreads, world.server, world.now);
    if let Some(effect) = keeper.wanted(world.now)
        && !matches!(effect, Effect::Event(_))
    {
        let text = format!("wants {effect:?}");
        witness.blame(Rule::Ledger, "a fresh controller", text);
    }
    for ws in keeper.machine().spreads().iter() {
        let mut patcher = Patcher {
            contents: &keeper.translator().contents,
            reviews: None,
            pods: &NoPods,
        };
        let machine = keeper.machine();
        let facts = (machine.facts(), machine.spreads());
        let (kinds, names) = (machine.kinds(), machine.names());
        let found = plan::find(ws, facts, kinds, names, &mut patcher);
        let name = &ws.key.name;
        match found {
            Err(error) => witness.blame(Rule::Ledger, &**name, format!("{error:?}")),
            Ok(found) => {
                let truth = plan::plan(ws, &found, world.now).status;
                if let Err(broken) = invariants::ledger_is_true(&ws.status, &truth) {
                    witness.blame(Rule::Ledger, &**name, broken.to_string());
                }
            }
        }
    }
    for spread in spreads.iter() {
        count(spread, world.server.tables(), witness);
    }
}

/// Compares `replicas` of each subset with its active pods by marker.
fn count(spread: &WorkloadSpread, tables: &Tables, witness: &mut Witness) {
    let Some(owners) = owners(spread, tables) else {
        return;
    };
    let mut marked: BTreeMap<Arc<str>, i32> = BTreeMap::new();
    let pods = tables.of::<Pod>().in_namespace(&spread.meta.name.namespace);
    for pod in pods.filter(|pod| pod.is_active()) {
        let is_own = pod
            .meta
            .controller()
            .is_some_and(|owner| owners.contains(&owner.uid));
        let mark = marker::read(pod.meta.annotation(MARKER_ANNOTATION));
        if let Marked::As(mark) = mark
            && is_own
            && *mark.workload_spread == *spread.meta.name.name
        {
            *marked.entry(mark.subset).or_default() += 1;
        }
    }
    for row in spread.status.subset_statuses.iter().flatten() {
        let found = marked.get(row.name.as_str()).copied().unwrap_or(0);
        if row.replicas != found {
            let text = format!(
                "{} has {} replicas, counted {found}",
                row.name, row.replicas
            );
            witness.blame(Rule::Ledger, spread.meta.name.to_string(), text);
        }
    }
}

/// The uids of the owners of the pods that a WorkloadSpread takes; `None` if its target does not exist or should have
/// no pods.
fn owners(spread: &WorkloadSpread, tables: &Tables) -> Option<Vec<Arc<str>>> {
    let target = spread.spec.target_reference.as_ref()?;
    let namespace = Arc::clone(&spread.meta.name.namespace);
    let key = Key {
        kind: Kind::of_group(&target.api_version, &target.kind),
        name: Name::new(namespace, target.name.as_str()),
    };
    let mut owners = makers(&tables.find(&key)?, tables)?;
    if let Some(selector) = spread.meta.annotation(TARGET_SELECTOR) {
        let kinds = [Kind::Deployment, Kind::ReplicaSet, Kind::CloneSet];
        let all = kinds.iter().flat_map(|kind| tables.all_of(kind));
        let others = all.filter(|object| {
            let meta = object.meta();
            meta.name.namespace == key.name.namespace
                && object.key() != key
                && meta.controller().is_none()
                && is_selected(object, selector)
        });
        owners.extend(
            others
                .filter_map(|object| makers(&object, tables))
                .flatten(),
        );
    }
    Some(owners)
}

/// The uids of the objects that own the pods of a workload; `None` if it should have no pods.
fn makers(object: &Object, tables: &Tables) -> Option<Vec<Arc<str>>> {
    let uid = Arc::clone(&object.meta().uid);
    match object {
        _ if object.meta().is_terminating() => None,
        Object::Deployment(deployment) if deployment.spec.replicas == Some(0) => None,
        Object::Deployment(_) => {
            let sets = tables.dependents(&uid);
            Some(sets.iter().map(|set| Arc::clone(&set.meta().uid)).collect())
        }
        _ => Some(vec![uid]),
    }
}

/// True if the pods of a workload have the label of a selector. A generated world has selectors of one pair only.
fn is_selected(object: &Object, selector: &str) -> bool {
    let metadata = object
        .pod_template()
        .and_then(|template| template.metadata.as_ref());
    let labels = metadata.and_then(|metadata| metadata.labels.as_ref());
    let pair = selector.split_once('=').zip(labels);
    pair.is_some_and(|((key, value), labels)| labels.get(key).is_some_and(|of| of == value))
}
