//! The manifests of Placement: the controller on a hub.

use clap::Args;
use serde_json::json;
use strew_kube::controller::Name;
use strew_wire::placement::crd;

use super::Common;
use super::definitions::DefinitionArgs;
use super::manifest::Manifest;
use super::network::Door;
use super::objects::Part;
use super::workloadspread::{CONTROLLER_PAGES, controller, controller_account};
use crate::context::Context;
use crate::failure::Failure;

/// The name of its objects and its lease: with both parts installed there are two processes, each with only its own
/// rights.
const NAME: &str = "strew-placement";

const ABOUT: &str = "\
In the place of OCM's placement controller: where that one runs, stop it first, or the two rewrite each other's
decisions.";

/// Arguments of `strew install placement`.
#[derive(Args, Debug)]
pub(super) struct PlacementPart {
    #[command(flatten)]
    pub(super) common: Common,
    #[command(flatten)]
    pub(super) definitions: DefinitionArgs,
}

impl PlacementPart {
    /// All objects, in the order of their dependencies.
    pub(super) fn manifests(&self, context: &Context) -> Result<Vec<Manifest>, Failure> {
        let part = self.part();
        let mut manifests = vec![Manifest::from(part.namespace())];
        manifests.extend(self.definitions.chosen(crd::all(), context)?);
        let account = controller_account(&part, Name::Placement);
        manifests.extend(account.objects().into_iter().map(Manifest::from));
        let container = controller(&self.common, Name::Placement, NAME)?;
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
        controller_account(&self.part(), Name::Placement).table()
    }

    fn part(&self) -> Part<'_> {
        Part {
            name: NAME,
            namespace: &self.common.namespace,
        }
    }
}
