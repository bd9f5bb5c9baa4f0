//! Decision groups. Source: spec/placement §2.8.

use std::cmp::Reverse;

use strew_model::{Selector, Symbol, well_known};

use crate::facts::decision::Decision;
use crate::facts::placement::{GroupSize, PlacementSpec, SortBy};
use crate::hub::Hub;
use crate::schedule::Pick;

/// A group. Its index is its position in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// `decisionGroupName`; empty for clusters that no entry selects.
    pub name: Symbol,
    /// Its clusters, in the order that the placement asks for.
    pub decisions: Vec<Decision>,
}

/// The groups of a selection; one empty group if nothing is selected.
pub fn of(hub: &Hub, spec: &PlacementSpec, picks: &[Pick]) -> Vec<Group> {
    let mut left: Vec<Pick> = picks.to_vec();
    left.sort_by(|a, b| hub.names.text(a.cluster).cmp(hub.names.text(b.cluster)));
    let limit = size(&spec.groups.size, left.len());
    let mut groups = Vec::new();
    for entry in spec.groups.groups.as_deref().unwrap_or_default() {
        let taken = |pick: &Pick| matches(hub, pick, &entry.labels, &entry.claims);
        let (taken, others): (Vec<Pick>, Vec<Pick>) = left.into_iter().partition(taken);
        left = others;
        cut(entry.name, &taken, limit, spec.sort_by, &mut groups);
    }
    cut(well_known::EMPTY, &left, limit, spec.sort_by, &mut groups);
    if groups.is_empty() {
        groups.push(Group {
            name: well_known::EMPTY,
            decisions: Vec::new(),
        });
    }
    groups
}

/// The largest number of clusters in a group, for this number of selected clusters.
fn size(size: &GroupSize, selected: usize) -> usize {
    let limit = match *size {
        GroupSize::Count(n) => usize::try_from(n).unwrap_or(0),
        GroupSize::Percent(percent) => (selected * percent as usize).div_ceil(100),
        GroupSize::NotAPercentage(_) => 0,
    };
    match limit {
        0 => selected,
        limit => limit.min(selected),
    }
}

fn matches(hub: &Hub, pick: &Pick, labels: &Selector, claims: &Selector) -> bool {
    let cluster = hub.cluster(pick.idx);
    cluster.is_some_and(|c| labels.matches(&c.labels) && claims.matches(&c.claims))
}

/// Cuts clusters, sorted by name, into groups of one name.
fn cut(name: Symbol, picks: &[Pick], limit: usize, sort_by: SortBy, groups: &mut Vec<Group>) {
    for piece in picks.chunks(limit.max(1)) {
        let mut piece = piece.to_vec();
        let scored = sort_by == SortBy::Score;
        if scored {
            // The sort is stable: clusters of equal score stay in the order of their names.
            piece.sort_by_key(|pick| Reverse(pick.score));
        }
        let decision = |pick: &Pick| Decision {
            cluster: pick.cluster,
            score: scored.then_some(pick.score),
        };
        groups.push(Group {
            name,
            decisions: piece.iter().map(decision).collect(),
        });
    }
}
