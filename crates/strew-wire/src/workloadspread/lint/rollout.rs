//! What a rollout of the target does to subsets.

use std::collections::BTreeSet;

use strew_model::well_known::HOSTNAME;
use strew_model::{Interner, Resources, Symbol};
use strew_workloadspread::rollout::{may_pass, may_stick, misfits};
use strew_workloadspread::{Kind, Kinds, Misfit, UNLIMITED, quota};

use super::played::nodes_of;
use super::{Look, Warning};
use crate::facts;
use crate::workloadspread::annotations::{LIMIT_SCOPE, MOVE_BACK};
use crate::workloadspread::facts::Translator;
use crate::workloadspread::facts::spread::max_replicas;
use crate::workloadspread::inject::candidate;
use crate::workloadspread::subset_contents::Form;
use crate::workloadspread::validation::template_of;
use strew_manifest::field::FieldPath;
use strew_manifest::kruise::v1beta1::{WorkloadSpreadSpec, WorkloadSpreadSubset};

/// Warnings about rollouts of the target, where the files have it.
pub(super) fn warnings(look: &Look<'_>, spec: &WorkloadSpreadSpec) -> Vec<Warning> {
    let Some(target) = look.target else {
        return Vec::new();
    };
    let mut names = Interner::new();
    let mut translator = Translator::default();
    let Some(fact) = translator.workload(target, &mut names) else {
        return Vec::new();
    };
    let Some(rolling) = fact.rolling else {
        return Vec::new();
    };
    let ws = translator.spread(look.ws, &mut names);
    let kinds = Kinds::new(&mut names);
    let is_clone_set = kinds.of(fact.key.target.kind) == Kind::CloneSet;
    let total = fact.replicas.unwrap_or(1);
    let label = target.label();
    let path = |place: usize| {
        let subset = FieldPath::root().child("spec.subsets").index(place);
        subset.child("maxReplicas")
    };
    let mut found = Vec::new();
    if let Some((place, pods)) = may_stick(&ws.spec, Some(&fact), total, &kinds)
        && let Some(subset) = spec.subsets.get(place)
        && room(look, subset).is_some_and(|room| room.pods <= pods)
    {
        found.push(Warning {
            code: "stuck-rollout",
            path: path(place),
            message: format!(
                "a rollout of {label} does not end where the nodes of subset {:?} hold no more than {pods} pods: new pods wait there, and with maxUnavailable 0 no old one makes room",
                subset.name
            ),
            help: format!("let maxUnavailable be 1, annotate the WorkloadSpread with {LIMIT_SCOPE}: workload, or use the strategy Adaptive"),
        });
    }
    if let Some(pods) = may_pass(&ws.spec, Some(&fact), total)
        && let Some(subset) = spec.subsets.first()
        && let Some(room) = room(look, subset).filter(|room| room.pods <= pods)
    {
        found.push(Warning {
            code: "short-after-rollout",
            path: match subset.max_replicas {
                Some(_) => path(0),
                None => FieldPath::root().child("spec.subsets").index(0),
            },
            message: format!(
                "after a rollout of {label} subset {:?} may have none of its pods: its nodes hold {}, which are old ones until they are gone, and under Adaptive new pods that find no room go to later subsets",
                subset.name, room.pods
            ),
            help: format!("let the nodes of the subset hold more, or annotate the WorkloadSpread with {MOVE_BACK} (with adaptive.disableSimulationSchedule: true)"),
        });
    }
    for (place, misfit) in misfits(&ws.spec, Some(&fact), total, &kinds) {
        let Some(subset) = spec.subsets.get(place) else {
            continue;
        };
        let surge = rolling.surge;
        found.push(match misfit {
            Misfit::Short(pods) => Warning {
                code: "short-after-rollout",
                path: path(place),
                message: format!(
                    "after a rollout of {label} subset {:?} may have {pods} pods less: {surge} new ones are made while old ones fill it, and go to later subsets",
                    subset.name
                ),
                help: match is_clone_set {
                    true => format!("annotate the WorkloadSpread with {LIMIT_SCOPE}: revision, or let none surge (maxSurge: 0 with maxUnavailable: 1)"),
                    false => format!("let fewer pods surge (maxSurge), or annotate the WorkloadSpread with {MOVE_BACK}"),
                },
            },
            Misfit::Stuck | Misfit::NoRoom => Warning {
                code: "stuck-rollout",
                path: path(place),
                message: format!(
                    "no rollout of {label} begins: old pods fill all subsets, new ones are held back, and with maxUnavailable 0 no old one makes room"
                ),
                help: "let maxUnavailable be 1, or leave out maxReplicas of the last subset".to_owned(),
            },
        });
    }
    found
}

