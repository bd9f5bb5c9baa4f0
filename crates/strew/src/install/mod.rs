//! `strew install`: manifests that put strew's parts into a cluster. It prints; `kubectl apply -f -` does.
//!
//! Reading order: [`objects`] (what every part has), [`scheduler`].

mod objects;
mod scheduler;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::arguments::Context;
use crate::failure::Failure;
use crate::simulate::{Format, serialized};
use crate::terminal;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM install scheduler | kubectl apply -f -
  PROGRAM install scheduler --namespace scheduling --image registry.example.com/strew:0.1.0
  PROGRAM install scheduler --config config.yaml        with its profiles
  PROGRAM install scheduler | kubectl diff -f -         what would change?

It only prints. Exit codes: 0 done; 2 wrong usage or configuration.";

/// Arguments of `strew install`.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The scheduler: two replicas over zones, of which one acts, with no more rights than it needs
    Scheduler(scheduler::SchedulerPart),
}

/// What every part is asked for.
#[derive(Args, Debug, Clone)]
pub(crate) struct Common {
    /// The namespace that it lives in; made as well
    #[arg(long, value_name = "NAME", default_value = "strew-system")]
    namespace: String,
    /// Its container image
    #[arg(long, value_name = "IMAGE", default_value = concat!("strew:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// How many replicas; one acts at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    replicas: u16,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = ["yaml", "json"])]
    output: String,
}

pub(crate) fn run(args: &InstallArgs, context: &Context) -> Result<u8, Failure> {
    let (common, objects) = match &args.part {
        Part::Scheduler(part) => {
            let Some(objects) = part.objects(context)? else {
                return Ok(crate::failure::EXIT_INPUT);
            };
            (&part.common, objects)
        }
    };
    terminal::print(&written(&objects, &common.output)?)?;
    Ok(0)
}

/// A stream of documents, or one `List`.
fn written(objects: &[Value], output: &str) -> Result<String, Failure> {
    if output == "json" {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        return serialized(&list, Format::Json);
    }
    let documents: Result<Vec<String>, Failure> = objects
        .iter()
        .map(|object| serialized(object, Format::Yaml))
        .collect();
    Ok(documents?.join("---\n"))
}
