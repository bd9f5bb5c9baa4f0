//! Groups of nodes that a pod class cannot tell apart.
//!
//! Most nodes of a cluster are equal for a pod: in the same zone, with as many of its pods, with as much free. One node
//! of each group is evaluated for all, by the code that would evaluate every node. So the cost of a decision grows with
//! the number of *different* nodes. A node changes its group only when its pods or the node itself change.
//!
//! If all nodes differ (a hard constraint on a key with many domains, host ports, odd sizes), groups do not help, and
//! every node is evaluated.

mod blocks;
mod reader;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use strew_cluster::{ClassId, Cluster, NodeIdx};

use crate::columns::Columns;
use crate::cycle::Cycle;
use crate::engine::Decision;
use crate::group_limits::GroupLimits;
use crate::metrics::meter::Meter;
use crate::metrics::{Point, SUCCESS};
use crate::plan::{ClassPlan, Plans};
use crate::plugins::pod_topology_spread::score::Scored;
use crate::profile::{PluginId, TieRule};
use crate::scoring::{Chance, Sums, take};
use crate::ties::FirstInHeap;
use crate::workers::Workers;
use blocks::{Blocks, Standing};
use reader::Reader;

/// All numbers by which decisions of a class distinguish nodes; empty for a node that no such pod can go to.
type Signature = SmallVec<[u32; 8]>;

/// A group of nodes with the same signature.
#[derive(Debug, Clone)]
struct Group {
    signature: Signature,
    nodes: u32,
    /// One of its nodes, if it is known.
    representative: Option<NodeIdx>,
}

/// The groups of one class.
#[derive(Debug, Clone)]
struct Groups {
    basis: Basis,
    usage_seen: u64,
    /// By position in the order of nodes.
    group_of: Vec<u16>,
    /// `None`: there are too many groups.
    blocks: Option<Blocks>,
    groups: Vec<Group>,
    by_signature: FxHashMap<Signature, u16>,
    free: Vec<u16>,
    /// After too many different nodes: the number of decisions until the next attempt, unless the basis changes.
    rest: u32,
    /// Decisions since groups were last built (or wanted).
    age: u32,
}

/// The inputs of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Basis {
    plan: u64,
    structure: u64,
    affinity: u64,
}

/// The representatives of the groups that pods can go to, with the number of nodes of each.
#[derive(Debug, Default)]
pub(crate) struct Representatives {
    nodes: Vec<NodeIdx>,
    sizes: Vec<u32>,
    groups: Vec<u16>,
    /// Per group: 0 not feasible, 1 feasible, 2 among the best.
    standing: Vec<u8>,
    by_block: Standing,
}

impl Groups {
    fn new(limits: GroupLimits) -> Self {
        Self {
            basis: Basis {
                plan: u64::MAX,
                structure: u64::MAX,
                affinity: 0,
            },
            usage_seen: 0,
            group_of: Vec::new(),
            blocks: None,
            groups: Vec::new(),
            by_signature: FxHashMap::default(),
            free: Vec::new(),
            rest: 0,
            // The first pod of a class is decided without groups; the second one shows that there are more.
            age: limits.decisions_min.saturating_sub(2),
        }
    }

    /// Bytes on the heap that grow with the cluster.
    fn bytes(&self) -> usize {
        let blocks = self.blocks.as_ref().map_or(0, Blocks::bytes);
        2 * self.group_of.capacity()
            + std::mem::size_of::<Group>() * self.groups.capacity()
            + blocks
    }

