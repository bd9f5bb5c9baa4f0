//! The selector `EvenSpread`: picks one cluster after another, each in the topology with the fewest.
//!
//! Clusters of equal tuples differ only by the prioritizers' sum, so a step compares the best free cluster of each
//! tuple: the cost is picks x (nodes + tuples). A tuple's clusters are ordered, as a heap, when the first of them is
//! picked: most tuples give one or none. Source: spec/placement §3.4, §3.9, §3.10; the OCM spread proposal,
//! `selectOne`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use strew_spread::level::Combined;

use super::levels::Level;
use super::measure::Exclusion;
use super::openings::Opening;
use super::tree::{NodeId, Place, Tree};
use crate::hub::{ClusterIdx, Hub};

/// The input of the selector. Clusters are positions in one list, sorted by name.
pub(crate) struct Request<'a> {
    /// The weight of `Spread`.
    pub(crate) weight: i32,
    /// The number of picks.
    pub(crate) n: usize,
    /// True if the placement asks for this number; false if it is the number of all clusters. Picks are reserved for
    /// new topologies only if the placement asks for a number.
    pub(crate) asks: bool,
    /// By position: the prioritizers' sum.
    pub(crate) priors: &'a [i64],
    /// By position: true if the cluster must stay, if survivors are kept.
    pub(crate) kept: Option<&'a dyn Fn(usize) -> bool>,
}

/// The clusters of one tuple.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) node: NodeId,
    /// The next one to pick; `None` if all are picked.
    top: Option<Ranked>,
    /// The other clusters that are not picked; filled with the first pick.
    rest: Option<BinaryHeap<Ranked>>,
    /// The number of picked clusters.
    picked: usize,
}

/// A cluster among those of its tuple. The greatest is picked first: survivors if they are kept, then by prior, then by
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    stays: bool,
    prior: i64,
    place: Reverse<u32>,
}

/// The position of all clusters in the tree before any pick: the same in all runs over the same clusters.
pub(crate) struct Ground<'a> {
    tree: Tree<'a>,
    places: Vec<Place>,
    /// The tuples of clusters, and where the clusters of each begin in `members`.
    leaves: Vec<(NodeId, u32)>,
    /// Clusters by position, tuple by tuple.
    members: Vec<u32>,
}

impl<'a> Ground<'a> {
    /// The ground of clusters, by position. `weight` is the weight of `Spread`, `asked` the number asked for.
    pub(crate) fn of(
        levels: &'a [Level],
        weight: i32,
        asked: Option<i32>,
        hub: &Hub,
        clusters: &[ClusterIdx],
    ) -> Self {
        let mut tree = Tree::new(levels, weight < 0);
        let places = tree.place_all(hub, clusters, asked);
        // First the number of clusters at each node, then the position for the next one.
        let mut next = vec![0u32; tree.nodes.len()];
        for place in &places {
            if let Place::At(node) = *place {
                next[node as usize] += 1;
            }
        }
        let (mut leaves, mut n) = (Vec::new(), 0);
        for (node, next) in next.iter_mut().enumerate().filter(|(_, n)| **n > 0) {
            leaves.push((node as NodeId, n));
            n += std::mem::replace(next, n);
        }
        let mut members = vec![0; n as usize];
        for (place, at) in places.iter().enumerate() {
            if let Place::At(node) = *at {
                let next = &mut next[node as usize];
                members[*next as usize] = place as u32;
                *next += 1;
            }
        }
        Self {
            tree,
            places,
            leaves,
            members,
        }
    }

    /// The clusters of a leaf, by position.
    fn members(&self, leaf: usize) -> &[u32] {
        let end = self.leaves.get(leaf + 1).map(|&(_, end)| end as usize);
        &self.members[self.leaves[leaf].1 as usize..end.unwrap_or(self.members.len())]
    }
}

/// A selection under way.
pub(crate) struct EvenSpread<'a> {
    request: Request<'a>,
    ground: &'a Ground<'a>,
    pub(crate) tree: Tree<'a>,
    pub(crate) leaves: Vec<Leaf>,
    /// By position: the node of each cluster.
    pub(crate) places: &'a [Place],
    /// By node: the combined score of the path to it.
    raw: Vec<i64>,
    /// By node: true if a limit of it or of a node above excludes it, or it must not be opened.
    shut: Vec<bool>,
    /// True if only survivors can be picked.
    keeping: bool,
    /// In the order of picking.
    pub(crate) picks: Vec<u32>,
}

