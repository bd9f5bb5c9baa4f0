//! Selects from the clusters that passed the filters: the last step.
//!
//! Without spread constraints, the clusters with the best scores are selected ([`plain`]); with them, one cluster at a
//! time ([`even_spread`]), so that the clusters stay spread over the topologies of a [`tree`]. The constraints define
//! its [`levels`]; [`openings`] bounds the number of topologies in use. [`measure`] reports how even the result is.
//! Source: spec/placement §2.6, §3; the OCM spread proposal, "Implementation".

pub(crate) mod even_spread;
pub(crate) mod levels;
pub(crate) mod measure;
pub(crate) mod openings;
pub(crate) mod plain;
pub(crate) mod tree;
