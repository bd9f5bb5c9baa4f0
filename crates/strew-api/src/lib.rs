//! The wire: reading, validating and admitting Kubernetes objects, and turning them into facts.

pub mod admission;
pub mod facts;
pub mod field;
pub mod quantity;
pub mod read;
pub mod validation;
pub mod workloads;
