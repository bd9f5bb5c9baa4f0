//! The tree of topologies: a node for each tuple of values that a cluster has. Source: spec/placement §3.3, §3.7.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use strew_model::Symbol;
use strew_spread::level::{self, Loads, Share};
use strew_spread::limit::Minimum;
use strew_spread::{DomainIdx, SkewCheck, Tally};

use super::levels::Level;
use super::openings::Opening;
use crate::facts::cluster::ClusterFact;
use crate::hub::topologies::{self, Column, Source, Tuple};
use crate::hub::{ClusterIdx, Hub};

/// A node: a tuple of values. The root, 0, is the tuple without values.
pub(crate) type NodeId = u32;

/// The root.
pub(crate) const ROOT: NodeId = 0;

/// The position of a cluster in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is at this node: its tuple ends there.
    At(NodeId),
    /// It lacks the key of this hard level, so it is not eligible.
    Lacks(u32),
    /// Its value at this hard level has weight 0, so it is not eligible.
    Weightless(u32),
}

/// A tuple of values.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) parent: NodeId,
    /// The value at its level; the root has none.
    pub(crate) value: Symbol,
    /// Its level; the root counts as one above the first.
    pub(crate) level: usize,
    /// Itself and its siblings.
    pub(super) group: u32,
    pub(super) domain: DomainIdx,
    pub(super) weight: u32,
    /// Its own part of the combined score.
    pub(crate) placed: i64,
    /// True if its own limit excludes further clusters.
    pub(crate) full: bool,
    /// Whether its first cluster may be picked.
    pub(crate) opening: Opening,
    /// The number of eligible clusters with exactly this tuple.
    pub(super) own: u32,
    /// The largest number of clusters that it and all nodes below can hold, if a level has `maxGroups`.
    pub(super) room: i32,
}

/// Nodes of one parent, with their counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Siblings {
    pub(super) level: usize,
    pub(super) members: Vec<NodeId>,
    /// The selected clusters in each.
    pub(super) all: Tally,
    /// The same counts for the nodes that still have a free cluster.
    pub(super) open: Tally,
    /// The last inputs of scores and limits, if there are no weights.
    bounds: Option<Bounds>,
}

/// The inputs of scores and limits of siblings without weights, besides their own counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    /// The smallest and the largest count of nodes that still have a free cluster.
    min: i32,
    max: i32,
    /// The largest count at which one more cluster is allowed.
    highest: i64,
    /// The lowest score of a node.
    lowest: i64,
}

/// The tree of topologies of eligible clusters, with the selected clusters in each.
#[derive(Debug, Clone)]
pub(crate) struct Tree<'a> {
    pub(crate) levels: &'a [Level],
    pub(crate) nodes: Vec<Node>,
    pub(super) groups: Vec<Siblings>,
    /// By level: the number of topologies that hold a selected cluster.
    pub(super) used: SmallVec<[u32; level::LEVELS_MAX]>,
    /// The number of clusters asked for; `None`: all.
    pub(super) asked: Option<i32>,
    /// By level: the number of clusters that are not selected and whose first missing key is the key of the level.
    /// While there are any, topologies of that level score at least 1: such clusters score 0 and come last.
    pub(super) keyless: SmallVec<[u32; level::LEVELS_MAX]>,
    /// True if the weight of `Spread` is negative. Then the highest score is the last choice, and clusters that lack a
    /// key rank like the fullest topology.
    packs: bool,
    /// By level: whether a cluster has its key, and the values with a weight of their own that no cluster has.
    pub(crate) seen: Vec<Seen>,
}

/// The keys and values of clusters at a level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// True if any cluster has the key.
    pub(crate) key: bool,
    /// Values with a weight of their own that no cluster has, with the weights.
    pub(crate) unmet: Vec<(Symbol, i64)>,
}

/// Built while a tree grows: the group of a node's children, and the child by value.
#[derive(Debug, Default)]
struct Growth {
    children: FxHashMap<(NodeId, Symbol), NodeId>,
    groups_of: FxHashMap<NodeId, u32>,
}

impl<'a> Tree<'a> {
    /// A tree with only its root.
    pub(crate) fn new(levels: &'a [Level], packs: bool) -> Self {
        let root = Node {
            parent: ROOT,
            value: strew_model::well_known::EMPTY,
            level: usize::MAX,
            group: u32::MAX,
            domain: DomainIdx(0),
            weight: 1,
            placed: 0,
            full: false,
            opening: Opening::Free,
            own: 0,
            room: 0,
        };
        Self {
            levels,
            nodes: vec![root],
            groups: Vec::new(),
            used: SmallVec::from_elem(0, levels.len()),
            asked: None,
            keyless: SmallVec::from_elem(0, levels.len()),
            packs,
            seen: levels
                .iter()
                .map(|level| Seen {
                    key: false,
                    unmet: level.weighted_values().to_vec(),
                })
                .collect(),
        }
    }

