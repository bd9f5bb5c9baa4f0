//! The placement controller as a component of the simulation.

use super::Simulation;
use crate::component::Surroundings;
use crate::network::Draws;
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
        let Some(controller) = &mut slot.alive else {
            return false;
        };
        let mut around = Surroundings {
            now: self.now,
            server: &mut self.server,
            faults: &self.faults,
            draws: Draws {
                faults: &mut self.dice.faults,
                order: &mut self.dice.placing,
                writes_left: slot.doomed.as_mut().map(|(writes_left, _)| writes_left),
            },
        };
        let acted = controller.step(&mut around, self.witness.as_deref_mut());
        slot.meet_doom(self.now);
        acted
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
