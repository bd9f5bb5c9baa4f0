//! How many nodes of each group are in each block of consecutive nodes, so that a search passes over most blocks.

use std::ops::Range;

/// With more groups it costs more to add up their numbers than to look at each node.
const GROUPS_MAX: usize = 512;

/// The numbers of nodes, by group and block.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    /// Nodes per block.
    size: usize,
    n_blocks: usize,
    of_group: Vec<Vec<u16>>,
}

/// The feasible nodes and the best ones, by block.
#[derive(Debug, Default)]
pub(super) struct Standing {
    feasible: Vec<u16>,
    best: Vec<u16>,
}

impl Blocks {
    pub(super) fn new(n_nodes: usize, nodes_per_block: usize) -> Self {
        let size = nodes_per_block.clamp(1, usize::from(u16::MAX));
        Self {
            size,
            n_blocks: n_nodes.div_ceil(size),
            of_group: Vec::new(),
        }
    }

    /// Counts the node at a position into a group. Returns false if there are too many groups.
    pub(super) fn add(&mut self, group: u16, position: usize) -> bool {
        let group = usize::from(group);
        if group >= GROUPS_MAX {
            return false;
        }
        if group >= self.of_group.len() {
            self.of_group.resize(group + 1, vec![0; self.n_blocks]);
        }
        self.of_group[group][position / self.size] += 1;
        true
    }

    /// Takes the node at a position out of its group.
    pub(super) fn remove(&mut self, group: u16, position: usize) {
        self.of_group[usize::from(group)][position / self.size] -= 1;
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        2 * self.n_blocks * self.of_group.len()
    }

    /// The parts of a range of positions: whole blocks, and what is left before and behind them.
    pub(super) fn parts(&self, positions: Range<usize>) -> impl Iterator<Item = Part> {
        let (mut next, end, size) = (positions.start, positions.end, self.size);
        std::iter::from_fn(move || {
            let begin = next;
            next = end.min((begin / size + 1) * size);
            (begin < end).then(|| Part {
                block: (next - begin == size).then_some(begin / size),
                positions: begin..next,
            })
        })
    }
}

/// Consecutive positions.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) positions: Range<usize>,
    /// The block, if these are all its positions.
    pub(super) block: Option<usize>,
}

impl Standing {
    /// Adds up the nodes of these groups; true for those that are among the best.
    pub(super) fn add_up(&mut self, blocks: &Blocks, groups: impl Iterator<Item = (u16, bool)>) {
        for sums in [&mut self.feasible, &mut self.best] {
            sums.clear();
            sums.resize(blocks.n_blocks, 0);
        }
        for (group, is_best) in groups {
            let numbers = &blocks.of_group[usize::from(group)];
            add(&mut self.feasible, numbers);
            if is_best {
                add(&mut self.best, numbers);
            }
        }
    }

    /// The number of feasible nodes of a block, and whether one of the best is there.
    pub(super) fn of(&self, block: usize) -> (usize, bool) {
        (usize::from(self.feasible[block]), self.best[block] > 0)
    }
}

fn add(sums: &mut [u16], numbers: &[u16]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum += number;
    }
}
