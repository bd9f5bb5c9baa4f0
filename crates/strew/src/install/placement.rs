//! The manifests of Placement: the controller on a hub.

use clap::Args;
use strew_kube::controller::Name;
use strew_wire::placement::crd;

use super::Common;
use super::definitions::DefinitionArgs;
use super::objects::Part;
use super::workloadspread::{controller_account, controller_alone};
use crate::context::Context;
use crate::failure::Failure;
use crate::manifest::Manifest;

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
        manifests.extend(controller_alone(
            &self.common,
            &part,
            Name::Placement,
            ABOUT,
        )?);
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
