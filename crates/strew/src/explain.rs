//! `strew explain`.

use clap::{Args, ValueEnum};

use crate::arguments::{Context, WorldArgs};
use crate::failure::Failure;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM explain pod/web-7 -n shop dump.json         why is it Pending, or why there?
  PROGRAM explain deployment/web shop.yaml            its first Pending pod, else its first
  PROGRAM explain pod web-7 -n shop -o json -f dump.json";

/// Arguments of `strew explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// TYPE/NAME or TYPE NAME, then files as for simulate
    #[arg(value_name = "TYPE/NAME FILE", required = true, num_args = 1..)]
    words: Vec<String>,
    #[command(flatten)]
    world: WorldArgs,
    /// The pod's namespace [default: default, or wherever the name is found]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
}

pub(crate) fn run(_args: &ExplainArgs, _context: &Context) -> Result<u8, Failure> {
    Ok(0)
}
