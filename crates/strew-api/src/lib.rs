//! The wire: reading, validating and admitting Kubernetes objects, and turning them into facts.

pub mod facts;
pub mod field;
pub mod quantity;
pub mod read;
pub mod workloads;
