//! `strew controller`: keeps WorkloadSpreads and Placements of a cluster, audits it and makes it even again.
//!
//! This file has the arguments and the start of the process; `strew_kube::controller` has the rest. Reading order:
//! [`arguments`], this file, `audit` (its flags, and an audit as metrics), `rebalance` (its flags, and what
//! decides); [`process`] is shared with other commands.

mod arguments;
mod audit;
mod rebalance;

use anyhow::anyhow;
use serde_json::json;
use strew_kube::connect::Connection;
use strew_kube::controller::permissions::{OF_FIRST_LEASE, of_lease};
use strew_kube::controller::{About, Blueprint, DEBUG_PATHS, Process, Scout};
use strew_kube::identity;
use strew_kube::permission::{missing, missing_of};
use strew_kube::registration::guard;
use strew_kube::serve::Paths;
use strew_model::time::Span;
use strew_wire::config::{ClientConnection, LeaderElection};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::failure::Failure;
use crate::process::start::patiently;
use crate::process::{self, connected, log, permissions, signals};
use crate::version::KUBERNETES;
pub(crate) use arguments::{ControllerArgs, EXAMPLES};

/// Different from the scheduler's and the webhook's.
const PORT: u16 = 10261;

/// The name and namespace of the lease.
const LEASE: &str = "strew-controller";
const NAMESPACE: &str = "strew-system";

/// Runs until a signal ends it.
pub(crate) fn run(args: &ControllerArgs, context: &Context) -> Result<u8, Failure> {
    let mut election = LeaderElection {
        resource_name: LEASE.to_owned(),
        resource_namespace: NAMESPACE.to_owned(),
        ..LeaderElection::default()
    };
    args.election.put_into(&mut election)?;
    if args.controllers.wanted().next().is_none() {
        let error = anyhow!("--controllers leaves none");
        return Err(Failure::input(error)
            .with_hint("there are workloadspread, placement, keep, audit and rebalance"));
    }
    log::start(&args.log, context)?;
    process::run(work(args, election))
}

async fn work(args: &ControllerArgs, election: LeaderElection) -> Result<u8, Failure> {
    let end = signals::until_signal()?;
    let begin = async || begin(args, &election).await;
    let Some((connection, scout)) = patiently(begin, (&args.serving, PORT), &end).await? else {
        return Ok(0);
    };
    let client = &connection.client;
    let hostname = identity::hostname();
    let serving = args.serving.bind(PORT, &hostname, client).await?;
    let random = identity::random();
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kubernetes: KUBERNETES.to_owned(),
        configuration: shown(args, &election),
    };
    let guard = guard::Settings {
        patience: Span(u64::try_from(args.webhook_gone_after.as_nanos()).unwrap_or(u64::MAX)),
        is_strict: args.strict,
    };
    let blueprint = Blueprint {
        election,
        identity: identity::of_replica(&hostname, random),
        hostname,
        seed: u64::from_be_bytes(random[..8].try_into().unwrap_or_default()),
        guard,
        audit: args.audit.settings(),
        rebalance: args.rebalance.settings(),
        about,
    };
    let (process, pages) = Process::start(blueprint, scout, &connection, end.clone());
    // Health is served until the process ends.
    let served = CancellationToken::new();
    if let Some(serving) = serving {
        let judged_there = Paths::parse(DEBUG_PATHS).unwrap_or_else(|_| Paths::none());
        serving
            .judged_there(judged_there)
            .start(pages, served.clone())?;
    }
    process.run(end).await;
    served.cancel();
    Ok(0)
}

/// Connects, looks for the kinds that the controllers need, and checks their rights.
async fn begin(
    args: &ControllerArgs,
    election: &LeaderElection,
) -> Result<(Connection, Scout), Failure> {
    let access = args.access.of(&ClientConnection::default());
    let connection = connected(&access, "strew-controller").await?;
    let client = &connection.client;
    let namespace = args.configuration_namespace.clone();
    let choice = args.controllers.clone();
    let scout = Scout::begin(client.clone(), choice, namespace).await;
    let scout = scout.map_err(Failure::outside)?;
    let mut denied = Vec::new();
    if election.leader_elect {
        let namespace = Some(election.resource_namespace.as_str());
        let first = missing(client, OF_FIRST_LEASE, namespace).await;
        denied.extend(first.map_err(Failure::outside)?);
        let names = [election.resource_name.as_str()];
        let own = missing_of(client, &of_lease(&names), namespace).await;
        denied.extend(own.map_err(Failure::outside)?);
    }
    let pages = missing(client, args.serving.needed(), None).await;
    denied.extend(pages.map_err(Failure::outside)?);
    let ready = scout.ready();
    denied.extend(scout.denied(&ready).await.map_err(Failure::outside)?);
    let parts: Vec<&str> = args.controllers.wanted().map(|name| name.text()).collect();
    permissions::none_denied(&denied, &parts.join("|"))?;
    Ok((connection, scout))
}

/// The configuration, for `/configz`.
fn shown(args: &ControllerArgs, election: &LeaderElection) -> String {
    let wanted: Vec<&str> = args.controllers.wanted().map(|name| name.text()).collect();
    json!({"controller.strew.dev": {
        "controllers": wanted,
        "webhookGoneAfterSeconds": args.webhook_gone_after.as_secs(),
        "strict": args.strict,
        "audit": args.audit.shown(),
        "rebalance": args.rebalance.shown(),
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
        },
    }})
    .to_string()
}
