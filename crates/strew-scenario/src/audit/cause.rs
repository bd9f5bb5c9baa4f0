//! Why a workload is hurt.
//!
//! If all its ready pods were in the domain, the question is why none was elsewhere: the scheduler's filters say whether
//! one could have been, and its constraints whether one had to be. Otherwise the question is what keeps the missing
//! pods from the nodes that are left, which the judge has answered.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use strew_apiserver::object::{Kind, Node, Pod};
use strew_apiserver::selection::Selection;
use strew_view::away::{Obstacle, Refusing};
use strew_view::words::short_key;

use super::Question;
use super::values::{Cause, CauseCode, Event};
use crate::expect::workloads::{Hindrance, LossOf, Missing};

/// A workload before the event, whose ready pods were all in the domain.
#[derive(Debug)]
pub(super) struct Before {
    /// Why none could be elsewhere.
    pub(super) obstacle: Obstacle,
    /// Its constraints over the key.
    pub(super) over: Over,
    /// The pods that it asks for.
    pub(super) wanted: u32,
    /// The pods of it that were ready.
    pub(super) ready: usize,
}

/// The nodes that are not in the domains, before the event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Elsewhere {
    /// Those that take new pods.
    pub(super) open: usize,
    pub(super) cordoned: usize,
    pub(super) not_ready: usize,
    pub(super) unreachable: usize,
}

impl Elsewhere {
    pub(super) fn add(&mut self, node: &Node) {
        let has = |key: &str| node.spec.taints.iter().flatten().any(|t| t.key == key);
        let n = if node.spec.unschedulable == Some(true) {
            &mut self.cordoned
        } else if has("node.kubernetes.io/unreachable") {
            &mut self.unreachable
        } else if has("node.kubernetes.io/not-ready") {
            &mut self.not_ready
        } else {
            &mut self.open
        };
        *n += 1;
    }

    /// `1 cordoned, 2 unreachable`; empty if all take new pods.
    fn closed(&self) -> String {
        let parts = [
            (self.cordoned, "cordoned"),
            (self.not_ready, "not ready"),
            (self.unreachable, "unreachable"),
        ];
        let parts = parts.iter().filter(|(n, _)| *n > 0);
        let parts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
        parts.join(", ")
    }

    /// Why no node takes a pod that `why` keeps off the open ones.
    fn cause(&self, nodes: &str, why: &str) -> (CauseCode, String) {
        match (self.open, self.closed()) {
            (0, closed) if closed.is_empty() => (CauseCode::Other, "no node is left".to_owned()),
            (0, closed) => (
                CauseCode::NodesClosed,
                format!("no other node takes new pods ({closed})"),
            ),
            (_, closed) if closed.is_empty() => {
                (CauseCode::SingleDomainPool, format!("{why} {nodes}"))
            }
            (_, closed) => (
                CauseCode::SingleDomainPool,
                format!("{why} {nodes}; other nodes take no new pods ({closed})"),
            ),
        }
    }
}

/// The pods' constraints over the key, as far as they could keep pods out of one domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    /// None.
    Missing,
    /// None over the key, and over this one, which no node has.
    UnknownKey(String),
    /// It does not count the pod itself.
    SelectorMisses,
    /// It only scores.
    Soft,
    /// Its maxSkew, and its minDomains.
    Hard(i32, Option<i32>),
}

/// The constraint of a pod over a key that holds most; `known` has the keys of nodes.
pub(super) fn over(pod: &Pod, key: &str, known: &BTreeSet<String>) -> Over {
    let all = pod.spec.topology_spread_constraints.iter().flatten();
    let its: Vec<&TopologySpreadConstraint> =
        all.clone().filter(|c| c.topology_key == key).collect();
    if its.is_empty() {
        let unknown = all.clone().find(|c| !known.contains(&c.topology_key));
        return unknown.map_or(Over::Missing, |c| Over::UnknownKey(c.topology_key.clone()));
    }
    let counts = |constraint: &&&TopologySpreadConstraint| {
        let selector = constraint.label_selector.as_ref().and_then(Selection::of);
        selector.is_some_and(|selector| selector.matches(&pod.meta.labels))
    };
    let own: Vec<_> = its.iter().filter(counts).collect();
    let hard = own
        .iter()
        .filter(|c| c.when_unsatisfiable == "DoNotSchedule");
    match (hard.min_by_key(|c| c.max_skew), own.is_empty()) {
        (Some(hard), _) => Over::Hard(hard.max_skew, hard.min_domains),
        (None, false) => Over::Soft,
        (None, true) => Over::SelectorMisses,
    }
}

/// What a cause is made of beside the verdict's numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    /// Of a workload whose ready pods were all in the domain.
    pub(super) before: Option<&'a Before>,
    pub(super) elsewhere: &'a Elsewhere,
    /// True for a pod whose controller is not in the files.
    pub(super) is_orphan: bool,
    /// Its pods in the domain, which takes them though it is cordoned.
    pub(super) tolerating: usize,
    /// The workloads whose pods preempted pods of it.
    pub(super) preempted_by: &'a BTreeSet<String>,
}

