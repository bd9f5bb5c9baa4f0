//! `strew version`.

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::failure::Failure;
use crate::terminal;

pub(crate) use strew_suite::KUBERNETES;

#[derive(Args, Debug)]
pub(crate) struct VersionArgs {
    /// How to write it
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum Format {
    Json,
    Yaml,
}

pub(crate) fn run(args: &VersionArgs) -> Result<u8, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let value = json!({"version": version, "kubernetes": KUBERNETES});
    let text = match args.output {
        None => format!("strew {version}, deciding as kube-scheduler v{KUBERNETES}\n"),
        Some(Format::Json) => format!("{value:#}\n"),
        Some(Format::Yaml) => format!("version: {version}\nkubernetes: {KUBERNETES}\n"),
    };
    terminal::print(&text)?;
    Ok(0)
}
