//! A log of changed nodes, so that caches can follow instead of starting again.

use std::collections::VecDeque;

use crate::index::NodeIdx;

/// The last changes, each with an increasing number. Bounded: old changes are dropped.
#[derive(Debug, Clone)]
pub struct ChangeLog {
    first: u64,
    entries: VecDeque<NodeIdx>,
    capacity: usize,
}

impl ChangeLog {
    /// A log of the last `capacity` changes.
    pub fn new(capacity: usize) -> Self {
        let entries = VecDeque::with_capacity(capacity.min(1024));
        Self {
            first: 0,
            entries,
            capacity,
        }
    }

    /// Records that `node` changed.
    pub fn push(&mut self, node: NodeIdx) {
        if self.entries.len() == self.capacity {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(node);
    }

    /// The number of the next change: a reader that has seen all changes stores it.
    pub fn head(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// The nodes that changed since `seen`; `None` if that is too long ago.
    pub fn since(&self, seen: u64) -> Option<impl ExactSizeIterator<Item = NodeIdx> + '_> {
        let skip = usize::try_from(seen.checked_sub(self.first)?).ok()?;
        (skip <= self.entries.len()).then(|| self.entries.range(skip..).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_fell_behind_is_told_so() {
        let mut log = ChangeLog::new(3);
        let seen = log.head();
        for i in 0..3 {
            log.push(NodeIdx(i));
        }
        assert_eq!(
            log.since(seen).map(Iterator::collect::<Vec<_>>),
            Some(vec![NodeIdx(0), NodeIdx(1), NodeIdx(2)])
        );
        log.push(NodeIdx(3));
        assert!(log.since(seen).is_none());
        assert_eq!(log.since(log.head()).map(|c| c.len()), Some(0));
        assert_eq!(
            log.since(2).map(Iterator::collect::<Vec<_>>),
            Some(vec![NodeIdx(2), NodeIdx(3)])
        );
        assert!(log.since(99).is_none());
    }
}
