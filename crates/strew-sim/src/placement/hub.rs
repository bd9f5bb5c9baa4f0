//! A hub at one instant: the API server with strew's controller, without faults. Nothing on it takes time.

use strew_apiserver::Tables;
use strew_apiserver::object::Object;
use strew_apiserver::server::Server;
use strew_manifest::ocm::Placement;
use strew_manifest::read::KubeObject;
use strew_model::Prng;
use strew_model::time::Instant;
use strew_placement::explain::Detail;
use strew_placement::machine::Limits;
use strew_runtime::placement::{Placements, watches};
use strew_wire::config::AdmissionOptions;
use strew_wire::placement::debug::Explained;

use super::HOSTNAME;
use crate::component::{Component, Surroundings};
use crate::fault::Faults;
use crate::network::{Draws, Sender};

/// The hub.
pub struct Hub {
    server: Server,
    controller: Component<Placements>,
    now: Instant,
}

impl Hub {
    /// A hub with these admitted objects, which its controller has listed. `registers`: registration puts clusters into
    /// sets and maintains its own sets.
    pub fn new(
        objects: impl IntoIterator<Item = KubeObject>,
        registers: bool,
        now: Instant,
    ) -> Self {
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(0));
        if !registers {
            server.leave_registration_out();
        }
        for object in objects {
            server.preload(now, Object::of_wire(object));
        }
        server.add_default_sets(now);
        let limits = Limits {
            resync: None,
            ..Limits::production()
        };
        let machine = Placements::new(HOSTNAME.to_owned(), limits, now);
        let sender = Sender::PlacementController;
        let controller = Component::new(machine, watches(), sender, &server, now, 0);
        let mut hub = Self {
            server,
            controller,
            now,
        };
        hub.rest();
        hub
    }

    /// The stored objects.
    pub fn tables(&self) -> &Tables {
        self.server.tables()
    }

    /// The decision that a Placement would get now.
    pub fn explain(&mut self, placement: &Placement, detail: Detail) -> Explained {
        let now = self.now;
        self.controller
            .tell(|machine, _| machine.explain_in(placement, now, detail))
    }

    /// Stores an admitted object, and lets the controller write until nothing is left to do now.
    pub fn add(&mut self, object: KubeObject) {
        self.server.preload(self.now, Object::of_wire(object));
        self.rest();
    }

    fn rest(&mut self) {
        let faults = Faults::default();
        let [mut of_faults, mut order] = [Prng::new(0), Prng::new(1)];
        loop {
            let mut around = Surroundings {
                now: self.now,
                server: &mut self.server,
                faults: &faults,
                draws: Draws {
                    faults: &mut of_faults,
                    order: &mut order,
                    writes_left: None,
                },
            };
            let acted = self.controller.step(&mut around, &mut ());
            // Expressions are evaluated in slices.
            let wakes = self.controller.next_wake().is_some_and(|at| at <= self.now);
            if !acted && !wakes {
                return;
            }
        }
    }
}
