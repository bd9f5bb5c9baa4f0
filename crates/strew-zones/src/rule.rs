//! May this pod be evicted now? The rule on facts.
//!
//! A domain is disrupted while a pod of the budget in it is [`Away`], and for a while after an eviction was granted in
//! it. A pod that is on no node, and one that the workload lacks, has no domain: it counts for the domain of the claim,
//! unless it was so before the claim. An eviction is refused while another domain than the pod's own is disrupted.
//!
//! A pod that is away itself takes nothing from its domain, so its eviction is left to the plain budget.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::claim::{Claim, WAITING_MAX};

/// A value of the topology key; `None`: nodes without the label, which are one domain together.
pub type Domain<'a> = Option<&'a str>;

/// Where a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// On a node of this domain.
    In(Domain<'a>),
    /// On no node, or on one that does not exist any more.
    Nowhere,
}

/// Why a pod is not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Away {
    /// Its deletion was requested.
    Deleted,
    /// It has no node.
    Pending,
    /// Its node does not exist any more.
    NodeGone,
    /// Its node is not Ready.
    NodeNotReady,
    /// Its condition Ready is not `True`.
    NotReady,
}

impl Away {
    /// In words, after "pod x is".
    pub fn words(self) -> &'static str {
        match self {
            Self::Deleted => "being deleted",
            Self::Pending => "on no node",
            Self::NodeGone => "on a node that is gone",
            Self::NodeNotReady => "on a node that is not Ready",
            Self::NotReady => "not ready",
        }
    }
}

/// A pod that the budget selects and that has not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PodState<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// Where it is.
    pub place: Place<'a>,
    /// Why it is not available; `None` if it is.
    pub away: Option<Away>,
}

/// The pods of a budget, and what was granted before.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The pods that it selects, without those that have finished.
    pub pods: &'a [PodState<'a>],
    /// The number of pods that the workload lacks: those that the budget expects, less those that are there.
    pub missing: u32,
    /// The claim, if there is one.
    pub claim: Option<&'a Claim>,
    /// True if a grant of the claim is younger than [`HOLD`](crate::HOLD).
    pub is_held: bool,
}

/// The answer to an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It takes nothing from a domain.
    Pass,
    /// It is allowed once this claim is written.
    Grant(Claim),
    /// It is refused.
    Refuse(Refusal),
}

/// Why an eviction is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The domain of the pod.
    pub own: Option<Box<str>>,
    /// The disrupted domain.
    pub other: Option<Box<str>>,
    /// Its pods that are away, by name, with those that count for it.
    pub waits_for: Vec<(Box<str>, Away)>,
    /// The number of pods that the workload lacks.
    pub missing: u32,
    /// The number of further disrupted domains, without the pod's own.
    pub n_further: usize,
}

/// What disrupts a domain.
#[derive(Debug, Default)]
struct Disruption<'a> {
    away: Vec<(&'a str, Away)>,
    missing: u32,
}

/// Decides about the eviction of one of the pods. Cost: one visit of each pod.
pub fn decide(situation: &Situation<'_>, asked: &PodState<'_>) -> Verdict {
    let (Place::In(own), None) = (asked.place, asked.away) else {
        return Verdict::Pass;
    };
    let mut disrupted = disruptions(situation);
    let is_own_disrupted = disrupted.remove(&own).is_some();
    if let Some(refusal) = refusal(own, disrupted) {
        return Verdict::Refuse(refusal);
    }
    Verdict::Grant(claim(situation, own, is_own_disrupted))
}

/// True if a claim has served: its domain is whole, and no pod of it waits.
pub fn is_whole(situation: &Situation<'_>) -> bool {
    let claim = situation.claim;
    claim.is_none_or(|claim| !disruptions(situation).contains_key(&claim.domain.as_deref()))
}

