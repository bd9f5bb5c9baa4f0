//! What a selection becomes on the hub: [`groups`], cut into the [`slices`] that PlacementDecisions hold, and the order
//! of their [`writes`].

pub mod groups;
pub mod slices;
pub mod writes;
