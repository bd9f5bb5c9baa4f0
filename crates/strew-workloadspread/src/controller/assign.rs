//! Assigns pods to revisions and subsets; adopts pods without a marker by the nodes that they are on.
//!
//! Source: spec/workloadspread §5.4.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Interner, Labels, Symbol, Taint};

use crate::facts::kinds::Kinds;
use crate::facts::pod::Pod;
use crate::facts::spec::{Subset, WorkloadSpread};
use crate::facts::status::UNLIMITED;
use crate::inject::{self, PodPatcher};
use crate::quota::{self, Total};
use crate::revision;

/// Labels and taints of the nodes.
pub type Nodes = FxHashMap<Symbol, (Labels, Box<[Taint]>)>;

/// The pods of one revision.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// The pods of each subset, in the order of the spec.
    pub subsets: Vec<Vec<&'a Pod>>,
    /// Pods in no subset.
    pub orphans: Vec<&'a Pod>,
    /// The key of the rows in the ledger that count them.
    pub ledger: Arc<str>,
}

/// A pod without a marker that fits a subset.
#[derive(Debug, Clone)]
pub struct Adoption<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The index of its subset.
    pub place: usize,
    /// The score of each subset; `None`: the pod does not fit it.
    pub scores: Vec<Option<i64>>,
    /// True if metadata of the subset's patch may be written to the pod: its owners would still find it.
    pub is_patched: bool,
}

/// All pods of a target by revision and subset.
#[derive(Debug, Clone, Default)]
pub struct Assignment<'a> {
    /// By revision.
    pub groups: BTreeMap<Arc<str>, Group<'a>>,
    /// Pods that need a marker.
    pub adoptions: Vec<Adoption<'a>>,
}

/// The inputs of assignment.
pub struct Assigning<'c> {
    /// The WorkloadSpread.
    pub ws: &'c WorkloadSpread,
    /// Its total.
    pub total: Total,
    /// The nodes.
    pub nodes: &'c Nodes,
    /// The kinds.
    pub kinds: &'c Kinds,
    /// The strings.
    pub names: &'c Interner,
}

/// Assigns all pods of a target, in the order in which they are listed.
pub fn assign<'a>(
    cx: &Assigning<'_>,
    pods: &[&'a Pod],
    patcher: &mut dyn PodPatcher,
) -> Assignment<'a> {
    let subsets = &cx.ws.spec.subsets;
    let mut by_revision: BTreeMap<Arc<str>, Vec<&'a Pod>> = BTreeMap::new();
    // Consecutive pods mostly have one owner and one label set: the key is looked up only when these change.
    let mut last: Option<(&Pod, Arc<str>)> = None;
    for &pod in pods {
        let same = last
            .as_ref()
            .filter(|(p, _)| p.labels == pod.labels && p.controller == pod.controller);
        let key = match same {
            Some((_, key)) => Arc::clone(key),
            None => revision::of_template(
                cx.ws.spec.limit_scope,
                &pod.labels,
                pod.controller.as_ref(),
                cx.kinds,
                cx.names,
            ),
        };
        match by_revision.get_mut(&key) {
            Some(there) => there.push(pod),
            None => {
                by_revision.insert(key.clone(), vec![pod]);
            }
        }
        last = Some((pod, key));
    }
    let mut assignment = Assignment::default();
    for (revision, pods) in by_revision {
        let mut group = Group {
            subsets: vec![Vec::new(); subsets.len()],
            orphans: Vec::new(),
            ledger: pods.first().map_or(Arc::clone(&revision), |pod| {
                let scope = cx.ws.spec.limit_scope;
                revision::of_pod(
                    scope,
                    &pod.labels,
                    pod.controller.as_ref(),
                    cx.kinds,
                    cx.names,
                )
            }),
        };
        let places: Vec<Place> = pods.iter().map(|p| place_of(cx.ws, p)).collect();
        let mut quota: Vec<i64> = subsets.iter().map(|s| limit(s, cx.total)).collect();
        for place in &places {
            if let Place::Marked(Some(place)) = place {
                quota[*place] -= 1;
            }
        }
        for (pod, place) in pods.into_iter().zip(places) {
            let place = match place {
                Place::Marked(place) => place,
                Place::Stranger => {
                    let adoption = adopt(cx, pod, &mut quota, patcher);
                    let place = adoption.as_ref().map(|a| a.place);
                    assignment.adoptions.extend(adoption);
                    place
                }
            };
            match place {
                Some(place) => group.subsets[place].push(pod),
                None => group.orphans.push(pod),
            }
        }
        assignment.groups.insert(revision, group);
    }
    assignment
}