/// One step, before its pick is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Which cluster is picked.
    pub(crate) pick: u32,
    /// Its leaf.
    leaf: usize,
    range: Combined,
    /// True if limits are ignored for a survivor.
    pub(crate) limits_ignored: bool,
    /// The levels at which the pick must open a new topology.
    demands: Demands,
}

/// A set of levels, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Demands(u8);

impl Demands {
    fn contains(self, level: usize) -> bool {
        self.0 >> level & 1 == 1
    }

    fn without(self, level: usize) -> Self {
        Self(self.0 & !(1 << level))
    }
}

impl<'a> EvenSpread<'a> {
    /// The selection before the first pick.
    pub(crate) fn new(ground: &'a Ground<'a>, request: Request<'a>) -> Self {
        let tree = ground.tree.clone();
        let leaves = ground.leaves.iter().enumerate();
        let leaf = |(i, &(node, _))| Leaf {
            node,
            top: ground.members(i).iter().map(|&p| request.rank(p)).max(),
            rest: None,
            picked: 0,
        };
        let nodes = tree.nodes.len();
        Self {
            keeping: request.kept.is_some(),
            leaves: leaves.map(leaf).collect(),
            request,
            ground,
            tree,
            places: ground.places.as_slice(),
            raw: vec![0; nodes],
            shut: vec![false; nodes],
            picks: Vec::new(),
        }
    }

    /// Picks until there are enough clusters, or none can be picked. `watch` sees each step before its pick.
    pub(crate) fn run(&mut self, mut watch: impl FnMut(&Self, &Step)) {
        while !self.is_complete() {
            let Some(step) = self.next_step() else { break };
            watch(self, &step);
            self.apply(step);
        }
    }

    /// True if as many clusters are picked as asked for.
    pub(crate) fn is_complete(&self) -> bool {
        self.picks.len() >= self.request.n
    }

