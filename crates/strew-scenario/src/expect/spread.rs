//! Counts and skew by domain.
//!
//! A pod counts where its node is, from its binding until somebody asks that it goes. The domains are the values of the
//! key on nodes that the pods' required node affinity admits (and whose taints they tolerate, where a constraint of
//! theirs on that key honours taints), also those that hold none; the skew is `strew-spread`'s.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, TopologySpreadConstraint};
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Node, Pod};
use strew_apiserver::workloads::{Eligibility, NodeView};
use strew_sim::Simulation;
use strew_spread::{DomainIdx, Tally};

use super::{Verdict, subject};
use crate::format::{Counts, SpreadClaim};

/// Pods per domain; every domain that counts is there.
pub type ByDomain = BTreeMap<String, u32>;

/// Judges a claim.
pub fn judge(simulation: &Simulation, claim: &SpreadClaim) -> Verdict {
    let tables = simulation.server().tables();
    let mut pods = subject::pods(tables, &claim.of);
    subject::keep_revision(tables, &claim.of, claim.revision, &mut pods);
    pods.retain(|pod| !pod.meta.is_terminating());
    let counts = by_domain(tables, &pods, &claim.by);
    let skew = skew(&counts);
    let mut wrong = Vec::new();
    if claim
        .counts
        .as_ref()
        .is_some_and(|wanted| !agree(wanted, &counts))
    {
        wrong.push("counts");
    }
    if claim.skew.is_some_and(|wanted| wanted != skew)
        || claim.skew_max.is_some_and(|max| skew > max)
    {
        wrong.push("skew");
    }
    Verdict::new(wrong.is_empty(), text(&counts, skew)).counted(counts)
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

/// Domains told by name.
const DOMAINS_TOLD: usize = 20;

/// The skew of counts: `strew-spread`'s.
pub fn skew(counts: &ByDomain) -> u32 {
    let mut tally = Tally::default();
    for (index, count) in counts.values().enumerate() {
        let domain = DomainIdx(index as u32);
        tally.add_place(domain);
        tally.add(domain, i32::try_from(*count).unwrap_or(i32::MAX));
    }
    u32::try_from(tally.skew()).unwrap_or(0)
}

/// Pods by the domains of a key.
pub fn by_domain(tables: &Tables, pods: &[&Arc<Pod>], key: &str) -> ByDomain {
    let mut counts = domains(tables, pods.first().map(|pod| &*pod.spec), key);
    for pod in pods {
        if let Some(domain) = domain_of(tables, pod, key) {
            *counts.entry(domain.to_owned()).or_default() += 1;
        }
    }
    counts
}

/// The domain that a pod is in.
pub fn domain_of<'a>(tables: &'a Tables, pod: &Pod, key: &str) -> Option<&'a str> {
    let node = pod.node.as_ref()?;
    let node = tables.get::<Node>(&Name::new("", Arc::clone(node)))?;
    node.meta.label(key)
}

fn domains(tables: &Tables, spec: Option<&PodSpec>, key: &str) -> ByDomain {
    let constraint = spec.and_then(|spec| {
        let mut all = spec.topology_spread_constraints.iter().flatten();
        all.find(|constraint| constraint.topology_key == key)
    });
    let honors = |policy: fn(&TopologySpreadConstraint) -> Option<&str>, usual: bool| {
        let given = constraint.and_then(policy);
        given.map_or(usual, |policy| policy == "Honor")
    };
    let honors_affinity = honors(|c| c.node_affinity_policy.as_deref(), true);
    let honors_taints = honors(|c| c.node_taints_policy.as_deref(), false);
    let is_narrow = spec.is_some_and(|spec| {
        spec.node_selector.is_some()
            || spec
                .affinity
                .as_ref()
                .is_some_and(|a| a.node_affinity.is_some())
    });
    let mut eligibility = spec
        .filter(|_| honors_taints || honors_affinity && is_narrow)
        .map(Eligibility::of);
    let mut counts = ByDomain::new();
    for node in tables.of::<Node>().iter() {
        let Some(domain) = node.meta.label(key) else {
            continue;
        };
        if counts.contains_key(domain) {
            continue;
        }
        let counts_it = eligibility.as_mut().is_none_or(|eligibility| {
            let view = NodeView {
                name: &node.meta.name.name,
                labels: Some(&node.meta.labels),
                taints: node.spec.taints.as_deref().unwrap_or_default(),
            };
            (!honors_affinity || eligibility.affinity_matches(view))
                && (!honors_taints || eligibility.tolerates(view))
        });
        if counts_it {
            counts.insert(domain.to_owned(), 0);
        }
    }
    counts
}

/// Whether counts are the wanted ones.
pub fn agree(wanted: &Counts, found: &ByDomain) -> bool {
    match wanted {
        Counts::Multiset(wanted) => {
            let mut found: Vec<u32> = found.values().copied().collect();
            found.sort_unstable();
            found == *wanted
        }
        // A domain that is not named must hold none, and one that is named may be missing only if it is to hold none.
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