/// The cause of what the event did to a workload; `None` if it is not known.
pub(super) fn of(of: &LossOf, seen: Seen<'_>, question: &Question) -> Option<Cause> {
    let mut cause = why(of, seen, question)?;
    if !seen.preempted_by.is_empty() {
        let by: Vec<&str> = seen.preempted_by.iter().map(String::as_str).collect();
        let by = by.join(", ");
        cause
            .text
            .push_str(&format!("; pods of it were preempted by {by}"));
    }
    Some(cause)
}

fn why(of: &LossOf, seen: Seen<'_>, question: &Question) -> Option<Cause> {
    let missing = of.missing.as_ref();
    let before = seen.before;
    if seen.is_orphan {
        return Some(Cause {
            code: CauseCode::UnknownController,
            text: "its controller is not in the files: whether it makes another one is not known"
                .to_owned(),
        });
    }
    let is_pinned = before.is_some_and(|before| before.obstacle == Obstacle::Volume);
    if of.key.kind == Kind::Pod && !is_pinned {
        return Some(Cause {
            code: CauseCode::BarePod,
            text: "it is a pod without a workload, and nothing makes it again".to_owned(),
        });
    }
    let together = before.and_then(|before| together(before, seen.elsewhere, question));
    let at_rest = missing.map(|missing| at_rest(missing, seen.elsewhere, question.event));
    let short = of.loss.budgets.iter().find(|budget| budget.is_short());
    let budget = short.map(|budget| Cause {
        code: CauseCode::Budget,
        text: format!(
            "budget {} asks for {} healthy pods, and {} are",
            budget.name, budget.asks, budget.healthy
        ),
    });
    match (together, at_rest) {
        (Some(mut together), Some(at_rest)) => {
            let follows = together.code == at_rest.code || is_pinned;
            if !follows {
                together
                    .text
                    .push_str(&format!("; at rest {}", at_rest.text));
            }
            Some(together)
        }
        (together, at_rest) => together
            .or(at_rest)
            .or(budget)
            .or_else(|| by_restart(of, seen.tolerating, question)),
    }
}

/// What the restart of a shift did: it stopped all pods at once, or it left some of the domain, though none is Pending.
fn by_restart(of: &LossOf, tolerating: usize, question: &Question) -> Option<Cause> {
    let loss = &of.loss;
    let n_missing = loss.before.min(loss.wanted).saturating_sub(loss.ready);
    let n_of_domain = loss.before.saturating_sub(loss.at_once);
    let text = match (n_missing.min(n_of_domain), loss.at_once, loss.fewest) {
        (0, 1.., 0) => "its restart stops its pods elsewhere before new ones are ready".to_owned(),
        (0, ..) => return None,
        (n, ..) if tolerating > 0 => match n {
            1 => {
                "1 goes into the domain again: it tolerates that the domain is cordoned".to_owned()
            }
            n => format!("{n} go into the domain again: they tolerate that the domain is cordoned"),
        },
        (1, ..) => "1 stays in the domain: its rollout makes no pod in its place".to_owned(),
        (n, ..) => format!("{n} stay in the domain: their rollout makes no pod in their place"),
    };
    (question.event == Event::Shift).then_some(Cause {
        code: CauseCode::Other,
        text,
    })
}

