//! The flags of `strew controller`: those of the scheduler's process, and which controllers run.

use clap::Args;
use strew_kube::controller::Choice;

use crate::cluster::access::AccessArgs;
use crate::process::election::ElectionArgs;
use crate::process::log::LogArgs;
use crate::process::serving::ServingArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM controller                                 those whose CustomResourceDefinitions are there
  PROGRAM controller --controllers=placement         Placements alone, as soon as there can be any
  PROGRAM controller --controllers='*,-placement'    all but Placements
  PROGRAM controller --leader-elect=false            the only replica, on one machine

Exit codes: 0 ended by a signal; 2 wrong usage; 3 the API server cannot be used.";

/// Arguments of `strew controller`.
#[derive(Args, Debug)]
pub(crate) struct ControllerArgs {
    /// Which controllers run: workloadspread, placement; `*` is all whose CustomResourceDefinitions are there, `-NAME`
    /// takes one out
    #[arg(
        long,
        value_name = "NAME,...",
        default_value = "*",
        allow_hyphen_values = true,
        help_heading = "What it controls"
    )]
    pub(super) controllers: Choice,
    /// Where the ConfigMap `kruise-configuration` is, whose white list names custom kinds of targets
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "strew-system",
        help_heading = "What it controls"
    )]
    pub(super) configuration_namespace: String,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    #[command(flatten)]
    pub(super) election: ElectionArgs,
    #[command(flatten)]
    pub(super) serving: ServingArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
}
