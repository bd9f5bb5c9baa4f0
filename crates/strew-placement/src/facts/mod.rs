//! The inputs of placement as plain values: [`cluster`], [`cluster_set`], [`scores`], [`placement`], [`decision`],
//! [`status`].
//!
//! Text is parsed outside this crate. If it could not be parsed, the fact holds the error as text, which is reported
//! when the rule that needs the value is applied (spec/placement §2.3 to §2.8).

pub mod cluster;
pub mod cluster_set;
pub mod decision;
pub mod placement;
pub mod scores;
pub mod status;