/// Why all its pods were in the domain.
fn together(before: &Before, elsewhere: &Elsewhere, question: &Question) -> Option<Cause> {
    let wanted = before.wanted;
    let domain = question.domains.join(", ");
    let all = match (before.ready, wanted) {
        (_, 1) => format!("its only pod is in {domain}"),
        (1, n) => format!("its only ready pod of {n} is in {domain}"),
        (ready, n) if (ready as u64) < n.into() => {
            format!("its {ready} ready pods of {n} are in {domain}")
        }
        (_, n) => format!("all its {n} pods are in {domain}"),
    };
    let key = short_key(&question.key);
    let (code, why) = match &before.obstacle {
        Obstacle::NoNode => (CauseCode::Other, "there is no other node".to_owned()),
        Obstacle::Volume => {
            let text = match (before.ready, wanted) {
                (_, 1) => format!("its volume exists in {domain} only"),
                (1, _) => format!("the volume of its only ready pod exists in {domain} only"),
                (ready, n) if (ready as u64) < n.into() => {
                    format!("the volumes of its {ready} ready pods exist in {domain} only")
                }
                _ => format!("its volumes exist in {domain} only"),
            };
            return Some(Cause {
                code: CauseCode::VolumePin,
                text,
            });
        }
        Obstacle::Pool => elsewhere.cause("node elsewhere", POOL_ADMITS_NO),
        Obstacle::Room(lacks) => {
            let lacks: Vec<String> = { lacks.iter() }
                .map(|(reason, n)| format!("{n} {reason}"))
                .collect();
            (
                CauseCode::NoHeadroom,
                format!("no other node has room for one ({})", lacks.join(", ")),
            )
        }
        Obstacle::Other("InterPodAffinity") => (
            CauseCode::PodAffinity,
            "affinity or anti-affinity between pods refuses every other node".to_owned(),
        ),
        Obstacle::Other("PodTopologySpread") => (
            CauseCode::Other,
            "its constraints refuse every other node".to_owned(),
        ),
        Obstacle::Other(plugin) => (
            CauseCode::Other,
            format!("{plugin} refuses every other node"),
        ),
        Obstacle::None(_) if wanted == 1 => {
            return Some(Cause {
                code: CauseCode::SingleReplica,
                text: format!("{all}: it asks for one"),
            });
        }
        // However they are spread, some case loses all domains that have a pod.
        Obstacle::None(_) if wanted as usize <= question.domains.len() => (
            CauseCode::FewReplicas,
            format!("it asks for no more pods than domains are lost ({wanted})"),
        ),
        Obstacle::None(_) => match &before.over {
            Over::Missing => (
                CauseCode::ConstraintMissing,
                format!("no constraint over {key} spreads them"),
            ),
            Over::UnknownKey(other) => (
                CauseCode::ConstraintKeyMissing,
                format!("their constraint is over {other}, which no node has"),
            ),
            Over::SelectorMisses => (
                CauseCode::ConstraintSelectorMisses,
                format!("the selector of their constraint over {key} does not match them"),
            ),
            Over::Soft => (
                CauseCode::ConstraintSoft,
                format!("their constraint over {key} is soft (ScheduleAnyway)"),
            ),
            Over::Hard(max_skew, _) if u32::try_from(*max_skew).is_ok_and(|n| n >= wanted) => (
                CauseCode::ConstraintMaxSkew,
                format!("maxSkew {max_skew} over {key} lets all {wanted} into one domain"),
            ),
            Over::Hard(max_skew, _) => (
                CauseCode::ConstraintHoldsInOneDomain,
                format!("maxSkew {max_skew} over {key} moves no pod that runs already"),
            ),
        },
    };
    Some(Cause {
        code,
        text: format!("{all}: {why}"),
    })
}

/// What a pod is kept off nodes by, whatever is on them.
const POOL_ADMITS_NO: &str = "its node selector, affinity and tolerations admit no";
/// See [`POOL_ADMITS_NO`].
const POOL_ADMITS_NONE: &str = "its node selector, affinity and tolerations admit none";

/// What keeps the missing pods from the nodes that are left.
fn at_rest(missing: &Missing, elsewhere: &Elsewhere, event: Event) -> Cause {
    if let Missing::Pending(n, Hindrance::Nodes(_) | Hindrance::Other(_)) = missing
        && (elsewhere.open == 0 || matches!(missing, Missing::Pending(_, Hindrance::Nodes(_))))
    {
        let (code, text) = elsewhere.cause("of the nodes that are left", POOL_ADMITS_NONE);
        return Cause {
            code,
            text: format!("{n} Pending: {text}"),
        };
    }
    let code = match missing {
        Missing::Gone => CauseCode::BarePod,
        Missing::Evicted(..) | Missing::Staying(_) => CauseCode::Other,
        Missing::Refused(_, why) if why.contains("exceeded quota") => CauseCode::Quota,
        Missing::Refused(..) => CauseCode::Other,
        Missing::Terminating(_, Kind::StatefulSet) | Missing::Behind(..) => {
            CauseCode::StatefulSetWaits
        }
        Missing::Terminating(..) => CauseCode::Other,
        Missing::Pending(_, hindrance) => match hindrance {
            Hindrance::Volume => CauseCode::VolumePin,
            Hindrance::CountsTheLost => CauseCode::ConstraintCountsTheLost,
            Hindrance::Constraint(Refusing::Lost) => CauseCode::ConstraintCountsTheLost,
            Hindrance::Constraint(Refusing::Unusable { .. }) => CauseCode::ConstraintCountsUnusable,
            Hindrance::Constraint(Refusing::MinDomains { .. }) => CauseCode::ConstraintMinDomains,
            Hindrance::Constraint(Refusing::Others { .. }) => CauseCode::ConstraintCountsOthers,
            Hindrance::Room(_) => CauseCode::NoHeadroom,
            Hindrance::Affinity(_) => CauseCode::PodAffinity,
            Hindrance::Nodes(_) => CauseCode::SingleDomainPool,
            Hindrance::Other(_) | Hindrance::OtherScheduler(_) => CauseCode::Other,
        },
    };
    let text = match (missing, event) {
        (Missing::Pending(n, Hindrance::CountsTheLost), Event::Shift | Event::Drain) => format!(
            "{n} Pending: its hard constraint counts the cordoned domain, which takes no pod"
        ),
        _ => missing.to_string(),
    };
    Cause { code, text }
}
