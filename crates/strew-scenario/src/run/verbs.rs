//! Carries out the verbs of a step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{Key, Kind, Name, Node, Object, Pod};
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_sim::kubelet::Which;
use strew_sim::{BindFault, Component, Crash, Fault, Simulation, WatchFault, WriteFault};

use super::errands::Errands;
use super::played::Refused;
use super::{plan, rollout};
use crate::expect::subject;
use crate::expect::workloads::name;
use crate::format::{
    self, Deleted, ImageEdit, MetadataEdit, NodeTarget, PodTarget, Replicas, TaintEdit, Target,
    Verb,
};

/// Carries out a verb, and returns what is refused: the first refusal, after which nothing more is done; of `apply` each,
/// since kubectl goes on with the other objects. Changes made before it stay.
pub fn act(
    verb: &Verb,
    text: &str,
    simulation: &mut Simulation,
    errands: &mut Errands,
) -> Vec<Refused> {
    let at = simulation.elapsed();
    let refused = |text: String, why: String| Refused {
        text,
        why,
        at,
        is_breach: true,
        left: Vec::new(),
    };
    if let Verb::Apply(manifests) = verb
        && manifests.len() > 1
    {
        let each = manifests.iter().filter_map(|manifest| {
            let error = simulation.apply(&manifest.value).err()?;
            let key = Object::of_wire(manifest.object.clone()).key();
            Some(refused(format!("apply: {}", name(&key)), error.to_string()))
        });
        return each.collect();
    }
    let done = done(verb, text, simulation, errands);
    let done = done.map_err(|why| refused(text.to_owned(), why));
    done.err().into_iter().collect()
}

fn done(
    verb: &Verb,
    text: &str,
    sim: &mut Simulation,
    errands: &mut Errands,
) -> Result<(), String> {
    match verb {
        Verb::Apply(manifests) => each(manifests, |m| sim.apply(&m.value).map(drop)),
        Verb::Create(manifests) => each(manifests, |m| sim.create(m.object.clone()).map(drop)),
        Verb::Delete(targets) => each(&deleted(targets, sim)?, |key| {
            sim.delete(key, &DeleteOptions::KUBECTL)
        }),
        Verb::Patch(patches) => {
            for (target, patch) in patches {
                for key in objects(std::slice::from_ref(target), sim)? {
                    let change =
                        |value: &mut Value| patch.apply(value).map_err(|error| error.message);
                    edit(sim, &key, change)?;
                }
            }
            Ok(())
        }
        Verb::Scale(targets) => {
            for (target, replicas) in targets {
                edit(sim, &target.key(), |value| {
                    let now = value["spec"]["replicas"].as_u64().unwrap_or(1);
                    value["spec"]["replicas"] = json!(self::replicas(*replicas, now));
                    Ok(())
                })?;
            }
            Ok(())
        }
        Verb::SetImage(targets) => {
            for (target, images) in targets {
                edit(sim, &target.key(), |value| set_images(value, images))?;
            }
            Ok(())
        }
        Verb::Rollout(action, targets) => {
            for target in targets {
                rollout::act(sim, *action, &target.key())?;
            }
            Ok(())
        }
        Verb::RunOnce(targets) => {
            for target in targets {
                rollout::run_once(sim, &target.key())?;
            }
            Ok(())
        }
        Verb::Cordon(targets) => cordon(sim, errands, targets, true),
        Verb::Uncordon(targets) => cordon(sim, errands, targets, false),
        Verb::Drain {
            nodes,
            timeout,
            must_fail,
        } => {
            let nodes = self::nodes(nodes, sim, errands)?.into_iter();
            let nodes = nodes.map(|node| Name::new("", node)).collect();
            errands.drain(sim, nodes, *timeout, text, *must_fail);
            Ok(())
        }
        Verb::Ready(targets) => {
            for (target, ready) in targets {
                sim.set_readiness(which(target), *ready);
            }
            Ok(())
        }
        Verb::Taint(targets) => {
            for (target, edits) in targets {
                for node in nodes(std::slice::from_ref(target), sim, errands)? {
                    edit(sim, &node_key(&node), |value| taint(value, edits))?;
                }
            }
            Ok(())
        }
        Verb::Label(targets) => set_pairs(sim, targets, "labels"),
        Verb::Annotate(targets) => set_pairs(sim, targets, "annotations"),
        Verb::Lose(targets) => {
            let nodes = nodes(targets, sim, errands)?;
            errands.lost_as = match errands.chosen.is_empty() {
                false => errands.chosen.clone(),
                true => nodes.iter().map(|node| node.to_string()).collect(),
            };
            each(&nodes, |node| {
                sim.lose(node)?;
                errands.lost.insert(Arc::clone(node));
                Ok(())
            })
        }
        Verb::Shift(targets) => {
            let nodes = nodes(targets, sim, errands)?;
            each(&nodes, |node| {
                sim.cordon(node, true)?;
                // Their pods count as those of lost nodes do: for their users they are gone.
                errands.lost.insert(Arc::clone(node));
                Ok(())
            })
        }
        Verb::Restore(targets) => {
            let nodes = nodes(targets, sim, errands)?;
            if !nodes.iter().any(|node| errands.lost.contains(node)) {
                return Err("none of these nodes is lost".to_owned());
            }
            each(&nodes, |node| {
                errands.lost.remove(node);
                sim.restore(node)
            })
        }
        Verb::Gates(gates) => set_gates(sim, errands, gates),
        Verb::Metric(targets) => {
            for (target, percent) in targets {
                sim.set_utilisation(target.key().name, *percent);
            }
            Ok(())
        }
        Verb::Crash(crashes) => {
            crashes.iter().for_each(|crash| self::crash(sim, crash));
            Ok(())
        }
        Verb::Fault(faults) => {
            faults.iter().for_each(|fault| self::fault(sim, fault));
            Ok(())
        }
    }
}

