//! Validation of OCM's objects, by the schemas of their CRDs and by OCM's webhooks: every error at once.
//!
//! What it takes and no decision can be made from is in [`strew_api::placement::facts::misconfigured`]. Source: spec/placement §1, §3.1.

mod cluster;
mod placement;
mod schema;
