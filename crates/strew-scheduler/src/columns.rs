//! Cached answers per node to questions that many pods share; only changed nodes are evaluated again.

use fixedbitset::FixedBitSet;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::Hash;
use strew_cluster::{ChangeLog, Cluster, NodeAffinityId, NodeFact, NodeIdx, SpecId, TolerationsId};
use strew_model::{ResourceName, Resources, Symbol};

use crate::filters::{self, KeptFilter};
use crate::plan::{ClassPlan, Plans};
use crate::plugins::node_resources_balanced_allocation as balanced;
use crate::plugins::{
    image_locality, node_affinity, node_resources_fit, node_unschedulable, taint_toleration,
};
use crate::profile::{AddedAffinity, FitArgs, Profile};

/// Calls `answer` for each node that changed since `seen`, or for all if that was too long ago.
fn follow(log: &ChangeLog, seen: &mut u64, rows: usize, mut answer: impl FnMut(NodeIdx)) {
    match log.since(*seen) {
        Some(changed) if changed.len() < rows => changed.for_each(&mut answer),
        _ => (0..rows).map(NodeIdx::from).for_each(&mut answer),
    }
    *seen = log.head();
}

/// Different from every head of a log, so that the first sync evaluates all nodes.
const NEVER: u64 = u64::MAX;

/// The nodes that are not cordoned, whose taints are tolerated and that node affinity allows.
pub(crate) struct Admitted {
    pub(crate) nodes: FixedBitSet,
    seen: u64,
}

impl Admitted {
    fn new() -> Self {
        Self {
            nodes: FixedBitSet::new(),
            seen: NEVER,
        }
    }
}

/// A number per node.
pub(crate) struct Column {
    pub(crate) values: Vec<i32>,
    /// The number of values other than 0: a column of zeros need not be visited.
    pub(crate) nonzero: usize,
    seen: u64,
}

impl Column {
    fn new() -> Self {
        Self {
            values: Vec::new(),
            nonzero: 0,
            seen: NEVER,
        }
    }

    fn set(&mut self, node: NodeIdx, value: i32) {
        let old = std::mem::replace(&mut self.values[node.index()], value);
        self.nonzero = self.nonzero - usize::from(old != 0) + usize::from(value != 0);
    }

    fn follow(&mut self, cluster: &Cluster, answer: impl Fn(NodeIdx) -> i32) {
        let rows = cluster.node_rows();
        self.values.resize(rows, 0);
        let mut seen = self.seen;
        follow(cluster.structure_changes(), &mut seen, rows, |node| {
            self.set(node, answer(node))
        });
        self.seen = seen;
    }
}

/// How pods of one size fit each node.
pub(crate) struct Shape {
    pub(crate) fits: FixedBitSet,
    /// `NodeResourcesFit` and `NodeResourcesBalancedAllocation`, per node.
    pub(crate) scores: Vec<ShapeScores>,
    seen: u64,
}

impl Shape {
    fn new() -> Self {
        Self {
            fits: FixedBitSet::new(),
            scores: Vec::new(),
            seen: NEVER,
        }
    }
}

/// Scores of 0 to 100 of one node.
#[derive(Clone, Copy, Default)]
pub(crate) struct ShapeScores {
    pub(crate) fit: u8,
    pub(crate) balanced: u8,
}

/// What determines how a pod fits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ShapeKey {
    pub(crate) requests: Resources,
    /// The requests that Filter checks.
    pub(crate) filtered: Resources,
    pub(crate) scored: (i64, i64),
}

/// Rows of one kind of answer; the handle of a row is its index.
struct Kept<K, T> {
    by_key: FxHashMap<K, usize>,
    rows: Vec<(K, T)>,
    free: Vec<usize>,
}

impl<K: Hash + Eq + Clone, T> Kept<K, T> {
    fn ensure(&mut self, key: K, new: impl FnOnce() -> T) -> usize {
        if let Some(&i) = self.by_key.get(&key) {
            return i;
        }
        let i = self.free.pop().unwrap_or(self.rows.len());
        self.by_key.insert(key.clone(), i);
        match self.rows.get_mut(i) {
            Some(row) => *row = (key, new()),
            None => self.rows.push((key, new())),
        }
        i
    }

    fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Frees the rows that are not in use.
    fn sweep(&mut self, in_use: &FxHashSet<usize>, new: impl Fn() -> T) {
        let (rows, free) = (&mut self.rows, &mut self.free);
        self.by_key.retain(|_, &mut i| {
            let stays = in_use.contains(&i);
            if !stays {
                rows[i].1 = new();
                free.push(i);
            }
            stays
        });
        // The order of a hash table must not decide which row is used next.
        free.sort_unstable();
    }
}

impl<K, T> Default for Kept<K, T> {
    fn default() -> Self {
        Self {
            by_key: FxHashMap::default(),
            rows: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// The parts of the profile that columns depend on.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The enabled filters; the others refuse no node.
    filters: SmallVec<[KeptFilter; 4]>,
    added: AddedAffinity,
    fit: FitArgs,
    balanced: Vec<ResourceName>,
}

impl Rules {
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            filters: filters::kept(profile).collect(),
            added: profile.added_affinity.clone(),
            fit: profile.fit.clone(),
            balanced: profile.balanced.clone(),
        }
    }
}

/// All columns. When they exceed their budget, all are dropped, and those in use are made again.
pub(crate) struct Columns {
    rules: Rules,
    admitted: Kept<(NodeAffinityId, TolerationsId), Admitted>,
    prefer_taints: Kept<TolerationsId, Column>,
    preferred_nodes: Kept<SpecId, Column>,
    images: Kept<SpecId, Column>,
    shapes: Kept<ShapeKey, Shape>,
    epoch: u64,
}

/// The largest size of all columns together, in bytes.
const BYTES_MAX: usize = 64 << 20;

