//! Amounts of resources.

use smallvec::SmallVec;

use crate::symbol::{Holds, Marks, Symbol};

/// Amounts of each resource: requested by a pod, or available or used on a node.
///
/// CPU in thousandths of a core, memory and ephemeral storage in bytes, all others in whole units. Never negative in
/// decisions: strew-manifest refuses negative and overflowing quantities.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory: i64,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage: i64,
    /// Everything else (extended resources, huge pages, attachable volumes), sorted by symbol, each once.
    scalars: SmallVec<[(Symbol, i64); 1]>,
}

/// The name of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResourceName {
    /// CPU, in thousandths of a core.
    Cpu,
    /// Memory, in bytes.
    Memory,
    /// Ephemeral storage, in bytes.
    EphemeralStorage,
    /// Any other, in its units.
    Scalar(Symbol),
}

impl Resources {
    /// The amount of a resource.
    pub fn get(&self, name: ResourceName) -> i64 {
        match name {
            ResourceName::Cpu => self.cpu_milli,
            ResourceName::Memory => self.memory,
            ResourceName::EphemeralStorage => self.ephemeral_storage,
            ResourceName::Scalar(name) => self.scalar(name),
        }
    }

    /// An amount of CPU in thousandths and of memory in bytes.
    pub fn of(cpu_milli: i64, memory: i64) -> Self {
        Self {
            cpu_milli,
            memory,
            ..Self::default()
        }
    }

    /// The amount of a resource without a field of its own.
    pub fn scalar(&self, name: Symbol) -> i64 {
        self.scalars
            .iter()
            .find(|&&(n, _)| n == name)
            .map_or(0, |&(_, v)| v)
    }

    /// Sets the amount of a resource without a field of its own.
    pub fn set_scalar(&mut self, name: Symbol, amount: i64) {
        match self.scalars.binary_search_by_key(&name, |&(n, _)| n) {
            Ok(i) => self.scalars[i].1 = amount,
            Err(i) => self.scalars.insert(i, (name, amount)),
        }
    }

    /// The resources without a field of their own.
    pub fn scalars(&self) -> &[(Symbol, i64)] {
        &self.scalars
    }

    /// Adds `other` `times` times (-1 subtracts it), saturating.
    pub fn add(&mut self, other: &Resources, times: i64) {
        let plus = |own: &mut i64, more: i64| *own = own.saturating_add(more.saturating_mul(times));
        plus(&mut self.cpu_milli, other.cpu_milli);
        plus(&mut self.memory, other.memory);
        plus(&mut self.ephemeral_storage, other.ephemeral_storage);
        for &(name, amount) in &other.scalars {
            let mut sum = self.scalar(name);
            plus(&mut sum, amount);
            self.set_scalar(name, sum);
        }
    }

    /// Raises each amount to that of `other`, if that is larger.
    pub fn raise_to(&mut self, other: &Resources) {
        self.cpu_milli = self.cpu_milli.max(other.cpu_milli);
        self.memory = self.memory.max(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.max(other.ephemeral_storage);
        for &(name, amount) in &other.scalars {
            self.set_scalar(name, self.scalar(name).max(amount));
        }
    }

    /// True if all amounts are 0.
    pub fn is_zero(&self) -> bool {
        self.cpu_milli == 0
            && self.memory == 0
            && self.ephemeral_storage == 0
            && self.scalars.iter().all(|&(_, v)| v == 0)
    }
}

impl Holds for Resources {
    fn mark(&self, marks: &mut Marks) {
        self.scalars.as_slice().mark(marks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interner;

    #[test]
    fn adding_and_taking_away_is_identity() {
        let mut names = Interner::new();
        let (gpu, disk) = (names.intern("gpu"), names.intern("disk"));
        let mut one = Resources {
            cpu_milli: 100,
            memory: 7,
            ..Resources::default()
        };
        one.set_scalar(gpu, 2);
        let mut sum = Resources::default();
        sum.set_scalar(disk, 5);
        let before = sum.clone();
        sum.add(&one, 1);
        assert_eq!(
            (sum.cpu_milli, sum.scalar(gpu), sum.scalar(disk)),
            (100, 2, 5)
        );
        sum.add(&one, -1);
        assert_eq!(sum.scalar(gpu), before.scalar(gpu));
        assert_eq!((sum.cpu_milli, sum.memory), (0, 0));
        assert!(!sum.is_zero());
        sum.raise_to(&one);
        assert_eq!((sum.cpu_milli, sum.scalar(disk)), (100, 5));
    }
}
