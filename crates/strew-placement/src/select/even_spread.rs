//! The selector `EvenSpread`: one cluster after another, each where fewest are.
//!
//! Clusters of equal tuple differ only by their prioritizers' sum, so that a step compares the best free cluster of
//! each tuple: picks x (nodes + tuples), and nothing is allocated in a step.
//! Source: spec/placement §3.4, §3.9; seed 003, `selectOne`.

use std::cmp::Reverse;

use strew_spread::level::Combined;

use super::levels::Level;
use super::tree::{NodeId, Place, Tree};
use crate::hub::{ClusterIdx, Hub};

/// What the selector is given. Clusters are named by their places in one list, sorted by name.
pub(crate) struct Request<'a> {
    /// The weight of `Spread`.
    pub(crate) weight: i32,
    /// How many to pick.
    pub(crate) n: usize,
    /// By place: the prioritizers' sum.
    pub(crate) priors: &'a [i64],
    /// By place: whether the cluster must stay, where survivors are kept.
    pub(crate) kept: Option<&'a dyn Fn(usize) -> bool>,
}

/// The clusters of one tuple.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub(crate) node: NodeId,
    /// Survivors first where they are kept; then by prior, highest first, then by name. Until one is picked only the
    /// first stands where it belongs: most leaves give one or none.
    clusters: Vec<u32>,
    /// How many of them must stay.
    kept: usize,
    /// How many are picked.
    next: usize,
}

/// Where everybody stands before anything is picked: the same for every run over the same clusters.
pub(crate) struct Ground<'a> {
    tree: Tree<'a>,
    places: Vec<Place>,
}

impl<'a> Ground<'a> {
    /// The ground of clusters, by place.
    pub(crate) fn of(levels: &'a [Level], hub: &Hub, clusters: &[ClusterIdx]) -> Self {
        let mut tree = Tree::new(levels);
        let places = tree.place_all(hub, clusters);
        Self { tree, places }
    }
}

/// A selection under way.
pub(crate) struct EvenSpread<'a> {
    request: Request<'a>,
    pub(crate) tree: Tree<'a>,
    pub(crate) leaves: Vec<Leaf>,
    /// By place: where each cluster stands.
    pub(crate) places: &'a [Place],
    /// By node: the combined score down to it.
    raw: Vec<i64>,
    /// By node: whether a limit of it or of a node above takes no more.
    shut: Vec<bool>,
    /// Only survivors are to be had.
    keeping: bool,
    /// In the order of picking.
    pub(crate) picks: Vec<u32>,
}

/// One step, before its pick is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Which cluster is picked.
    pub(crate) pick: u32,
    /// The leaf that it stands in.
    leaf: usize,
    range: Combined,
    /// Whether limits are passed over for a survivor.
    pub(crate) limits_ignored: bool,
}

impl<'a> EvenSpread<'a> {
    /// Everything in its place, nothing picked.
    pub(crate) fn new(ground: &'a Ground<'a>, request: Request<'a>) -> Self {
        let (tree, places) = (ground.tree.clone(), ground.places.as_slice());
        let mut leaf_of: Vec<Option<usize>> = vec![None; tree.nodes.len()];
        let mut leaves: Vec<Leaf> = Vec::new();
        for (place, at) in places.iter().enumerate() {
            let Place::At(node) = *at else { continue };
            let leaf = *leaf_of[node as usize].get_or_insert_with(|| {
                leaves.push(Leaf {
                    node,
                    clusters: Vec::new(),
                    kept: 0,
                    next: 0,
                });
                leaves.len() - 1
            });
            leaves[leaf].clusters.push(place as u32);
        }
        let stays = |place: u32| request.kept.is_some_and(|kept| kept(place as usize));
        for leaf in &mut leaves {
            if request.kept.is_some() {
                let key = |&p: &u32| (!stays(p), Reverse(request.priors[p as usize]), p);
                leaf.clusters.sort_unstable_by_key(key);
                leaf.kept = leaf.clusters.partition_point(|&p| stays(p));
                continue;
            }
            let key = |&(_, &p): &(usize, &u32)| (Reverse(request.priors[p as usize]), p);
            let best = leaf.clusters.iter().enumerate().min_by_key(key);
            if let Some((best, _)) = best {
                leaf.clusters.swap(0, best);
            }
        }
        let nodes = tree.nodes.len();
        Self {
            keeping: request.kept.is_some(),
            request,
            tree,
            leaves,
            places,
            raw: vec![0; nodes],
            shut: vec![false; nodes],
            picks: Vec::new(),
        }
    }

