//! The topologies that may be opened, if a term bounds the number of topologies that a selection uses.
//!
//! The first pick in a topology opens it. When `maxGroups` topologies of a level are open, the other ones of that level
//! are closed, and so are topologies above and below in which nothing can be picked any more: they count in no
//! comparison. Before that, a topology is too small to be opened if `maxGroups` topologies with it would hold fewer
//! clusters than asked for, and without it they would not. Source: spec/placement §3.10.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use strew_spread::level::Share;

use super::levels::Level;
use super::tree::{NodeId, ROOT, Tree};

/// Whether the first cluster of a topology may be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It may be picked, or is picked already.
    Free,
    /// With it, `maxGroups` topologies would hold too few clusters.
    TooSmall,
    /// It may never be picked: `maxGroups` topologies of this level are open.
    Closed(u32),
}

/// The largest number of clusters that siblings hold together, if none holds more than its count.
fn reach(level: &Level, shares: &[Share]) -> i32 {
    let weighted = shares.iter().filter(|share| share.weight > 0);
    let least = weighted.copied().min_by(|a, b| a.cmp_fill(*b));
    let held = |share: &Share| match least.filter(|_| level.hard) {
        Some(least) => share
            .count
            .min(share.fair(least).saturating_add(level.limit.max_skew)),
        None => share.count,
    };
    shares.iter().map(held).fold(0, i32::saturating_add)
}

impl Tree<'_> {
    /// The state before the first pick.
    pub(super) fn bound_openings(&mut self) {
        if self.levels.iter().all(|level| level.groups.max.is_none()) {
            return;
        }
        for node in &mut self.nodes {
            node.room = i32::try_from(node.own).unwrap_or(i32::MAX);
        }
        // A group of siblings comes after the group of their parent.
        for group in (0..self.groups.len()).rev() {
            let siblings = &self.groups[group];
            let shares: Vec<Share> = siblings.members.iter().map(|&m| self.room(m)).collect();
            let room = reach(&self.levels[siblings.level], &shares);
            let Some(&member) = siblings.members.first() else {
                continue;
            };
            let parent = self.nodes[member as usize].parent;
            let parent = &mut self.nodes[parent as usize];
            parent.room = parent.room.saturating_add(room);
        }
        self.reopen();
    }

    /// The number of clusters that a node can hold, and its weight.
    fn room(&self, node: NodeId) -> Share {
        let node = &self.nodes[node as usize];
        Share {
            count: node.room,
            weight: node.weight,
        }
    }

    /// A topology was opened: other ones may now be closed, or too small.
    pub(super) fn reopen(&mut self) {
        let mut closes = false;
        let levels = 0..self.levels.len();
        for level in levels.clone() {
            let max = self.levels[level].groups.max;
            if max.is_some_and(|max| self.used[level] >= max) {
                closes |= self.close(level);
            }
        }
        if closes {
            self.refresh_all();
        }
        levels.for_each(|level| self.weigh(level));
    }

    /// Closes the topologies of a level that are not open. Returns true if there were any.
    fn close(&mut self, level: usize) -> bool {
        let by = Opening::Closed(level as u32);
        let is_closed = |opening: Opening| matches!(opening, Opening::Closed(_));
        let mut closed: Vec<NodeId> = Vec::new();
        for id in 1..self.nodes.len() as NodeId {
            let node = &self.nodes[id as usize];
            let above = self.nodes[node.parent as usize].opening;
            let is_here = node.level == level && self.count(id) == 0;
            if !is_closed(node.opening) && (is_here || is_closed(above)) {
                self.nodes[id as usize].opening = by;
                closed.push(id);
            }
        }
        for &id in &closed {
            let n = self.nodes[id as usize].own;
            if n == 0 {
                continue;
            }
            for above in self.path(id) {
                let node = &self.nodes[above as usize];
                let siblings = &mut self.groups[node.group as usize];
                siblings.open.remove_places(node.domain, n);
                let is_dead =
                    siblings.open.places(node.domain) == 0 && siblings.all.count(node.domain) == 0;
                if is_dead {
                    let places = siblings.all.places(node.domain);
                    siblings.all.remove_places(node.domain, places);
                    let opening = &mut self.nodes[above as usize].opening;
                    if !is_closed(*opening) {
                        *opening = by;
                    }
                }
            }
            let lacks = self.depth(id);
            if let Some(keyless) = self.keyless.get_mut(lacks) {
                *keyless -= n;
            }
        }
        !closed.is_empty()
    }

    /// Computes which topologies of a level are too small to be opened.
    fn weigh(&mut self, level: usize) {
        let (Some(max), Some(asked)) = (self.levels[level].groups.max, self.asked) else {
            return;
        };
        let left = max.saturating_sub(self.used[level]) as usize;
        let (mut open, mut others) = (Vec::new(), Vec::new());
        let mut outside = 0i32;
        for id in 0..self.nodes.len() as NodeId {
            let node = &self.nodes[id as usize];
            if id == ROOT || node.level < level {
                outside = outside.saturating_add(i32::try_from(node.own).unwrap_or(i32::MAX));
            } else if node.level == level && self.count(id) > 0 {
                open.push(id);
            } else if node.level == level && !matches!(node.opening, Opening::Closed(_)) {
                others.push(id);
            }
        }
        if left == 0 {
            return;
        }
        others.sort_by_key(|&id| (Reverse(self.nodes[id as usize].room), id));
        let first = others.len().min(left);
        let (largest, smaller) = others.split_at(first);
        let most = |tree: &Self, last: Option<NodeId>| {
            let largest = &largest[..largest.len() - usize::from(last.is_some())];
            let chosen = open.iter().chain(largest).copied().chain(last);
            outside.saturating_add(tree.reach_of(level, chosen))
        };
        let wanted = most(self, None).min(asked);
        let mut known: FxHashMap<(u32, i32, u32), bool> = FxHashMap::default();
        let mut openings: Vec<(NodeId, Opening)> = Vec::with_capacity(others.len());
        openings.extend(largest.iter().map(|&id| (id, Opening::Free)));
        for &id in smaller {
            let node = &self.nodes[id as usize];
            let kind = (node.group, node.room, node.weight);
            let is_enough = *known
                .entry(kind)
                .or_insert_with(|| most(self, Some(id)) >= wanted);
            let opening = match is_enough {
                true => Opening::Free,
                false => Opening::TooSmall,
            };
            openings.push((id, opening));
        }
        for (id, opening) in openings {
            self.nodes[id as usize].opening = opening;
        }
    }

    /// The largest number of clusters that these nodes of a level hold together.
    fn reach_of(&self, level: usize, nodes: impl Iterator<Item = NodeId>) -> i32 {
        let mut shares: FxHashMap<u32, Vec<Share>> = FxHashMap::default();
        for node in nodes {
            let group = self.nodes[node as usize].group;
            shares.entry(group).or_default().push(self.room(node));
        }
        let level = &self.levels[level];
        #[allow(clippy::iter_over_hash_type, reason = "a sum has no order")]
        let sums = shares.values().map(|shares| reach(level, shares));
        sums.fold(0, i32::saturating_add)
    }
}
