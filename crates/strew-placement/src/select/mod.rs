//! The last step: which of the clusters that passed are taken.
//!
//! Without spread constraints the best by score ([`plain`]); with them one by one ([`even_spread`]), so that the
//! clusters stay spread over the topologies of a [`tree`] whose [`levels`] the constraints name; [`openings`] bounds how
//! many topologies are used. [`measure`] tells how even it came out. Source: spec/placement §2.6, §3; the OCM spread
//! proposal, "Implementation".

pub(crate) mod even_spread;
pub(crate) mod levels;
pub(crate) mod measure;
pub(crate) mod openings;
pub(crate) mod plain;
pub(crate) mod tree;