/// The largest number of pods of a subset, for counting: `i32::MAX` without a limit.
pub(super) fn limit(subset: &Subset, total: Total) -> i64 {
    match quota::scaled(subset.max_replicas, total) {
        None | Some(UNLIMITED) => i64::from(i32::MAX),
        Some(max) => i64::from(max),
    }
}

/// The subset that a pod's marker names.
enum Place {
    /// In a subset, or in one that is not in the spec any more.
    Marked(Option<usize>),
    /// None: it may be adopted.
    Stranger,
}

fn place_of(ws: &WorkloadSpread, pod: &Pod) -> Place {
    let own = pod
        .marker
        .marker()
        .filter(|m| m.workload_spread == ws.key.name);
    match own.filter(|m| !m.subset.is_empty()) {
        Some(marker) => Place::Marked(ws.spec.place(&marker.subset)),
        None => Place::Stranger,
    }
}

fn adopt<'a>(
    cx: &Assigning<'_>,
    pod: &'a Pod,
    quota: &mut [i64],
    patcher: &mut dyn PodPatcher,
) -> Option<Adoption<'a>> {
    let name = pod.node?;
    let node = cx.nodes.get(&name)?;
    let subsets = cx.ws.spec.subsets.iter().zip(quota.iter());
    let scores: Vec<Option<i64>> = subsets
        .map(|(subset, &quota)| score(pod, (name, node), subset, quota, cx.names, patcher))
        .collect();
    let best = scores.iter().copied().flatten().max()?;
    let place = scores.iter().position(|s| *s == Some(best))?;
    quota[place] -= 1;
    Some(Adoption {
        pod,
        place,
        scores,
        is_patched: true,
    })
}

/// True if a pod on a node may be one of a subset.
pub(super) fn fits(
    pod: &Pod,
    (name, (labels, taints)): (Symbol, &(Labels, Box<[Taint]>)),
    subset: &Subset,
    names: &Interner,
) -> bool {
    let tolerations = inject::tolerations(&pod.tolerations, subset);
    let tolerates = |taint: &Taint| tolerations.iter().any(|t| t.tolerates(taint));
    let is_required = subset.required.as_ref().is_none_or(|required| {
        let terms = inject::required_terms(pod.node_affinity.terms.as_deref(), required);
        terms.iter().any(|t| t.matches(name, labels, names))
    });
    is_required && taints.iter().all(tolerates)
}

/// How well a pod on a node fits a subset; `None` if it does not fit.
pub fn score(
    pod: &Pod,
    (name, node): (Symbol, &(Labels, Box<[Taint]>)),
    subset: &Subset,
    quota: i64,
    names: &Interner,
    patcher: &mut dyn PodPatcher,
) -> Option<i64> {
    if !fits(pod, (name, node), subset, names) {
        return None;
    }
    let (labels, _) = node;
    let preferred = subset.preferred.iter();
    let preferred = preferred.filter(|(_, term)| term.matches(name, labels, names));
    let weight: i64 = preferred.map(|&(weight, _)| i64::from(weight)).sum();
    let patch = subset.patch;
    let in_effect = patch.is_none_or(|patch| patcher.is_in_effect(&pod.uid, patch));
    Some(100 * weight + 10 * i64::from(in_effect) + i64::from(quota > 0))
}
