//! The table of pods. Rows are used again; indexes are not.

use super::PodRow;
use crate::index::PodIdx;

#[derive(Debug, Clone)]
struct Slot {
    generation: u32,
    pod: Option<PodRow>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PodTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl PodTable {
    /// # Panics
    /// There are 2³² pods.
    pub(super) fn insert(&mut self, pod: PodRow) -> PodIdx {
        let row = self.free.pop().unwrap_or_else(|| {
            let row = u32::try_from(self.slots.len()).expect("fewer than 2^32 pods");
            self.slots.push(Slot {
                generation: 0,
                pod: None,
            });
            row
        });
        let slot = &mut self.slots[row as usize];
        slot.pod = Some(pod);
        PodIdx {
            row,
            generation: slot.generation,
        }
    }

    pub(super) fn remove(&mut self, index: PodIdx) -> Option<PodRow> {
        let slots = self.slots.get_mut(index.row as usize);
        let slot = slots.filter(|slot| slot.generation == index.generation)?;
        let pod = slot.pod.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index.row);
        Some(pod)
    }

    #[inline]
    pub(super) fn get(&self, index: PodIdx) -> Option<&PodRow> {
        let slot = self.slots.get(index.row as usize)?;
        let pod = slot.pod.as_ref();
        pod.filter(|_| slot.generation == index.generation)
    }

    pub(super) fn get_mut(&mut self, index: PodIdx) -> Option<&mut PodRow> {
        let slot = self.slots.get_mut(index.row as usize)?;
        let pod = slot.pod.as_mut();
        pod.filter(|_| slot.generation == index.generation)
    }

    /// All pods, by row.
    pub(super) fn iter(&self) -> impl Iterator<Item = (PodIdx, &PodRow)> {
        (0_u32..).zip(&self.slots).filter_map(|(row, slot)| {
            let index = PodIdx {
                row,
                generation: slot.generation,
            };
            Some((index, slot.pod.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::ClassId;
    use crate::fact::PodHistory;
    use strew_model::index::RawId;

    fn row(name: &str) -> PodRow {
        PodRow {
            uid: name.into(),
            name: name.into(),
            class: ClassId::from(RawId::first(0)),
            node: None,
            history: PodHistory::default(),
            member: 0,
        }
    }

    #[test]
    fn the_index_of_a_pod_that_is_gone_finds_no_other_pod() {
        let mut table = PodTable::default();
        let [old, other] = ["old", "other"].map(|name| table.insert(row(name)));
        assert_eq!(table.remove(old).map(|row| row.name), Some("old".into()));
        let new = table.insert(row("new"));
        assert_eq!(new.row, old.row, "rows are used again");
        assert_ne!(new, old);
        assert!(table.get(old).is_none() && table.get_mut(old).is_none());
        assert!(table.remove(old).is_none(), "and it removes none");
        let names: Vec<_> = table
            .iter()
            .map(|(index, row)| (index, &*row.name))
            .collect();
        assert_eq!(names, [(new, "new"), (other, "other")]);
    }
}
