//! How even a selection came out. Source: spec/placement §3.7, "Reporting".

use strew_model::{Interner, Symbol};

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
    /// Its `maxSkew`.
    pub max_skew: i32,
    /// No limit and no weight took part: the clusters that are missing lack the key.
    pub by_key_only: bool,
    /// Clusters that its or another limit leaves out, or a weight of 0.
    pub blocked: usize,
    /// Clusters that lack the key of a hard term.
    pub lacking: usize,
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
    }
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
    let level_of = |node: NodeId| selector.tree.nodes[node as usize].level;
    let mut first: Option<usize> = None;
    let mut blocked = 0;
    for (leaf, _) in selector.left() {
        blocked += 1;
        let level = selector.full_at(leaf.node).map(level_of);
        first = first.into_iter().chain(level).min();
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
    let level = &levels[first.or(ineligible)?];
    Some(Limited {
        key: level.key,
        max_skew: level.limit.max_skew,
        by_key_only: first.is_none() && !weightless,
        blocked,
        lacking,
    })
}
