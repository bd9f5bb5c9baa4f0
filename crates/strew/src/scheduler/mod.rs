//! `strew scheduler`: decides for the pods of a cluster.
//!
//! This file has the arguments and the start of the process; `strew_kube::scheduler` has the rest. Reading order:
//! [`arguments`], this file; [`process`] is shared with other commands.

mod arguments;

use anyhow::anyhow;
use serde_json::json;
use strew_kube::identity;
use strew_kube::scheduler::permissions::{OF_FIRST_LEASE, in_cluster, of_lease};
use strew_kube::scheduler::{About, Blueprint, Process};
use strew_model::Interner;
use strew_wire::config::Configuration;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::failure::{EXIT_INPUT, Failure};
use crate::process::configuration::configured;
use crate::process::start::patiently;
use crate::process::{self, connected, log, permissions, signals};
use crate::terminal;
use crate::version::KUBERNETES;
pub(crate) use arguments::{EXAMPLES, SchedulerArgs};

/// The profile that decides without a configuration: pods must name it.
const SCHEDULER_NAME: &str = "strew";

/// kube-scheduler's port.
const PORT: u16 = 10259;

/// Runs until a signal ends it.
pub(crate) fn run(args: &SchedulerArgs, context: &Context) -> Result<u8, Failure> {
    let mut names = Interner::new();
    let Some(configuration) = configure(args, &mut names, context)? else {
        return Ok(EXIT_INPUT);
    };
    if args.validate_config {
        return validated(&configuration);
    }
    log::start(&args.log, context)?;
    for note in &configuration.notes {
        tracing::info!("{note}");
    }
    process::run(work(args, configuration, names))
}

/// The configuration with the flags; `None` if it is invalid, which was reported.
fn configure(
    args: &SchedulerArgs,
    names: &mut Interner,
    context: &Context,
) -> Result<Option<Configuration>, Failure> {
    let file = crate::configuration::read(&args.scheduling)?;
    if file.is_some() && args.scheduler_name.is_some() {
        let error =
            anyhow!("--scheduler-name and --config: the profiles of the configuration have names");
        let hint = "put the name into the file: profiles[].schedulerName";
        return Err(Failure::input(error).with_hint(hint));
    }
    let configuration = configured(&args.scheduling, file.as_ref(), names, context);
    let Some(mut configuration) = configuration else {
        return Ok(None);
    };
    if file.is_none()
        && let Some(profile) = configuration.profiles.first_mut()
    {
        let name = args.scheduler_name.as_deref().unwrap_or(SCHEDULER_NAME);
        name.clone_into(&mut profile.scheduler_name);
    }
    args.election.put_into(&mut configuration.leader_election)?;
    Ok(Some(configuration))
}

fn validated(configuration: &Configuration) -> Result<u8, Failure> {
    let mut text = String::new();
    for note in &configuration.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    for profile in &configuration.profiles {
        text.push_str(&format!("profile {}: valid\n", profile.scheduler_name));
    }
    let election = &configuration.leader_election;
    text.push_str(&match election.leader_elect {
        true => format!(
            "leader election: lease {}/{}\n",
            election.resource_namespace, election.resource_name
        ),
        false => "leader election: off\n".to_owned(),
    });
    terminal::print(&text)?;
    Ok(0)
}

async fn work(
    args: &SchedulerArgs,
    configuration: Configuration,
    names: Interner,
) -> Result<u8, Failure> {
    let end = signals::until_signal()?;
    let election = &configuration.leader_election;
    let in_cluster = in_cluster();
    let mut needed: Vec<permissions::Needed<'_>> =
        vec![(&in_cluster[..], None), (args.serving.needed(), None)];
    let mut needed_of: Vec<permissions::NeededOf<'_>> = Vec::new();
    let lease = [election.resource_name.as_str()];
    let lease = of_lease(&lease);
    if election.leader_elect {
        let namespace = Some(election.resource_namespace.as_str());
        needed.push((OF_FIRST_LEASE, namespace));
        needed_of.push((&lease, namespace));
    }
    let access = args.access.of(&configuration.client_connection);
    let begin = async || {
        let connection = connected(&access, "strew-scheduler").await?;
        permissions::check(&connection.client, &needed, &needed_of, "scheduler").await?;
        Ok(connection)
    };
    let Some(connection) = patiently(begin, (&args.serving, PORT), &end).await? else {
        return Ok(0);
    };
    let hostname = identity::hostname();
    let client = &connection.client;
    let serving = args.serving.bind(PORT, &hostname, client).await?;
    let random = identity::random();
    let profiles = configuration.profiles.iter();
    let profiles: Vec<&str> = profiles.map(|p| p.scheduler_name.as_str()).collect();
    tracing::info!(
        profiles = profiles.join(","),
        "deciding for pods of these schedulers"
    );
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kubernetes: KUBERNETES.to_owned(),
        configuration: shown(&configuration),
    };
    let blueprint = Blueprint {
        configuration,
        names,
        identity: identity::of_replica(&hostname, random),
        hostname,
        seed: u64::from_be_bytes(random[..8].try_into().unwrap_or_default()),
        about,
    };
    let (process, pages) = Process::start(blueprint, &connection, end.clone());
    // Health is served until the process ends.
    let served = CancellationToken::new();
    if let Some(serving) = serving {
        serving.start(pages, served.clone())?;
    }
    process.run(end).await;
    served.cancel();
    Ok(0)
}

/// The configuration, for `/configz`; of profiles only their names.
fn shown(configuration: &Configuration) -> String {
    let election = &configuration.leader_election;
    let profiles = configuration.profiles.iter();
    let profiles: Vec<_> = profiles
        .map(|profile| json!({"schedulerName": profile.scheduler_name}))
        .collect();
    json!({"kubescheduler.config.k8s.io": {
        "profiles": profiles,
        "podInitialBackoffSeconds": configuration.pod_initial_backoff_s,
        "podMaxBackoffSeconds": configuration.pod_max_backoff_s,
        "leaderElection": {
            "leaderElect": election.leader_elect,
            "resourceName": election.resource_name,
            "resourceNamespace": election.resource_namespace,
        },
    }})
    .to_string()
}
