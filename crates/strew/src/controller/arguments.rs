//! The flags of `strew controller`: the common ones of processes, and which controllers run.

use std::time::Duration;

use clap::Args;
use strew_kube::controller::Choice;
use strew_manifest::duration::GoDuration;

use super::audit::AuditTimerArgs;
use super::rebalance::RebalanceTimerArgs;
use crate::cluster::access::AccessArgs;
use crate::process::election::ElectionArgs;
use crate::process::log::LogArgs;
use crate::process::serving::ServingArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM controller                                 those whose CustomResourceDefinitions are there
  PROGRAM controller --controllers=placement         Placements alone, as soon as there can be any
  PROGRAM controller --controllers='*,-placement'    all but Placements
  PROGRAM controller --controllers=keep              deletion costs, so that labelled workloads stay spread
  PROGRAM controller --controllers=audit             what each zone's loss would do, as metrics; it only reads
  PROGRAM controller --controllers=rebalance         evictions that make labelled workloads even again
  PROGRAM controller --leader-elect=false            the only replica, on one machine

Exit codes: 0 ended by a signal; 2 wrong usage; 3 the API server cannot be used.";

/// Arguments of `strew controller`.
#[derive(Args, Debug)]
pub(crate) struct ControllerArgs {
    /// The controllers to run: workloadspread, placement, keep, audit, rebalance; `*` means the first two, each if its
    /// CustomResourceDefinitions exist, `-NAME` excludes one
    #[arg(
        long,
        value_name = "NAME,...",
        default_value = "*",
        allow_hyphen_values = true,
        help_heading = "What it controls"
    )]
    pub(super) controllers: Choice,
    /// The namespace of the ConfigMap `kruise-configuration`, whose white list names custom kinds of targets
    #[arg(
        long,
        value_name = "NAMESPACE",
        default_value = "strew-system",
        help_heading = "What it controls"
    )]
    pub(super) configuration_namespace: String,
    /// If no replica of the webhook has been ready for this long, remove it from the API server's configuration, so
    /// that pods are created without it, in no subset; at least 5s
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = patience,
        default_value = "6s",
        help_heading = "What it controls"
    )]
    pub(super) webhook_gone_after: Duration,
    /// Never remove the webhook: while no replica is ready, creations of pods are refused, and no subset gets too many
    /// pods
    #[arg(long, help_heading = "What it controls")]
    pub(super) strict: bool,
    #[command(flatten)]
    pub(super) audit: AuditTimerArgs,
    #[command(flatten)]
    pub(super) rebalance: RebalanceTimerArgs,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    #[command(flatten)]
    pub(super) election: ElectionArgs,
    #[command(flatten)]
    pub(super) serving: ServingArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// A replica reports every two seconds that it is ready, and its API server may be slow.
fn patience(text: &str) -> Result<Duration, String> {
    let parsed = GoDuration::parse(text).map(GoDuration::to_std);
    parsed
        .filter(|span| span.as_secs() >= 5)
        .ok_or_else(|| "not a duration of 5 seconds or more, such as 30s".to_owned())
}
