//! The manifests of the audit: a controller that only reads.

use clap::Args;
use serde_json::json;
use strew_kube::controller::Name;

use super::Common;
use super::manifest::Manifest;
use super::network::Door;
use super::objects::Part;
use super::workloadspread::{CONTROLLER_PAGES, controller, controller_account};
use crate::cluster::access::AccessArgs;
use crate::failure::Failure;

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
        let account = controller_account(&part, Name::Audit);
        manifests.extend(account.objects().into_iter().map(Manifest::from));
        let container = controller(&self.common, Name::Audit, NAME)?;
        let pod = json!({"containers": [container.value()]});
        manifests.extend(part.quota(&self.common).map(Manifest::from));
        let deployment = part.deployment(&self.common, &pod, None)?;
        manifests.push(Manifest::with_comment(ABOUT, deployment));
        manifests.push(part.budget().into());
        let doors = [Door::of_pages(
            CONTROLLER_PAGES,
            &self.common.metrics_namespace,
        )];
        manifests.push(part.network_policy(&doors).into());
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
