//! strew's placement controller on a simulated hub, with the driver and machine of a real one.
//!
//! It starts with the first Placement and costs nothing without one. Reading order: this file, `careless` (a controller
//! with mistakes, for tests of the judge), [`fleet`] (the hub as stored), [`hub`] (a hub at one instant).

mod careless;
pub mod fleet;
pub mod hub;

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::server::Server;
use strew_model::time::Instant;
use strew_model::{Interner, Symbol};
use strew_placement::machine::{Effect, Limits, PlacementMachine};
use strew_placement::schedule::schedule;
use strew_runtime::placement::{Placements, watches};
use strew_wire::request::{Answer, Request, Resource};

use crate::auditor::{Witness, kept};
use crate::component::{Component, Judge, Surroundings};
use crate::network::Sender;
use careless::Careless;
pub use careless::Diligence;
pub use fleet::Fleet;
pub use hub::Hub;

/// Its hostname, part of the names in events.
const HOSTNAME: &str = "controller-0";

/// For the witness: the number of each placement's last decision and the clusters that it wants, by the placement's
/// namespace and name.
type Desired = BTreeMap<(Symbol, Symbol), (u64, Arc<[Arc<str>]>)>;

/// strew's controller.
pub struct PlacementController {
    component: Component<Careless>,
    desired: Desired,
}

impl PlacementController {
    /// A controller that lists the store first.
    pub(crate) fn new(
        limits: Limits,
        server: &Server,
        now: Instant,
        diligence: Diligence,
        seed: u64,
    ) -> Self {
        let machine = Careless::new(Placements::new(HOSTNAME.to_owned(), limits, now), diligence);
        let sender = Sender::PlacementController;
        Self {
            component: Component::new(machine, watches(), sender, server, now, seed),
            desired: Desired::new(),
        }
    }

    /// The objects that its watches have delivered.
    pub fn seen(&self) -> &Tables {
        self.component.seen()
    }

    /// The next time at which it has something to do without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.component.next_wake()
    }

    /// Takes one step. Returns false if there was nothing to do.
    pub(crate) fn step(
        &mut self,
        around: &mut Surroundings<'_>,
        witness: Option<&mut Witness>,
    ) -> bool {
        let mut judge = KeptJudge {
            now: around.now,
            desired: &mut self.desired,
            witness,
        };
        self.component.step(around, &mut judge)
    }
}

/// Compares what a placement holds before and after each write.
struct KeptJudge<'a> {
    now: Instant,
    desired: &'a mut Desired,
    witness: Option<&'a mut Witness>,
}

impl Judge<Careless> for KeptJudge<'_> {
    /// Computes the wanted clusters again from the inputs of the decision, before its first write; the decision's own
    /// result is not used. Later writes of other placements change scores, but not this decision.
    fn decided(&mut self, machine: &mut Careless, _: &Tables, effect: &Effect) {
        let Some(witness) = self.witness.as_deref_mut() else {
            return;
        };
        let Effect::WriteDecision {
            decision,
            placement,
            ..
        } = effect
        else {
            return;
        };
        let key = (placement.namespace, placement.name);
        if self.desired.get(&key).is_some_and(|(of, _)| of == decision) {
            return;
        }
        let placements = machine.placements();
        let Some(fact) = placements.machine().placement(key.0, key.1) else {
            return;
        };
        let hub = placements.machine().hub();
        let wanted = schedule(hub, self.now, fact, placements.selectors());
        let clusters = wanted.picks.iter().map(|pick| hub.names.text(pick.cluster));
        let clusters = clusters.map(Into::into).collect();
        self.desired.insert(key, (*decision, clusters));
        witness.n_placed += 1;
    }

    fn execute(
        &mut self,
        machine: &Careless,
        server: &mut Server,
        now: Instant,
        request: &Request,
    ) -> Answer {
        let names = names(machine.placements().machine());
        let (Some(witness), Some(of)) = (self.witness.as_deref_mut(), placement_of(request, names))
        else {
            return server.execute(now, request);
        };
        let wanted = self
            .desired
            .get(&of)
            .map_or(&[][..], |(_, clusters)| clusters);
        let placement = (names.text(of.0), names.text(of.1));
        let before = kept::union(server.tables(), placement.0, placement.1);
        let answer = server.execute(now, request);
        let after = kept::union(server.tables(), placement.0, placement.1);
        kept::judge(placement, &request.name, wanted, &before, &after, witness);
        answer
    }
}

fn names(machine: &PlacementMachine) -> &Interner {
    &machine.hub().names
}

/// The placement whose decisions a request writes, from the name of the PlacementDecision.
fn placement_of(request: &Request, names: &Interner) -> Option<(Symbol, Symbol)> {
    if request.resource != Resource::PLACEMENT_DECISIONS {
        return None;
    }
    let (placement, _) = request.name.rsplit_once("-decision-")?;
    let namespace = names.get(&request.namespace)?;
    Some((namespace, names.get(placement)?))
}
