//! `strew webhook`: puts pods into subsets, checks WorkloadSpreads, and converts their versions.
//!
//! This file has the arguments and the start of the process; `strew_kube::webhook` has the rest. Reading order:
//! [`arguments`], this file; [`process`] is shared with other commands.

mod arguments;
mod policy;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use serde_json::json;
use strew_kube::authority::rotator::Setup;
use strew_kube::authority::{CertificateRotator, Lifetimes, Place};
use strew_kube::clock::Clock;
use strew_kube::connect::{self, Connection};
use strew_kube::identity;
use strew_kube::registration::Setup as Registering;
use strew_kube::scheduler::permissions::OF_PAGES;
use strew_kube::serve::access::Clients;
use strew_kube::serve::{Certificate, Exchange, Listen, ServeError, Server};
use strew_kube::webhook::permissions::{
    IN_NAMESPACE, OF_AUTHORITY, OF_CONFIGURATIONS, OF_REPLICAS, OF_SECRET, in_cluster,
};
use strew_kube::webhook::{About, Blueprint, Callers, LEASE, Process, SERVICE, Served, limits};
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::Profile;
use strew_wire::config::{ClientConnection, LeaderElection};
use strew_wire::lease::Settings;
use strew_wire::workloadspread::registration::{Reach, Registration};
use tokio_util::sync::CancellationToken;

use crate::cluster::access;
use crate::context::Context;
use crate::failure::{EXIT_INPUT, Failure};
use crate::process::configuration::configured;
use crate::process::permissions::{Needed, NeededOf, check};
use crate::process::start::patiently;
use crate::process::{self, connected, log, signals};
use crate::version::KUBERNETES;
pub(crate) use arguments::{EXAMPLES, WebhookArgs};
pub(crate) use policy::FailurePolicy;

/// The part of strew, for the API server.
const PART: &str = "strew-webhook";

/// Health and metrics.
const PORT: u16 = 10262;

/// Runs until a signal ends it.
pub(crate) fn run(args: &WebhookArgs, context: &Context) -> Result<u8, Failure> {
    let mut names = Interner::new();
    let Some(profiles) = profiles(args, &mut names, context)? else {
        return Ok(EXIT_INPUT);
    };
    log::start(&args.log, context)?;
    process::run(work(args, profiles, names))
}

/// The profiles for simulated scheduling; `None` if the configuration is invalid, which was reported.
fn profiles(
    args: &WebhookArgs,
    names: &mut Interner,
    context: &Context,
) -> Result<Option<Vec<Profile>>, Failure> {
    let file = crate::configuration::read(&args.scheduling)?;
    let configuration = configured(&args.scheduling, file.as_ref(), names, context);
    Ok(configuration.map(|configuration| configuration.profiles))
}

