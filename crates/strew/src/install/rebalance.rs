//! The manifests of the controller that makes labelled workloads even again.

use clap::Args;
use strew_kube::controller::Name;

use super::Common;
use super::objects::Part;
use super::workloadspread::{controller_account, controller_alone};
use crate::cluster::access::AccessArgs;
use crate::failure::Failure;
use crate::manifest::Manifest;

/// The name of its objects and its lease.
const NAME: &str = "strew-rebalance";

const ABOUT: &str = "\
It evicts pods of workloads and namespaces with the label rebalance.strew.dev/spread=true alone, one at a time, as their
budgets allow. A large cluster needs more memory than the default limit (docs/rebalance.md).";

/// Arguments of `strew install rebalance`.
#[derive(Args, Debug)]
pub(super) struct RebalancePart {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) access: AccessArgs,
}

impl RebalancePart {
    /// All objects, in the order of their dependencies.
    pub(super) fn manifests(&self) -> Result<Vec<Manifest>, Failure> {
        let part = self.part();
        let mut manifests = vec![Manifest::from(part.namespace())];
        manifests.extend(controller_alone(
            &self.common,
            &part,
            Name::Rebalance,
            ABOUT,
        )?);
        Ok(manifests)
    }

    /// What each right is for, as Markdown.
    pub(super) fn rights(&self) -> String {
        controller_account(&self.part(), Name::Rebalance).table()
    }

    fn part(&self) -> Part<'_> {
        Part {
            name: NAME,
            namespace: &self.common.namespace,
        }
    }
}
