//! How even a selection came out. Source: spec/placement §3.7, "Reporting", and §3.10.

use strew_model::{Interner, Symbol};
use strew_spread::SkewCheck;

use super::even_spread::{EvenSpread, Leaf};
use super::tree::{NodeId, Place};

/// What there is to say about the spread of a selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpreadReport {
    /// Clusters selected.
    pub selected: usize,
    /// Clusters asked for.
    pub asked: usize,
    /// Topologies of the last term that hold a selected cluster.
    pub topologies: usize,
    /// Selected clusters that lack a key, by the first key that they lack; soft terms only.
    pub lacking: Vec<(Symbol, usize)>,
    /// What the specification names and no cluster that passes the filters has.
    pub unmet: Vec<Unmet>,
    /// For each term, its key and the largest skew.
    pub skews: Vec<(Symbol, i64)>,
    /// Why fewer were selected than asked for, if a hard term is the reason.
    pub limited: Option<Limited>,
    /// The first term whose skew is larger than its `maxSkew`, where it is largest.
    pub exceeded: Option<Exceeded>,
    /// The terms with bounds on how many of their topologies are used.
    pub groups: Vec<GroupsUsed>,
}

impl SpreadReport {
    /// The first term of which fewer topologies are used than its `minGroups`. Where no cluster is asked for, none.
    pub fn too_few(&self) -> Option<&GroupsUsed> {
        let mut groups = self.groups.iter();
        groups.find(|groups| self.asked > 0 && groups.used < groups.min)
    }
}

/// How many topologies of a term a selection uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupsUsed {
    /// The term's key.
    pub key: Symbol,
    /// How many are used.
    pub used: u32,
    /// Its `minGroups`; 0 where it has none.
    pub min: u32,
    /// Its `maxGroups`.
    pub max: Option<u32>,
}

/// Which rule of a term keeps a cluster from a pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// `maxSkew`.
    MaxSkew(SkewCheck),
    /// `maxGroups`: so many topologies are used, and the cluster is in another one.
    MaxGroups(u32),
    /// `maxGroups`: so many topologies would hold too few clusters, the cluster's own among them.
    TooSmall(u32),
    /// `minGroups`: what is left to pick is kept for topologies that are not used.
    MinGroups(u32),
}

/// What a term names, and no cluster has. Often a mistake in writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The term's key.
    pub key: Symbol,
    /// Whether claims are meant, not labels.
    pub from_claims: bool,
    /// A value that has a weight, and the weight; `None`: no cluster has the key at all.
    pub value: Option<(Symbol, i64)>,
}

/// A hard term left clusters out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// The first term that did.
    pub key: Symbol,
    /// Its rule that did.
    pub by: LimitedBy,
    /// Clusters that its or another limit leaves out, or a weight of 0.
    pub blocked: usize,
    /// Clusters that lack the key of a hard term.
    pub lacking: usize,
}

/// Which rule of a hard term leaves clusters out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitedBy {
    /// `maxSkew`, or a weight of 0.
    MaxSkew(i32),
    /// `maxGroups`.
    MaxGroups(u32),
    /// `minGroups`.
    MinGroups(u32),
    /// No limit took part: the clusters that are missing lack the key.
    Key,
}

/// A topology that holds too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The term's key.
    pub key: Symbol,
    /// The topology's value.
    pub value: Symbol,
    /// What it holds.
    pub there: i32,
    /// What that is compared with.
    pub minimum: i32,
}

/// Measures a selection that is done.
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

/// Whether one node's tuple stands before another's.
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
