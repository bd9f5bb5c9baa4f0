//! Rollouts: how many pods they take away, and how they leave the pods spread.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::read::KubeObject;
use strew_wire::rolling::{is_recreate, of_deployment};

use super::claim::claim_of;
use super::constraint::others_of;
use super::domains::n_usable;
use crate::Found;
use crate::files::Files;
use crate::placings::{one_by_one, rolling_path};
use crate::played::{Plays, REVISION, Rollout, SEEDS, Uneven};

fn deployments<'f>(files: &'f Files<'_>) -> impl Iterator<Item = (usize, usize, &'f Deployment)> {
    let workloads = files.workloads.iter().enumerate();
    workloads.filter_map(|(number, workload)| match files.objects[workload.object] {
        KubeObject::Deployment(deployment) => Some((number, workload.object, &**deployment)),
        _ => None,
    })
}

/// Deployments of several pods whose rollouts take all of them away at once.
///
/// Source: spec/controllers §2.3
pub(crate) fn takes_all_down(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (_, object, deployment) in deployments(files) {
        let Some(spec) = &deployment.spec else {
            continue;
        };
        let n = i64::from(spec.replicas.unwrap_or(1));
        if n < 2 {
            continue;
        }
        let path = FieldPath::root().child("spec.strategy");
        if is_recreate(spec) {
            let message =
                format!("a rollout stops all {n} pods before it starts new ones (Recreate)");
            let note = Found::note(object, path.child("type"), message).help(
                "RollingUpdate keeps some of them; Recreate is meant for pods that must not run beside an older version",
            );
            found.push(note.number("pods", n));
            continue;
        }
        let rolling = of_deployment(spec);
        if rolling.is_some_and(|rolling| rolling.unavailable >= n) {
            let message =
                format!("a rollout may stop all {n} pods at once: maxUnavailable is as many");
            let path = path.child("rollingUpdate.maxUnavailable");
            let warning = Found::warning(object, path.clone(), message).number("pods", n);
            found.push(warning.fix(Fix::set(&path, 1)));
        }
    }
    found
}

/// Deployments of one pod whose claim one pod at a time may use, and whose new pod has to be ready before the old one goes.
///
/// Source: spec/scheduler §3.12; spec/controllers §2.3
pub(crate) fn waits_for_claim(files: &Files<'_>) -> Vec<Found> {
    let found = deployments(files).filter_map(|(number, object, deployment)| {
        let workload = &files.workloads[number];
        let rolling = of_deployment(deployment.spec.as_ref()?)?;
        if workload.n_pods != Some(1) || rolling.unavailable > 0 {
            return None;
        }
        let volumes = workload.spec.volumes.iter().flatten();
        let mut sources = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        let source = sources.find(|source| {
            let claim = claim_of(files, workload.namespace, &source.claim_name);
            let modes = claim.and_then(|claim| claim.spec.as_ref()?.access_modes.as_deref());
            matches!(modes, Some([mode]) if mode == "ReadWriteOncePod")
        })?;
        let message = format!(
            "a rollout never ends: one pod at a time may use the claim {} (ReadWriteOncePod), so that the new pod waits, and with maxUnavailable 0 the old one does not go first",
            source.claim_name
        );
        let warning = Found::warning(object, rolling_path(), message)
            .help("Recreate, or maxUnavailable: 1, lets the old pod go first")
            .fix(one_by_one());
        Some(warning.number("pods", 1).number("maxUnavailable", 0))
    });
    found.collect()
}

/// DaemonSets whose new pod of a node waits for a host port that the old one has until the new one is ready.
///
/// Source: spec/controllers §4
pub(crate) fn waits_for_port(files: &Files<'_>) -> Vec<Found> {
    let path = FieldPath::root().child("spec.updateStrategy.rollingUpdate");
    let found = files.workloads.iter().filter_map(|workload| {
        let KubeObject::DaemonSet(set) = files.objects[workload.object] else {
            return None;
        };
        let strategy = set.spec.as_ref()?.update_strategy.as_ref()?;
        let rolling = strategy.rolling_update.as_ref()?;
        let surges = match rolling.max_surge.as_ref()? {
            IntOrString::Int(surge) => *surge > 0,
            IntOrString::String(percent) => percent.trim_end_matches('%') != "0",
        };
        if !surges || strategy.type_.as_deref() == Some("OnDelete") {
            return None;
        }
        let is_on_host = workload.spec.host_network == Some(true);
        let containers = workload.spec.containers.iter();
        let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
        let port = ports.find_map(|port| {
            let of_host = port.host_port.filter(|port| *port > 0);
            of_host.or(is_on_host.then_some(port.container_port))
        })?;
        let message = format!(
            "a rollout never ends: the new pod of a node waits for host port {port}, which the old one has, and with maxSurge that goes only when the new one is ready"
        );
        let mut fix = Fix::set(&path.child("maxUnavailable"), 1);
        let surge = Fix::set(&path.child("maxSurge"), 0);
        fix.change = format!("{}, {}", fix.change, surge.change);
        fix.edits.extend(surge.edits);
        let warning = Found::warning(workload.object, path.child("maxSurge"), message)
            .help("maxUnavailable: 1 with maxSurge: 0 lets the old pod go first");
        Some(warning.fix(fix).number("port", port.into()))
    });
    found.collect()
}

