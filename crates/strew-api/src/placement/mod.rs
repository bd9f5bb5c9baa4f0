//! OCM's placement objects on the wire: types, rules, facts and requests.
//!
//! Objects come in through [`wire`] (the types, read by [`crate::read`]), `admission` and `validation` (a CRD's
//! defaults and rules) and [`facts`] (plain values), with [`cel`] for expressions over a whole cluster. Effects go out
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
pub mod wire;
