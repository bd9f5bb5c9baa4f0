//! The placement controller as a component of the simulation.

use super::Simulation;
use crate::placement::{Diligence, PlacementController};
use crate::slot::Slot;

impl Simulation {
    /// Starts the controller with the first Placement, and again after a crash.
    pub(super) fn begin_placing(&mut self) {
        let begins = match &self.placing {
            None => self.server.is_hub(),
            Some(slot) => slot.is_due(self.now),
        };
        if begins {
            self.placing = Some(Slot::new(self.placement_controller()));
        }
    }

    pub(super) fn step_placing(&mut self) -> bool {
        let Some(slot) = &mut self.placing else {
            return false;
        };
        let dice = [&mut self.dice.faults, &mut self.dice.placing];
        let world = (&mut self.server, &self.faults);
        slot.step(self.now, world, dice, |controller, around| {
            controller.step(around, self.witness.as_deref_mut())
        })
    }

    /// The controller; `None` while it is down or before it starts.
    pub fn placing(&self) -> Option<&PlacementController> {
        self.placing.as_ref()?.alive.as_ref()
    }

    /// Sets how strew's controller carries out its decisions from now on.
    pub fn set_diligence(&mut self, diligence: Diligence) {
        self.diligence = diligence;
        if self.placing.is_some() {
            self.placing = Some(Slot::new(self.placement_controller()));
        }
    }

    fn placement_controller(&mut self) -> PlacementController {
        let seed = self.dice.placing.next_u64();
        PlacementController::new(
            self.blueprint.limits.placement,
            &self.server,
            self.now,
            self.diligence,
            seed,
        )
    }
}