/// Subsets that take more pods than their nodes hold when they are empty.
pub(super) fn over_room(look: &Look<'_>, spec: &WorkloadSpreadSpec) -> Vec<Warning> {
    let target = look.target.filter(|_| look.is_whole(spec));
    let fact = target.and_then(|t| Translator::default().workload(t, &mut Interner::new()));
    let total = fact.and_then(|fact| fact.replicas).unwrap_or(0);
    let mut left = total;
    let strategy = spec.schedule_strategy.as_ref();
    let is_adaptive = strategy.is_some_and(|strategy| strategy.adaptive.is_some());
    let mut found = Vec::new();
    for (place, subset) in spec.subsets.iter().enumerate() {
        let is_last = place + 1 == spec.subsets.len();
        let limit = quota::scaled(subset.max_replicas.as_ref().map(max_replicas), total);
        let wanted = match limit {
            None => break,
            Some(UNLIMITED) => left,
            Some(limit) => left.min(i64::from(limit)),
        };
        left -= wanted;
        let Some(room) = room(look, subset).filter(|room| room.pods < wanted) else {
            continue;
        };
        let (name, more) = (&subset.name, wanted - room.pods);
        let is_open = limit == Some(UNLIMITED);
        let moves_on = is_adaptive && !is_last;
        if moves_on {
            left += more;
            // What it does not hold goes on, as it is meant to.
            if is_open {
                continue;
            }
        }
        let rest = match moves_on {
            true => format!("the other {more} wait there first, and then go to later subsets"),
            false => format!("the other {more} stay Pending"),
        };
        let path = FieldPath::root().child("spec.subsets").index(place);
        found.push(Warning {
            code: "subset-over-room",
            path: match is_open {
                true => path,
                false => path.child("maxReplicas"),
            },
            message: format!(
                "subset {name:?} takes {wanted} pods, and its nodes in these files hold {} by their {}: {rest}",
                room.pods, room.by
            ),
            help: match is_last {
                true => "more nodes for the subset, or another one behind it".to_owned(),
                false => format!("maxReplicas: {}, or more nodes for the subset", room.pods),
            },
        });
    }
    found
}

/// What the nodes of a subset hold.
struct Room {
    pods: i64,
    /// What bounds it.
    by: &'static str,
}

/// How many pods of a subset its nodes in the files hold, by their requests, host ports and anti-affinity to one another;
/// `None`: there are no such nodes, one of them does not say what it has, or no such pod can be made.
fn room(look: &Look<'_>, subset: &WorkloadSpreadSubset) -> Option<Room> {
    let mut names = Interner::new();
    let pod = candidate(&template_of(look.target?)?, &Form::of(subset)).ok()?;
    let labels = facts::labels(pod.metadata.labels.as_ref(), &mut names);
    let asked = facts::required_node_affinity(pod.spec.as_ref()?, &mut names);
    let pod = facts::pod(&pod, &mut names).ok()??;
    let anti = pod.spec.affinity.required_anti.iter();
    let anti = anti.filter(|term| term.is_own_namespace() && term.selector.matches(&labels));
    let keys: Vec<Symbol> = anti.map(|term| term.key).collect();
    // Pods per node, and with each key per domain; a node without the key is none of them.
    let mut n_nodes = 0;
    let mut all = 0i64;
    let mut by_key: Vec<(BTreeSet<Symbol>, i64)> = vec![Default::default(); keys.len()];
    for node in nodes_of(look.objects) {
        let (name, node_labels) = facts::labelled(&node.metadata, &mut names);
        let says = node
            .status
            .as_ref()
            .is_some_and(|status| status.allocatable.is_some());
        let is_own = asked.matches(name, &node_labels, &names);
        let Some(fact) = facts::node(node, &mut names).ok().filter(|_| is_own) else {
            continue;
        };
        if !says {
            return None;
        }
        // Taints of Kubernetes itself come and go with the state of the node.
        let is_kept_off = fact.taints.iter().any(|taint| {
            taint.forbids_scheduling()
                && !names.text(taint.key).starts_with("node.kubernetes.io/")
                && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
        });
        if is_kept_off {
            continue;
        }
        n_nodes += 1;
        let times = times(&fact.allocatable, &pod.spec.requests).min(fact.pods_max);
        let times = match pod.spec.host_ports.is_empty() {
            true => times,
            false => times.min(1),
        };
        all = all.saturating_add(times);
        for (key, (domains, without)) in keys.iter().zip(&mut by_key) {
            let own = (*key == HOSTNAME).then_some(name);
            match node_labels.get(*key).or(own) {
                Some(domain) if times > 0 => {
                    domains.insert(domain);
                }
                Some(_) => {}
                None => *without = without.saturating_add(times),
            }
        }
    }
    let apart = by_key.iter().map(|(domains, without)| {
        let n_domains = i64::try_from(domains.len()).unwrap_or(i64::MAX);
        n_domains.saturating_add(*without)
    });
    let apart = apart.min().filter(|apart| *apart < all);
    let is_by_ports = !pod.spec.host_ports.is_empty();
    (n_nodes > 0).then(|| Room {
        pods: apart.unwrap_or(all),
        by: match (apart, is_by_ports) {
            (Some(_), _) => "anti-affinity",
            (None, true) => "requests and host ports",
            (None, false) => "requests",
        },
    })
}

/// How often the requests fit.
fn times(allocatable: &Resources, requests: &Resources) -> i64 {
    let own = [
        (allocatable.cpu_milli, requests.cpu_milli),
        (allocatable.memory, requests.memory),
        (allocatable.ephemeral_storage, requests.ephemeral_storage),
    ];
    let scalars = requests.scalars().iter();
    let scalars = scalars.map(|&(name, asked)| (allocatable.scalar(name), asked));
    let all = own.into_iter().chain(scalars);
    let each = all
        .filter(|(_, asked)| *asked > 0)
        .map(|(there, asked)| (there / asked).max(0));
    each.min().unwrap_or(i64::MAX)
}
