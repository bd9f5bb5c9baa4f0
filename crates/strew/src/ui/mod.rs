//! `strew ui`: a page for a browser on this machine, of files or of a live cluster. It only reads.
//!
//! Reading order: this file (what is shown, and where), [`files`], [`live`], [`picture`] (a moment as rows).

mod files;
mod live;
mod picture;

use anyhow::anyhow;
use axum::body::Bytes;
use axum::http::HeaderValue;
use clap::Args;
use strew_kube::mirror;
use strew_kube::page::{self, Data, Page};
use strew_kube::panics;
use strew_kube::serve::{ServeError, Server};
use strew_suite::seeds::SeedsArg;

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::failure::{EXIT_INPUT, Failure};
use crate::html::{self, Served};
use crate::process::signals::until_signal;
use crate::world::WorldArgs;
use crate::{configuration, install, process, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM ui                                    the cluster of the kubeconfig, live
  PROGRAM ui --context staging --port 8080      the same at http://127.0.0.1:8080/
  PROGRAM ui dump.json                          a cluster as it was recorded, with PROGRAM snapshot for example
  PROGRAM ui shop.yaml --zones 3 --nodes 12     what PROGRAM simulate --html shows of manifests or of a Scenario

It prints the address of the page, and serves it until Ctrl-C, to this machine alone. It writes nothing, and lists and
watches only the kinds that PROGRAM ui --rights names. Environments, arguments, annotations and Secrets are not read or
not kept. Everybody who can use a port of this machine can see the page.

Exit codes: 0 ended; 2 wrong input or usage; 3 the API server or the port cannot be used.";

/// Arguments of `strew ui`.
#[derive(Args, Debug)]
pub(crate) struct UiArgs {
    /// Dumps, manifests or Scenarios: files, folders, or - for standard input [default: the cluster of the kubeconfig]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// The port of 127.0.0.1; 0: any free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Let pages of this origin read the data, for example http://localhost:4466 for the plugin of Headlamp; no other one
    /// may
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    allow_origin: Option<HeaderValue>,
    /// Print which rights in a cluster it uses, and serve nothing
    #[arg(long, exclusive = true)]
    rights: bool,
    #[command(flatten)]
    world: WorldArgs,
    /// Of what is played: only this variant, or these
    #[arg(long, value_name = "NAME")]
    variant: Vec<String>,
    /// Of what is played: this number of seeds, or the seeds from A to before B; --seed plays one
    #[arg(long, value_name = "N|A..B")]
    seeds: Option<SeedsArg>,
    /// End what is played at this time, for example 90s, or after the step of this name, for example deploy
    #[arg(long, value_name = "DURATION|STEP")]
    until: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

pub(crate) fn run(args: &UiArgs, context: &Context) -> Result<u8, Failure> {
    if args.rights {
        let rights = mirror::permissions();
        terminal::print(&install::table_of("strew ui", &rights))?;
        return Ok(0);
    }
    let names = args.world.names(&args.files);
    if names.is_empty() {
        return process::run(live::serve(args, context));
    }
    if args.access.is_named() {
        let error = anyhow!("files were named, and an API server");
        return Err(Failure::input(error).with_hint("name the one that is to be shown"));
    }
    configuration::check(&args.world.scheduling, &names)?;
    let Some(content) = files::content(args, &names, context)? else {
        return Ok(EXIT_INPUT);
    };
    let data = Data::Fixed(content.data.into());
    let page = page(&content.in_document, data, args)?;
    process::run(async {
        let server = bind(args.port).await?;
        let end = until_signal()?;
        say(&server, context)?;
        server.run(page.routes(), end).await;
        Ok(0)
    })
}

/// The page with these data in its document; `data` is what it serves beside.
fn page(in_document: &str, data: Data, args: &UiArgs) -> Result<Page, Failure> {
    let Served {
        document,
        script,
        style,
    } = html::served(in_document).map_err(Failure::outside)?;
    Ok(Page {
        document: document.into(),
        script: Bytes::from_static(script.as_bytes()),
        style: Bytes::from_static(style.as_bytes()),
        data,
        allowed_origin: args.allow_origin.clone(),
    })
}

/// An origin as a browser sends it: scheme and host, and the port if it is not the scheme's.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let rest = text.strip_prefix("http://");
    let host = rest.or_else(|| text.strip_prefix("https://"));
    let is_host = |host: &str| {
        let may_be = |c: char| c.is_ascii_alphanumeric() || ".:-[]".contains(c);
        !host.is_empty() && host.chars().all(may_be)
    };
    match host.filter(|host| is_host(host)) {
        Some(_) => HeaderValue::from_str(text).map_err(|error| error.to_string()),
        None => Err("an origin is a scheme with a host, as http://localhost:4466 is".to_owned()),
    }
}

async fn bind(port: u16) -> Result<Server, Failure> {
    panics::install();
    let server = Server::bind_loopback(port, page::limits()).await;
    server.map_err(|error| match error {
        ServeError::Bind { .. } => {
            Failure::outside(error).with_hint("--port takes another port, and 0 any free one")
        }
        error => Failure::outside(error),
    })
}

/// Prints the address first, so that a program that starts this can read it.
fn say(server: &Server, context: &Context) -> Result<(), Failure> {
    terminal::print(&format!("http://{}/\n", server.address()))?;
    if !context.quiet {
        terminal::say("Ctrl-C ends it\n");
    }
    Ok(())
}
