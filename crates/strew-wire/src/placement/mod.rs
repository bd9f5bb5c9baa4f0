//! OCM's placement objects on the wire: rules, facts and requests. Their types are in [`strew_manifest::ocm`].
//!
//! Objects come in through [`facts`] (plain values), with [`cel`] for expressions over a whole cluster. Effects go out
//! through [`request`]. [`debug`] explains decisions; [`crd`] makes the CustomResourceDefinitions.
//!
//! Source: spec/placement §1, §2.9, §2.11, §4; the OCM spread proposal, "API Spec".

pub mod cel;
pub mod crd;
pub mod debug;
pub mod facts;
mod misconfigured;
pub mod request;
pub mod schema;
#[cfg(test)]
mod tests;

use strew_manifest::ocm as wire;