    /// Updates the groups. Returns false if every node must be evaluated.
    fn sync(
        &mut self,
        cluster: &Cluster,
        plan: &ClassPlan,
        columns: &Columns,
        limits: GroupLimits,
    ) -> bool {
        let Some(affinity) = plan.affinity.activity(cluster) else {
            return false;
        };
        let structure = cluster.structure_changes().head();
        let basis = Basis {
            plan: plan.serial(),
            structure,
            affinity,
        };
        let same = self.basis == basis;
        self.age = self.age.saturating_add(1);
        if same && self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        if !same && self.age < limits.decisions_min {
            return false;
        }
        let Some(reader) = Reader::of(cluster, plan, columns, limits) else {
            return false;
        };
        let changed = cluster
            .usage_changes()
            .since(self.usage_seen)
            .filter(|_| same && !self.group_of.is_empty());
        let done = match changed {
            Some(changed) => {
                let mut changed = changed.into_iter();
                changed.all(|node| match cluster.node_position(node) {
                    None => true,
                    Some(position) => self.regroup(node, position, &reader),
                })
            }
            None => {
                self.age = 0;
                self.rebuild(cluster, &reader, limits)
            }
        };
        self.basis = basis;
        self.usage_seen = cluster.usage_changes().head();
        self.rest = if done { 0 } else { limits.rest_decisions };
        if !done {
            self.group_of.clear();
        }
        done
    }

    fn rebuild(&mut self, cluster: &Cluster, reader: &Reader<'_>, limits: GroupLimits) -> bool {
        self.groups.clear();
        self.by_signature.clear();
        self.free.clear();
        self.group_of.clear();
        let order = cluster.node_order();
        self.blocks = Some(Blocks::new(order.len(), limits.nodes_per_block));
        for (position, &node) in order.iter().enumerate() {
            let Some(group) = self.enter(node, position, reader) else {
                return false;
            };
            self.group_of.push(group);
        }
        true
    }

    fn regroup(&mut self, node: NodeIdx, position: usize, reader: &Reader<'_>) -> bool {
        let old = self.group_of[position];
        if let Some(blocks) = &mut self.blocks {
            blocks.remove(old, position);
        }
        let row = &mut self.groups[usize::from(old)];
        row.nodes -= 1;
        if row.representative == Some(node) {
            row.representative = None;
        }
        if row.nodes == 0 {
            self.by_signature.remove(&row.signature);
            self.free.push(old);
        }
        match self.enter(node, position, reader) {
            Some(group) => {
                self.group_of[position] = group;
                true
            }
            None => false,
        }
    }

    /// Counts the node at a position into the group of its signature; `None` if there would be too many groups.
    fn enter(&mut self, node: NodeIdx, position: usize, reader: &Reader<'_>) -> Option<u16> {
        let group = self.group_for(node, reader)?;
        if let Some(blocks) = &mut self.blocks
            && !blocks.add(group, position)
        {
            self.blocks = None;
        }
        Some(group)
    }

    fn group_for(&mut self, node: NodeIdx, reader: &Reader<'_>) -> Option<u16> {
        let signature = reader.signature(node);
        if let Some(&group) = self.by_signature.get(&signature) {
            let row = &mut self.groups[usize::from(group)];
            row.nodes += 1;
            row.representative.get_or_insert(node);
            return Some(group);
        }
        let row = Group {
            signature: signature.clone(),
            nodes: 1,
            representative: Some(node),
        };
        let group = match self.free.pop() {
            Some(group) => {
                self.groups[usize::from(group)] = row;
                group
            }
            None if self.groups.len() < reader.groups_max => {
                self.groups.push(row);
                (self.groups.len() - 1) as u16
            }
            None => return None,
        };
        self.by_signature.insert(signature, group);
        Some(group)
    }

    /// Lists a representative of each group that pods can go to, in the order in which groups were created.
    fn representatives(&mut self, cluster: &Cluster, out: &mut Representatives) {
        out.nodes.clear();
        out.sizes.clear();
        out.groups.clear();
        out.standing.clear();
        out.standing.resize(self.groups.len(), 0);
        for (i, group) in self.groups.iter_mut().enumerate() {
            if group.nodes == 0 || group.signature.is_empty() {
                continue;
            }
            let representative = *group.representative.get_or_insert_with(|| {
                let position = self.group_of.iter().position(|&g| usize::from(g) == i);
                cluster.node_order()[position.expect("a group that counts nodes has one")]
            });
            out.nodes.push(representative);
            out.sizes.push(group.nodes);
            out.groups.push(i as u16);
        }
    }
}

