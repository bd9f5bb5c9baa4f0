//! Placement on the wire: OCM's objects, what is wrong with them, what placement is told of them, and what it wants of
//! the API server.
//!
//! An object's way: [`wire`] (the types, read by [`crate::read`]), `admission` and `validation` (what a CRD fills in
//! and refuses), [`facts`] (plain values), with [`cel`] for expressions over the whole cluster. An effect's way:
//! [`request`]. What was decided and why: [`debug`]. The CustomResourceDefinitions: [`crd`].
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
