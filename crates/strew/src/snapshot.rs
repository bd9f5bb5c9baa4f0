//! `strew snapshot`: writes a cluster into a file that simulate and explain read.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{Format, serialized};
use crate::{cluster, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM snapshot > dump.json                          all that decides, of the current context
  PROGRAM snapshot --context staging --file dump.json
  PROGRAM explain pod/web-7 -n shop dump.json           and later: why was it Pending then?
  PROGRAM simulate dump.json new-app.yaml               would this find room, too?

It reads and writes nothing else. Secrets are not read; environments, arguments, probes and annotations that decide
nothing are taken away.

Exit codes: 0 done; 2 wrong usage or kubeconfig; 3 the API server cannot be used, or the file not written.";

/// Arguments of `strew snapshot`.
#[derive(Args, Debug)]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    access: AccessArgs,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "json", value_parser = ["json", "yaml"])]
    output: String,
}

pub(crate) fn run(args: &SnapshotArgs, context: &Context) -> Result<u8, Failure> {
    let list = cluster::fetch(&args.access, context.quiet)?;
    let format = match args.output.as_str() {
        "yaml" => Format::Yaml,
        _ => Format::Json,
    };
    let text = serialized(&list, format)?;
    match &args.file {
        None => terminal::print(&text)?,
        Some(file) => std::fs::write(file, text)
            .with_context(|| format!("cannot write {}", file.display()))
            .map_err(Failure::outside)?,
    }
    if !context.quiet && args.file.is_some() {
        let n_objects = list["items"].as_array().map_or(0, Vec::len);
        terminal::say(&format!("{n_objects} objects\n"));
    }
    Ok(0)
}
