//! The flags of leader election, with kube-scheduler's names. Source: spec/scheduler §5.4.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use strew_manifest::duration::GoDuration;
use strew_wire::config::LeaderElection;

use crate::failure::Failure;

/// What flags say of the election; each wins over the configuration.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Which replica acts")]
pub(crate) struct ElectionArgs {
    /// Let only one of several replicas be active at a time [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    leader_elect: Option<bool>,
    /// How long a lease is valid without renewal [default: 15s]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    leader_elect_lease_duration: Option<Duration>,
    /// How long the leader tries to renew its lease [default: 10s]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    leader_elect_renew_deadline: Option<Duration>,
    /// The pause between two tries [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = span)]
    leader_elect_retry_period: Option<Duration>,
    /// The name of the lease [default: that of the program, such as strew-scheduler]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// The namespace of the lease [default: kube-system for the scheduler, else strew-system]
    #[arg(long, value_name = "NAMESPACE")]
    leader_elect_resource_namespace: Option<String>,
    /// Leases are the only supported locks.
    #[arg(long, value_name = "KIND", value_parser = ["leases"], hide = true)]
    leader_elect_resource_lock: Option<String>,
}

impl ElectionArgs {
    /// Applies the flags to the configuration.
    ///
    /// # Errors
    /// The durations contradict each other.
    pub(crate) fn put_into(&self, election: &mut LeaderElection) -> Result<(), Failure> {
        fn put<T: Clone>(flag: &Option<T>, field: &mut T) {
            if let Some(value) = flag {
                field.clone_from(value);
            }
        }
        put(&self.leader_elect, &mut election.leader_elect);
        put(
            &self.leader_elect_lease_duration,
            &mut election.lease_duration,
        );
        put(
            &self.leader_elect_renew_deadline,
            &mut election.renew_deadline,
        );
        put(&self.leader_elect_retry_period, &mut election.retry_period);
        put(
            &self.leader_elect_resource_name,
            &mut election.resource_name,
        );
        put(
            &self.leader_elect_resource_namespace,
            &mut election.resource_namespace,
        );
        let wrong = if !election.leader_elect {
            None
        } else if election.lease_duration.as_secs() == 0 || election.retry_period.is_zero() {
            Some("a lease holds at least a second, and there is a wait between two tries")
        } else if election.lease_duration <= election.renew_deadline {
            Some("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")
        } else if election.renew_deadline <= election.retry_period {
            Some("--leader-elect-renew-deadline must be longer than --leader-elect-retry-period")
        } else {
            None
        };
        match wrong {
            Some(text) => Err(Failure::input(anyhow!(text))),
            None => Ok(()),
        }
    }
}

/// A duration in Go's form.
fn span(text: &str) -> Result<Duration, String> {
    let parsed = GoDuration::parse(text).map(GoDuration::to_std);
    parsed
        .filter(|span| !span.is_zero())
        .ok_or_else(|| "not a duration such as 15s or 1m30s".to_owned())
}
