//! Claims about counts and skew by domain.
//!
//! A pod counts in the domain of its node, from its binding until its deletion is requested. [`strew_view::spread`]
//! says which domains count, empty ones included; `strew-spread` computes the skew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod};
use strew_spread::{DomainIdx, Tally};
use strew_view::ground::Ground;

use super::{Answer, Verdict, subject};
use crate::format::{Counts, SpreadClaim, Subject};

/// Pods per domain; every domain that counts has an entry, also with 0 pods.
pub type ByDomain = BTreeMap<String, u32>;

/// Judges a claim; `ground` says which domains count.
pub fn judge(tables: &Tables, ground: &mut Ground, claim: &SpreadClaim) -> Verdict {
    let mut pods = subject::pods(tables, &claim.of);
    subject::keep_revision(tables, &claim.of, claim.revision, &mut pods);
    pods.retain(|pod| !pod.meta.is_terminating());
    let found = count(tables, ground, &pods, &claim.by);
    let asks_skew = claim.skew.is_some() || claim.skew_max.is_some();
    if asks_skew && claim.counts.is_none() && found.n_counted() == 0 && found.n_left_out() == 0 {
        return Verdict::of(Answer::Nothing, nothing(claim, pods.len()));
    }
    let everywhere = found.everywhere();
    let counts_agree = { claim.counts.as_ref() }.is_none_or(|wanted| agree(wanted, &everywhere));
    let is_skew = |skew: u32| {
        claim.skew.is_none_or(|wanted| wanted == skew)
            && claim.skew_max.is_none_or(|max| skew <= max)
    };
    // With pods left out the skew is not that of the pods in question. It may be known to be too large.
    let answer = match (counts_agree, asks_skew && found.n_left_out() > 0) {
        (false, _) => Answer::No,
        (true, true) if claim.skew_max.is_some_and(|max| skew(&everywhere) > max) => Answer::No,
        (true, true) => Answer::Unknown,
        (true, false) if is_skew(found.skew) => Answer::Yes,
        (true, false) => Answer::No,
    };
    // Counts are asked of all pods, a skew of the domains that count.
    let told = match claim.counts.is_some() || found.n_left_out() > 0 {
        true => everywhere,
        false => found.counts.clone(),
    };
    let why = why(claim, &found, &told);
    Verdict::of(answer, why).counted(told)
}

/// What differs from the counts, the skew if it is asked for, and the pods that are left out.
fn why(claim: &SpreadClaim, found: &Found, told: &ByDomain) -> String {
    let mut why = Vec::new();
    if let Some(wanted) = &claim.counts {
        let differences = differences(wanted, told);
        why.push(match differences.is_empty() {
            true => listed(told),
            false => differences,
        });
    }
    if claim.skew.is_some() || claim.skew_max.is_some() {
        why.push(text(&found.counts, found.skew));
        let asked = match claim.skew_max {
            Some(_) => "max",
            None => "skew",
        };
        for (domain, n) in &found.outside {
            let pods = pods(*n);
            why.push(format!(
                "{domain} has {pods} but no node that counts for them any more (node affinity, taints or labels): \
                 {asked} cannot be judged"
            ));
        }
        if found.n_unlabelled > 0 {
            let pods = pods(found.n_unlabelled);
            let key = &claim.by;
            why.push(format!(
                "{pods} on nodes without the label {key}: {asked} cannot be judged"
            ));
        }
    }
    why.join("; ")
}

/// How counts differ from the wanted ones: `4/3/3, not 2/2/2`, `a: 5, not 6`; empty if they agree.
fn differences(wanted: &Counts, found: &ByDomain) -> String {
    if agree(wanted, found) {
        return String::new();
    }
    match wanted {
        Counts::Multiset(wanted) => {
            let slashed = |numbers: Vec<u32>| match numbers.is_empty() {
                true => "none".to_owned(),
                false => {
                    let numbers = numbers.iter().rev().map(u32::to_string);
                    numbers.collect::<Vec<_>>().join("/")
                }
            };
            let mut numbers: Vec<u32> = found.values().copied().collect();
            numbers.sort_unstable();
            format!("{}, not {}", slashed(numbers), slashed(wanted.clone()))
        }
        Counts::Exact(wanted) => {
            let domains: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
            let of = |counts: &ByDomain, domain: &String| counts.get(domain).copied().unwrap_or(0);
            let differing = domains.into_iter().filter_map(|domain| {
                let (is, wanted) = (of(found, domain), of(wanted, domain));
                (is != wanted).then(|| format!("{domain}: {is}, not {wanted}"))
            });
            let differing: Vec<String> = differing.take(DOMAINS_TOLD).collect();
            differing.join("; ")
        }
    }
}

fn pods(n: u32) -> String {
    match n {
        1 => "1 of the pods".to_owned(),
        n => format!("{n} of the pods"),
    }
}

