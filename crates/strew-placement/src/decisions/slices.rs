//! The contents of each PlacementDecision. Source: spec/placement §1.2, §2.8.

use strew_model::{Interner, Symbol};

use super::groups::Group;
use crate::facts::decision::{Decision, Replicas};

/// The largest number of clusters in a PlacementDecision.
pub const CLUSTERS_MAX: usize = 100;

/// A PlacementDecision in its wanted state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// Its name, `PLACEMENT-decision-N`.
    pub name: Symbol,
    /// The index of its group.
    pub group: u32,
    /// The name of its group.
    pub group_name: Symbol,
    /// Its clusters.
    pub decisions: Vec<Decision>,
    /// The replicas of its clusters.
    pub replicas: Replicas,
}

/// The PlacementDecisions of the groups, numbered through all groups.
pub fn of(groups: &[Group], placement: Symbol, names: &mut Interner) -> Vec<Slice> {
    let mut slices = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let mut push = |decisions: &[Decision]| {
            let number = slices.len() + 1;
            let name = format!("{}-decision-{number}", names.text(placement));
            slices.push(Slice {
                name: names.intern(&name),
                group: index as u32,
                group_name: group.name,
                decisions: decisions.to_vec(),
                replicas: Replicas::Absent,
            });
        };
        match group.decisions.is_empty() {
            true => push(&[]),
            false => group.decisions.chunks(CLUSTERS_MAX).for_each(push),
        }
    }
    slices
}