impl Columns {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            admitted: Kept::default(),
            prefer_taints: Kept::default(),
            preferred_nodes: Kept::default(),
            images: Kept::default(),
            shapes: Kept::default(),
            epoch: 0,
        }
    }

    /// Handles are valid while this number stays the same.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Drops everything if the columns have outgrown their budget.
    pub(crate) fn bound(&mut self, nodes: usize) {
        let columns = self.prefer_taints.len() + self.preferred_nodes.len() + self.images.len();
        let sets = self.admitted.len() + self.shapes.len();
        let bytes = nodes * (4 * columns + 2 * self.shapes.len()) + nodes / 8 * sets;
        if bytes > BYTES_MAX {
            let epoch = self.epoch + 1;
            *self = Self {
                epoch,
                ..Self::new(self.rules.clone())
            };
        }
    }

    pub(crate) fn ensure_admitted(&mut self, key: (NodeAffinityId, TolerationsId)) -> usize {
        self.admitted.ensure(key, Admitted::new)
    }

    pub(crate) fn ensure_prefer_taints(&mut self, key: TolerationsId) -> usize {
        self.prefer_taints.ensure(key, Column::new)
    }

    pub(crate) fn ensure_preferred_nodes(&mut self, key: SpecId) -> usize {
        self.preferred_nodes.ensure(key, Column::new)
    }

    pub(crate) fn ensure_images(&mut self, key: SpecId) -> usize {
        self.images.ensure(key, Column::new)
    }

    pub(crate) fn ensure_shape(&mut self, key: ShapeKey) -> usize {
        self.shapes.ensure(key, Shape::new)
    }

    /// The number of columns and sets.
    pub(crate) fn len(&self) -> usize {
        let columns = self.prefer_taints.len() + self.preferred_nodes.len() + self.images.len();
        columns + self.admitted.len() + self.shapes.len()
    }

    /// Takes part in a sweep, after the plans: frees the columns that no plan reads.
    pub(crate) fn sweep(&mut self, plans: &Plans) {
        let rows = |of: fn(&ClassPlan) -> Option<usize>| plans.iter().filter_map(of).collect();
        self.admitted
            .sweep(&rows(|plan| Some(plan.admitted)), Admitted::new);
        self.prefer_taints
            .sweep(&rows(|plan| Some(plan.prefer_taints)), Column::new);
        self.preferred_nodes
            .sweep(&rows(|plan| plan.preferred_nodes), Column::new);
        self.images
            .sweep(&rows(|plan| Some(plan.images)), Column::new);
        self.shapes
            .sweep(&rows(|plan| Some(plan.shape)), Shape::new);
    }

    /// Updates the columns of a plan to the state of the cluster.
    pub(crate) fn sync(&mut self, plan: &ClassPlan, cluster: &Cluster) {
        self.sync_admitted(plan.admitted, cluster);
        self.sync_prefer_taints(plan.prefer_taints, cluster);
        if let Some(row) = plan.preferred_nodes {
            self.sync_preferred_nodes(row, cluster);
        }
        self.sync_images(plan.images, cluster);
        self.sync_shape(plan.shape, cluster);
    }

    pub(crate) fn admitted(&self, plan: &ClassPlan) -> &FixedBitSet {
        &self.admitted.rows[plan.admitted].1.nodes
    }

    pub(crate) fn prefer_taints(&self, plan: &ClassPlan) -> &Column {
        &self.prefer_taints.rows[plan.prefer_taints].1
    }

    pub(crate) fn preferred_nodes(&self, plan: &ClassPlan) -> Option<&Column> {
        plan.preferred_nodes
            .map(|row| &self.preferred_nodes.rows[row].1)
    }

    pub(crate) fn images(&self, plan: &ClassPlan) -> &Column {
        &self.images.rows[plan.images].1
    }

    pub(crate) fn shape(&self, plan: &ClassPlan) -> &Shape {
        &self.shapes.rows[plan.shape].1
    }

    fn sync_admitted(&mut self, row: usize, cluster: &Cluster) {
        let rules = &self.rules;
        let ((affinity, tolerations), admitted) = &mut self.admitted.rows[row];
        let rows = cluster.node_rows();
        admitted.nodes.grow(rows);
        let nodes = &mut admitted.nodes;
        let tolerations = cluster.tables().tolerations(*tolerations);
        follow(
            cluster.structure_changes(),
            &mut admitted.seen,
            rows,
            |node| {
                let allows = |fact: &NodeFact, kept: KeptFilter| match kept {
                    KeptFilter::Unschedulable => node_unschedulable::allows(fact, tolerations),
                    KeptFilter::Taints => taint_toleration::allows(fact, tolerations),
                    KeptFilter::NodeAffinity => {
                        node_affinity::added_allows(cluster, &rules.added, fact)
                            && node_affinity::allows(cluster, *affinity, fact)
                    }
                    // With the scores, which change with it.
                    KeptFilter::Room => true,
                };
                let fact = cluster.node(node).fact();
                let allowed =
                    fact.is_some_and(|fact| rules.filters.iter().all(|&kept| allows(fact, kept)));
                nodes.set(node.index(), allowed);
            },
        );
    }

    fn sync_prefer_taints(&mut self, row: usize, cluster: &Cluster) {
        let (tolerations, column) = &mut self.prefer_taints.rows[row];
        let tolerations = cluster.tables().tolerations(*tolerations);
        column.follow(cluster, |node| {
            taint_toleration::raw_score(cluster, node, tolerations)
        });
    }

    fn sync_preferred_nodes(&mut self, row: usize, cluster: &Cluster) {
        let rules = &self.rules;
        let (spec, column) = &mut self.preferred_nodes.rows[row];
        let spec = cluster.tables().spec(*spec);
        column.follow(cluster, |node| {
            node_affinity::raw_score(cluster, node, spec, &rules.added)
        });
    }

    fn sync_images(&mut self, row: usize, cluster: &Cluster) {
        let (spec, column) = &mut self.images.rows[row];
        let spec = cluster.tables().spec(*spec);
        let is_there = |&image: &Symbol| cluster.images().get(image).is_some();
        if column.seen != cluster.structure_changes().head() && spec.images.iter().any(is_there) {
            // One more node changes the share of nodes with an image, and so every node's score.
            column.seen = NEVER;
        }
        column.follow(cluster, |node| image_locality::score(cluster, node, spec));
    }

    fn sync_shape(&mut self, row: usize, cluster: &Cluster) {
        let rules = &self.rules;
        let asks_room = rules.filters.contains(&KeptFilter::Room);
        let (key, shape) = &mut self.shapes.rows[row];
        let rows = cluster.node_rows();
        shape.fits.grow(rows);
        shape.scores.resize(rows, ShapeScores::default());
        let (fits, scores) = (&mut shape.fits, &mut shape.scores);
        follow(cluster.usage_changes(), &mut shape.seen, rows, |node| {
            let row = cluster.node(node);
            let has_room = !asks_room || node_resources_fit::fits(row, &key.filtered);
            fits.set(node.index(), has_room);
            scores[node.index()] = ShapeScores {
                fit: node_resources_fit::score(row, &rules.fit, &key.requests, key.scored),
                balanced: balanced::score(row, &key.requests, &rules.balanced),
            };
        });
    }
}
