//! The manifests of a controller that has a process of its own: with two of them installed there are two processes, each
//! with only its own rights.

use clap::Args;
use serde_json::json;
use strew_kube::controller::Name;

use super::Common;
use super::network::Door;
use super::objects::Part;
use super::workloadspread::{CONTROLLER_PAGES, controller, controller_account};
use crate::cluster::access::AccessArgs;
use crate::failure::Failure;
use crate::manifest::Manifest;

/// A controller as it is installed.
pub(super) struct Controller {
    controller: Name,
    /// The name of its objects and its lease.
    name: &'static str,
    about: &'static str,
}

pub(super) const PLACEMENT: Controller = Controller {
    controller: Name::Placement,
    name: "strew-placement",
    about: "\
In the place of OCM's placement controller: where that one runs, stop it first, or the two rewrite each other's
decisions.",
};

pub(super) const KEEP: Controller = Controller {
    controller: Name::Keep,
    name: "strew-keep",
    about: "\
It writes deletion costs to pods of workloads and namespaces with the label keep.strew.dev/spread=true alone.",
};

pub(super) const AUDIT: Controller = Controller {
    controller: Name::Audit,
    name: "strew-audit",
    about: "\
Each audit plays the loss, the shift and the drain of every zone on one core: a large cluster needs more memory than the
default limit (docs/audit.md).",
};

pub(super) const REBALANCE: Controller = Controller {
    controller: Name::Rebalance,
    name: "strew-rebalance",
    about: "\
It evicts pods of workloads and namespaces with the label rebalance.strew.dev/spread=true alone, one at a time, as their
budgets allow. A large cluster needs more memory than the default limit (docs/rebalance.md).",
};

impl Controller {
    /// All objects, in the order of their dependencies.
    pub(super) fn manifests(
        &self,
        common: &Common,
        definitions: Vec<Manifest>,
    ) -> Result<Vec<Manifest>, Failure> {
        let part = self.part(common);
        let mut manifests = vec![Manifest::from(part.namespace())];
        manifests.extend(definitions);
        let account = controller_account(&part, self.controller).objects();
        manifests.extend(account.into_iter().map(Manifest::from));
        let container = controller(common, self.controller, part.name)?;
        let pod = json!({"containers": [container.value()]});
        manifests.extend(part.quota(common).map(Manifest::from));
        let deployment = part.deployment(common, &pod, None)?;
        manifests.push(Manifest::with_comment(self.about, deployment));
        manifests.push(part.budget().into());
        let doors = [Door::of_pages(CONTROLLER_PAGES, &common.metrics_namespace)];
        manifests.push(part.network_policy(&doors).into());
        Ok(manifests)
    }

    /// What each right is for, as Markdown.
    pub(super) fn rights(&self, common: &Common) -> String {
        controller_account(&self.part(common), self.controller).table()
    }

    fn part<'a>(&self, common: &'a Common) -> Part<'a> {
        Part {
            name: self.name,
            namespace: &common.namespace,
        }
    }
}

/// Arguments of a controller that needs no definitions.
#[derive(Args, Debug)]
pub(super) struct ControllerPart {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) access: AccessArgs,
}