fn each<T>(items: &[T], mut act: impl FnMut(&T) -> Result<(), ApiError>) -> Result<(), String> {
    items
        .iter()
        .try_for_each(|item| act(item).map_err(|error| error.to_string()))
}

pub(super) fn edit(
    simulation: &mut Simulation,
    key: &Key,
    mut change: impl FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    let edited = simulation.edit(key, &mut change);
    edited.map(drop).map_err(|error| error.to_string())
}

// === targets ===

fn node_key(name: &str) -> Key {
    Key {
        kind: Kind::Node,
        name: Name::new("", name),
    }
}

/// The nodes that have all of these labels now.
///
/// # Errors
/// No node has them: a verb without an effect is usually a mistake, and its expectations would hold by themselves.
fn labelled_nodes(
    simulation: &Simulation,
    pairs: &[(String, String)],
) -> Result<Vec<Arc<str>>, String> {
    let nodes = simulation.server().tables().of::<Node>();
    let has = { nodes.iter() }.filter(|node| has_all(pairs, |key| node.meta.label(key)));
    let names: Vec<_> = has.map(|node| Arc::clone(&node.meta.name.name)).collect();
    if !names.is_empty() {
        return Ok(names);
    }
    let wanted = joined(pairs);
    let [(key, _)] = pairs else {
        return Err(format!("no node has the labels {wanted} now"));
    };
    let values = nodes.iter().filter_map(|node| node.meta.label(key));
    let values: BTreeSet<&str> = values.collect();
    let others = match values.is_empty() {
        true => "no node has the key".to_owned(),
        false => {
            let values: Vec<&str> = values.into_iter().take(VALUES_TOLD).collect();
            format!("the values are {}", values.join(", "))
        }
    };
    Err(format!("no node has the label {wanted} now: {others}"))
}

/// The number of values that an error lists.
const VALUES_TOLD: usize = 12;

fn objects(targets: &[Target], simulation: &Simulation) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    for target in targets {
        match target {
            Target::Object(target) => keys.push(target.key()),
            Target::NodeLabel(key, value) => {
                let nodes = labelled_nodes(simulation, &[(key.clone(), value.clone())])?;
                keys.extend(nodes.iter().map(|node| node_key(node)));
            }
        }
    }
    Ok(keys)
}

fn deleted(targets: &[Deleted], simulation: &Simulation) -> Result<Vec<Key>, String> {
    let tables = simulation.server().tables();
    let mut keys = Vec::new();
    for target in targets {
        match target {
            Deleted::Object(target) => keys.push(target.key()),
            Deleted::Labelled(pairs) => {
                let nodes = tables.of::<Node>();
                let is_of_nodes =
                    |key: &str| nodes.iter().any(|node| node.meta.label(key).is_some());
                match pairs.iter().any(|(key, _)| is_of_nodes(key)) {
                    true => {
                        let names = labelled_nodes(simulation, pairs)?;
                        keys.extend(names.iter().map(|name| node_key(name)));
                    }
                    false => keys.extend(labelled_pods(tables, pairs)?),
                }
            }
            Deleted::Pods(pairs) => keys.extend(labelled_pods(tables, pairs)?),
            Deleted::PodsOf(target) => {
                let pods = subject::of_target(tables, target).into_iter();
                let found = present(pods);
                if found.is_empty() {
                    return Err(format!("there is no pod of {target} now"));
                }
                keys.extend(found);
            }
        }
    }
    Ok(keys)
}

