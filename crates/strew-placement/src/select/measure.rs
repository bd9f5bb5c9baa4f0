//! Measures how even a selection is. Source: spec/placement §3.7, "Reporting", and §3.10.

use strew_model::{Interner, Symbol};
use strew_spread::SkewCheck;

use super::even_spread::{EvenSpread, Leaf};
use super::tree::{NodeId, Place};

/// The spread of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadReport {
    /// The number of selected clusters.
    pub selected: usize,
    /// The number of clusters asked for.
    pub asked: usize,
    /// The number of topologies of the last term that hold a selected cluster.
    pub topologies: usize,
    /// The number of selected clusters that lack a key, by the first key that they lack; only for soft terms.
    pub lacking: Vec<(Symbol, usize)>,
    /// Keys and values of the specification that no cluster that passes the filters has.
    pub unmet: Vec<Unmet>,
    /// For each term, its key and the largest skew.
    pub skews: Vec<(Symbol, i64)>,
    /// Why fewer clusters were selected than asked for; `None` unless a hard term is the reason.
    pub limited: Option<Limited>,
    /// The first term whose skew is larger than its `maxSkew`, with the topology of the largest skew.
    pub exceeded: Option<Exceeded>,
    /// The terms with bounds on the number of topologies.
    pub groups: Vec<GroupsUsed>,
}

impl SpreadReport {
    /// The first term with fewer topologies in use than its `minGroups`; `None` if no cluster is asked for.
    pub fn too_few(&self) -> Option<&GroupsUsed> {
        let mut groups = self.groups.iter();
        groups.find(|groups| self.asked > 0 && groups.used < groups.min)
    }
}

/// The number of topologies of a term that a selection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupsUsed {
    /// The term's key.
    pub key: Symbol,
    /// The number in use.
    pub used: u32,
    /// Its `minGroups`; 0 if it has none.
    pub min: u32,
    /// Its `maxGroups`; `None` if it has none.
    pub max: Option<u32>,
}

/// The rule of a term that excludes a cluster from a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// `maxSkew`.
    MaxSkew(SkewCheck),
    /// `maxGroups`: that number of topologies is in use, and the cluster is in another one.
    MaxGroups(u32),
    /// `maxGroups`: that number of topologies, the cluster's own among them, would hold too few clusters.
    TooSmall(u32),
    /// `minGroups`: the remaining picks are reserved for topologies that are not in use.
    MinGroups(u32),
}

/// A key or value of a term that no cluster has. Often a typing error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The term's key.
    pub key: Symbol,
    /// True for claims, false for labels.
    pub from_claims: bool,
    /// A value that has a weight, with the weight; `None` if no cluster has the key.
    pub value: Option<(Symbol, i64)>,
}

/// A hard term excluded clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// The first such term.
    pub key: Symbol,
    /// Its rule.
    pub by: LimitedBy,
    /// The number of clusters excluded by its or another limit, or by a weight of 0.
    pub blocked: usize,
    /// The number of clusters that lack the key of a hard term.
    pub lacking: usize,
}

/// The rule of a hard term that excludes clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitedBy {
    /// `maxSkew`, or a weight of 0.
    MaxSkew(i32),
    /// `maxGroups`.
    MaxGroups(u32),
    /// `minGroups`.
    MinGroups(u32),
    /// No limit: the missing clusters lack the key.
    Key,
}

/// A topology that holds too many clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The term's key.
    pub key: Symbol,
    /// The topology's value.
    pub value: Symbol,
    /// The number of its clusters.
    pub there: i32,
    /// The number that it is compared with.
    pub minimum: i32,
}

/// Measures a completed selection.
pub(crate) fn of(selector: &EvenSpread<'_>, asked: usize, names: &Interner) -> SpreadReport {
    let levels = selector.tree.levels;
    let mut worst: Vec<Option<(i64, NodeId, i32)>> = vec![None; levels.len()];
    for id in 1..selector.tree.nodes.len() as NodeId {
        let Some((skew, minimum)) = selector.tree.skew(id) else {
            continue;
        };
        let worst = &mut worst[selector.tree.nodes[id as usize].level];
        let further = |&(known, other, _): &(i64, NodeId, i32)| {
            skew > known || skew == known && before(selector, names, id, other)
        };
        if worst.as_ref().is_none_or(further) {
            *worst = Some((skew, id, minimum));
        }
    }
    let skews = levels.iter().zip(&worst);
    let skews = skews.map(|(level, worst)| (level.key, worst.map_or(0, |(skew, ..)| skew)));
    let exceeded = levels.iter().zip(&worst).find_map(|(level, worst)| {
        let (_, id, minimum) = worst.filter(|w| w.0 > i64::from(level.limit.max_skew))?;
        Some(Exceeded {
            key: level.key,
            value: selector.tree.nodes[id as usize].value,
            there: selector.tree.count(id),
            minimum,
        })
    });
    SpreadReport {
        selected: selector.picks.len(),
        asked,
        topologies: picked(selector)
            .filter(|l| selector.tree.is_full_tuple(l.node))
            .count(),
        lacking: lacking(selector),
        unmet: unmet(selector),
        skews: skews.collect(),
        limited: limited(selector, asked),
        exceeded,
        groups: groups(selector),
    }
}

