//! The manifests of the controller that keeps ReplicaSets spread.

use clap::Args;
use strew_kube::controller::Name;

use super::Common;
use super::objects::Part;
use super::workloadspread::{controller_account, controller_alone};
use crate::cluster::access::AccessArgs;
use crate::failure::Failure;
use crate::manifest::Manifest;

/// The name of its objects and its lease.
const NAME: &str = "strew-keep";

const ABOUT: &str = "\
It writes deletion costs to pods of workloads and namespaces with the label keep.strew.dev/spread=true alone.";

/// Arguments of `strew install keep`.
#[derive(Args, Debug)]
pub(super) struct KeepPart {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) access: AccessArgs,
}

impl KeepPart {
    /// All objects, in the order of their dependencies.
    pub(super) fn manifests(&self) -> Result<Vec<Manifest>, Failure> {
        let part = self.part();
        let mut manifests = vec![Manifest::from(part.namespace())];
        manifests.extend(controller_alone(&self.common, &part, Name::Keep, ABOUT)?);
        Ok(manifests)
    }

    /// What each right is for, as Markdown.
    pub(super) fn rights(&self) -> String {
        controller_account(&self.part(), Name::Keep).table()
    }

    fn part(&self) -> Part<'_> {
        Part {
            name: NAME,
            namespace: &self.common.namespace,
        }
    }
}