/// The disrupted domains.
fn disruptions<'a>(situation: &Situation<'a>) -> BTreeMap<Domain<'a>, Disruption<'a>> {
    let mut all: BTreeMap<Domain<'a>, Disruption<'a>> = BTreeMap::new();
    let mut homeless = Disruption::default();
    for pod in situation.pods {
        match (pod.place, pod.away) {
            (Place::In(domain), Some(why)) => {
                all.entry(domain).or_default().away.push((pod.name, why));
            }
            (Place::In(_), None) => {}
            (Place::Nowhere, why) => {
                let is_old = situation
                    .claim
                    .is_some_and(|claim| claim.waiting.contains(pod.uid));
                if !is_old {
                    homeless.away.push((pod.name, why.unwrap_or(Away::Pending)));
                }
            }
        }
    }
    if let Some(claim) = situation.claim {
        homeless.missing = situation.missing.saturating_sub(claim.missing);
        if situation.is_held || !homeless.away.is_empty() || homeless.missing > 0 {
            let of_claim = all.entry(claim.domain.as_deref()).or_default();
            of_claim.away.append(&mut homeless.away);
            of_claim.missing = homeless.missing;
        }
    }
    all
}

/// The refusal if a domain other than the pod's own is disrupted: it tells of the one with the most pods away.
fn refusal(own: Domain<'_>, others: BTreeMap<Domain<'_>, Disruption<'_>>) -> Option<Refusal> {
    let n_further = others.len().saturating_sub(1);
    let size = |disruption: &Disruption<'_>| disruption.away.len() + disruption.missing as usize;
    let (domain, disruption) = others
        .into_iter()
        .min_by_key(|(domain, disruption)| (Reverse(size(disruption)), domain.is_none()))?;
    let mut waits_for: Vec<(Box<str>, Away)> = disruption
        .away
        .into_iter()
        .map(|(name, why)| (name.into(), why))
        .collect();
    waits_for.sort_unstable();
    Some(Refusal {
        own: own.map(Into::into),
        other: domain.map(Into::into),
        waits_for,
        missing: disruption.missing,
        n_further,
    })
}

/// The claim after a grant. Pods that waited before the first eviction in a disrupted domain stay excused.
fn claim(situation: &Situation<'_>, own: Domain<'_>, is_disrupted: bool) -> Claim {
    let before = situation.claim;
    let grants = before.map_or(0, |claim| claim.grants).saturating_add(1);
    let homeless = || {
        let pods = situation.pods.iter();
        pods.filter(|pod| pod.place == Place::Nowhere)
    };
    let domain = own.map(Into::into);
    match before {
        Some(claim) if is_disrupted && claim.domain == domain => Claim {
            domain,
            grants,
            waiting: homeless()
                .filter(|pod| claim.waiting.contains(pod.uid))
                .map(|pod| pod.uid.into())
                .collect(),
            missing: claim.missing.min(situation.missing),
        },
        _ => Claim {
            domain,
            grants,
            waiting: homeless()
                .take(WAITING_MAX)
                .map(|pod| pod.uid.into())
                .collect(),
            missing: situation.missing,
        },
    }
}

/// The most pods that a message names.
const NAMED_MAX: usize = 3;

impl Refusal {
    /// The refusal in words, for the client that evicts.
    pub fn text(&self, budget: &str, key: &str) -> String {
        let own = domain_text(self.own.as_deref());
        let other = domain_text(self.other.as_deref());
        let mut text = format!(
            "The disruption budget {budget} lets pods of one {key} be evicted at a time, and "
        );
        let named = self.waits_for.iter().take(NAMED_MAX);
        let named: Vec<String> = named
            .map(|(pod, why)| format!("{pod} ({})", why.words()))
            .collect();
        let mut causes = Vec::new();
        if !named.is_empty() {
            causes.push(named.join(", "));
        }
        let n_more = self.waits_for.len().saturating_sub(NAMED_MAX);
        if n_more > 0 {
            causes.push(format!("{n_more} more"));
        }
        match (self.missing, causes.is_empty()) {
            (0, _) => {}
            (1, _) => causes.push("1 pod that is not created yet".to_owned()),
            (n, _) => causes.push(format!("{n} pods that are not created yet")),
        }
        if causes.is_empty() {
            let _ = write!(text, "a pod of {other} was evicted just now");
        } else {
            let _ = write!(text, "{other} waits for {}", causes.join(" and "));
        }
        match self.n_further {
            0 => {}
            1 => text.push_str("; so does one further domain"),
            n => {
                let _ = write!(text, "; so do {n} further domains");
            }
        }
        let _ = write!(text, ". Pods of {own} can be evicted when they are ready.");
        text
    }
}

fn domain_text(domain: Option<&str>) -> String {
    match domain {
        Some(value) => format!("{value:?}"),
        None => "nodes without the label".to_owned(),
    }
}
