//! The flags of `strew scheduler`, with kube-scheduler's names if it has such a flag. Source: spec/scheduler §5.4.

use clap::Args;

use crate::cluster::access::AccessArgs;
use crate::process::election::ElectionArgs;
use crate::process::log::LogArgs;
use crate::process::serving::ServingArgs;
use strew_suite::configuration::SchedulingArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM scheduler                                  for pods with schedulerName: strew
  PROGRAM scheduler --scheduler-name default-scheduler --leader-elect=false
                                                     in place of kube-scheduler, on one machine
  PROGRAM scheduler --config config.yaml             as a KubeSchedulerConfiguration says
  PROGRAM scheduler --config config.yaml --validate-config

Exit codes: 0 ended by a signal; 2 wrong usage or configuration; 3 the API server cannot be used.";

/// Arguments of `strew scheduler`.
#[derive(Args, Debug)]
pub(crate) struct SchedulerArgs {
    #[command(flatten)]
    pub(super) scheduling: SchedulingArgs,
    /// Schedule pods of this schedulerName, without a configuration [default: strew]
    #[arg(long, value_name = "NAME", help_heading = "How to schedule")]
    pub(super) scheduler_name: Option<String>,
    /// Check the configuration, and exit
    #[arg(long, help_heading = "How to schedule")]
    pub(super) validate_config: bool,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    #[command(flatten)]
    pub(super) election: ElectionArgs,
    #[command(flatten)]
    pub(super) serving: ServingArgs,
    #[command(flatten)]
    pub(super) log: LogArgs,
}