    /// Whether the next pick is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.picks.len() + 1 == self.request.n
    }

    /// The eligible clusters that are not picked, in no order.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&Leaf, u32)> {
        let leaves = self.leaves.iter().enumerate();
        leaves.flat_map(move |(i, leaf)| {
            // Before the first pick, all clusters of the leaf are free, `next` included.
            let untouched = leaf.rest.is_none().then(|| self.ground.members(i));
            let untouched = untouched.into_iter().flatten().copied();
            let top = leaf.rest.is_some().then_some(leaf.top).flatten();
            let touched = top.into_iter().chain(leaf.rest.iter().flatten().copied());
            let places = untouched.chain(touched.map(|ranked| ranked.place.0));
            places.map(move |place| (leaf, place))
        })
    }

    /// Why a step excludes the clusters at a node, and the level of the rule; `None` if it does not. After the last
    /// step, `step` is `None`.
    pub(crate) fn exclusion(
        &self,
        node: NodeId,
        step: Option<&Step>,
    ) -> Option<(usize, Exclusion)> {
        let levels = self.tree.levels;
        let max = |level: usize| levels[level].groups.max.unwrap_or(0);
        let ignored = step.is_some_and(|step| step.limits_ignored);
        let path = self.tree.path(node);
        for &id in &path {
            let node = &self.tree.nodes[id as usize];
            match node.opening {
                Opening::Closed(level) => {
                    let level = level as usize;
                    return Some((level, Exclusion::MaxGroups(max(level))));
                }
                Opening::TooSmall if !ignored => {
                    return Some((node.level, Exclusion::TooSmall(max(node.level))));
                }
                _ if node.full && !ignored => {
                    return Some((node.level, Exclusion::MaxSkew(self.tree.check(id))));
                }
                _ => {}
            }
        }
        let demands = step.map_or_else(|| self.hard(self.demands()), |step| step.demands);
        let level = self.refuses(node, demands)?;
        Some((level, Exclusion::MinGroups(levels[level].groups.min)))
    }

    /// The combined, normalized and final score of a free cluster in a step.
    pub(crate) fn scores(&self, step: &Step, node: NodeId, place: u32) -> (i64, i64, i64) {
        let raw = self.raw[node as usize];
        let normalized = step.range.normalize(raw);
        let prior = self.request.priors[place as usize];
        (raw, normalized, self.total(normalized, prior))
    }

    /// The leaf of the cluster that a step picks.
    pub(crate) fn node_of(&self, step: &Step) -> NodeId {
        self.leaves[step.leaf].node
    }

    fn total(&self, normalized: i64, prior: i64) -> i64 {
        let spread = i64::from(self.request.weight) * normalized;
        spread.saturating_add(prior)
    }

    fn next_step(&mut self) -> Option<Step> {
        self.descend();
        let none = Demands::default();
        if self.keeping {
            let kept = self.best(false, none).or_else(|| self.best(true, none));
            if kept.is_some() {
                return kept;
            }
            self.keeping = false;
        }
        let mut demands = self.demands();
        loop {
            let step = self.best(false, demands);
            if step.is_some() {
                return step;
            }
            // Soft terms give way, the least important one first.
            let soft = (0..self.tree.levels.len())
                .rfind(|&level| demands.contains(level) && !self.tree.levels[level].hard)?;
            demands = demands.without(soft);
        }
    }

    /// The levels that need all remaining picks to open topologies.
    fn demands(&self) -> Demands {
        let left = self.request.n.saturating_sub(self.picks.len());
        let mut demands = Demands::default();
        if !self.request.asks || left == 0 {
            return demands;
        }
        for (i, level) in self.tree.levels.iter().enumerate() {
            let needed = level.groups.min.saturating_sub(self.tree.used[i]);
            if needed > 0 && left <= needed as usize {
                demands.0 |= 1 << i;
            }
        }
        demands
    }

    /// Those of hard terms.
    fn hard(&self, demands: Demands) -> Demands {
        let levels = self.tree.levels.iter().enumerate();
        let soft = levels.filter(|(_, level)| !level.hard);
        soft.fold(demands, |demands, (i, _)| demands.without(i))
    }

    /// The first of these levels at which a pick at a node opens no topology.
    fn refuses(&self, node: NodeId, demands: Demands) -> Option<usize> {
        if demands == Demands::default() {
            return None;
        }
        let path = self.tree.path(node);
        let opens = |level: usize| path.get(level).is_some_and(|&n| self.tree.count(n) == 0);
        (0..self.tree.levels.len()).find(|&level| demands.contains(level) && !opens(level))
    }

    /// What nodes inherit from those above. A parent comes before its children.
    fn descend(&mut self) {
        for (i, node) in self.tree.nodes.iter().enumerate().skip(1) {
            let parent = node.parent as usize;
            self.raw[i] = self.raw[parent] + node.placed;
            self.shut[i] = self.shut[parent] || node.full || node.opening != Opening::Free;
        }
    }

    /// The best cluster of a leaf, if the leaf is allowed.
    fn offer(&self, leaf: &Leaf, limits_ignored: bool, demands: Demands) -> Option<Ranked> {
        let opening = self.tree.nodes[leaf.node as usize].opening;
        let open = match limits_ignored {
            true => !matches!(opening, Opening::Closed(_)),
            false => !self.shut[leaf.node as usize],
        };
        let top = leaf.top.filter(|top| top.stays || !self.keeping);
        top.filter(|_| open && self.refuses(leaf.node, demands).is_none())
    }

    /// The best cluster that can be picked now.
    fn best(&self, limits_ignored: bool, demands: Demands) -> Option<Step> {
        let mut range = Combined::NONE;
        for leaf in &self.leaves {
            if self.offer(leaf, limits_ignored, demands).is_some() {
                range.include(self.raw[leaf.node as usize]);
            }
        }
        let mut best: Option<(i64, Reverse<u32>, usize)> = None;
        // The combined score that was normalized last: many leaves have the same one.
        let mut known = (range.max, range.normalize(range.max));
        for (i, leaf) in self.leaves.iter().enumerate() {
            if let Some(top) = self.offer(leaf, limits_ignored, demands) {
                let raw = self.raw[leaf.node as usize];
                if raw != known.0 {
                    known = (raw, range.normalize(raw));
                }
                let total = self.total(known.1, top.prior);
                best = best.max(Some((total, top.place, i)));
            }
        }
        best.map(|(_, Reverse(pick), leaf)| Step {
            pick,
            leaf,
            range,
            limits_ignored,
            demands,
        })
    }

    fn apply(&mut self, step: Step) {
        let Self {
            request,
            ground,
            leaves,
            ..
        } = self;
        let leaf = &mut leaves[step.leaf];
        let rest = leaf.rest.get_or_insert_with(|| {
            let members = ground.members(step.leaf).iter();
            let others = members.filter(|&&place| place != step.pick);
            others.map(|&place| request.rank(place)).collect()
        });
        leaf.top = rest.pop();
        leaf.picked += 1;
        self.tree.select(leaf.node);
        self.picks.push(step.pick);
    }
}

impl Request<'_> {
    fn rank(&self, place: u32) -> Ranked {
        Ranked {
            stays: self.kept.is_some_and(|kept| kept(place as usize)),
            prior: self.priors[place as usize],
            place: Reverse(place),
        }
    }
}

impl Leaf {
    /// The number of its picked clusters.
    pub(crate) fn picked(&self) -> usize {
        self.picked
    }
}
