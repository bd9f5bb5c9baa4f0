//! Rollouts: how many pods they take away, and how they leave the pods spread.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::read::KubeObject;
use strew_wire::rolling::{is_recreate, of_deployment};

use crate::Found;
use crate::files::Files;
use crate::played::{SEEDS, Uneven, play};

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
        if rolling.is_some_and(|rolling| i64::from(rolling.unavailable) >= n) {
            let message =
                format!("a rollout may stop all {n} pods at once: maxUnavailable is as many");
            let path = path.child("rollingUpdate.maxUnavailable");
            let warning = Found::warning(object, path.clone(), message).number("pods", n);
            found.push(warning.fix(Fix::set(&path, 1)));
        }
    }
    found
}

/// Hard constraints of Deployments that a rollout leaves broken, since they count the pods of the old revision, too.
/// A rollout is played on empty nodes.
///
/// Source: spec/scheduler §1.4; KEP-3243
pub(crate) fn ends_uneven(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut plays = files.played.borrow_mut();
    for (number, object, deployment) in deployments(files) {
        let workload = &files.workloads[number];
        let constraints = workload.spec.topology_spread_constraints.as_deref();
        for (index, constraint) in constraints.unwrap_or_default().iter().enumerate() {
            let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
            let counts = files
                .selector(constraint.label_selector.as_ref())
                .is_some_and(|s| !s.is_empty() && s.matches(&workload.labels));
            let values = files.nodes.iter();
            let values = values.filter_map(|node| node.label(&constraint.topology_key));
            let n_domains = values.collect::<BTreeSet<&str>>().len();
            let is_unknown = match files.nodes.is_empty() {
                true => super::domains::misspelt(&constraint.topology_key).is_some(),
                false => n_domains < 2,
            };
            let is_told = is_unknown
                || constraint.when_unsatisfiable != "DoNotSchedule"
                || keys.iter().any(|key| key == "pod-template-hash")
                || !counts
                || files.spread.contains_key(&number);
            if is_told {
                continue;
            }
            let played = play(deployment, constraint, n_domains, &mut plays);
            let n = workload.n_pods.unwrap_or(0);
            if let (None, Some(why)) = (&played, plays.refusal(n)) {
                let message = format!(
                    "whether a rollout leaves this constraint broken was not played: {why}"
                );
                let path = workload.constraint_path(index);
                let note = Found::note(object, path, message)
                    .help("without matchLabelKeys: [pod-template-hash] new pods are spread together with old ones");
                found.push(note.number("pods", n));
                continue;
            }
            let Some(Uneven {
                times,
                skew,
                n_domains: n_played,
            }) = played.filter(|played| played.times > 0)
            else {
                continue;
            };
            let path = workload.constraint_path(index);
            let (key, max_skew) = (&constraint.topology_key, constraint.max_skew);
            let message = format!(
                "a rollout ends at skew {skew} over maxSkew {max_skew} in {times} of {SEEDS} plays ({n} pods, {n_played} domains of {key} with room for all): pods of the old revision are counted until they are gone"
            );
            let warning = Found::warning(object, path.clone(), message)
                .number("uneven", times)
                .number("plays", SEEDS)
                .number("skew", skew)
                .number("maxSkew", max_skew.into());
            let mut keys: Vec<String> = keys.to_vec();
            keys.push("pod-template-hash".to_owned());
            let mut better = constraint.clone();
            better.match_label_keys = Some(keys.clone());
            let after = play(deployment, &better, n_domains, &mut plays);
            found.push(match after.filter(|after| after.times == 0) {
                Some(_) => {
                    let mut fix = Fix::set(&path.child("matchLabelKeys"), keys);
                    fix.verified = Some(format!("0 of {SEEDS} plays end uneven"));
                    warning.fix(fix)
                }
                None => {
                    warning.help("matchLabelKeys: [pod-template-hash] counts one revision only")
                }
            });
        }
    }
    found
}