    /// Adds clusters to the tree, and computes what depends on the counts. Most clusters have the tuple of another one,
    /// so each tuple is looked up once.
    pub(crate) fn place_all(
        &mut self,
        hub: &Hub,
        clusters: &[ClusterIdx],
        asked: Option<i32>,
    ) -> Vec<Place> {
        let keys: Vec<Source> = self.levels.iter().map(Level::source).collect();
        let places = match hub.topologies.column(&keys) {
            Some(column) => self.place_by(column, clusters),
            None => self.place_by_facts(&keys, hub, clusters),
        };
        let mut here = vec![0; self.nodes.len()];
        for place in &places {
            if let Place::At(node) = *place {
                here[node as usize] += 1;
            }
        }
        for (node, n) in here.into_iter().enumerate().filter(|&(_, n)| n > 0) {
            self.nodes[node].own = n;
            for node in self.path(node as NodeId) {
                let Node { group, domain, .. } = self.nodes[node as usize];
                let group = &mut self.groups[group as usize];
                group.all.add_places(domain, n);
                group.open.add_places(domain, n);
            }
            let level = self.depth(node as NodeId);
            if let Some(keyless) = self.keyless.get_mut(level) {
                *keyless += n;
            }
        }
        self.asked = asked;
        self.bound_openings();
        self.refresh_all();
        places
    }

    /// Adds clusters whose tuples are known.
    fn place_by(&mut self, column: &Column, clusters: &[ClusterIdx]) -> Vec<Place> {
        let mut known: Vec<Option<Place>> = vec![None; column.len()];
        let mut growth = Growth::default();
        let place = |&idx: &ClusterIdx| {
            let (number, tuple) = column.tuple(idx);
            *known[number].get_or_insert_with(|| self.place(tuple, &mut growth))
        };
        clusters.iter().map(place).collect()
    }

    /// Adds clusters, with the values that the clusters themselves have.
    fn place_by_facts(
        &mut self,
        keys: &[Source],
        hub: &Hub,
        clusters: &[ClusterIdx],
    ) -> Vec<Place> {
        let mut known: FxHashMap<Tuple, Place> = FxHashMap::default();
        let mut growth = Growth::default();
        let place = |cluster: &ClusterFact| {
            let values: Tuple = keys
                .iter()
                .map(|&key| topologies::value(cluster, key))
                .collect();
            let known = known.entry(values);
            *known.or_insert_with_key(|values| self.place(values, &mut growth))
        };
        let facts = clusters.iter().filter_map(|&idx| hub.cluster(idx));
        facts.map(place).collect()
    }

    /// The position of a cluster with these values.
    fn place(&mut self, read: &[Option<Symbol>], growth: &mut Growth) -> Place {
        for (seen, value) in self.seen.iter_mut().zip(read) {
            if let Some(value) = *value {
                seen.key = true;
                seen.unmet.retain(|&(unmet, _)| unmet != value);
            }
        }
        let mut values: SmallVec<[Symbol; level::LEVELS_MAX]> = SmallVec::new();
        let mut ended = false;
        for (i, (level, value)) in self.levels.iter().zip(read).enumerate() {
            match *value {
                None if level.hard => return Place::Lacks(i as u32),
                None => ended = true,
                Some(value) if level.hard && level.weight(value) == 0 => {
                    return Place::Weightless(i as u32);
                }
                Some(value) if !ended => values.push(value),
                Some(_) => {}
            }
        }
        let mut node = ROOT;
        for (i, &value) in values.iter().enumerate() {
            node = self.child(node, i, value, growth);
        }
        Place::At(node)
    }

    /// Computes what depends on the counts, for all nodes.
    pub(super) fn refresh_all(&mut self) {
        (0..self.groups.len()).for_each(|group| self.refresh(group, None));
    }

