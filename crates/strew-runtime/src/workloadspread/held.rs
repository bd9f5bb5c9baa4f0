//! WorkloadSpreads that are held back until everything that they need is known.

use std::collections::BTreeMap;

use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_wire::facts::Named;

/// The last known version of each, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<[Box<str>; 2], Box<WorkloadSpread>>);

impl Held {
    /// Holds back the current state of one. The machine continues with the state that it knows.
    pub(super) fn put(&mut self, named: Named, wire: Box<WorkloadSpread>) {
        self.0.insert([named.namespace, named.name], wire);
    }

    /// Removes a deleted one.
    pub(super) fn remove(&mut self, named: &Named) {
        let key = [named.namespace.clone(), named.name.clone()];
        self.0.remove(&key);
    }

    /// The number of those held back.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes those that need not wait any longer.
    pub(super) fn take(
        &mut self,
        mut is_known: impl FnMut(&WorkloadSpread) -> bool,
    ) -> Vec<WorkloadSpread> {
        let ready = self.0.extract_if(.., |_, wire| is_known(wire));
        ready.map(|(_, wire)| *wire).collect()
    }
}