impl Representatives {
    /// Keeps the representatives that pass, with their sizes.
    fn retain(&mut self, passes: impl Fn(NodeIdx) -> bool) {
        let mut kept = 0;
        for i in 0..self.nodes.len() {
            if passes(self.nodes[i]) {
                self.nodes[kept] = self.nodes[i];
                self.sizes[kept] = self.sizes[i];
                self.groups[kept] = self.groups[i];
                kept += 1;
            }
        }
        self.nodes.truncate(kept);
        self.sizes.truncate(kept);
        self.groups.truncate(kept);
    }

    /// The number of nodes that they represent.
    fn nodes_in_all(&self) -> usize {
        self.sizes.iter().map(|&n| n as usize).sum()
    }

    /// Records which groups pass, and which are among the best: those with these indexes.
    fn stand(&mut self, best: impl Fn(usize) -> bool) {
        for (place, &group) in self.groups.iter().enumerate() {
            self.standing[usize::from(group)] = if best(place) { 2 } else { 1 };
        }
    }

    /// The nodes of the best groups in the order of nodes from `start` on, each with its index among the feasible ones.
    fn best_nodes<'a>(
        &'a self,
        groups: &'a Groups,
        order: &'a [NodeIdx],
        start: usize,
    ) -> impl Iterator<Item = (usize, NodeIdx)> + 'a {
        let mut feasible = 0;
        let each = |positions: std::ops::Range<usize>| {
            order[positions.clone()]
                .iter()
                .zip(&groups.group_of[positions])
        };
        each(start..order.len())
            .chain(each(0..start))
            .filter_map(move |(&node, &group)| {
                let standing = self.standing[usize::from(group)];
                let place = feasible;
                feasible += usize::from(standing > 0);
                (standing == 2).then_some((place, node))
            })
    }

    /// The first of these nodes in pre-order of the heap. Blocks in which it cannot be are passed over.
    fn first_in_heap_order(
        &mut self,
        groups: &Groups,
        order: &[NodeIdx],
        start: usize,
    ) -> Option<NodeIdx> {
        let all;
        let blocks = match &groups.blocks {
            Some(blocks) => {
                let standing = { self.groups.iter() }
                    .map(|&group| (group, self.standing[usize::from(group)] == 2));
                self.by_block.add_up(blocks, standing);
                blocks
            }
            None => {
                all = Blocks::new(order.len(), usize::MAX);
                &all
            }
        };
        let mut first = FirstInHeap::default();
        let mut place = 0;
        for part in [start..order.len(), 0..start]
            .into_iter()
            .flat_map(|p| blocks.parts(p))
        {
            if let Some(block) = part.block.filter(|_| groups.blocks.is_some()) {
                let (feasible, has_best) = self.by_block.of(block);
                if !has_best || !first.wants_below(place + feasible) {
                    place += feasible;
                    continue;
                }
            }
            let nodes = order[part.positions.clone()].iter();
            // The longest loop of a decision, so it is a simple one.
            for (&node, &group) in nodes.zip(&groups.group_of[part.positions]) {
                let standing = self.standing[usize::from(group)];
                first.offer(standing == 2, place, node);
                place += usize::from(standing > 0);
            }
            if first.is_certain() {
                break;
            }
        }
        first.item()
    }

    /// As [`Self::first_in_heap_order`], if workers finish nodes in another order than that of visiting.
    fn first_in_heap_as_finished(
        &self,
        groups: &Groups,
        order: &[NodeIdx],
        start: usize,
        workers: &mut Workers,
    ) -> Option<NodeIdx> {
        let mut first = FirstInHeap::default();
        let mut place = 0;
        workers.finish_until(order.len(), |visited| {
            let position = start + visited as usize;
            // Cheaper than a remainder, which would dominate the loop.
            let position = position
                - if position < order.len() {
                    0
                } else {
                    order.len()
                };
            let standing = self.standing[usize::from(groups.group_of[position])];
            let is_first = first.offer(standing == 2, place, order[position]);
            place += usize::from(standing > 0);
            is_first && first.is_certain()
        });
        first.item()
    }

    /// The index of the representative for the node at this position of the order.
    fn place_of(&self, groups: &Groups, position: Option<usize>) -> Option<usize> {
        let group = groups.group_of[position?];
        self.groups
            .iter()
            .position(|&spoken_for| spoken_for == group)
    }
}

