//! Claims about counts and skew by domain.
//!
//! A pod counts in the domain of its node, from its binding until its deletion is requested. [`strew_view::spread`]
//! says which domains count, empty ones included; `strew-spread` computes the skew.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod};
use strew_spread::{DomainIdx, Tally};
use strew_view::ground::Ground;

use super::{Verdict, subject};
use crate::format::{Counts, SpreadClaim};

/// Pods per domain; every domain that counts has an entry, also with 0 pods.
pub type ByDomain = BTreeMap<String, u32>;

/// Judges a claim; `ground` says which domains count.
pub fn judge(tables: &Tables, ground: &mut Ground, claim: &SpreadClaim) -> Verdict {
    let mut pods = subject::pods(tables, &claim.of);
    subject::keep_revision(tables, &claim.of, claim.revision, &mut pods);
    pods.retain(|pod| !pod.meta.is_terminating());
    let Found {
        counts,
        outside,
        skew,
    } = count(ground, &pods, &claim.by);
    let everywhere = counts.iter().chain(&outside);
    let everywhere: ByDomain = everywhere.map(|(d, n)| (d.clone(), *n)).collect();
    let mut wrong = Vec::new();
    if claim
        .counts
        .as_ref()
        .is_some_and(|wanted| !agree(wanted, &everywhere))
    {
        wrong.push("counts");
    }
    if claim.skew.is_some_and(|wanted| wanted != skew)
        || claim.skew_max.is_some_and(|max| skew > max)
    {
        wrong.push("skew");
    }
    let mut found = text(&counts, skew);
    for (domain, n) in &outside {
        found += &format!("; {domain}: {n}, which does not count");
    }
    // Counts are asked of all pods, a skew of the domains that count.
    let told = match claim.counts {
        Some(_) => everywhere,
        None => counts,
    };
    Verdict::new(wrong.is_empty(), found).counted(told)
}

/// Pods by the domains of a key.
struct Found {
    /// By domain that counts.
    counts: ByDomain,
    /// Pods in domains that do not count, because no node there counts any more.
    outside: ByDomain,
    skew: u32,
}

fn count(ground: &mut Ground, pods: &[&Arc<Pod>], key: &str) -> Found {
    let rule = ground.rule(pods.first().map(|pod| &***pod), key);
    let (column, mut tally) = ground.domains(&rule);
    let mut outside = ByDomain::new();
    for pod in pods {
        let node = pod.node.as_ref();
        match node.and_then(|node| ground.domain(column, node)) {
            Some(domain) if tally.exists(domain) => tally.add(domain, 1),
            Some(domain) => {
                let name = ground.text(column, domain).to_owned();
                *outside.entry(name).or_default() += 1;
            }
            None => {}
        }
    }
    let counts = tally.existing().map(|domain| {
        let n = u32::try_from(tally.count(domain)).unwrap_or(0);
        (ground.text(column, domain).to_owned(), n)
    });
    Found {
        counts: counts.collect(),
        outside,
        skew: u32::try_from(tally.skew()).unwrap_or(0),
    }
}

/// `a: 4, b: 4, c: 4, skew 4-4 = 0`, at most `DOMAINS_TOLD` by name.
pub fn text(counts: &ByDomain, skew: u32) -> String {
    let told = counts.iter().take(DOMAINS_TOLD);
    let mut parts: Vec<String> = told.map(|(domain, n)| format!("{domain}: {n}")).collect();
    if counts.len() > DOMAINS_TOLD {
        parts.push(format!("… {} more", counts.len() - DOMAINS_TOLD));
    }
    let (max, min) = (counts.values().max(), counts.values().min());
    match (max, min) {
        (Some(max), Some(min)) => {
            parts.push(format!("skew {max} - {min} = {skew}"));
            parts.join(", ")
        }
        _ => "no domain has this key".to_owned(),
    }
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