fn groups(selector: &EvenSpread<'_>) -> Vec<GroupsUsed> {
    let levels = selector.tree.levels.iter().zip(&selector.tree.used);
    let used = levels.map(|(level, &used)| GroupsUsed {
        key: level.key,
        used,
        min: level.groups.min,
        max: level.groups.max,
    });
    used.filter(|groups| groups.min > 0 || groups.max.is_some())
        .collect()
}

fn picked<'s>(selector: &'s EvenSpread<'_>) -> impl Iterator<Item = &'s Leaf> {
    selector.leaves.iter().filter(|leaf| leaf.picked() > 0)
}

fn lacking(selector: &EvenSpread<'_>) -> Vec<(Symbol, usize)> {
    let levels = selector.tree.levels;
    let mut counts = vec![0; levels.len()];
    for leaf in picked(selector) {
        if let Some(level) = selector.tree.lacks(leaf.node) {
            counts[level] += leaf.picked();
        }
    }
    let lacking = levels.iter().zip(counts).filter(|&(_, n)| n > 0);
    lacking.map(|(level, n)| (level.key, n)).collect()
}

fn unmet(selector: &EvenSpread<'_>) -> Vec<Unmet> {
    if selector.places.is_empty() {
        return Vec::new();
    }
    let levels = selector.tree.levels.iter().zip(&selector.tree.seen);
    let unmet = levels.flat_map(|(level, seen)| {
        let of = |value| Unmet {
            key: level.key,
            from_claims: level.source().1,
            value,
        };
        match seen.key {
            false => vec![of(None)],
            true => seen.unmet.iter().map(|&value| of(Some(value))).collect(),
        }
    });
    unmet.collect()
}

/// True if one node's tuple comes before another's.
fn before(selector: &EvenSpread<'_>, names: &Interner, a: NodeId, b: NodeId) -> bool {
    let text = |&id: &NodeId| names.text(selector.tree.nodes[id as usize].value);
    let (a, b) = (selector.tree.path(a), selector.tree.path(b));
    a.iter().map(text).lt(b.iter().map(text))
}

fn limited(selector: &EvenSpread<'_>, asked: usize) -> Option<Limited> {
    if selector.picks.len() >= asked {
        return None;
    }
    let levels = selector.tree.levels;
    let rule = |(level, exclusion): (usize, Exclusion)| match exclusion {
        Exclusion::MaxSkew(check) => (level, LimitedBy::MaxSkew(check.max_skew)),
        Exclusion::MaxGroups(max) | Exclusion::TooSmall(max) => (level, LimitedBy::MaxGroups(max)),
        Exclusion::MinGroups(min) => (level, LimitedBy::MinGroups(min)),
    };
    let mut first: Option<(usize, LimitedBy)> = None;
    let mut blocked = 0;
    for (leaf, _) in selector.left() {
        blocked += 1;
        let by = selector.exclusion(leaf.node, None).map(rule);
        first = first.into_iter().chain(by).min();
    }
    let mut lacking = 0;
    let mut weightless = false;
    let mut ineligible: Option<usize> = None;
    for place in selector.places {
        let level = match *place {
            Place::At(_) => continue,
            Place::Lacks(level) => {
                lacking += 1;
                level as usize
            }
            Place::Weightless(level) => {
                blocked += 1;
                weightless = true;
                level as usize
            }
        };
        ineligible = ineligible.into_iter().chain([level]).min();
    }
    let by_key = |level: usize| match weightless {
        true => (level, LimitedBy::MaxSkew(levels[level].limit.max_skew)),
        false => (level, LimitedBy::Key),
    };
    let (level, by) = first.or(ineligible.map(by_key))?;
    Some(Limited {
        key: levels[level].key,
        by,
        blocked,
        lacking,
    })
}