/// The pods that have all of these labels now.
///
/// # Errors
/// There are none.
fn labelled_pods(tables: &Tables, pairs: &[(String, String)]) -> Result<Vec<Key>, String> {
    let has = |pod: &&Arc<Pod>| has_all(pairs, |key| pod.meta.label(key));
    let found = present(tables.of::<Pod>().iter().filter(has));
    match found.is_empty() {
        true => Err(format!(
            "there is no pod with the label {} now",
            joined(pairs)
        )),
        false => Ok(found),
    }
}

/// The keys of the pods that are not being deleted yet.
fn present<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> Vec<Key> {
    let pods = pods.filter(|pod| !pod.meta.is_terminating());
    let key = |pod: &Arc<Pod>| Key {
        kind: Kind::Pod,
        name: pod.meta.name.clone(),
    };
    pods.map(key).collect()
}

fn has_all<'a>(pairs: &[(String, String)], label: impl Fn(&str) -> Option<&'a str>) -> bool {
    pairs.iter().all(|(key, value)| label(key) == Some(value))
}

fn joined(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(",")
}

fn nodes(
    targets: &[NodeTarget],
    simulation: &Simulation,
    errands: &mut Errands,
) -> Result<Vec<Arc<str>>, String> {
    let mut names = Vec::new();
    for target in targets {
        match target {
            NodeTarget::Name(name) => names.push(Arc::from(name.as_str())),
            NodeTarget::Label(key, value) => {
                let pair = [(key.clone(), value.clone())];
                names.extend(labelled_nodes(simulation, &pair)?);
            }
            NodeTarget::MostPods(key) => {
                let (domain, nodes) = fullest(simulation.server().tables(), key.as_deref());
                let key = key.as_deref();
                let none = || match key {
                    Some(key) => format!("no node has the label {key:?} now"),
                    None => "there is no node now".to_owned(),
                };
                errands.chosen.push(domain.ok_or_else(none)?);
                names.extend(nodes);
            }
            NodeTarget::Lost => {
                errands.chosen.extend(errands.lost_as.iter().cloned());
                names.extend(errands.lost.iter().cloned());
            }
        }
    }
    Ok(names)
}

/// The domain with most active pods and its nodes; of equals, the first by name. Without a key, every node is a domain.
fn fullest(tables: &Tables, key: Option<&str>) -> (Option<String>, Vec<Arc<str>>) {
    let mut domains: BTreeMap<&str, (usize, Vec<Arc<str>>)> = BTreeMap::new();
    for node in tables.of::<Node>().iter() {
        let name = &node.meta.name.name;
        let Some(domain) = key.map_or(Some(&**name), |key| node.meta.label(key)) else {
            continue;
        };
        let pods = tables.pods_on(name).filter(|pod| pod.is_active());
        let (n_pods, names) = domains.entry(domain).or_default();
        *n_pods += pods.count();
        names.push(Arc::clone(name));
    }
    let domains = domains.into_iter().rev();
    match domains.max_by_key(|(_, (n_pods, _))| *n_pods) {
        Some((domain, (_, names))) => (Some(domain.to_owned()), names),
        None => (None, Vec::new()),
    }
}

fn replicas(wanted: Replicas, now: u64) -> u64 {
    match wanted {
        Replicas::Count(count) => count.into(),
        Replicas::Percent(percent) => {
            let share = u128::from(now) * u128::from(percent) / 100;
            u64::try_from(share).unwrap_or(u64::MAX).max(now.min(1))
        }
    }
}

fn which(target: &PodTarget) -> Which {
    match target {
        PodTarget::Pod(target) => Which::Named(target.key().name),
        PodTarget::Labels(pairs) => Which::Labelled(pairs.iter().cloned().collect()),
    }
}

// === edits ===

