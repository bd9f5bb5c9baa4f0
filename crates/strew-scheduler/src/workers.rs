//! The order in which parallel filter workers finish.
//!
//! Source: `pkg/scheduler/framework/parallelize/parallelism.go` (chunks) and client-go's
//! `util/workqueue/parallelizer.go` (`ParallelizeUntil`), v1.36.3; spec/scheduler §2.4, step 6, and §2.5 (feasible
//! nodes stand in order of completion).

use std::ops::Range;

use strew_model::Prng;

/// The filter workers of one kube-scheduler, on a machine with a random number of cores.
///
/// Each worker takes a chunk of consecutive nodes, and the next one when it is done; workers beyond the number of cores
/// find no chunk left when they run. Which running worker finishes a node next is drawn with equal probabilities. So
/// early nodes come first more often than late ones, and on one core the order is that of visiting.
#[derive(Debug, Clone)]
pub(crate) struct Workers {
    /// `parallelism`.
    workers: usize,
    /// The number of workers that run concurrently; at least 2.
    cores: usize,
    rng: Prng,
    /// The chunks in progress, without the finished nodes.
    chunks: Vec<Range<u32>>,
    /// The last order that was drawn.
    finished: Vec<u32>,
}

impl Workers {
    /// Draws the machine from the seed: 1, 2, 4, … cores, at most one per worker, with equal probabilities. `None` if
    /// the workers finish in visiting order: with one worker, or on one core.
    pub(crate) fn new(workers: u32, seed: u64) -> Option<Self> {
        let mut rng = Prng::new(seed);
        let doublings = u64::from(workers.checked_ilog2()?);
        let cores = 1 << rng.between(0, doublings);
        (cores > 1).then(|| Self {
            workers: workers as usize,
            cores,
            rng,
            chunks: Vec::new(),
            finished: Vec::new(),
        })
    }

    /// The order in which the nodes are finished, by their indexes in visiting order; each call draws a new one.
    ///
    /// Cost: one random number per node.
    pub(crate) fn finish_order(&mut self, nodes: usize) -> &[u32] {
        let mut finished = std::mem::take(&mut self.finished);
        finished.clear();
        self.finish_until(nodes, |node| {
            finished.push(node);
            false
        });
        self.finished = finished;
        &self.finished
    }

    /// Finishes the nodes in that order, until `is_enough` returns true for one. The next call draws the same numbers as
    /// if all had been finished, except with a probability of nodes / 2^60.
    ///
    /// Cost: one random number per node; those of the nodes that are left are drawn and not used.
    pub(crate) fn finish_until(&mut self, nodes: usize, mut is_enough: impl FnMut(u32) -> bool) {
        let size = chunk_size(nodes, self.workers);
        let starts = (0..nodes).step_by(size);
        let mut waiting = starts.map(|start| start as u32..(start + size).min(nodes) as u32);
        self.chunks.clear();
        self.chunks.extend(waiting.by_ref().take(self.cores));
        let mut n_left = nodes;
        while !self.chunks.is_empty() {
            let worker = self.rng.index(self.chunks.len());
            let chunk = &mut self.chunks[worker];
            let node = chunk.start;
            chunk.start += 1;
            n_left -= 1;
            if is_enough(node) {
                for _ in 0..n_left {
                    self.rng.next_u64();
                }
                return;
            }
            if chunk.start == chunk.end {
                match waiting.next() {
                    Some(next) => *chunk = next,
                    None => drop(self.chunks.swap_remove(worker)),
                }
            }
        }
    }
}

/// The number of nodes that a worker takes at once. Source: `chunkSizeFor`.
fn chunk_size(nodes: usize, workers: usize) -> usize {
    nodes.isqrt().min(nodes / workers + 1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: `chunkSizeFor` of v1.36.3, run.
    #[test]
    fn chunks_are_as_large_as_upstream_makes_them() {
        let sizes = [
            (1, 1),
            (8, 1),
            (15, 1),
            (16, 2),
            (100, 7),
            (1_000, 31),
            (5_000, 70),
        ];
        for (nodes, size) in sizes {
            assert_eq!(chunk_size(nodes, 16), size, "{nodes} nodes");
        }
        assert_eq!(chunk_size(0, 16), 1);
        assert_eq!(chunk_size(100, 1), 10);
    }

    #[test]
    fn one_worker_keeps_the_visiting_order() {
        assert!((0..100).all(|seed| Workers::new(1, seed).is_none()));
        assert!(Workers::new(0, 0).is_none());
    }

    #[test]
    fn each_node_is_finished_once_and_chunks_keep_their_order() {
        for seed in 0..100 {
            let Some(mut workers) = Workers::new(16, seed) else {
                continue;
            };
            for nodes in [0, 1, 2, 7, 16, 33, 100, 1_000] {
                let size = chunk_size(nodes, 16);
                let order = workers.finish_order(nodes).to_vec();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..nodes as u32), "seed {seed}");
                let mut next_of_chunk = vec![0; nodes.div_ceil(size)];
                for node in order {
                    let next = &mut next_of_chunk[node as usize / size];
                    assert_eq!(node as usize % size, *next, "seed {seed}, node {node}");
                    *next += 1;
                }
            }
        }
    }

    #[test]
    fn after_an_early_end_the_next_order_is_that_after_a_whole_one() {
        for seed in 0..100 {
            let Some(mut whole) = Workers::new(16, seed) else {
                continue;
            };
            let mut early = whole.clone();
            for (nodes, n_wanted) in [(100, 1), (8, 8), (1_000, 400), (33, 5)] {
                let order = whole.finish_order(nodes).to_vec();
                let mut begun = Vec::new();
                early.finish_until(nodes, |node| {
                    begun.push(node);
                    begun.len() == n_wanted
                });
                assert_eq!(begun, order[..n_wanted], "seed {seed}");
            }
        }
    }

    /// Over the seeds each of 8 nodes is the first to be finished, and an early one more often than a late one.
    #[test]
    fn any_node_may_be_first_and_early_ones_are_more_often() {
        let mut first = [0_u32; 8];
        let n_seeds = 8_000;
        for seed in 0..n_seeds {
            let node = Workers::new(16, seed).map_or(0, |mut w| w.finish_order(8)[0]);
            first[node as usize] += 1;
        }
        // 1, 2, 4, 8 or 16 cores; 8 chunks, of which as many are worked on.
        let expected = |node: usize| -> f64 {
            let cores = [1_usize, 2, 4, 8, 8];
            let share = |&c: &usize| if node < c { 0.2 / c as f64 } else { 0.0 };
            cores.iter().map(share).sum::<f64>() * n_seeds as f64
        };
        for (node, &met) in first.iter().enumerate() {
            let expected = expected(node);
            let off = (f64::from(met) - expected).abs();
            assert!(off < 5.0 * expected.sqrt(), "{node}: {met}, not {expected}");
        }
    }
}
