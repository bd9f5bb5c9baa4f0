//! What the world tells, as plain values. No text is parsed here: whoever makes a fact has done that.

pub mod kinds;
pub mod pod;
pub mod spec;
pub mod status;
pub mod workload;