    /// Selects a cluster at this node.
    pub(crate) fn select(&mut self, at: NodeId) {
        let mut node = at;
        let mut opens = false;
        while node != ROOT {
            let Node {
                parent,
                group,
                domain,
                ..
            } = self.nodes[node as usize];
            let siblings = &mut self.groups[group as usize];
            siblings.all.add(domain, 1);
            siblings.open.add(domain, 1);
            siblings.open.remove_place(domain);
            let (is_first, level) = (siblings.all.count(domain) == 1, siblings.level);
            self.refresh(group as usize, Some(node));
            if is_first {
                self.used[level] += 1;
                self.nodes[node as usize].opening = Opening::Free;
                opens = true;
            }
            node = parent;
        }
        let level = self.depth(at);
        if let Some(keyless) = self.keyless.get_mut(level) {
            *keyless -= 1;
            if *keyless == 0 {
                let groups = (0..self.groups.len()).filter(|&g| self.groups[g].level == level);
                let groups: Vec<usize> = groups.collect();
                groups
                    .into_iter()
                    .for_each(|group| self.refresh(group, None));
            }
        }
        if opens {
            self.reopen();
        }
    }

    /// The number of values of a node's tuple: the level of the first key that clusters at it lack.
    pub(super) fn depth(&self, node: NodeId) -> usize {
        match node {
            ROOT => 0,
            node => self.nodes[node as usize].level + 1,
        }
    }

    /// True if a node's tuple has a value for every level.
    pub(crate) fn is_full_tuple(&self, node: NodeId) -> bool {
        self.depth(node) == self.levels.len()
    }

    /// The first key that clusters at a node lack.
    pub(crate) fn lacks(&self, node: NodeId) -> Option<usize> {
        Some(self.depth(node)).filter(|&level| level < self.levels.len())
    }

    /// The lowest score of a topology of a level.
    fn lowest(&self, level: usize) -> i64 {
        i64::from(self.keyless[level] > 0 && !self.packs)
    }

    /// The number of selected clusters at a node and below; the root is not counted.
    pub(crate) fn count(&self, node: NodeId) -> i32 {
        let node = &self.nodes[node as usize];
        self.groups[node.group as usize].all.count(node.domain)
    }

    /// The weight of a node; `None` if its level has no weights.
    pub(crate) fn weight(&self, node: NodeId) -> Option<u32> {
        let node = &self.nodes[node as usize];
        self.levels[node.level].weighted().then_some(node.weight)
    }

    /// The path to a node, from the first level down.
    pub(crate) fn path(&self, node: NodeId) -> SmallVec<[NodeId; level::LEVELS_MAX]> {
        let mut path = SmallVec::new();
        let mut at = node;
        while at != ROOT {
            path.push(at);
            at = self.nodes[at as usize].parent;
        }
        path.reverse();
        path
    }

    /// The values of a node's tuple.
    pub(crate) fn tuple(&self, node: NodeId) -> Vec<Symbol> {
        let path = self.path(node);
        path.iter().map(|&n| self.nodes[n as usize].value).collect()
    }

    /// A node's part of the combined score, and its score from 0 to 63.
    pub(crate) fn score(&self, node: NodeId) -> (i64, i64) {
        let node = &self.nodes[node as usize];
        let unit = level::placed(1, node.level, self.levels.len());
        (node.placed, node.placed / unit)
    }

    /// The verdict of a node's own level on one more cluster below it, with its numbers.
    pub(crate) fn check(&self, node: NodeId) -> SkewCheck {
        let Node {
            level,
            group,
            domain,
            weight,
            ..
        } = self.nodes[node as usize];
        let (level, siblings) = (&self.levels[level], &self.groups[group as usize]);
        let mut check = level.limit.check(&siblings.all, domain, true);
        if let (true, Some(least)) = (level.weighted(), self.least(siblings)) {
            let own = Share {
                count: check.there,
                weight,
            };
            check.minimum = Minimum::Emptiest(own.fair(least));
        }
        check
    }

    /// The present skew of a node, and the count that it is compared with; `None` if its weight is 0, or if it can hold
    /// no cluster.
    pub(crate) fn skew(&self, node: NodeId) -> Option<(i64, i32)> {
        let Node {
            weight, opening, ..
        } = self.nodes[node as usize];
        if weight == 0 || matches!(opening, Opening::Closed(_)) {
            return None;
        }
        let check = SkewCheck {
            self_match: false,
            ..self.check(node)
        };
        Some((check.skew(), check.minimum.value()))
    }

    /// The sibling with a weight that is filled least.
    fn least(&self, siblings: &Siblings) -> Option<Share> {
        let shares = self.shares(siblings, &siblings.all);
        shares.min_by(|a, b| a.cmp_fill(*b))
    }

