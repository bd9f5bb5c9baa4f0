//! The controller that keeps ReplicaSets spread, as a component of the simulation.

use strew_apiserver::object::Object;
use strew_apiserver::server::Change;
use strew_keep::{Keeper, LABEL, Wish};
use strew_runtime::keep::{Keeping, watches};

use super::Simulation;
use crate::component::Component;
use crate::network::Sender;
use crate::slot::Slot;

/// True if a ReplicaSet, a Deployment or a namespace with the label was written.
fn asks(change: &Change) -> bool {
    let labelled = match &change.new {
        Some(object @ (Object::ReplicaSet(_) | Object::Deployment(_) | Object::Plain(_))) => object,
        _ => return false,
    };
    let label = labelled.meta().labels.get(LABEL);
    Wish::of(label.map(String::as_str)) == Some(Wish::Keep)
}

impl Simulation {
    /// Starts the controller with the first label that asks for it, and again after a crash.
    pub(super) fn begin_keeping(&mut self) {
        let begins = match &self.keeping {
            Some(slot) => slot.is_due(self.now),
            None => self.labelled.comes(&self.server, asks),
        };
        if begins {
            let names = self.blueprint.names.clone();
            let profiles = self.blueprint.profiles.clone();
            let machine = Keeping::new(names, profiles, self.blueprint.limits.keep);
            let seed = self.dice.keeping.next_u64();
            let keeper = Component::new(
                machine,
                watches(),
                Sender::Keeper,
                &self.server,
                self.now,
                seed,
            );
            self.keeping = Some(Slot::new(keeper));
        }
    }

    pub(super) fn step_keeping(&mut self) -> bool {
        let Some(slot) = &mut self.keeping else {
            return false;
        };
        let dice = [&mut self.dice.faults, &mut self.dice.keeping];
        let world = (&mut self.server, &self.faults);
        slot.step(self.now, world, dice, |keeper, around| {
            keeper.step(around, &mut ())
        })
    }

    /// The machine that keeps ReplicaSets spread; `None` while it is down, and before a label asks for it.
    pub fn keeper(&self) -> Option<&Keeper> {
        let keeper = self.keeping.as_ref()?.alive.as_ref()?;
        Some(keeper.machine().machine())
    }
}

#[cfg(test)]
mod tests;
