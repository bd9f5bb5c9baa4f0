//! The wire: reading, validating and admitting Kubernetes objects, and turning them into facts.

pub mod field;
pub mod read;
