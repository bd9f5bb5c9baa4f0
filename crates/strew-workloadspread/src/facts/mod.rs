//! The facts as plain values. No text is parsed here: the makers of facts have parsed it.

pub mod kinds;
pub mod pod;
pub mod spec;
pub mod status;
pub mod workload;
