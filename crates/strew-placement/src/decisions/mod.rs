//! Turns a selection into PlacementDecisions: [`groups`], cut into [`slices`] of the size of one object, the
//! [`replicas`] of their clusters, and the order of the [`writes`].

pub mod groups;
pub mod replicas;
pub mod slices;
pub mod writes;