async fn work(args: &WebhookArgs, profiles: Vec<Profile>, names: Interner) -> Result<u8, Failure> {
    let end = signals::until_signal()?;
    let access = args.access.of(&ClientConnection::default());
    let begin = async || {
        let connection = connected(&access, PART).await?;
        let writes = connect::apart(&access, PART, &connection.requests).await;
        let writes = writes.map_err(access::failure)?;
        check_permissions(args, &connection).await?;
        Ok((connection, writes))
    };
    let Some((connection, writes)) = patiently(begin, (&args.serving, PORT), &end).await? else {
        return Ok(0);
    };
    let hostname = identity::hostname();
    let client = &connection.client;
    let serving = args.serving.bind(PORT, &hostname, client).await?;
    let callers = callers(args).await?;
    let server = bind(args, callers.as_ref()).await?;
    if let Some(Callers { clients, .. }) = &callers {
        tokio::spawn(Arc::clone(clients).follow(end.clone()));
    }
    let random = identity::random();
    let seed = u64::from_be_bytes(random[..8].try_into().unwrap_or_default());
    let clock = Clock::new();
    let exchange = server.certificate().clone();
    let rotator = args.hooks.webhook_cert_file.is_none().then(|| {
        let setup = setup(args, identity::of_replica(&hostname, random), seed);
        CertificateRotator::new(setup, client.clone(), clock, exchange.clone())
    });
    let registration = args.hooks.manage_configurations.then(|| Registering {
        registration: registration(args),
        is_strict: args.hooks.strict,
        address: server.address(),
        own: server.own().clone(),
        cut_off: server.cut_off().clone(),
        replica: random[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    });
    let blueprint = Blueprint {
        profiles,
        names,
        namespace: args.hooks.namespace.clone(),
        allowed_patches: args.hooks.allow_patch.clone(),
        daemon_sets: args.hooks.daemon_sets,
        writes: Some(writes),
        callers,
        seed,
        about: about(args),
        exchange,
        rotator,
        registration,
    };
    let (process, Served { hooks, pages }) =
        Process::start(blueprint, &connection, clock, end.clone());
    // Health is served, and calls are answered, until the process ends.
    let served = CancellationToken::new();
    if let Some(serving) = serving {
        serving.start(pages, served.clone())?;
    }
    tracing::info!("pods and WorkloadSpreads on https://{}", server.address());
    let hooks = tokio::spawn(server.run(hooks, served.clone()));
    process.run(end).await;
    served.cancel();
    drop(hooks.await);
    Ok(0)
}

/// The clients whose reviews are answered; `None`: all.
async fn callers(args: &WebhookArgs) -> Result<Option<Callers>, Failure> {
    let hooks = &args.hooks;
    let Some(file) = &hooks.client_ca_file else {
        return Ok(None);
    };
    let clients = Clients::of_file(file.clone()).await;
    let clients = clients.map_err(|error| Failure::input(anyhow!(error)))?;
    Ok(Some(Callers {
        clients: Arc::new(clients),
        names: hooks.client_name.clone(),
    }))
}

async fn bind(args: &WebhookArgs, callers: Option<&Callers>) -> Result<Server, Failure> {
    let hooks = &args.hooks;
    let certificate = match (&hooks.webhook_cert_file, &hooks.webhook_key_file) {
        (Some(certificate), Some(key)) => Certificate::Files {
            certificate: certificate.clone(),
            key: key.clone(),
        },
        _ => Certificate::Exchanged(Exchange::default()),
    };
    let listen = Listen {
        address: hooks.webhook_bind_address,
        port: hooks.webhook_port,
        certificate,
    };
    let clients = callers.map(|callers| callers.clients.verifier());
    let bound = Server::bind_any(listen, clients, limits()).await;
    bound.map_err(|error| match error {
        ServeError::Bind { .. } => {
            Failure::outside(error).with_hint("--webhook-port takes another port")
        }
        error => Failure::input(anyhow!(error)),
    })
}

fn setup(args: &WebhookArgs, identity: String, seed: u64) -> Setup {
    let hooks = &args.hooks;
    let namespace = &hooks.namespace;
    let span = |d: Duration| Span(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    let mut names: Vec<String> = ["svc", "svc.cluster.local"]
        .map(|end| format!("{SERVICE}.{namespace}.{end}"))
        .into();
    names.extend(hooks.webhook_url.iter().map(|url| url.host.clone()));
    let election = LeaderElection {
        resource_name: LEASE.to_owned(),
        resource_namespace: namespace.clone(),
        ..LeaderElection::default()
    };
    Setup {
        place: Place {
            namespace: namespace.clone(),
            service: SERVICE.to_owned(),
            url: hooks.webhook_url.as_ref().map(|url| url.text.clone()),
        },
        names,
        lifetimes: Lifetimes {
            authority: span(hooks.authority_lifetime),
            serving: span(hooks.certificate_lifetime),
            overlap: span(hooks.authority_overlap),
        },
        manages: hooks.manage_configurations,
        election: Settings::of(&election, identity),
        seed,
    }
}

/// The registration of this webhook.
fn registration(args: &WebhookArgs) -> Registration {
    let hooks = &args.hooks;
    let namespace = hooks.namespace.clone();
    Registration {
        reach: match &hooks.webhook_url {
            Some(url) => Reach::Url(url.text.clone()),
            None => Reach::Service(namespace.clone()),
        },
        namespace,
        failure_policy: hooks.failure_policy.text(),
        excluded: hooks.exclude_namespace.clone(),
        daemon_sets: hooks.daemon_sets,
    }
}

fn about(args: &WebhookArgs) -> About {
    let hooks = &args.hooks;
    let configuration = json!({"webhook.strew.dev": {
        "namespace": hooks.namespace,
        "url": hooks.webhook_url.as_ref().map(|url| &url.text),
        "givenCertificate": hooks.webhook_cert_file.is_some(),
        "manageConfigurations": hooks.manage_configurations,
        "failurePolicy": hooks.failure_policy.text(),
        "strict": hooks.strict,
        "excludeNamespaces": hooks.exclude_namespace,
        "daemonSets": hooks.daemon_sets,
        "allowPatch": hooks.allow_patch,
        "clientCAFile": hooks.client_ca_file,
        "clientNames": hooks.client_name,
    }});
    About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kubernetes: KUBERNETES.to_owned(),
        configuration: configuration.to_string(),
    }
}

async fn check_permissions(args: &WebhookArgs, connection: &Connection) -> Result<(), Failure> {
    let own = Some(args.hooks.namespace.as_str());
    let in_cluster = in_cluster();
    let mut needed: Vec<Needed<'_>> = vec![
        (&in_cluster[..], None),
        (OF_PAGES, None),
        (IN_NAMESPACE, own),
    ];
    let mut needed_of: Vec<NeededOf<'_>> = Vec::new();
    if args.hooks.webhook_cert_file.is_none() {
        needed.push((OF_AUTHORITY, own));
        needed_of.push((OF_SECRET, own));
        if args.hooks.manage_configurations {
            needed_of.push((OF_CONFIGURATIONS, None));
            needed_of.push((OF_REPLICAS, own));
        }
    }
    check(&connection.client, &needed, &needed_of, "workloadspread").await
}
