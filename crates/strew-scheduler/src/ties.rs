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
    /// Takes the item with the next higher index, if it is a candidate. Returns true if it is the first one now.
    #[inline]
    pub(crate) fn offer(&mut self, is_one: bool, index: usize, item: T) -> bool {
        // One rarely taken branch: `is_one` alone is unpredictable, and would cost a misprediction per item.
        if !(is_one & (index >= self.level)) {
            return false;
        }
        self.level = usize::MAX >> (index + 1).leading_zeros();
        let first = self.first.as_ref();
        let precedes = first.is_none_or(|&(first, _)| heap_precedes(index, first));
        if precedes {
            self.first = Some((index, item));
        }
        precedes
    }

    /// False if no index below `end` can be offered with success any more.
    #[inline]
    pub(crate) fn wants_below(&self, end: usize) -> bool {
        end > self.level
    }

    /// True if no higher index comes before the item: only its ancestors do.
    pub(crate) fn is_certain(&self) -> bool {
        let first = self.first.as_ref();
        first.is_some_and(|&(first, _)| (first + 1).is_power_of_two())
    }

    pub(crate) fn item(self) -> Option<T> {
        self.first.map(|(_, item)| item)
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
        preorder(0, 70, &mut order);
        let mut dice = strew_model::Prng::new(7);
        for _ in 0..1000 {
            let some: Vec<usize> = (0..70).filter(|_| dice.index(8) == 0).collect();
            let expected = order.iter().copied().find(|index| some.contains(index));
            let (mut first, mut early) = (FirstInHeap::default(), None);
            for &index in &some {
                if first.is_certain() && early.is_none() {
                    early = first.first;
                }
                if !first.wants_below(index + 1) {
                    let before = first.first;
                    first.offer(true, index, index);
                    assert_eq!(first.first, before, "{some:?}");
                }
                first.offer(true, index, index);
            }
            assert_eq!(first.item(), expected, "{some:?}");
            let early = early.map(|(_, item)| item);
            assert!(early.is_none() || early == expected, "{some:?}");
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