/// The groups of every class decided on, bounded in bytes: beyond the bound all are built again.
pub(crate) struct GroupsByClass {
    limits: GroupLimits,
    by_class: Vec<Option<Groups>>,
    bytes: usize,
}

impl GroupsByClass {
    pub(crate) fn new(limits: GroupLimits) -> Self {
        Self {
            limits,
            by_class: Vec::new(),
            bytes: 0,
        }
    }

    /// Updates the groups of a class. Returns false if every node must be evaluated.
    pub(crate) fn sync(
        &mut self,
        class: ClassId,
        cluster: &Cluster,
        plan: &ClassPlan,
        columns: &Columns,
    ) -> bool {
        if self.bytes > self.limits.bytes_max {
            self.by_class.clear();
            self.bytes = 0;
        }
        if self.by_class.len() <= class.index() {
            self.by_class.resize_with(class.index() + 1, || None);
        }
        let groups = self.by_class[class.index()].get_or_insert_with(|| Groups::new(self.limits));
        let before = groups.bytes();
        let synced = groups.sync(cluster, plan, columns, self.limits);
        self.bytes = self.bytes + groups.bytes() - before;
        synced
    }

    /// Takes part in a sweep, after the plans: drops groups without a plan.
    pub(crate) fn sweep(&mut self, plans: &Plans) {
        for (row, slot) in self.by_class.iter_mut().enumerate() {
            let gone = slot.take_if(|groups| !plans.has(row, groups.basis.plan));
            self.bytes -= gone.map_or(0, |groups| groups.bytes());
        }
    }

    /// The number of classes with groups.
    pub(crate) fn len(&self) -> usize {
        self.by_class.iter().flatten().count()
    }

    /// Chooses a node by evaluating one node of each group; `None` if none passes.
    pub(crate) fn decide(
        &mut self,
        class: ClassId,
        cx: Cycle<'_>,
        columns: &Columns,
        representatives: &mut Representatives,
        sums: &mut Sums,
        chance: &mut Chance,
    ) -> Option<Decision> {
        let groups = self.by_class[class.index()].as_mut()?;
        let order = cx.cluster.node_order();
        let start = cx.start % order.len().max(1);
        groups.representatives(cx.cluster, representatives);
        let asked = representatives.nodes.len();
        let begun = sums.meter.as_deref().and_then(Meter::read);
        representatives.retain(|node| cx.passes_counts(node));
        let feasible = representatives.nodes_in_all();
        if let Some(meter) = &mut sums.meter {
            // InterPodAffinity is evaluated in the same loop; if it has no effect, its cost is negligible.
            meter.asked(PluginId::PodTopologySpread, Point::Filter, begun);
            meter.filtered(cx, asked);
        }
        if feasible == 0 {
            return None;
        }
        if let Some(meter) = &mut sums.meter {
            meter.passed(Point::Filter, SUCCESS);
        }
        if feasible == 1 {
            return Some(Decision::Place {
                node: representatives.nodes[0],
                feasible,
                total: None,
            });
        }
        let scored = Scored {
            nodes: &representatives.nodes,
            sizes: Some(&representatives.sizes),
        };
        sums.add_up(cx, columns, scored);
        let highest = sums.highest();
        representatives.stand(|place| sums.totals()[place] == highest);
        let node = match (chance.workers.as_mut(), cx.profile.ties) {
            (Some(workers), _) => {
                representatives.first_in_heap_as_finished(groups, order, start, workers)?
            }
            (None, TieRule::Upstream136) => {
                representatives.first_in_heap_order(groups, order, start)?
            }
            (None, _) => take(cx, representatives.best_nodes(groups, order, start), chance)?.1,
        };
        if let Some(meter) = &mut sums.meter {
            let groups = self.by_class[class.index()].as_ref()?;
            if let Some(place) = representatives.place_of(groups, cx.cluster.node_position(node)) {
                meter.chose(place);
            }
            meter.passed(Point::Score, SUCCESS);
        }
        Some(Decision::Place {
            node,
            feasible,
            total: Some(i64::from(highest)),
        })
    }
}
