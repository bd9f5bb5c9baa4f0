//! The manifests of the audit: a controller that only reads.

use clap::Args;
use strew_kube::controller::Name;

use super::Common;
use super::objects::Part;
use super::workloadspread::{controller_account, controller_alone};
use crate::cluster::access::AccessArgs;
use crate::failure::Failure;
use crate::manifest::Manifest;

/// The name of its objects and its lease.
const NAME: &str = "strew-audit";

const ABOUT: &str = "\
Each audit plays the loss, the shift and the drain of every zone on one core: a large cluster needs more memory than the
default limit (docs/audit.md).";

/// Arguments of `strew install audit`.
#[derive(Args, Debug)]
pub(super) struct AuditPart {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) access: AccessArgs,
}

impl AuditPart {
    /// All objects, in the order of their dependencies.
    pub(super) fn manifests(&self) -> Result<Vec<Manifest>, Failure> {
        let part = self.part();
        let mut manifests = vec![Manifest::from(part.namespace())];
        manifests.extend(controller_alone(&self.common, &part, Name::Audit, ABOUT)?);
        Ok(manifests)
    }

    /// What each right is for, as Markdown.
    pub(super) fn rights(&self) -> String {
        controller_account(&self.part(), Name::Audit).table()
    }

    fn part(&self) -> Part<'_> {
        Part {
            name: NAME,
            namespace: &self.common.namespace,
        }
    }
}
