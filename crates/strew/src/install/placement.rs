//! The manifests of Placement: the controller on a hub.

use clap::Args;
use serde_json::Value;
use strew_api::placement::crd;
use strew_kube::controller::permissions::{OF_EVENTS, PLACEMENT};
use strew_kube::scheduler::permissions::{OF_LEASE, OF_PAGES};

use super::Common;
use super::definitions::DefinitionArgs;
use super::manifest::Manifest;
use super::objects::Part;
use super::workloadspread::{controller_pod, rights};
use crate::arguments::Context;
use crate::failure::Failure;

/// Its objects, and its lease: whoever installs both parts has two processes, each with its own rights alone.
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
    definitions: DefinitionArgs,
}

impl PlacementPart {
    /// All objects, in the order in which they are needed.
    pub(super) fn manifests(&self, context: &Context) -> Result<Vec<Manifest>, Failure> {
        let part = Part {
            name: NAME,
            namespace: &self.common.namespace,
        };
        let in_cluster = [PLACEMENT, OF_EVENTS, OF_PAGES].concat();
        let mut manifests = vec![Manifest::from(part.namespace())];
        manifests.extend(self.definitions.chosen(crd::all(), context)?);
        let rights: Vec<Value> = rights(&part, &in_cluster, OF_LEASE);
        manifests.extend(rights.into_iter().map(Manifest::from));
        let pod = controller_pod(&self.common, "placement", NAME);
        let deployment = part.deployment(self.common.replicas, &pod);
        manifests.push(Manifest::with_comment(ABOUT, deployment));
        manifests.push(part.budget().into());
        Ok(manifests)
    }
}