/// Why there is no skew.
fn nothing(claim: &SpreadClaim, n_pods: usize) -> String {
    let of = match &claim.of {
        Subject::Workload(target) => format!("of {target}"),
        Subject::Selector { .. } => "with these labels".to_owned(),
    };
    match n_pods {
        0 => format!("there is no pod {of}, so nothing is spread"),
        1 => format!("the one pod {of} is on no node, so nothing is spread"),
        n => format!("none of the {n} pods {of} is on a node, so nothing is spread"),
    }
}

/// Pods by the domains of a key.
struct Found {
    /// By domain that counts for one of the pods.
    counts: ByDomain,
    /// Pods in domains that do not count, because no node there counts any more.
    outside: ByDomain,
    /// Pods on nodes without the label.
    n_unlabelled: u32,
    skew: u32,
}

impl Found {
    fn n_counted(&self) -> u32 {
        self.counts.values().sum()
    }

    fn n_left_out(&self) -> u32 {
        self.outside.values().sum::<u32>() + self.n_unlabelled
    }

    fn everywhere(&self) -> ByDomain {
        let everywhere = self.counts.iter().chain(&self.outside);
        everywhere.map(|(d, n)| (d.clone(), *n)).collect()
    }
}

/// Counts pods in the domains that count for at least one of them.
fn count(tables: &Tables, ground: &mut Ground, pods: &[&Arc<Pod>], key: &str) -> Found {
    let rule = ground.rule(pods.iter().map(|pod| &***pod), key);
    let (column, mut tally) = ground.domains(&rule);
    let mut outside = ByDomain::new();
    let mut n_unlabelled = 0;
    for node in pods.iter().filter_map(|pod| pod.node.as_ref()) {
        match ground.domain(column, node) {
            Some(domain) if tally.exists(domain) => tally.add(domain, 1),
            Some(domain) => {
                let name = ground.text(column, domain).to_owned();
                *outside.entry(name).or_default() += 1;
            }
            // A pod of a node that is gone is about to be deleted.
            None => {
                let node = Name::new("", Arc::clone(node));
                n_unlabelled += u32::from(tables.get::<Node>(&node).is_some());
            }
        }
    }
    let counts = tally.existing().map(|domain| {
        let n = u32::try_from(tally.count(domain)).unwrap_or(0);
        (ground.text(column, domain).to_owned(), n)
    });
    Found {
        counts: counts.collect(),
        outside,
        n_unlabelled,
        skew: u32::try_from(tally.skew()).unwrap_or(0),
    }
}

/// `a: 4, b: 4, c: 4, skew 4 - 4 = 0`, at most `DOMAINS_TOLD` by name.
pub fn text(counts: &ByDomain, skew: u32) -> String {
    let (max, min) = (counts.values().max(), counts.values().min());
    match (max, min) {
        (Some(max), Some(min)) => format!("{}, skew {max} - {min} = {skew}", listed(counts)),
        _ => NO_DOMAIN.to_owned(),
    }
}

const NO_DOMAIN: &str = "no domain has this key";

/// `a: 4, b: 4`
fn listed(counts: &ByDomain) -> String {
    let told = counts.iter().take(DOMAINS_TOLD);
    let mut parts: Vec<String> = told.map(|(domain, n)| format!("{domain}: {n}")).collect();
    if counts.len() > DOMAINS_TOLD {
        parts.push(format!("… {} more", counts.len() - DOMAINS_TOLD));
    }
    parts.join(", ")
}

/// Domains that a verdict lists by name.
const DOMAINS_TOLD: usize = 20;

/// The skew of counts, from `strew-spread`.
pub fn skew(counts: &ByDomain) -> u32 {
    let mut tally = Tally::default();
    for (index, count) in counts.values().enumerate() {
        let domain = DomainIdx(index as u32);
        tally.add_place(domain);
        tally.add(domain, i32::try_from(*count).unwrap_or(i32::MAX));
    }
    u32::try_from(tally.skew()).unwrap_or(0)
}

/// The domain of the pod's node; `None` if the pod is on no node, or its node has no such label.
pub fn domain_of<'a>(tables: &'a Tables, pod: &Pod, key: &str) -> Option<&'a str> {
    let node = pod.node.as_ref()?;
    let node = tables.get::<Node>(&Name::new("", Arc::clone(node)))?;
    node.meta.label(key)
}

/// True if the counts are the wanted ones.
pub fn agree(wanted: &Counts, found: &ByDomain) -> bool {
    match wanted {
        Counts::Multiset(wanted) => {
            let mut found: Vec<u32> = found.values().copied().collect();
            found.sort_unstable();
            found == *wanted
        }
        // A domain that the claim does not name must hold no pod; a domain that it names with 0 may be missing.
        Counts::Exact(wanted) => {
            let of = |counts: &BTreeMap<String, u32>, domain: &str| {
                counts.get(domain).copied().unwrap_or(0)
            };
            let domains = wanted.keys().chain(found.keys());
            domains
                .into_iter()
                .all(|domain| of(wanted, domain) == of(found, domain))
        }
    }
}