    /// Picks until there are enough, or nobody is selectable. `watch` sees each step before its pick is made.
    pub(crate) fn run(&mut self, mut watch: impl FnMut(&Self, &Step)) {
        while !self.is_complete() {
            let Some(step) = self.next_step() else { break };
            watch(self, &step);
            self.apply(step);
        }
    }

    /// Whether as many are picked as were asked for.
    pub(crate) fn is_complete(&self) -> bool {
        self.picks.len() >= self.request.n
    }

    /// Whether the next pick is the last one.
    pub(crate) fn is_last(&self) -> bool {
        self.picks.len() + 1 == self.request.n
    }

    /// Clusters that are eligible and not picked.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&Leaf, u32)> {
        let free = |leaf: &'_ Leaf| leaf.next..leaf.clusters.len();
        let leaves = self.leaves.iter();
        leaves.flat_map(move |leaf| free(leaf).map(move |i| (leaf, leaf.clusters[i])))
    }

    /// The first hard level that takes no more at a node; `None` where all do.
    pub(crate) fn full_at(&self, node: NodeId) -> Option<NodeId> {
        let path = self.tree.path(node);
        path.into_iter().find(|&n| self.tree.nodes[n as usize].full)
    }

    /// Combined score, normalized score and final score of a free cluster in a step.
    pub(crate) fn scores(&self, step: &Step, node: NodeId, place: u32) -> (i64, i64, i64) {
        let raw = self.raw[node as usize];
        let normalized = step.range.normalize(raw);
        (raw, normalized, self.total(normalized, place))
    }

    fn total(&self, normalized: i64, place: u32) -> i64 {
        let spread = i64::from(self.request.weight) * normalized;
        spread.saturating_add(self.request.priors[place as usize])
    }

    fn next_step(&mut self) -> Option<Step> {
        self.descend();
        if self.keeping {
            if let Some(step) = self.best(false).or_else(|| self.best(true)) {
                return Some(step);
            }
            self.keeping = false;
        }
        self.best(false)
    }

    /// What nodes inherit from those above; a parent stands before its children.
    fn descend(&mut self) {
        for (i, node) in self.tree.nodes.iter().enumerate().skip(1) {
            let parent = node.parent as usize;
            self.raw[i] = self.raw[parent] + node.placed;
            self.shut[i] = self.shut[parent] || node.full;
        }
    }

    /// The best cluster that is to be had now.
    fn best(&self, limits_ignored: bool) -> Option<Step> {
        let end = |leaf: &Leaf| match self.keeping {
            true => leaf.kept,
            false => leaf.clusters.len(),
        };
        let open = |leaf: &&Leaf| {
            leaf.next < end(leaf) && (limits_ignored || !self.shut[leaf.node as usize])
        };
        let mut range = Combined::NONE;
        for leaf in self.leaves.iter().filter(open) {
            range.include(self.raw[leaf.node as usize]);
        }
        let mut best: Option<(i64, Reverse<u32>, usize)> = None;
        for (i, leaf) in self.leaves.iter().enumerate() {
            if open(&leaf) {
                let place = leaf.clusters[leaf.next];
                let normalized = range.normalize(self.raw[leaf.node as usize]);
                best = best.max(Some((self.total(normalized, place), Reverse(place), i)));
            }
        }
        best.map(|(_, Reverse(pick), leaf)| Step {
            pick,
            leaf,
            range,
            limits_ignored,
        })
    }

    fn apply(&mut self, step: Step) {
        let leaf = &mut self.leaves[step.leaf];
        leaf.next += 1;
        if leaf.next == 1 && self.request.kept.is_none() {
            let priors = self.request.priors;
            leaf.clusters[1..].sort_unstable_by_key(|&p| (Reverse(priors[p as usize]), p));
        }
        self.tree.select(leaf.node);
        self.picks.push(step.pick);
    }
}

impl Leaf {
    /// How many of its clusters are picked.
    pub(crate) fn picked(&self) -> usize {
        self.next
    }
}