/// Hard constraints of Deployments that a rollout leaves broken, since they count the pods of the old revision, too.
/// A rollout is played on empty nodes.
///
/// Source: spec/scheduler §1.4; KEP-3243
pub(crate) fn ends_uneven(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (number, object, _) in deployments(files) {
        let workload = &files.workloads[number];
        let constraints = workload.spec.topology_spread_constraints.as_deref();
        let constraints = constraints.unwrap_or_default();
        let counts = |index: usize| {
            let selector = files.selector(constraints[index].label_selector.as_ref());
            selector.is_some_and(|s| !s.is_empty() && s.matches(&workload.labels))
        };
        let domains = |key: &str| n_usable(files, workload, key);
        let n = workload.n_pods.unwrap_or(0);
        for (index, constraint) in constraints.iter().enumerate() {
            let key = constraint.topology_key.as_str();
            let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
            let is_unknown = match files.nodes.is_empty() {
                true => strew_manifest::read::known_label(key).is_some(),
                false => domains(key) < 2,
            };
            let is_other = is_unknown
                || n < 2
                || constraint.when_unsatisfiable != "DoNotSchedule"
                || keys.iter().any(|key| key == REVISION)
                || !counts(index)
                || files.spread.contains_key(&number);
            if is_other {
                continue;
            }
            let path = workload.constraint_path(index);
            let deployment = files.played_form(workload);
            let Some(rollout) = Rollout::of(&deployment, index, counts, domains) else {
                continue;
            };
            let mut plays = files.played.borrow_mut();
            if let Some(why) = plays.refusal(&rollout) {
                let message = format!(
                    "whether a rollout leaves this constraint broken was not played: {why}"
                );
                let note = Found::note(object, path, message)
                    .help("without matchLabelKeys: [pod-template-hash] new pods are spread together with old ones");
                found.push(note.number("pods", n));
                continue;
            }
            let Some(Uneven { times, skew }) = plays.play(&rollout).filter(|p| p.times > 0) else {
                continue;
            };
            let max_skew = constraint.max_skew;
            let message = format!(
                "a rollout of the {n} pods ends at skew {skew} over maxSkew {max_skew} in {times} of {SEEDS} plays on empty nodes: pods of the old revision are counted until they are gone"
            );
            let warning = Found::warning(object, path.clone(), message)
                .number("uneven", times)
                .number("plays", SEEDS.into())
                .number("skew", skew)
                .number("maxSkew", max_skew.into());
            // To count one revision would take the others out of the count, too.
            if let Some(other) = others_of(files, number, constraint).first() {
                let help = format!(
                    "matchLabelKeys: [pod-template-hash] would count one revision, and with it no longer the pods of {}, which are spread together with these now",
                    files.objects[other.object].label()
                );
                let label = "its pods are counted, too";
                found.push(warning.help(help).related(other.object, label));
                continue;
            }
            let mut keys: Vec<String> = keys.to_vec();
            keys.push(REVISION.to_owned());
            let fix = Fix::set(&path.child("matchLabelKeys"), keys.clone());
            found.push(
                match better(deployment, index, &keys, &counts, &domains, &mut plays) {
                    true => warning.fix(Fix {
                        verified: Some(format!("0 of {SEEDS} plays end uneven")),
                        ..fix
                    }),
                    false => {
                        warning.help("matchLabelKeys: [pod-template-hash] counts one revision only")
                    }
                },
            );
        }
    }
    found
}

/// True if no play ends uneven where the constraint has these matchLabelKeys.
fn better(
    mut deployment: Value,
    index: usize,
    keys: &[String],
    counts: &dyn Fn(usize) -> bool,
    domains: &dyn Fn(&str) -> usize,
    plays: &mut Plays,
) -> bool {
    let path = format!("/spec/template/spec/topologySpreadConstraints/{index}");
    if let Some(constraint) = deployment.pointer_mut(&path) {
        constraint["matchLabelKeys"] = keys.into();
    }
    let rollout = Rollout::of(&deployment, index, counts, domains);
    let played = rollout.and_then(|rollout| plays.play(&rollout));
    played.is_some_and(|played| played.times == 0)
}
