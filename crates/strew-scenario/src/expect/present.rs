//! The cluster that claims are judged on.

use strew_apiserver::server::Server;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_scheduler::Profile;
use strew_scheduler::queue::PluginSet;
use strew_sim::Simulation;
use strew_view::cluster_state::ClusterState;
use strew_view::moment::{Frame, Moment, world};
use strew_view::workload::Workloads;

/// The present state of a cluster: of a simulation, or of a real one as it was last listed.
pub trait Present {
    /// The objects and events.
    fn server(&self) -> &Server;

    /// The interner of the profiles.
    fn names(&self) -> &Interner;

    /// The scheduler's profiles; at least one.
    fn profiles(&self) -> &[Profile];

    /// The time.
    fn now(&self) -> Instant;

    /// The time since second 0.
    fn elapsed(&self) -> Span;

    /// The plugins that keep a pod Pending, by its uid; empty where no scheduler's queue can be seen.
    fn rejected_by(&self, uid: &str) -> PluginSet;
}

impl Present for Simulation {
    fn server(&self) -> &Server {
        self.server()
    }

    fn names(&self) -> &Interner {
        &self.blueprint().names
    }

    fn profiles(&self) -> &[Profile] {
        &self.blueprint().profiles
    }

    fn now(&self) -> Instant {
        self.now()
    }

    fn elapsed(&self) -> Span {
        self.elapsed()
    }

    fn rejected_by(&self, uid: &str) -> PluginSet {
        let of = self
            .schedulers()
            .map(|replica| replica.machine().rejected_by(uid));
        of.into_iter()
            .find(|plugins| !plugins.is_empty())
            .unwrap_or_default()
    }
}

/// The cluster, as the engine explains it.
pub(crate) fn world_of(present: &dyn Present) -> ClusterState {
    let moment = Moment {
        tables: present.server().tables(),
        scheduler: None,
        names: present.names(),
        profiles: present.profiles(),
    };
    let mut frame = Frame {
        names: present.names().clone(),
        profiles: present.profiles().to_vec(),
        workloads: Workloads::default(),
        keys: Vec::new(),
    };
    world(moment, &mut frame).0
}
