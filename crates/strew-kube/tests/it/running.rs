//! `strew controller` at work on a server that does as a test says.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use strew_kube::connect::Connection;
use strew_kube::controller::audit::Settings;
use strew_kube::controller::rebalance;
use strew_kube::controller::{About, Blueprint, DEBUG_PATHS, Process, Scout};
use strew_kube::serve::pages::guarded;
use strew_kube::serve::{Access, Paths};
use strew_kube::{Client, metrics};
use strew_wire::config::LeaderElection;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;

/// A controller at work: its pages, and its end.
pub(crate) struct Running {
    pub(crate) pages: Router,
    end: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// Begins.
pub(crate) async fn start(client: Client, election: LeaderElection, local: &LocalSet) -> Running {
    let end = CancellationToken::new();
    let choice = "*".parse().expect("all");
    let scout = Scout::begin(client.clone(), choice, "strew-system".to_owned()).await;
    let connection = Connection {
        client: client.clone(),
        requests: metrics::Requests::to("api.test"),
        server: "https://hub".to_owned(),
        version: "v1.36.3".to_owned(),
        namespace: "default".to_owned(),
        warning: None,
    };
    let blueprint = Blueprint {
        election,
        hostname: "host-1".to_owned(),
        identity: "host-1_1".to_owned(),
        seed: 1,
        guard: strew_kube::registration::guard::Settings::default(),
        audit: Settings {
            every: Duration::from_secs(600),
            max_series: 0,
            auditor: Arc::new(|_| Ok(Vec::new())),
        },
        rebalance: rebalance::Settings {
            every: Duration::from_secs(600),
            max_series: 0,
            rebalancer: Arc::new(|| unreachable!("it is not chosen")),
        },
        about: About {
            version: "0.1.0".to_owned(),
            kubernetes: "v1.36.3".to_owned(),
            configuration: "{}".to_owned(),
        },
    };
    let scout = scout.expect("a hub that tells its kinds");
    let (process, pages) = Process::start(blueprint, scout, &connection, end.clone());
    local.spawn_local(process.run(end.clone()));
    let paths = Paths::parse(DEBUG_PATHS).expect("paths");
    let access = Access::new(client, Paths::none(), None).judged_there(paths);
    Running {
        pages: guarded([pages], access),
        end,
    }
}

/// No other replica.
pub(crate) fn alone() -> LeaderElection {
    LeaderElection {
        leader_elect: false,
        ..LeaderElection::default()
    }
}
