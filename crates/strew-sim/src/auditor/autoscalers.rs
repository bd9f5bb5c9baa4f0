//! Judges HorizontalPodAutoscalers at rest: each target has the size that its metric asks for. Source:
//! spec/controllers §6.

use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Autoscaler, Key, Kind, Name, Pod};

use super::rest::Resting;
use super::{Rule, Witness};

/// Sizes are within their bounds. If all pods of a target count, its size is the one that its metric asks for.
pub(crate) fn judge(world: Resting<'_>, witness: &mut Witness) {
    let tables = world.server.tables();
    for autoscaler in tables.of::<Autoscaler>().iter() {
        if let Err(text) = judge_one(autoscaler, world, tables) {
            witness.blame(Rule::Autoscaler, autoscaler.meta.name.to_string(), text);
        }
    }
}

fn judge_one(autoscaler: &Autoscaler, world: Resting<'_>, tables: &Tables) -> Result<(), String> {
    let spec = &autoscaler.spec;
    let namespace = &autoscaler.meta.name.namespace;
    let target = Name::new(Arc::clone(namespace), &*spec.scale_target_ref.name);
    let key = Key {
        kind: Kind::of(&spec.scale_target_ref.kind),
        name: target.clone(),
    };
    let found = tables.find(&key).and_then(|object| object.replicas());
    let Some(size) = found.map(i64::from) else {
        return Ok(());
    };
    let (min, max) = (
        i64::from(spec.min_replicas.unwrap_or(1)),
        i64::from(spec.max_replicas),
    );
    // A target of size 0 is switched off.
    if size > 0 && !(min..=max).contains(&size) {
        return Err(format!("{size} replicas, not {min} to {max}"));
    }
    let Some(&used) = world.utilisation.get(&autoscaler.meta.name) else {
        return Ok(());
    };
    let metrics = spec.metrics.iter().flatten();
    let mut wanted = metrics.filter_map(|m| m.resource.as_ref()?.target.average_utilization);
    let Some(wanted) = wanted.next() else {
        return Ok(());
    };
    let of_target = |pod: &&Arc<Pod>| pod.meta.label("app") == Some(&*target.name);
    let in_namespace = tables.of::<Pod>().in_namespace(namespace);
    let pods: Vec<&Arc<Pod>> = in_namespace.filter(of_target).collect();
    let all_count = pods.iter().all(|pod| pod.is_active() && pod.is_ready());
    if size == 0 || !all_count || pods.len() as i64 != size {
        return Ok(());
    }
    let (used, wanted) = (i64::from(used), i64::from(wanted));
    let is_within = used * 10 >= wanted * 9 && used * 10 <= wanted * 11;
    let proposal = (size * used + wanted - 1) / wanted;
    let proposal = if is_within { size } else { proposal };
    let asked = proposal.clamp(min, max);
    match asked == size {
        true => Ok(()),
        false => Err(format!(
            "{size} replicas use {used} % each, {wanted} % are wanted: {asked}"
        )),
    }
}
