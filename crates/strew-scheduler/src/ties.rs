//! The tie rule between best nodes.

/// True if index `b` comes before index `a` in pre-order of the implicit binary heap (children of i: 2i+1, 2i+2).
///
/// kube-scheduler v1.35 and v1.36 sort results in a heap whose equal elements keep this order (spec/scheduler §2.5).
/// Counted from 1, a node's number in binary is the path to it. If one path is a prefix of the other, the shorter one
/// comes first; otherwise the one that turns left first.
#[inline]
pub fn heap_precedes(b: usize, a: usize) -> bool {
    let (a, b) = (a as u64 + 1, b as u64 + 1);
    let (depth_a, depth_b) = (a.leading_zeros(), b.leading_zeros());
    if depth_b <= depth_a {
        // b is at least as deep: reduces it to a's level.
        (b >> (depth_a - depth_b)) < a
    } else {
        b <= (a >> (depth_b - depth_a))
    }
}

/// The first of several items in pre-order of the heap, found in one pass over them in the order of their indexes.
#[derive(Debug)]
pub(crate) struct FirstInHeap<T> {
    first: Option<(usize, T)>,
    /// The first index of the next level. Within a level pre-order is the order of indexes, so only the first item of a
    /// level is compared.
    level: usize,
}

impl<T> Default for FirstInHeap<T> {
    fn default() -> Self {
        Self {
            first: None,
            level: 0,
        }
    }
}

impl<T> FirstInHeap<T> {
    /// Takes the item with the next higher index, if it is a candidate.
    #[inline]
    pub(crate) fn offer(&mut self, is_one: bool, index: usize, item: T) {
        // One rarely taken branch: `is_one` alone is unpredictable, and would cost a misprediction per item.
        if !(is_one & (index >= self.level)) {
            return;
        }
        self.level = usize::MAX >> (index + 1).leading_zeros();
        let first = self.first.as_ref();
        if first.is_none_or(|&(first, _)| heap_precedes(index, first)) {
            self.first = Some((index, item));
        }
    }

    pub(crate) fn item(self) -> Option<T> {
        self.first.map(|(_, item)| item)
    }
}

/// Lists the indexes below `n` in that order.
pub(crate) fn heap_preorder(n: usize, out: &mut Vec<u32>) {
    out.clear();
    let mut pending = vec![0];
    while let Some(i) = pending.pop() {
        if i < n {
            out.push(i as u32);
            pending.extend([2 * i + 2, 2 * i + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preorder(i: usize, n: usize, out: &mut Vec<usize>) {
        if i < n {
            out.push(i);
            preorder(2 * i + 1, n, out);
            preorder(2 * i + 2, n, out);
        }
    }

    #[test]
    fn agrees_with_a_walk_of_the_heap() {
        for n in 1..70 {
            let mut walk = Vec::new();
            preorder(0, n, &mut walk);
            let mut listed = Vec::new();
            heap_preorder(n, &mut listed);
            assert!(listed.iter().map(|&i| i as usize).eq(walk.iter().copied()));
            for (i, &a) in walk.iter().enumerate() {
                for (j, &b) in walk.iter().enumerate() {
                    assert_eq!(heap_precedes(b, a), j < i, "{b} before {a} of {n}");
                }
            }
        }
    }

    #[test]
    fn the_first_of_some_is_found_in_one_pass() {
        let mut order = Vec::new();
        heap_preorder(70, &mut order);
        let mut dice = strew_model::Prng::new(7);
        for _ in 0..1000 {
            let some: Vec<u32> = (0..70).filter(|_| dice.index(8) == 0).collect();
            let mut first = FirstInHeap::default();
            for &index in &some {
                first.offer(true, index as usize, index);
            }
            let expected = order.iter().copied().find(|index| some.contains(index));
            assert_eq!(first.item(), expected, "{some:?}");
        }
    }

    /// Spec/scheduler §7: 8 equal nodes take equal pods in the order 0 1 3 7 4 2 5 6.
    #[test]
    fn eight_equal_nodes() {
        let mut order: Vec<usize> = (0..8).collect();
        order.sort_by(|&a, &b| {
            if heap_precedes(a, b) {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            }
        });
        assert_eq!(order, [0, 1, 3, 7, 4, 2, 5, 6]);
    }
}
