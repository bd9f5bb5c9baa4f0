//! What placement is told, as plain values: [`cluster`], [`cluster_set`], [`scores`], [`placement`], [`decision`],
//! [`status`].
//!
//! Texts are parsed outside. What could not be parsed comes as the sentence that tells so, and is reported when the
//! rule that needs it is asked, as spec/placement §2.3 to §2.8 want it.

pub mod cluster;
pub mod cluster_set;
pub mod decision;
pub mod placement;
pub mod scores;
pub mod status;
