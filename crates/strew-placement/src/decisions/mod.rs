//! What a selection becomes on the hub: [`groups`], cut into the [`slices`] that PlacementDecisions hold, the [`replicas`]
//! of their clusters, and the order of their [`writes`].

pub mod groups;
pub mod replicas;
pub mod slices;
pub mod writes;
