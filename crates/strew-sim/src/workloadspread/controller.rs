//! The controller of WorkloadSpreads in the simulated cluster, with the driver and machine of a real one.

use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::server::Server;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::kruise::workloads::{AdvancedStatefulSet, CloneSet};
use strew_model::Interner;
use strew_model::time::Instant;
use strew_runtime::Machine;
use strew_runtime::watch::{Kind, Served, ServedKind};
use strew_runtime::workloadspread::{Spreads, watches};
use strew_wire::workloadspread::Translator;
use strew_workloadspread::SpreadController;
use strew_workloadspread::controller::{Effect, Limits};

use crate::component::{Component, Surroundings};
use crate::network::Sender;

/// The namespace of the ConfigMap that names custom kinds.
pub(super) const NAMESPACE: &str = "strew-system";

/// The controller.
pub(crate) struct SpreadKeeper(Component<Spreads>);

impl SpreadKeeper {
    /// A controller whose watches have listed the store.
    pub(crate) fn new(limits: Limits, server: &Server, now: Instant, seed: u64) -> Self {
        let (watches, sender) = (watches(NAMESPACE), Sender::SpreadController);
        Self(Component::new(
            machine(limits),
            watches,
            sender,
            server,
            now,
            seed,
        ))
    }

    /// A controller that has seen the whole store and writes nothing.
    pub(crate) fn fresh(limits: Limits, server: &Server, now: Instant) -> Self {
        let (watches, sender) = (watches(NAMESPACE), Sender::SpreadController);
        Self(Component::fresh(
            machine(limits),
            watches,
            sender,
            server,
            now,
        ))
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &SpreadController {
        self.0.machine().machine()
    }

    /// The translator from objects to inputs.
    pub(crate) fn translator(&self) -> &Translator {
        self.0.machine().translator()
    }

    /// The objects that its watches have delivered.
    pub(crate) fn seen(&self) -> &Tables {
        self.0.seen()
    }

    /// The stored objects that its watches would deliver.
    pub(crate) fn watched(&self, tables: &Tables) -> Tables {
        self.0.watched(tables)
    }

    /// The next time at which it has something to do without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        self.0.next_wake()
    }

    /// The first effect of a controller that has seen the whole store; it is not carried out.
    pub(crate) fn wanted(&mut self, now: Instant) -> Option<Effect> {
        self.0.tell(|spreads, _| {
            spreads.tick(now);
            spreads.poll_effect()
        })
    }

    /// Takes one step. Returns false if there was nothing to do.
    pub(crate) fn step(&mut self, around: &mut Surroundings<'_>) -> bool {
        self.0.step(around, &mut ())
    }
}

fn machine(limits: Limits) -> Spreads {
    let hostname = "controller".to_owned();
    Spreads::new(Interner::new(), limits, hostname, Arc::new(served()))
}

/// Kruise's kinds that the simulated API server serves.
pub(super) fn served() -> Served {
    let kinds = [
        Kind::of::<WorkloadSpread>(),
        Kind::of::<CloneSet>(),
        Kind::of::<AdvancedStatefulSet>(),
    ];
    let served = kinds.into_iter().map(|kind| ServedKind {
        kind,
        has_scale: true,
    });
    served.collect()
}
