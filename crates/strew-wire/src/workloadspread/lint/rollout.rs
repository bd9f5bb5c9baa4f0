//! What a rollout of the target does to subsets.

use strew_model::{Interner, NodeSelectorTerm as Term, Resources};
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
        && room(look, subset).is_some_and(|room| room <= pods)
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
        && let Some(room) = room(look, subset).filter(|room| *room <= pods)
    {
        found.push(Warning {
            code: "short-after-rollout",
            path: path(0),
            message: format!(
                "after a rollout of {label} subset {:?} may have none of its pods: its nodes hold {room}, which are old ones, and under Adaptive new pods that find no room go to later subsets",
                subset.name
            ),
            help: "let no pods surge (maxSurge: 0), or let the nodes of the subset hold more".to_owned(),
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
                    true => format!("annotate the WorkloadSpread with {LIMIT_SCOPE}: revision, or let none surge"),
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

/// Limits above what the nodes of their subsets hold when they are empty.
pub(super) fn over_room(look: &Look<'_>, spec: &WorkloadSpreadSpec) -> Vec<Warning> {
    let target = look.target.filter(|_| look.is_whole(spec));
    let fact = target.and_then(|t| Translator::default().workload(t, &mut Interner::new()));
    let total = fact.and_then(|fact| fact.replicas).unwrap_or(0);
    let mut left = total;
    let strategy = spec.schedule_strategy.as_ref();
    let is_adaptive = strategy.is_some_and(|strategy| strategy.adaptive.is_some());
    let mut found = Vec::new();
    for (place, subset) in spec.subsets.iter().enumerate() {
        let limit = quota::scaled(subset.max_replicas.as_ref().map(max_replicas), total);
        let Some(limit) = limit.filter(|limit| *limit != UNLIMITED) else {
            break;
        };
        let wanted = left.min(i64::from(limit));
        left -= wanted;
        let Some(room) = room(look, subset).filter(|room| *room < wanted) else {
            continue;
        };
        let (name, more) = (&subset.name, wanted - room);
        let rest = match is_adaptive {
            true => format!("the other {more} wait there first, and then go to later subsets"),
            false => format!("the other {more} stay Pending"),
        };
        found.push(Warning {
            code: "subset-over-room",
            path: FieldPath::root()
                .child("spec.subsets")
                .index(place)
                .child("maxReplicas"),
            message: format!(
                "subset {name:?} takes {wanted} pods, and its nodes in these files hold {room} by their requests: {rest}"
            ),
            help: format!("maxReplicas: {room}, or more nodes for the subset"),
        });
    }
    found
}

/// How many pods of a subset its nodes in the files hold, by their requests; `None`: there are no such nodes, one of them
/// does not say what it has, or no such pod can be made.
fn room(look: &Look<'_>, subset: &WorkloadSpreadSubset) -> Option<i64> {
    let mut names = Interner::new();
    let pod = candidate(&template_of(look.target?)?, &Form::of(subset)).ok()?;
    let pod = facts::pod(&pod, &mut names).ok()??;
    let required = subset.required_node_selector.as_ref();
    let own: Option<Term> = required.map(|term| facts::node_selector_term(term, &mut names));
    let mut room: Option<i64> = None;
    for node in nodes_of(look.objects) {
        let (name, labels) = facts::labelled(&node.metadata, &mut names);
        let is_own = own
            .as_ref()
            .is_none_or(|term| term.matches(name, &labels, &names));
        let says = node
            .status
            .as_ref()
            .is_some_and(|status| status.allocatable.is_some());
        let Some(node) = facts::node(node, &mut names).ok().filter(|_| is_own) else {
            continue;
        };
        if !says {
            return None;
        }
        let times = times(&node.allocatable, &pod.spec.requests);
        let times = times.min(node.pods_max);
        room = Some(room.unwrap_or(0).saturating_add(times));
    }
    room
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
