//! Validation of OCM's objects by the schemas of their CRDs and by OCM's webhooks; reports all errors at once.
//!
//! [`strew_wire::placement::facts::misconfigured`] finds errors that it accepts but that prevent decisions. Source:
//! spec/placement §1, §3.1.

mod cluster;
mod placement;
mod schema;
