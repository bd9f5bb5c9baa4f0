//! WorkloadSpreads that are held back until what they need is known.

use std::collections::BTreeMap;

use strew_api::facts::Named;
use strew_api::workloadspread::v1beta1::WorkloadSpread;

/// The last known version of each, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Held(BTreeMap<[Box<str>; 2], Box<WorkloadSpread>>);

impl Held {
    /// One is there, and like this: what the machine knows of it, it goes on with.
    pub(super) fn put(&mut self, named: Named, wire: Box<WorkloadSpread>) {
        self.0.insert([named.namespace, named.name], wire);
    }

    /// One is gone.
    pub(super) fn remove(&mut self, named: &Named) {
        let key = [named.namespace.clone(), named.name.clone()];
        self.0.remove(&key);
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Those that need wait no longer.
    pub(super) fn take(
        &mut self,
        mut is_known: impl FnMut(&WorkloadSpread) -> bool,
    ) -> Vec<WorkloadSpread> {
        let ready = self.0.extract_if(.., |_, wire| is_known(wire));
        ready.map(|(_, wire)| *wire).collect()
    }
}
