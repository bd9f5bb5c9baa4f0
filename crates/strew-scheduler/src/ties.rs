//! The tie rule between best nodes.

/// Whether index `b` comes before index `a` in pre-order of the implicit binary heap (children of i: 2i+1, 2i+2).
///
/// kube-scheduler v1.35 and v1.36 sort results in a heap whose equal elements keep this order (spec/scheduler §2.5).
/// Counted from 1, a node's number in binary is the path to it: the shorter path goes first where one leads on from
/// the other, else the path that turns left first.
#[inline]
pub fn heap_precedes(b: usize, a: usize) -> bool {
    let (a, b) = (a as u64 + 1, b as u64 + 1);
    let (depth_a, depth_b) = (a.leading_zeros(), b.leading_zeros());
    if depth_b <= depth_a {
        // b is at least as deep: bring it up to a's level.
        (b >> (depth_a - depth_b)) < a
    } else {
        b <= (a >> (depth_b - depth_a))
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