    fn shares<'t>(
        &'t self,
        siblings: &'t Siblings,
        tally: &'t Tally,
    ) -> impl Iterator<Item = Share> + 't {
        let weight = |d: DomainIdx| self.nodes[siblings.members[d.index()] as usize].weight;
        let share = move |d| Share {
            count: tally.count(d),
            weight: weight(d),
        };
        tally.existing().map(share).filter(|share| share.weight > 0)
    }

    /// Computes scores and limits of one group of siblings, in which only the count of `changed` differs from before.
    ///
    /// The rule compares with the minimum after the pick. Comparing with the minimum before it gives the same verdict,
    /// and the same numbers wherever it refuses: if the node alone holds the minimum, picking it makes a skew of at
    /// most 1, and if not, the minimum does not move. Source: spec/placement §3.4.
    fn refresh(&mut self, group: usize, changed: Option<NodeId>) {
        let siblings = &self.groups[group];
        let level = &self.levels[siblings.level];
        if level.weighted() {
            return self.refresh_weighted(group);
        }
        let bounds = Bounds {
            min: siblings.open.minimum().unwrap_or(0),
            max: siblings.open.maximum().unwrap_or(0),
            highest: match level.hard {
                true => level.limit.highest_count(&siblings.all, true),
                false => i64::MAX,
            },
            lowest: self.lowest(siblings.level),
        };
        let levels = self.levels.len();
        let siblings = &mut self.groups[group];
        let refreshed = match changed {
            // Most picks change neither end.
            Some(ref node) if siblings.bounds == Some(bounds) => std::slice::from_ref(node),
            _ => &siblings.members,
        };
        for &member in refreshed {
            let node = &mut self.nodes[member as usize];
            let count = siblings.all.count(node.domain);
            let score = level::score(count.clamp(bounds.min, bounds.max), bounds.min, bounds.max);
            let score = score.max(bounds.lowest);
            node.placed = level::placed(score, siblings.level, levels);
            node.full = i64::from(count) > bounds.highest;
        }
        siblings.bounds = Some(bounds);
    }

    /// As above, for topologies with weights.
    fn refresh_weighted(&mut self, group: usize) {
        let siblings = &self.groups[group];
        let level = &self.levels[siblings.level];
        let placed = |score| level::placed(score, siblings.level, self.levels.len());
        let mut changed: SmallVec<[(i64, bool); 16]> = SmallVec::new();
        let loads = Loads::of(self.shares(siblings, &siblings.open));
        let least = self.least(siblings);
        let weightless =
            |d: DomainIdx| self.nodes[siblings.members[d.index()] as usize].weight == 0;
        // A topology without weight scores 0 and must come last, also if all others are equal and would score 0 too.
        let lowest = i64::from(siblings.open.existing().any(weightless));
        let lowest = lowest.max(self.lowest(siblings.level));
        for &member in &siblings.members {
            let node = &self.nodes[member as usize];
            let share = Share {
                count: siblings.all.count(node.domain),
                weight: node.weight,
            };
            let score = match loads {
                Some(loads) if share.weight > 0 => loads.score(share).max(lowest),
                _ => 0,
            };
            let allowed = |least: Share| {
                let verdict = SkewCheck {
                    there: share.count,
                    self_match: true,
                    minimum: Minimum::Emptiest(share.fair(least)),
                    max_skew: level.limit.max_skew,
                };
                verdict.allowed()
            };
            let full = level.hard && !least.is_none_or(allowed);
            changed.push((placed(score), full));
        }
        for (&member, (placed, full)) in self.groups[group].members.iter().zip(changed) {
            let node = &mut self.nodes[member as usize];
            (node.placed, node.full) = (placed, full);
        }
    }

    fn child(
        &mut self,
        parent: NodeId,
        level: usize,
        value: Symbol,
        growth: &mut Growth,
    ) -> NodeId {
        if let Some(&node) = growth.children.get(&(parent, value)) {
            return node;
        }
        let groups = &mut self.groups;
        let group = *growth.groups_of.entry(parent).or_insert_with(|| {
            groups.push(Siblings {
                level,
                ..Siblings::default()
            });
            groups.len() as u32 - 1
        });
        let siblings = &mut self.groups[group as usize];
        let id = self.nodes.len() as NodeId;
        self.nodes.push(Node {
            parent,
            value,
            level,
            group,
            domain: DomainIdx(siblings.members.len() as u32),
            weight: self.levels[level].weight(value),
            placed: 0,
            full: false,
            opening: Opening::Free,
            own: 0,
            room: 0,
        });
        siblings.members.push(id);
        growth.children.insert((parent, value), id);
        id
    }
}
