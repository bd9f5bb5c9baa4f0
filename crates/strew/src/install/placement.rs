//! The manifests of Placement: the controller on a hub.

use clap::Args;
use strew_wire::placement::crd;

use super::Common;
use super::alone::PLACEMENT;
use super::definitions::DefinitionArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::manifest::Manifest;

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
        let definitions = self.definitions.chosen(crd::all(), context)?;
        PLACEMENT.manifests(&self.common, definitions)
    }
}
