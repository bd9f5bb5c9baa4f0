//! What a process tells while it runs.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::arguments::Context;
use crate::failure::Failure;

/// How much is told, and how.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "What it tells")]
pub(crate) struct LogArgs {
    /// How much is told: 0 to 3 what an operator needs, 4 and 5 every decision, 6 and more everything
    #[arg(long, value_name = "N", default_value_t = 2)]
    v: u8,
    /// How it is told
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    logging_format: LogFormat,
}

/// The values of `--logging-format`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum LogFormat {
    /// A line each, for people
    Text,
    /// An object each, for programs
    Json,
}

/// Sets up the log, on standard error. `RUST_LOG` wins over the flags.
pub(crate) fn start(args: &LogArgs, context: &Context) -> Result<(), Failure> {
    let level = match (
        context.global.quiet,
        args.v.max(context.global.verbose * 2 + 2),
    ) {
        (true, _) => "warn,kube_client=off",
        // What kube says of each request that fails, strew says once, with what it means.
        (_, 0..=3) => "warn,kube_client=off,strew=info,strew_kube=info,strew_runtime=info",
        (_, 4..=5) => "info,strew=debug,strew_kube=debug,strew_runtime=debug",
        _ => "debug,strew=trace,strew_kube=trace,strew_runtime=trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let done = match args.logging_format {
        LogFormat::Text => builder.with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    strew_kube::panics::install();
    done.map_err(|error| Failure::outside(anyhow!("the log cannot be started: {error}")))
}
