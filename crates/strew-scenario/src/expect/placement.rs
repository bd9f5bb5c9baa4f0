//! Claims about the clusters of a Placement, and how they spread.
//!
//! A Placement holds a cluster if one of its PlacementDecisions names it, which is what a consumer sees. The domains of
//! a key are its values on the clusters that pass the placement's filters, with those that hold no cluster. If the key
//! is one of the placement's spread terms, topologies below different parents are measured apart, as the spread policy
//! does.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_sim::Fleet;
use strew_view::placement::PlacementView;

use super::spread::{self, ByDomain, agree};
use super::{Present, Verdict};
use crate::format::{Clusters, PlacementClaim};

type Held = BTreeSet<Arc<str>>;

/// Judges a claim; `before` holds the objects at the end of the last step.
pub fn judge(present: &dyn Present, claim: &PlacementClaim, before: Option<&Tables>) -> Verdict {
    let tables = present.server().tables();
    let namespace = claim.of.namespace.as_deref().unwrap_or_default();
    let of = (namespace, claim.of.name.as_str());
    let Some(view) = PlacementView::of(tables, of.0, of.1) else {
        return Verdict::new(false, "there is no such placement");
    };
    let held = held(&view);
    let fleet = Fleet::of(present.server(), present.now());
    let mut judged = Judged {
        wrong: Vec::new(),
        told: vec![chosen(&held) + &why_none(&view, &held)],
    };
    judged.clusters(claim, &held, &fleet, of);
    let keys: BTreeSet<&String> = claim.counts.keys().chain(claim.skew.keys()).collect();
    let mut counted = None;
    for key in keys {
        let topologies = fleet.topologies(of, key, &held);
        let mut counts = ByDomain::new();
        for (domain, n) in topologies.values().flatten() {
            *counts.entry(domain.clone()).or_default() += n;
        }
        let skew = topologies.values().map(spread::skew).max().unwrap_or(0);
        let is_wrong = claim.counts.get(key).is_some_and(|c| !agree(c, &counts));
        judged.note(is_wrong, "counts");
        judged.note(claim.skew.get(key).is_some_and(|s| *s != skew), "skew");
        judged
            .told
            .push(format!("{key} {}", by_domain(&counts, skew)));
        counted.get_or_insert(counts);
    }
    if let Some(max) = claim.moved_max {
        judged.moved(
            max,
            &held,
            before.map(|before| {
                let before = PlacementView::of(before, of.0, of.1);
                before.as_ref().map(self::held).unwrap_or_default()
            }),
        );
    }
    let verdict = Verdict::new(judged.wrong.is_empty(), judged.told.join("; "));
    match counted {
        Some(counts) => verdict.counted(counts),
        None => verdict,
    }
}

fn held(view: &PlacementView) -> Held {
    view.clusters().map(|(name, _)| name.into()).collect()
}

/// The claims that failed, and the text of the verdict.
struct Judged {
    wrong: Vec<&'static str>,
    told: Vec<String>,
}

impl Judged {
    fn note(&mut self, is_wrong: bool, what: &'static str) {
        if is_wrong {
            self.wrong.push(what);
        }
    }

    fn clusters(&mut self, claim: &PlacementClaim, held: &Held, fleet: &Fleet, of: (&str, &str)) {
        match &claim.clusters {
            None => {}
            Some(Clusters::Count(range)) => {
                let n = u32::try_from(held.len()).unwrap_or(u32::MAX);
                self.note(!range.contains(n), "clusters");
            }
            Some(Clusters::Exact(wanted)) => {
                let is_held = |name: &&String| held.contains(name.as_str());
                let is_wanted = |name: &&Arc<str>| wanted.iter().any(|w| **w == ***name);
                let missing: Vec<&String> = wanted.iter().filter(|w| !is_held(w)).collect();
                let surplus = held.iter().find(|name| !is_wanted(name));
                self.note(!missing.is_empty() || surplus.is_some(), "clusters");
                for name in missing.into_iter().take(CLUSTERS_TOLD) {
                    let why = fleet.why(of.0, of.1, name).unwrap_or_default();
                    self.told.push(format!("{name}: {why}"));
                }
            }
        }
    }

    fn moved(&mut self, max: u32, held: &Held, before: Option<Held>) {
        let Some(before) = before else {
            self.note(true, "moved");
            self.told
                .push("there is no step before this one".to_owned());
            return;
        };
        let gone: Vec<&str> = before.difference(held).map(|name| &**name).collect();
        self.note(u32::try_from(gone.len()).is_ok_and(|n| n > max), "moved");
        self.told.push(match gone.len() {
            0 => "none was given up".to_owned(),
            n => format!("{n} given up: {}", gone.join(", ")),
        });
    }
}

/// Clusters that a verdict lists by name; the rest is counted.
const CLUSTERS_TOLD: usize = 10;

fn chosen(held: &Held) -> String {
    let told: Vec<&str> = held
        .iter()
        .take(CLUSTERS_TOLD)
        .map(|name| &**name)
        .collect();
    let more = match held.len().saturating_sub(CLUSTERS_TOLD) {
        0 => String::new(),
        n => format!(", … {n} more"),
    };
    match held.len() {
        0 => "no cluster".to_owned(),
        n => format!("{n} clusters: {}{more}", told.join(", ")),
    }
}

/// The reason of a Placement without clusters, in brackets: ` (NoManagedClusterSetBindings)`.
fn why_none(view: &PlacementView, held: &Held) -> String {
    let status = view.placement.status.as_ref().filter(|_| held.is_empty());
    let mut conditions = status
        .into_iter()
        .flat_map(|s| s.conditions.iter().flatten());
    let unsatisfied = conditions.find(|c| c.type_ == "PlacementSatisfied" && c.status == "False");
    unsatisfied.map_or(String::new(), |condition| {
        format!(" ({})", condition.reason)
    })
}

/// As for pods, without the difference: below several parents the skew is not the largest count less the smallest.
fn by_domain(counts: &ByDomain, skew: u32) -> String {
    let parts: Vec<String> = counts.iter().map(|(d, n)| format!("{d}: {n}")).collect();
    match parts.is_empty() {
        true => "is no key of any cluster in question".to_owned(),
        false => format!("{}, skew {skew}", parts.join(", ")),
    }
}