fn set_images(value: &mut Value, images: &[ImageEdit]) -> Result<(), String> {
    let template = match value["kind"].as_str() {
        Some("CronJob") => "/spec/jobTemplate/spec/template/spec",
        Some("Pod") => "/spec",
        _ => "/spec/template/spec",
    };
    for edit in images {
        let mut n_found = 0;
        for list in ["containers", "initContainers"] {
            let containers = value.pointer_mut(&format!("{template}/{list}"));
            for container in containers
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                let is_meant = match &edit.container {
                    Some(name) => container["name"] == **name,
                    None => list == "containers",
                };
                if is_meant {
                    container["image"] = edit.image.as_str().into();
                    n_found += 1;
                }
            }
        }
        if n_found == 0 {
            let name = edit.container.as_deref().unwrap_or("*");
            return Err(format!("unable to find container named {name:?}"));
        }
    }
    Ok(())
}

fn cordon(
    simulation: &mut Simulation,
    errands: &mut Errands,
    targets: &[NodeTarget],
    unschedulable: bool,
) -> Result<(), String> {
    each(&nodes(targets, simulation, errands)?, |node| {
        simulation.cordon(node, unschedulable)
    })
}

fn taint(value: &mut Value, edits: &[TaintEdit]) -> Result<(), String> {
    let Some(spec) = value["spec"].as_object_mut() else {
        return Err("the node has no spec".to_owned());
    };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    let Some(taints) = taints.as_array_mut() else {
        return Err("the node's taints are no list".to_owned());
    };
    for edit in edits {
        match edit {
            TaintEdit::Add { key, value, effect } => {
                let effect = effect.name();
                taints.retain(|taint| taint["key"] != **key || taint["effect"] != effect);
                taints.push(json!({"key": key, "value": value, "effect": effect}));
            }
            TaintEdit::Remove { key, effect } => {
                let n_before = taints.len();
                taints.retain(|taint| {
                    taint["key"] != **key
                        || effect.is_some_and(|effect| taint["effect"] != effect.name())
                });
                if taints.len() == n_before {
                    return Err(format!("taint {key:?} not found"));
                }
            }
        }
    }
    Ok(())
}

fn set_pairs(
    simulation: &mut Simulation,
    targets: &[(Target, Vec<MetadataEdit>)],
    field: &str,
) -> Result<(), String> {
    for (target, edits) in targets {
        for key in objects(std::slice::from_ref(target), simulation)? {
            edit(simulation, &key, |value| {
                for edit in edits {
                    match edit {
                        MetadataEdit::Set(key, text) => {
                            value["metadata"][field][key] = text.as_str().into();
                        }
                        MetadataEdit::Remove(key) => {
                            if let Some(pairs) = value["metadata"][field].as_object_mut() {
                                pairs.shift_remove(key);
                            }
                        }
                    }
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

// === the cluster ===

fn set_gates(
    simulation: &mut Simulation,
    errands: &mut Errands,
    gates: &[(String, bool)],
) -> Result<(), String> {
    for (name, value) in gates {
        errands
            .gates
            .set(name, *value)
            .map_err(|error| error.to_string())?;
    }
    let blueprint = (errands.configure)(&errands.gates);
    let blueprint =
        blueprint.ok_or("the scheduler's configuration does not go with these gates")?;
    let options = plan::options(&errands.gates);
    simulation.restart_with(options, blueprint, Arc::new(strew_sim::controllers));
    Ok(())
}

fn crash(simulation: &mut Simulation, crash: &format::Crash) {
    let component = match crash.component {
        format::Component::Scheduler => Component::Scheduler,
        format::Component::Controllers => Component::Controllers,
        format::Component::Webhook => Component::Webhook,
        format::Component::Controller => Component::Controller,
    };
    simulation.crash(Crash {
        component,
        after_writes: 0,
        down: crash.lasts,
    });
}

fn fault(simulation: &mut Simulation, fault: &format::Fault) {
    match *fault {
        format::Fault::Watch {
            delay,
            repeat,
            cut,
            lasts,
        } => {
            let fault = WatchFault {
                delay,
                repeat_ppm: repeat.millionths(),
                cut_ppm: cut.millionths(),
            };
            simulation.fault(Fault::Watch(fault), lasts);
        }
        format::Fault::Conflict { rate, lasts } => {
            let conflict_ppm = rate.millionths();
            let lost_ppm = 0;
            let fault = WriteFault {
                conflict_ppm,
                lost_ppm,
            };
            simulation.fault(Fault::Write(fault), lasts);
        }
        format::Fault::Bind { slow, fail, lasts } => {
            let fail_ppm = fail.millionths();
            simulation.fault(Fault::Bind(BindFault { slow, fail_ppm }), lasts);
        }
        format::Fault::Clock { jump } => simulation.jump_clock(jump),
        format::Fault::SecondScheduler { lasts } => simulation.fault(Fault::SecondScheduler, lasts),
    }
}
