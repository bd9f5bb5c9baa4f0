//! The order in which placements are decided.
//!
//! Namespaces take turns by the cost of the expressions that were evaluated for them, so that a tenant's expressions
//! hold up its own placements. Without such a cost the order is that of arrival.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashMap;
use strew_model::{Holds, Marks, Symbol};

use super::placement_machine::PlacementIdx;
use crate::filter::predicate::COST_MAX_PER_PLACEMENT;

/// The cost units of CEL that are evaluated for one placement before others have their turn; the last evaluation may
/// exceed it by what one cluster may cost.
pub(super) const SLICE: u64 = 5_000_000;

/// The turns after which a placement is decided with what is known, if clusters change faster than they are evaluated:
/// twice those that the most expensive placement takes.
pub(super) const SLICES_MAX: u32 = (2 * COST_MAX_PER_PLACEMENT / SLICE) as u32;

/// The cost of a decision beside its expressions.
pub(super) const DECISION: u64 = 1_000;

/// The placements to decide.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Placements whose decision is being written: they come first.
    writing: VecDeque<PlacementIdx>,
    lanes: FxHashMap<Symbol, Lane>,
    /// Lanes that are not empty, by turn and by the arrival of their first placement.
    order: BTreeSet<(u64, u64, Symbol)>,
    /// What the last namespace that had a turn had spent: a namespace that comes later begins there.
    floor: u64,
    arrivals: u64,
}

/// The placements of a namespace.
#[derive(Debug, Default)]
struct Lane {
    spent: u64,
    /// Each with its arrival.
    waiting: VecDeque<(u64, PlacementIdx)>,
}

impl Lane {
    fn key(&self, namespace: Symbol) -> Option<(u64, u64, Symbol)> {
        let (arrival, _) = self.waiting.front()?;
        Some((self.spent / SLICE, *arrival, namespace))
    }
}

impl Turns {
    /// Adds a placement behind the others of its namespace.
    pub(super) fn push(&mut self, namespace: Symbol, idx: PlacementIdx) {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.change(namespace, |lane| lane.waiting.push_back((arrival, idx)));
    }

    /// Adds a placement whose next write is to be made.
    pub(super) fn push_writing(&mut self, idx: PlacementIdx) {
        self.writing.push_front(idx);
    }

    /// The next placement.
    pub(super) fn pop(&mut self) -> Option<PlacementIdx> {
        if let Some(idx) = self.writing.pop_front() {
            return Some(idx);
        }
        let &(_, _, namespace) = self.order.first()?;
        let mut next = None;
        self.change(namespace, |lane| {
            next = lane.waiting.pop_front().map(|(_, idx)| (lane.spent, idx));
        });
        let (spent, idx) = next?;
        self.floor = self.floor.max(spent);
        Some(idx)
    }

    /// Counts cost units of a namespace.
    pub(super) fn charge(&mut self, namespace: Symbol, units: u64) {
        self.change(namespace, |lane| {
            lane.spent = lane.spent.saturating_add(units)
        });
    }

    /// Removes a placement.
    pub(super) fn remove(&mut self, namespace: Symbol, idx: PlacementIdx) {
        self.writing.retain(|&other| other != idx);
        self.change(namespace, |lane| {
            lane.waiting.retain(|&(_, other)| other != idx)
        });
    }

    /// Forgets the namespaces that have neither placements that wait nor spent more than a new one.
    pub(super) fn sweep(&mut self) {
        let floor = self.floor;
        self.lanes
            .retain(|_, lane| !lane.waiting.is_empty() || lane.spent > floor);
    }

    fn change(&mut self, namespace: Symbol, change: impl FnOnce(&mut Lane)) {
        let lane = self.lanes.entry(namespace).or_default();
        match lane.key(namespace) {
            Some(key) => {
                self.order.remove(&key);
            }
            None => lane.spent = lane.spent.max(self.floor),
        }
        change(lane);
        self.order.extend(lane.key(namespace));
    }
}

impl Holds for Turns {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        self.lanes
            .keys()
            .for_each(|namespace| namespace.mark(marks));
    }
}

#[cfg(test)]
mod tests {
    use strew_model::well_known;

    use super::*;

    const A: Symbol = well_known::EMPTY;
    const B: Symbol = well_known::DEFAULT_NAMESPACE;

    fn popped(turns: &mut Turns, n: usize) -> Vec<usize> {
        let mut all = Vec::new();
        for _ in 0..n {
            all.extend(turns.pop().map(PlacementIdx::index));
        }
        all
    }

    #[test]
    fn without_costs_they_come_as_they_arrived() {
        let mut turns = Turns::default();
        for (i, namespace) in [A, B, A, A, B].into_iter().enumerate() {
            turns.push(namespace, PlacementIdx::from(i));
        }
        assert_eq!(popped(&mut turns, 6), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_namespace_that_has_spent_more_waits_and_no_credit_is_saved() {
        let mut turns = Turns::default();
        for i in 0..4 {
            turns.push(A, PlacementIdx::from(i));
        }
        assert_eq!(popped(&mut turns, 1), [0]);
        turns.charge(A, 3 * SLICE);
        for i in 4..7 {
            turns.push(B, PlacementIdx::from(i));
        }
        assert_eq!(popped(&mut turns, 1), [4]);
        turns.charge(B, 2 * SLICE);
        assert_eq!(popped(&mut turns, 1), [5]);
        turns.charge(B, 2 * SLICE);
        assert_eq!(popped(&mut turns, 2), [1, 2], "B has spent more now");
        // A namespace that comes late begins where the others are, not at zero.
        turns.remove(B, PlacementIdx::from(6));
        turns.charge(B, 100 * SLICE);
        turns.sweep();
        assert_eq!(turns.lanes.len(), 2);
        assert_eq!(popped(&mut turns, 2), [3]);
    }
}
